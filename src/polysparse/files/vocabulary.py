"""Vocabularies: files of chosen columns and their counts, as an .npz of plain arrays, no pickles.

description.npy   JSON: format, version, basis, n_columns, and what the writer adds
columns.npy       int64, increasing
counts.npy        int64, one per column
"""

from __future__ import annotations

import json
import math
import os
import shutil
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.arguments import require_rising
from polysparse.columns.spaces import ChosenColumns
from polysparse.files.arrays import read_header
from polysparse.files.atomic import beside, put, replacing, sync
from polysparse.files.description import parse_json
from polysparse.files.paths import UnwritableTarget, vocabulary_of
from polysparse.machine import format_bytes, require_memory

FORMAT, VERSION = "polysparse.vocabulary", 1
ARRAYS = "description", "columns", "counts"

# Key under which a vocabulary stores how columns were numbered in its svmlight file.
BASE = "first_svmlight_index"

# How much larger than its packed size a member of an archive can be, by the method of packing.
DEFLATE_FACTOR = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}

# A description read from JSON takes up to this many times the bytes of its text.
JSON_FACTOR = 32


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Columns that occurred and were kept.

    Attributes
    ----------
    columns : ChosenColumns
        The columns.
    counts : ndarray of int64
        Number of rows in which each was seen.
    more : dict
        Other entries of the file: limits, feature names, the first index of svmlight.
    """

    columns: ChosenColumns
    counts: NDArray[np.int64]
    more: dict[str, Any]

    @property
    def zero_based(self) -> bool | None:
        """Whether the svmlight file it was learnt from begins at 0; None if it was no such file."""
        base = self.more.get(BASE)
        return base == 0 if base in (0, 1) else None

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the input features, if it was learnt in Python from data with names."""
        return self.more.get("feature_names_in")

    # ------------------------------------------------------------------------------- reading

    @classmethod
    def read(cls, path: str | os.PathLike[str], max_memory: int | None = None) -> Vocabulary:
        """Read a file; raise ValueError if it is damaged or not a vocabulary.

        MemoryError is raised before reading it if that takes more than `max_memory` bytes, or more
        than are available: a compressed file may be a thousand times as large as it looks.
        """
        if not os.path.exists(path):
            raise FileNotFoundError(f"{os.fspath(path)}: there is no such vocabulary.")
        try:
            with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
                _require_room(path, archive, max_memory)
                description = _read_description(archive)
                ranks, counts = (_read_integers(archive, name) for name in ("columns", "counts"))
        except _TooLarge as error:
            raise MemoryError(str(error)) from None
        except Exception as error:  # NumPy and zipfile raise many types for a damaged file
            if isinstance(error, OSError) and error.filename is not None:
                raise  # the file cannot be opened
            reason = str(error).strip("'\".") or type(error).__name__
            raise ValueError(
                f"{os.fspath(path)} is no vocabulary of polysparse, or damaged: {reason}."
            ) from None
        try:
            basis = _require_consistent(description, ranks, counts)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise damage(path, error) from None
        return cls(ChosenColumns(basis, ranks), counts, description)

    def is_in(self, path: Path) -> bool:
        """Return whether a file holds exactly this vocabulary."""
        try:
            other = Vocabulary.read(path)
        except (OSError, ValueError):
            return False
        return (
            other.columns == self.columns
            and np.array_equal(other.counts, self.counts)
            and all(other.more.get(name) == value for name, value in self.more.items())
        )

    # ------------------------------------------------------------------------------- writing

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write or replace a file atomically. Of several at once, the last one to end wins."""
        with replacing(Path(path)) as file:
            self._write_to(file)

    def write_aside(self, path: Path) -> None:
        """Write a file directly, under a name that nobody reads yet."""
        with open(path, "wb") as file:
            self._write_to(file)
            sync(file)

    def _write_to(self, file: IO[bytes]) -> None:
        columns = self.columns
        description = {
            "format": FORMAT,
            "version": VERSION,
            "basis": columns.basis.as_dict(),
            "n_columns": columns.n_columns,
            **self.more,
        }
        text = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
        arrays: dict[str, NDArray[Any]] = {
            "description": text,
            "columns": columns.ranks,
            "counts": self.counts,
        }
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                little = array.astype(array.dtype.newbyteorder("<"), copy=False)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, little, allow_pickle=False)


def damage(path: str | os.PathLike[str], error: Exception) -> ValueError:
    """Return an error that says why a vocabulary is damaged."""
    return ValueError(f"{os.fspath(path)} is damaged: {str(error).rstrip('.')}.")


class _TooLarge(Exception):
    """A file takes more memory than it may."""


def _require_room(
    path: str | os.PathLike[str], archive: zipfile.ZipFile, max_memory: int | None
) -> None:
    """Raise _TooLarge if the arrays of a vocabulary, unpacked, take too much memory."""
    sizes = {name: _size_in(archive, f"{name}.npy") for name in ARRAYS}
    needed = sum(sizes.values()) + (JSON_FACTOR - 1) * sizes["description"]
    what = f"{os.fspath(path)}, {format_bytes(os.path.getsize(path))} on the disk,"
    if max_memory is not None and needed > max_memory:
        raise _TooLarge(
            f"{what} would need {needed:,} bytes ({format_bytes(needed)}) of memory, which is more "
            f"than max_memory={max_memory}: give more, or choose fewer columns."
        )
    try:
        require_memory(needed, what, "Choose fewer columns, with max_columns or min_count.")
    except MemoryError as error:
        raise _TooLarge(str(error)) from None


def _size_in(archive: zipfile.ZipFile, name: str) -> int:
    """Return the size of a member, unpacked; raise ValueError if it cannot have that size."""
    member = archive.getinfo(name)
    most = DEFLATE_FACTOR.get(member.compress_type, 0) * member.compress_size
    if member.file_size > most:
        raise ValueError(f"{name} cannot have {member.file_size:,} bytes")
    return member.file_size


def _read_description(archive: zipfile.ZipFile) -> dict[str, Any]:
    description = parse_json(_read_array(archive, "description").tobytes())
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ValueError("it has another format")
    if description.get("version") != VERSION:
        raise ValueError(
            f"it has version {description.get('version')}, and this polysparse reads {VERSION}"
        )
    return description


def _read_integers(archive: zipfile.ZipFile, name: str) -> NDArray[np.int64]:
    array = _read_array(archive, name)
    if array.dtype != np.dtype("<i8") or array.ndim != 1:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not int64")
    return np.ascontiguousarray(array, dtype=np.int64)


def _read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read an array, if it is as large as its member of the archive."""
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as file:
        dtype, shape = read_header(file)
        if file.tell() + dtype.itemsize * math.prod(shape) != member.file_size:
            raise ValueError(f"{name} has {member.file_size} bytes, and another shape: {shape}")
    with archive.open(member) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _require_consistent(
    description: dict[str, Any], ranks: NDArray[np.int64], counts: NDArray[np.int64]
) -> MonomialBasis:
    """Return the basis of a vocabulary; raise if parts of the file contradict each other."""
    basis = MonomialBasis(**description["basis"])
    basis.require_indexable()
    if not len(ranks) == len(counts) == description["n_columns"]:
        raise ValueError(f"it should have {description['n_columns']} columns")
    require_rising(ranks)
    for column in (*ranks[:1], *ranks[-1:]):
        if not 0 <= column < basis.n_columns:
            raise ValueError(f"column {column} is not in the basis")
    if np.any(counts < 1):
        raise ValueError("a count is not positive")
    names = description.get("feature_names_in")
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("the names of features are no strings")
        if len(names) != basis.n_features:
            raise ValueError(f"there are {len(names)} names of features")
    return basis


