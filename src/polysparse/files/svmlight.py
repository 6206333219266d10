"""svmlight text, read and written in blocks of rows."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.errors import FileFault, faults_of
from polysparse.files.field_table import FieldTable
from polysparse.files.format import Format
from polysparse.files.pieces import CutFile, Piece, RowArrays, joined, state_of
from polysparse.files.sink import FileSink
from polysparse.files.source import Source, Summary
from polysparse.files.text import (
    BLOCK_BYTES,
    SvmlightError,
    TextBlock,
    TextSummary,
    iter_blocks,
    layout_of,
    learn_fields,
    lines_between,
    open_text,
    summarize,
)
from polysparse.matrix.output import as_csr


class SvmlightSource(Source):
    """A matrix in svmlight text, plain or gzipped."""

    is_upper_bound = True
    has_fields = False  # whether the text is libffm

    @cached_property
    def _scan(self) -> TextSummary:
        n_bytes = self.reading.line_bytes
        options: dict[str, Any] = {"block_bytes": min(BLOCK_BYTES, n_bytes), "line_bytes": n_bytes}
        with faults_of(self.path), open_text(self.place) as file:
            options |= {"n_threads": self.reading.n_threads, "has_fields": self.has_fields}
            return summarize(file, **options)

    @property
    def notes(self) -> list[str]:
        notes = super().notes + [f"{self.path}: qid is not kept."] * self._scan.has_qid
        base, why = self._base
        is_as_before = self.reading.was_zero_based is False  # and nothing suggests otherwise
        if why and not is_as_before:
            notes.append(
                f"{self.path}: {why}, so indices are {base}-based; otherwise give "
                f"zero_based={base == 1}."
            )
        return notes

    @property
    def base(self) -> int:
        return self._base[0]

    @property
    def reason_for_base(self) -> str:
        return self._base[1]

    @cached_property
    def _base(self) -> tuple[int, str]:
        """The number of the first column, and why it is that unless it was given."""
        lowest, given = self._scan.min_index, self.reading.zero_based
        before = self.reading.was_zero_based
        if given is not None:
            if lowest == 0 and not given:
                raise FileFault(f"{self.path}: index 0 occurs, but zero_based=False was given.")
            return int(not given), ""
        if lowest < 0:
            return int(not before), ""
        if before is None:
            return (0, "index 0 occurs") if lowest == 0 else (1, "index 0 does not occur")
        self._require_no_contradiction(before)
        return int(not before), f"those of {self.reading.earlier} are {int(not before)}-based"

    def _require_no_contradiction(self, was_zero_based: bool) -> None:
        """Raise FileFault if an earlier file of the same job seems to have another base."""
        lowest, highest = self._scan.min_index, self._scan.max_index
        earlier = self.reading.earlier
        if lowest == 0 and not was_zero_based:
            raise FileFault(
                f"{self.path}: index 0 occurs, but the columns of {earlier} are 1-based. "
                "Learn it again with zero_based=True if its data are 0-based, too; give "
                "zero_based=True if only this file does."
            )
        if lowest > 0 and was_zero_based and highest == self.reading.least_features:
            raise FileFault(
                f"{self.path}: the indices are {lowest} to {highest}, as if they were 1-based, "
                f"but the columns of {earlier} are 0 to {highest - 1}. Give zero_based=False "
                f"if they are 1-based; zero_based=True if {highest} is a column that {earlier} "
                "does not have."
            )

    @cached_property
    def summary(self) -> Summary:
        scan = self._scan
        n_features = self.width(scan.max_index - self.base if scan.profile.n_stored else -1)
        return Summary(n_features, scan.profile, scan.has_labels)

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        n_features, base = self.summary.n_features, self.base
        options: dict[str, Any] = {
            "block_bytes": block_bytes,
            "line_bytes": self.reading.line_bytes,
            "n_threads": self.reading.n_threads,
            "has_fields": self.has_fields,
        }
        with faults_of(self.path), open_text(self.place) as file:
            for text in iter_blocks(file, skip_rows=skip_rows, **options):
                shape, indices = (len(text.indptr) - 1, n_features), text.indices
                indices -= base
                block = as_csr(shape, text.indptr, indices, text.data, is_array=True)
                block.has_canonical_format = block.has_sorted_indices = False
                yield block, text.labels


class SvmlightSink(FileSink):
    """svmlight text with exact values and 1-based columns; missing labels become 0."""

    ROOM = 2**22  # maximum bytes of text formatted at a time, except for longer rows

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        offsets = block.indptr.astype(np.int64)
        most = self.ROOM // cpu.SVMLIGHT_BYTES_PER_VALUE
        start = 0
        while start < block.shape[0]:
            full = int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1
            stop = max(start + 1, min(full, start + most))
            self._write_rows(block, offsets, labels, slice(start, stop))
            start = stop
        self.n_rows += block.shape[0]

    def _write_rows(
        self, block: Any, offsets: NDArray[np.int64], labels: NDArray[Any] | None, rows: slice
    ) -> None:
        first, last = int(offsets[rows.start]), int(offsets[rows.stop])
        n_rows = rows.stop - rows.start
        size = (last - first) * cpu.SVMLIGHT_BYTES_PER_VALUE
        text = np.empty(size + n_rows * cpu.SVMLIGHT_BYTES_PER_ROW, dtype=np.uint8)
        n_bytes = cpu.write_svmlight(
            offsets[rows.start : rows.stop + 1] - first,
            block.indices[first:last],
            block.data[first:last],
            np.empty(0) if labels is None else np.asarray(labels[rows], dtype=np.float64),
            1,
            text,
        )
        self.file.write(text[:n_bytes].data)


@dataclass(frozen=True)
class TextPiece(Piece):
    """The lines of svmlight text that begin in a range of bytes; all of them without a `stop`."""

    start: int
    stop: int | None
    layout: tuple[bool, bool]  # whether rows have labels and a qid, as in the first row of the file
    may_count_from_1 = True

    def rows(self) -> RowArrays:
        return joined((b.indptr, b.indices, b.data, b.labels) for b in self._blocks(FieldTable()))

    def _blocks(self, table: FieldTable) -> Iterator[TextBlock]:
        """Read the lines, and add the fields of libffm text to a table.

        FileFault is raised if a line is malformed, or contradicts the table.
        """
        with open_text(self.path) as file:
            if self.stop is None:
                first, text = 0, file.read()
            else:
                first, text = lines_between(file, self.start, self.stop)
        whole = io.BytesIO(text if text.endswith(b"\n") else text + b"\n")
        how: dict[str, Any] = {"layout": self.layout, "has_fields": self.has_fields}
        try:
            for block in iter_blocks(whole, block_bytes=len(text) + 1, **how):
                if block.fields is not None:
                    learn_fields(table, block, block.fields)
                yield block
        except SvmlightError as error:
            after = f" after byte {first:,}" if first else ""
            raise FileFault(f"{self.path}: line {error.line}{after}: {error.reason}") from None


def cut_text(path: Path, block_bytes: int, kind: type[TextPiece]) -> CutFile:
    """Cut a text file into pieces of `block_bytes`; one that is gzipped is a single piece."""
    state = state_of(path)
    with faults_of(path), open_text(path) as file:
        layout = layout_of(file) or (False, False)
        is_whole = isinstance(file, gzip.GzipFile)  # which cannot be read from the middle
    starts = [0] if is_whole else range(0, max(1, state[0]), block_bytes)
    pieces = [
        kind(path, state, None, at, None if is_whole else at + block_bytes, layout) for at in starts
    ]
    return CutFile(pieces, None, np.dtype(np.float64), layout[0])


class SvmlightFormat(Format):
    """Text with a line for each row, cut into ranges of bytes."""

    noun = "svmlight text"
    source, sink = SvmlightSource, SvmlightSink
    written_endings = ".svmlight", ".libsvm", ".svm", ".txt"
    endings = *written_endings, ".t", ""  # the test sets of LIBSVM's collection end in .t
    may_be_gzipped = True
    has_pieces = True

    def least_bytes(self, plan: ExpansionPlan, *, has_labels: bool) -> int:
        """Return a lower bound of the bytes of a file, as if each value were written as " 1:1"."""
        return plan.nnz * len(" 1:1")

    def cut(self, path: Path, block_bytes: int) -> CutFile:
        """Cut a file into pieces of `block_bytes`; one that is gzipped is a single piece."""
        return cut_text(path, block_bytes, TextPiece)
