"""Sources and sinks of svmlight files, in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.files.sink import FileSink
from polysparse.files.source import FileFault, Source, Summary, faults_of
from polysparse.files.text import TextSummary, iter_blocks, open_text, summarize
from polysparse.matrix.output import as_csr


class SvmlightSource(Source):
    """A matrix in svmlight text, plain or gzipped."""

    is_upper_bound = True

    @cached_property
    def _scan(self) -> TextSummary:
        with faults_of(self.path), open_text(self.place, str(self.path)) as file:
            return summarize(file, n_threads=self.n_threads)

    @property
    def notes(self) -> list[str]:
        """Sentences that the user should read about the file."""
        return super().notes + ["qid is not kept."] * self._scan.has_qid

    @property
    def base(self) -> int:
        """Number of the first column in the file: 0 or 1."""
        lowest = self._scan.min_index
        if self.zero_based is None:
            return int(lowest != 0)
        if lowest == 0 and not self.zero_based:
            raise FileFault(
                f"{self.path}: index 0 occurs, but zero_based=False, or the vocabulary, says they "
                "begin at 1."
            )
        return int(not self.zero_based)

    @cached_property
    def summary(self) -> Summary:
        """Size and row lengths of the matrix."""
        scan = self._scan
        n_features = self.width(scan.max_index - self.base if scan.profile.n_stored else -1)
        return Summary(n_features, scan.profile, scan.has_labels)

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        """Yield CSR blocks of rows, each with its labels or None, after the first `skip_rows`."""
        n_features, base = self.summary.n_features, self.base
        with faults_of(self.path), open_text(self.place, str(self.path)) as file:
            options = {"block_bytes": block_bytes, "n_threads": self.n_threads}
            for block in iter_blocks(file, skip_rows=skip_rows, **options):
                shape = len(block.indptr) - 1, n_features
                yield (
                    as_csr(shape, block.indptr, block.indices - base, block.data, is_array=True),
                    block.labels,
                )


class SvmlightSink(FileSink):
    """svmlight text with exact values and columns counted from 1; missing labels become 0."""

    ROOM = 2**22  # maximum bytes of text formatted at a time, except for longer rows

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        """Append a block of rows and its labels."""
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
