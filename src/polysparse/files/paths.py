"""Output paths: the hidden names next to them, locks, and free space."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from polysparse.files.atomic import beside, fcntl, is_named, size_of
from polysparse.files.errors import FileFault
from polysparse.machine import format_bytes

msvcrt: Any = import_module("msvcrt") if find_spec("msvcrt") else None  # on Windows

# A directory has one of these: while it is written, once it is complete, and while its arrays are
# being moved into an archive.
PROGRESS, MANIFEST, PACKING = "progress.json", "manifest.json", "packing.json"
JSON_NAMES = {PROGRESS, MANIFEST, PACKING, f"{MANIFEST}.new", f"{PROGRESS}.new"}
OWN_NAMES = JSON_NAMES | {f"{name}.npy" for name in ("indptr", "indices", "data", "labels")}
ASIDES = "partial", "store", "old", "replaced", "lock"


def vocabulary_of(path: Path) -> Path:
    """Return the path of the file that lists the chosen columns of an output."""
    return path.with_name(f"{path.name}.vocabulary")


def require_on_disk(path: Path) -> None:
    """Raise FileFault if a path is a pipe or a device, which may never end or never answer."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FileFault(f"{path} is a pipe or a device: copy what it holds into a file first.")


def is_own(path: Path) -> bool:
    """Return whether a path holds nothing but what polysparse may have written and may remove."""
    if path.is_symlink():
        return False
    if path.is_dir():
        return {each.name for each in path.iterdir()} <= OWN_NAMES
    return path.is_file() or not path.exists()


def remove(path: Path) -> None:
    """Remove a file or a directory if it exists."""
    if path.is_dir():
        with suppress(OSError):  # it may be read-only
            path.chmod(0o700)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_asides(path: Path) -> None:
    """Remove what this run, or a killed one, left behind. What cannot be removed is left there."""
    asides = [beside(path, role) for role in ASIDES if role != "lock"]
    asides += [beside(vocabulary_of(path), role) for role in ("partial", "old")]
    for aside in asides:
        with suppress(OSError):
            remove(aside)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that keeps other runs from writing to the same path."""
    name = beside(path, "lock")
    while True:
        with open(name, "ab") as lock:
            if not _try_to_lock(lock):
                raise BlockingIOError(f"another run is writing {path}.")
            if not is_named(lock, name):  # the previous holder has just removed the file
                continue
            try:
                put_back(path)
                yield
            finally:
                if fcntl is None:  # Windows does not remove a file that is open
                    lock.close()
                with suppress(PermissionError):  # nor one that another run has just opened
                    name.unlink(missing_ok=True)
            return


def _try_to_lock(file: IO[bytes]) -> bool:
    """Lock an open file for as long as it is open; return False if another process holds it."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    return True


# ---------------------------------------------------------------------------- replaced directories


def version_of(path: Path) -> Path:
    """Return where the directory called `path` is: if it lost its name, where it was put aside.

    Where two names cannot be exchanged in one step, a run that is killed while it replaces a
    directory may leave it without its name.
    """
    if path.exists():
        return path
    old = beside(path, "old")
    return old if (old / MANIFEST).exists() else path


def put_back(path: Path) -> None:
    """Give a directory that lost its name its name again. The caller holds the lock."""
    found = version_of(path)
    if found != path:
        found.rename(path)


# ---------------------------------------------------------------------------------------- the disk


def require_free_space(path: Path, n_bytes: int) -> None:
    """Raise OSError if an output of this size would not fit on the disk."""
    free = free_space(path)
    if n_bytes > free:
        error = OSError(
            f"{path} would take {n_bytes:,} bytes ({format_bytes(n_bytes)}), but {free:,} "
            f"({format_bytes(free)}) are free in {path.parent}: make room, or write elsewhere."
        )
        error.errno = errno.ENOSPC
        raise error


def free_space(path: Path) -> int:
    """Return the bytes that an output may take, with what an earlier run left of it."""
    return shutil.disk_usage(path.parent).free + sum(map(size_of, written_asides(path)))


def written_asides(path: Path) -> list[Path]:
    """Return the hidden names under which an output is written."""
    return [beside(path, role) for role in ("partial", "store")]