class VocabularySink:
    """Writes a vocabulary aside; `put` renames it, just before its output is renamed.

    Raises UnwritableTarget if a different vocabulary exists, unless `force` allows replacing it.
    """

    def __init__(self, output: Path, vocabulary: Vocabulary, *, force: bool) -> None:
        self.path = vocabulary_of(output)
        self.aside, self.old = beside(self.path, "partial"), beside(self.path, "old")
        self.has_old = self.path.exists()
        if self.has_old and not force and not vocabulary.is_in(self.path):
            raise UnwritableTarget(
                f"{self.path} exists already, and is another: give force=True to overwrite it."
            )
        try:
            vocabulary.write_aside(self.aside)
        except BaseException:
            self.aside.unlink(missing_ok=True)
            raise

    def put(self) -> None:
        """Give the vocabulary its final name, keeping an old one aside."""
        if self.has_old:
            _copy(self.path, self.old)
        put(self.aside, self.path)

    def take_back(self) -> None:
        """Undo `put`, as far as it got."""
        if self.aside.exists():
            return
        if self.has_old:
            self.old.replace(self.path)
        else:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> VocabularySink:
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for aside in (self.aside, self.old):
            with suppress(OSError):  # what has its name has it, whether or not this can be removed
                aside.unlink(missing_ok=True)


def _copy(path: Path, to: Path) -> None:
    with open(path, "rb") as old, open(to, "wb") as new:
        shutil.copyfileobj(old, new)
        sync(new)
