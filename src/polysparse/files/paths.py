"""Output paths: what may be replaced, the hidden names next to them, and locks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None  # missing on Windows

MANIFEST, PROGRESS = "manifest.json", "progress.json"
JSON_NAMES = {MANIFEST, PROGRESS, f"{MANIFEST}.new", f"{PROGRESS}.new"}
OWN_NAMES = JSON_NAMES | {f"{name}.npy" for name in ("indptr", "indices", "data", "labels")}
ASIDES = "partial", "store", "old", "lock"

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


def beside(path: Path, role: str) -> Path:
    """Return the hidden name of something that is not yet, or no longer, called `path`."""
    return path.with_name(f".{path.name}.polysparse-{role}")


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
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_asides(path: Path) -> None:
    """Remove what a killed run may have left behind."""
    for role in ("partial", "store", "old"):
        remove(beside(path, role))
    for role in ("partial", "old"):
        remove(beside(vocabulary_of(path), role))


def require_writable_target(path: Path, *, force: bool, source: str) -> None:
    """Raise UnwritableTarget if a path cannot or must not be written. Called before reading."""
    if str(path) == "-" or path.name in ("", ".."):
        raise UnwritableTarget(f"{str(path)!r} names no file or directory to write.")
    if not path.parent.is_dir():
        raise UnwritableTarget(f"{path.parent}: there is no such folder.")
    require_not_held(path, source, "the input")
    _require_unused(path, force)
    if path.exists():
        _require_replaceable(path)
    _require_free_asides(path, ASIDES)


def require_writable_vocabulary(output: Path, *, force: bool) -> None:
    """Raise UnwritableTarget if the vocabulary of an output cannot or must not be written."""
    path = vocabulary_of(output)
    _require_unused(path, force)
    if path.exists() and not path.is_file():
        raise UnwritableTarget(f"{path} is no file: it is kept.")
    _require_free_asides(path, ("partial", "old"))


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
    if fcntl is None:
        yield
        return
    name = beside(path, "lock")
    while True:
        with open(name, "wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BlockingIOError(f"another run is writing {path}.") from None
            if not _is_named(lock, name):  # the previous holder has just removed the file
                continue
            try:
                yield
            finally:
                name.unlink(missing_ok=True)
            return


def _is_named(file: IO[bytes], name: Path) -> bool:
    """Return whether a name still refers to an open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), name.stat())
    except FileNotFoundError:
        return False
