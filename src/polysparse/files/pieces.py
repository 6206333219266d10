"""Files in pieces: rows that any process can read by themselves, in any order.

svmlight text is cut into ranges of bytes, Parquet between its row groups, a directory of polysparse
between its parts.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polysparse.files.opening import open_source
from polysparse.files.parquet import ParquetSource
from polysparse.files.parts import Parts
from polysparse.files.paths import MANIFEST, version_of
from polysparse.files.source import FileFault, Reading, Source, faults_of
from polysparse.files.store import open_arrays, read_part
from polysparse.files.store_source import StoreSource
from polysparse.files.svmlight import SvmlightSource
from polysparse.files.text import (
    SvmlightError,
    iter_blocks,
    layout_of,
    lines_between,
    open_text,
)
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.matrix.output import as_csr, index_dtype_for

Rows = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any] | None]


@dataclass(frozen=True)
class Extent:
    """How many rows there are, and which indices occur: -1 to -1 if none do."""

    n_rows: int
    lowest: int
    highest: int


@dataclass(frozen=True)
class Piece:
    """Some rows of a file. Each subclass reads one format.

    Attributes
    ----------
    path : Path
        The file.
    state : tuple of int
        Its size and the time of its last change, which must stay the same.
    n_rows : int or None
        Number of rows; None if that is known only once they are read.
    """

    path: Path
    state: tuple[int, int]
    n_rows: int | None
    may_count_from_1: ClassVar[bool] = False  # whether the format leaves that open

    def rows(self) -> Rows:
        """Read indptr, indices, data and labels, as they are in the file.

        There are no labels (None) if there are no rows, or none in the file.
        """
        raise NotImplementedError

    def extent(self) -> Extent:
        """Read the rows, and return how many there are and which indices occur."""
        indptr, indices, _, _ = self._checked_rows()
        lowest = int(indices.min()) if len(indices) else -1
        return Extent(len(indptr) - 1, lowest, int(indices.max(initial=-1)))

    def read(
        self, n_features: int, base: int, dtype: np.dtype[Any]
    ) -> tuple[Any, NDArray[np.float64] | None]:
        """Read the rows as a canonical csr_array of a dtype, and their labels as in `rows`.

        `base` is the number of the first column in formats that leave it open. FileFault is raised
        if a column is not below n_features.
        """
        indptr, indices, data, labels = self._checked_rows()
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

    def _checked_rows(self) -> Rows:
        if state_of(self.path) != self.state:
            raise FileFault(f"{self.path} changed after it was looked at: read it again.")
        with faults_of(self.path):
            return self.rows()


@dataclass(frozen=True)
class TextPiece(Piece):
    """The lines of svmlight text that begin in a range of bytes; all of them without a `stop`."""

    start: int
    stop: int | None
    layout: tuple[bool, bool]  # whether rows have labels and a qid, as the first of the file says
    may_count_from_1 = True

    def rows(self) -> Rows:
        """Read indptr, indices, data and labels or None, as they are in the file."""
        with open_text(self.path) as file:
            if self.stop is None:
                first, text = 0, file.read()
            else:
                first, text = lines_between(file, self.start, self.stop)
        whole = io.BytesIO(text if text.endswith(b"\n") else text + b"\n")
        try:
            blocks = iter_blocks(whole, block_bytes=len(text) + 1, layout=self.layout)
            return _joined((b.indptr, b.indices, b.data, b.labels) for b in blocks)
        except SvmlightError as error:
            after = f" after byte {first:,}" if first else ""
            raise FileFault(f"{self.path}: line {error.line}{after}: {error.reason}") from None


@dataclass(frozen=True)
class ParquetPiece(Piece):
    """Some row groups of a Parquet file."""

    groups: tuple[int, ...]
    columns: tuple[str, ...]

    def rows(self) -> Rows:
        """Read indptr, indices, data and labels or None, as they are in the file."""
        source = ParquetSource(self.path, Reading())
        try:
            return _joined(source.batches(self.columns, max(1, self.n_rows or 0), self.groups))
        finally:
            source.close()


@dataclass(frozen=True)
class StorePiece(Piece):
    """A part of a directory that polysparse has written."""

    number: int

    def rows(self) -> Rows:
        """Read indptr, indices, data and labels or None, as they are in the file."""
        folder = version_of(self.path)
        manifest, arrays = open_arrays(folder)
        parts, n_columns = Parts.read(manifest), manifest["shape"][1]
        if not parts.ends:
            return _joined(())
        _, part, labels = read_part(folder, arrays, n_columns, parts, self.number, verify=True)
        return part.indptr, part.indices, part.data, labels


def _joined(found: Iterable[Rows]) -> Rows:
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


# ------------------------------------------------------------------------------------------ cutting


@dataclass(frozen=True)
class CutFile:
    """A file in pieces, at least one, and what it says about all of its rows.

    Attributes
    ----------
    pieces : sequence of Piece
        The rows in their order.
    n_features : int or None
        Number of features, if the file states it.
    dtype : numpy.dtype
        Dtype of the values.
    has_labels : bool
        Whether rows have labels.
    """

    pieces: Sequence[Piece]
    n_features: int | None
    dtype: np.dtype[Any]
    has_labels: bool


def cut_file(path: str | os.PathLike[str], block_bytes: int) -> CutFile:
    """Cut a file into pieces of about `block_bytes`, reading little more than its head."""
    where = Path(path).absolute()
    source = open_source(str(where))
    try:
        state = state_of(where)
        if isinstance(source, SvmlightSource):
            return _cut_text(where, state, block_bytes)
        if isinstance(source, ParquetSource):
            return _cut_parquet(source, state, block_bytes)
        if isinstance(source, StoreSource):
            return _cut_store(where, state)
    finally:
        source.close()
    raise ValueError(
        f"{path} can only be read as a whole. Pieces can be read of svmlight text, of Parquet and "
        "of a directory written by polysparse."
    )


def state_of(path: Path) -> tuple[int, int]:
    """Return the size of a file and the time of its last change."""
    found = version_of(path)
    state = (found / MANIFEST if found.is_dir() else found).stat()
    return state.st_size, state.st_mtime_ns


def _cut_text(path: Path, state: tuple[int, int], block_bytes: int) -> CutFile:
    with faults_of(path), open_text(path) as file:
        layout = layout_of(file) or (False, False)
        is_whole = isinstance(file, gzip.GzipFile)  # there is no way into the middle of it
    starts = [0] if is_whole else range(0, max(1, state[0]), block_bytes)
    pieces = [
        TextPiece(path, state, None, at, None if is_whole else at + block_bytes, layout)
        for at in starts
    ]
    return CutFile(pieces, None, np.dtype(np.float64), layout[0])


def _cut_parquet(source: ParquetSource, state: tuple[int, int], block_bytes: int) -> CutFile:
    schema, metadata = source.file.schema_arrow, source.file.metadata
    has_labels = "label" in schema.names
    columns = ("indices", "values", *(["label"] if has_labels else []))
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    pieces = [
        ParquetPiece(source.path, state, sum(groups[i].num_rows for i in few), few, columns)
        for few in _together([group.total_byte_size for group in groups], block_bytes)
    ]
    is_single = str(schema.field("values").type.value_type) == "float"
    dtype = np.dtype(np.float32 if is_single else np.float64)
    with faults_of(source.path):
        return CutFile(pieces, source.stated_width(), dtype, has_labels)


def _together(sizes: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """Yield neighbours whose sizes add up to at most this, or single ones; at least once."""
    few: tuple[int, ...] = ()
    total = 0
    for number, size in enumerate(sizes):
        if few and total + size > most:
            yield few
            few, total = (), 0
        few, total = (*few, number), total + size
    yield few


def _cut_store(path: Path, state: tuple[int, int]) -> CutFile:
    manifest, _ = open_arrays(path)
    parts = Parts.read(manifest)
    sizes = [rows.stop - rows.start for rows, _ in parts] or [0]
    pieces = [StorePiece(path, state, n_rows, number) for number, n_rows in enumerate(sizes)]
    dtype = np.dtype(manifest["dtype"])
    return CutFile(pieces, manifest["shape"][1], dtype, bool(manifest["labels"]))
