"""Files in pieces: rows that any process can read by themselves, in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from polysparse.files.errors import FileFault, faults_of
from polysparse.files.paths import MANIFEST, version_of
from polysparse.files.source import Reading, Source
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.matrix.output import as_csr, index_dtype_for

RowArrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any] | None]
Content = TypeVar("Content")


@dataclass(frozen=True)
class IndexRange:
    """How many rows there are, and which indices occur: -1 to -1 if none do."""

    n_rows: int
    lowest: int
    highest: int
    fields: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None  # of libffm: indices, fields


@dataclass(frozen=True)
class Piece:
    """Some rows of a file. Each subclass reads one format."""

    path: Path
    state: tuple[int, int]  # of the file: its size and last change, which must stay the same
    n_rows: int | None  # None if it is known only once the rows are read
    may_count_from_1: ClassVar[bool] = False  # whether the format leaves that open
    has_fields: ClassVar[bool] = False  # whether index_range returns the field of each index

    def rows(self) -> RowArrays:
        """Read indptr, indices, data and labels, as they are in the file.

        There are no labels (None) if there are no rows, or none in the file.
        """
        raise NotImplementedError

    def index_range(self) -> IndexRange:
        """Read the rows, and return how many there are and which indices occur."""
        indptr, indices, _, _ = self._checked(self.rows)
        lowest = int(indices.min()) if len(indices) else -1
        return IndexRange(len(indptr) - 1, lowest, int(indices.max(initial=-1)))

    def read(
        self, n_features: int, base: int, dtype: np.dtype[Any]
    ) -> tuple[Any, NDArray[np.float64] | None]:
        """Read the rows as a canonical csr_array of a dtype, and their labels as in `rows`.

        `base` is the number of the first column in formats that leave it open. FileFault is raised
        if a column is not below n_features.
        """
        indptr, indices, data, labels = self._checked(self.rows)
        if self.may_count_from_1 and base:
            if indices.min(initial=1) == 0:
                raise FileFault(f"{self.path}: index 0 occurs, but zero_based=False was given.")
            indices = indices - base
        width = Source(self.path, Reading(n_features)).width(int(indices.max(initial=-1)))
        raw = as_csr((len(indptr) - 1, width), indptr, indices, data, is_array=True)
        with faults_of(self.path):
            x = as_canonical_csr(raw, 1, dtype)
        index_dtype = index_dtype_for(max(width, len(x.data)))
        arrays = x.indptr.astype(index_dtype), x.indices.astype(index_dtype), x.data
        return as_csr(x.shape, *arrays, is_array=True), labels

    def _checked(self, read: Callable[[], Content]) -> Content:
        """Read something of the file; raise FileFault if it changed or is malformed."""
        require_unchanged(self.path, self.state)
        with faults_of(self.path):
            return read()


@dataclass(frozen=True)
class CutFile:
    """A file in pieces, and what is known about all of its rows."""

    pieces: Sequence[Piece]  # in the order of their rows; at least one
    n_features: int | None  # if the file states it
    dtype: np.dtype[Any]  # of the values
    has_labels: bool


def state_of(path: Path) -> tuple[int, int]:
    """Return the size of a file and the time of its last change."""
    found = version_of(path)
    state = (found / MANIFEST if found.is_dir() else found).stat()
    return state.st_size, state.st_mtime_ns


def require_unchanged(path: Path, state: tuple[int, int]) -> None:
    """Raise FileFault if a file has another size, or was changed at another time."""
    if state_of(path) != state:
        raise FileFault(f"{path} changed after it was opened: open it again.")


def joined(found: Iterable[RowArrays]) -> RowArrays:
    """Return the rows of batches as one; a batch that is alone is not copied."""
    batches = list(found)
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0), None
    indptrs, indices, data, labels = zip(*batches, strict=True)
    lengths = np.concatenate([np.diff(indptr) for indptr in indptrs])
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    known = None if labels[0] is None else np.concatenate(labels)
    return indptr, np.concatenate(indices), np.concatenate(data), known


def together(sizes: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """Yield neighbors whose sizes add up to at most this, or single ones; at least once."""
    few: tuple[int, ...] = ()
    total = 0
    for number, size in enumerate(sizes):
        if few and total + size > most:
            yield few
            few, total = (), 0
        few, total = (*few, number), total + size
    yield few
