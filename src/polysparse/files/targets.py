"""Whether a path may be written: checked before anything is read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from polysparse.files.atomic import beside
from polysparse.files.errors import UnwritableTarget
from polysparse.files.opening import format_to_write
from polysparse.files.paths import ASIDES, MANIFEST, is_own, vocabulary_of


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
    if path.exists():
        _require_file(path)


def require_writable_vocabulary(output: Path, *, force: bool) -> None:
    """Raise UnwritableTarget if the vocabulary of an output cannot or must not be written."""
    path = vocabulary_of(output)
    _require_unused(path, force)
    if path.exists():
        _require_file(path)
    _require_free_asides(path, ("partial", "old"))


def _require_name(path: Path) -> None:
    if str(path) == "-" or path.name in ("", ".."):
        raise UnwritableTarget(f"{str(path)!r} is not the name of a file or directory to write.")
    if not path.parent.is_dir():
        raise UnwritableTarget(f"{path.parent}: no such directory.")


def require_not_held(path: Path, held: str, what: str) -> None:
    """Raise UnwritableTarget if the path to write is the path `held` or a folder above it."""
    if held != "-" and Path(held).resolve().is_relative_to(path.resolve()):
        raise UnwritableTarget(f"{path} is or contains {what}: choose another path to write to.")


def _require_unused(path: Path, force: bool) -> None:
    if path.is_symlink():
        raise UnwritableTarget(f"{path} is a symbolic link: give the path that it points to.")
    if path.exists() and not force:
        raise UnwritableTarget(f"{path} already exists: give force=True to overwrite it.")


def _require_free_asides(path: Path, roles: tuple[str, ...]) -> None:
    for aside in (beside(path, role) for role in roles):
        if not is_own(aside):
            raise UnwritableTarget(
                f"{aside} is in the way, and was not written by polysparse: move it."
            )


def _require_replaceable(path: Path) -> None:
    """Raise UnwritableTarget unless what exists has the format of its name.

    A directory must also have been written by polysparse.
    """
    if not format_to_write(path).is_directory:
        _require_file(path)
    elif not path.is_dir():
        raise UnwritableTarget(
            f"{path} is not a directory, which a name without an ending stands for: left unchanged."
        )
    elif not is_own(path) or (any(path.iterdir()) and not (path / MANIFEST).exists()):
        raise UnwritableTarget(
            f"{path} is a directory that polysparse did not write: left unchanged."
        )


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise UnwritableTarget(f"{path} is not a regular file: left unchanged.")
