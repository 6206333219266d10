"""Files that are whole or not there: written under a hidden name, on the disk before renamed.

A rename alone keeps the order of names, not of contents: after a loss of power, a file could have
its final name and none of its bytes. So contents are synchronised before the name, and the folder
that holds the name after it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from polysparse.machine import format_bytes

fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None  # missing on Windows

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_NOT_POSSIBLE_HERE = errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP


def beside(path: Path, role: str) -> Path:
    """Return the hidden name of something that is not yet, or no longer, called `path`."""
    return path.with_name(f".{path.name}.polysparse-{role}")


# ------------------------------------------------------------------------------- a single file


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that gets the name `path`, whole, if the block ends without an error.

    Several may be open for one path at once: each has a name of its own, and the last one to end
    wins. Nothing is left of a block that fails, and what a killed process left is removed by the
    next one.
    """
    _remove_leftovers(path)
    file, aside = _open_unique(path)
    try:
        with naming_a_full_disk(path, [aside]), file:
            yield file
            sync(file)
            if fcntl is not None:  # while it is locked, it is not removed as a leftover
                aside.replace(path)
        if fcntl is None:  # such a system does not rename a file that is open
            aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _open_unique(path: Path) -> tuple[IO[bytes], Path]:
    """Create a file next to a path, under a name of its own, and lock it."""
    while True:
        aside = beside(path, f"new-{secrets.token_hex(4)}")
        try:
            file = open(aside, "x+b")  # noqa: SIM115 (tempfile would not follow umask)
        except FileExistsError:
            continue
        if fcntl is not None:
            with suppress(
                OSError
            ):  # some network disks cannot lock; then leftovers are not removed
                fcntl.flock(file, fcntl.LOCK_EX)
        if is_named(file, aside):  # or it was removed as a leftover before it was locked
            return file, aside
        file.close()


def _remove_leftovers(path: Path) -> None:
    """Remove hidden files of processes that were killed, which are no longer locked."""
    if fcntl is None:
        return
    prefix = beside(path, "new-").name
    with suppress(OSError):  # leftovers do no harm
        for name in os.listdir(path.parent):
            if name.startswith(prefix):
                _remove_unless_locked(path.with_name(name))


def _remove_unless_locked(aside: Path) -> None:
    if not aside.is_file():  # to open a pipe would wait for its writer
        return
    with suppress(OSError), open(aside, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_named(file, aside):
            aside.unlink(missing_ok=True)


def is_named(file: IO[bytes], name: Path) -> bool:
    """Return whether a name still refers to an open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), name.stat())
    except FileNotFoundError:
        return False


# -------------------------------------------------------------------------------------- the disk


def sync(file: IO[bytes]) -> None:
    """Return once the contents of an open file are on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Return once the names in a folder are on the disk, if the system supports that."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # names may be written there, but not listed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_POSSIBLE_HERE:
            raise
    finally:
        os.close(descriptor)


@contextmanager
def naming_a_full_disk(path: Path, asides: Iterable[Path]) -> Iterator[None]:
    """If a disk turns out to be full, name the output, what was written of it, and what is free."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or error.filename:
            raise
        free = shutil.disk_usage(path.parent).free
        named = OSError(
            f"{path}: {error.strerror}. {sum(map(size_of, asides)):,} bytes were written, and "
            f"{free:,} ({format_bytes(free)}) are free in {path.parent}."
        )
        named.errno = error.errno
        raise named from None


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of the files in a directory; 0 if there is nothing."""
    files = path.iterdir() if path.is_dir() else [path] if path.exists() else []
    return sum(file.stat().st_size for file in files)


def put(aside: Path, path: Path) -> None:
    """Give a file or directory its final name. A file of that name is replaced."""
    aside.replace(path)
    sync_folder(path.parent)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; return False if the system or the disk cannot."""
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:  # an old C library
        return False
    names = os.fsencode(one), os.fsencode(other)
    if renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_POSSIBLE_HERE:
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))
