"""Output paths: what may be replaced, the hidden names next to them, and locks."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from polysparse.files.atomic import beside, fcntl, is_named
from polysparse.machine import format_bytes

msvcrt: Any = import_module("msvcrt") if find_spec("msvcrt") else None  # on Windows

# A directory has one of these: while it is written, once it is complete, and while its arrays are
# being moved into an archive.
PROGRESS, MANIFEST, PACKING = "progress.json", "manifest.json", "packing.json"
JSON_NAMES = {PROGRESS, MANIFEST, PACKING, f"{MANIFEST}.new", f"{PROGRESS}.new"}
OWN_NAMES = JSON_NAMES | {f"{name}.npy" for name in ("indptr", "indices", "data", "labels")}
ASIDES = "partial", "store", "old", "replaced", "lock"

DIRECTORY, NPZ, PARQUET, SVMLIGHT = "directory", "npz", "parquet", "svmlight"
ENDINGS = {
    "": DIRECTORY,
    ".npz": NPZ,
    ".parquet": PARQUET,
    **dict.fromkeys((".svmlight", ".libsvm", ".svm", ".txt"), SVMLIGHT),
}


class UnknownExtension(ValueError):
    """A name whose ending is not that of a known format."""


class UnwritableTarget(ValueError):
    """A path that cannot be written, or must not be overwritten."""


def kind_of(path: Path) -> str:
    """Return the format that the ending of a path asks for."""
    if path.suffix not in ENDINGS:
        raise UnknownExtension(
            f"{path}: unknown ending. Known are .npz, .parquet, .svmlight, .libsvm, .svm and .txt; "
            "a name without an ending is a directory of .npy files."
        )
    return ENDINGS[path.suffix]


def can_resume(path: Path) -> bool:
    """Return whether an interrupted run that wrote to this path can be resumed."""
    return kind_of(path) in (DIRECTORY, NPZ)


def vocabulary_of(path: Path) -> Path:
    """Return the path of the file that lists the chosen columns of an output."""
    return path.with_name(f"{path.name}.vocabulary")


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


def require_writable_target(path: Path, *, force: bool, source: str) -> None:
    """Raise UnwritableTarget if a path cannot or must not be written. Called before reading."""
    _require_name(path)
    require_not_held(path, source, "the input")
    _require_unused(path, force)
    if path.exists():
        _require_replaceable(path)
    _require_free_asides(path, ASIDES)


def require_writable_file(path: Path, *, force: bool, sources: Iterable[str]) -> None:
    """Raise UnwritableTarget if a single file, of any ending, cannot or must not be written."""
    _require_name(path)
    for source in sources:
        require_not_held(path, source, "an input")
    _require_unused(path, force)
    if path.exists() and not path.is_file():
        raise UnwritableTarget(f"{path} is no file: it is kept.")


def require_writable_vocabulary(output: Path, *, force: bool) -> None:
    """Raise UnwritableTarget if the vocabulary of an output cannot or must not be written."""
    path = vocabulary_of(output)
    _require_unused(path, force)
    if path.exists() and not path.is_file():
        raise UnwritableTarget(f"{path} is no file: it is kept.")
    _require_free_asides(path, ("partial", "old"))


def _require_name(path: Path) -> None:
    if str(path) == "-" or path.name in ("", ".."):
        raise UnwritableTarget(f"{str(path)!r} names no file or directory to write.")
    if not path.parent.is_dir():
        raise UnwritableTarget(f"{path.parent}: there is no such folder.")


def require_not_held(path: Path, held: str, what: str) -> None:
    """Raise UnwritableTarget if the path to write is the path `held` or a folder above it."""
    if held != "-" and Path(held).resolve().is_relative_to(path.resolve()):
        raise UnwritableTarget(f"{path} is, or holds, {what}: write somewhere else.")


def _require_unused(path: Path, force: bool) -> None:
    if path.is_symlink():
        raise UnwritableTarget(f"{path} is a symbolic link: name what it points to.")
    if path.exists() and not force:
        raise UnwritableTarget(f"{path} exists already: give force=True to overwrite it.")


def _require_free_asides(path: Path, roles: tuple[str, ...]) -> None:
    for aside in (beside(path, role) for role in roles):
        if not is_own(aside):
            raise UnwritableTarget(f"{aside} is in the way, and not polysparse's: move it away.")


def _require_replaceable(path: Path) -> None:
    """Raise UnwritableTarget unless the existing path is of the kind that its name asks for.

    A directory must also have been written by polysparse.
    """
    if kind_of(path) != DIRECTORY:
        if not path.is_file():
            raise UnwritableTarget(f"{path} is no file, as its ending asks for: it is kept.")
    elif not path.is_dir():
        raise UnwritableTarget(f"{path} is no directory, as a name without ending asks for.")
    elif not is_own(path) or (any(path.iterdir()) and not (path / MANIFEST).exists()):
        raise UnwritableTarget(f"{path} is a directory that polysparse did not write: it is kept.")


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
    left = (beside(path, role) for role in ("partial", "store"))
    return shutil.disk_usage(path.parent).free + sum(map(_size_of, left))


def _size_of(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else [path] if path.exists() else []
    return sum(file.stat().st_size for file in files)


@contextmanager
def naming_a_full_disk(path: Path) -> Iterator[None]:
    """Say which output did not fit, and how much room there is, if a disk turns out to be full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or error.filename:
            raise
        free = shutil.disk_usage(path.parent).free
        named = OSError(
            f"{path}: {error.strerror}. {free_space(path) - free:,} bytes were written, and "
            f"{free:,} ({format_bytes(free)}) are free in {path.parent}."
        )
        named.errno = error.errno
        raise named from None
