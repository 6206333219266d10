"""Division of rows into blocks whose expansions stay within a number of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.expansion.budgets import as_byte_limit
from polysparse.machine import format_bytes
from polysparse.matrix.output import index_dtype_for, largest_index


class RowBlocks:
    """Iterates over slices of consecutive rows, each with as many rows as fit.

    Parameters
    ----------
    offsets : ndarray of int64 of shape (n_rows + 1,)
        Number of outputs before each row; the last entry is the total.
    n_columns : int
        Columns of the expansion. No row stores more values than that, however many outputs merge.
    dtype : numpy.dtype
        Dtype of the values.
    max_bytes : int
        Maximum bytes of the arrays of a block. ValueError is raised if a row alone has more.
    is_sparse : bool, default=True
        Whether a block has indices and offsets besides its values.
    """

    def __init__(
        self,
        offsets: NDArray[np.int64],
        n_columns: int,
        dtype: np.dtype[Any],
        max_bytes: int,
        *,
        is_sparse: bool = True,
    ) -> None:
        self.limit = as_byte_limit(max_bytes)
        lengths = np.diff(offsets)
        longest = int(lengths.max(initial=0))
        if longest > n_columns:
            lengths, longest = np.minimum(lengths, n_columns), n_columns
            np.cumsum(lengths, out=offsets[1:])
        self.offsets = offsets
        self.index_dtype = index_dtype_for(max(n_columns, longest))
        self.dtype = dtype
        self.most_values = largest_index(self.index_dtype if is_sparse else np.dtype(np.int64))
        self.row_bytes = self.index_dtype.itemsize if is_sparse else 0
        self.value_bytes = self.row_bytes + dtype.itemsize
        self.longest = longest
        self.least = longest * self.value_bytes + 2 * self.row_bytes  # bytes of the longest row
        self.leave(0)

    def leave(self, working: int) -> None:
        """Leave some bytes of the limit to working memory, or raise ValueError."""
        needed = self.least + working
        if len(self.offsets) > 1 and needed > self.limit:
            besides = f", of which {format_bytes(working)} are to work in" if working else ""
            raise ValueError(
                f"max_bytes={self.limit} is too little: row {np.diff(self.offsets).argmax()} alone "
                f"expands to {self.longest:,} stored values, {needed:,} bytes "
                f"({format_bytes(needed)}{besides})."
            )
        self.limit -= working

    def keep_small(self, n_bytes: int) -> None:
        """Set a smaller limit, which only blocks of a single row may exceed."""
        self.limit = min(self.limit, max(n_bytes, self.least))

    def __iter__(self) -> Iterator[slice]:
        n_rows = len(self.offsets) - 1
        bytes_before = (
            self.offsets * self.value_bytes + np.arange(n_rows + 1, dtype=np.int64) * self.row_bytes
        )
        start = 0
        while start < n_rows:
            stop = min(
                _last_within(bytes_before, start, self.limit - self.row_bytes),
                _last_within(self.offsets, start, self.most_values),
            )
            yield slice(start, stop)
            start = stop

    def size_of(self, rows: slice) -> tuple[int, int]:
        """Return the numbers of rows and stored values of a block."""
        return rows.stop - rows.start, int(self.offsets[rows.stop] - self.offsets[rows.start])

    @property
    def largest_size(self) -> tuple[int, int]:
        """Numbers of rows and stored values that no block exceeds."""
        n_rows, nnz = len(self.offsets) - 1, int(self.offsets[-1])
        row_bytes = self.row_bytes or self.longest * self.value_bytes  # dense rows are equally long
        most_rows = self.limit // row_bytes if row_bytes else n_rows
        return min(n_rows, most_rows), min(nnz, self.limit // self.value_bytes)


def _last_within(sums: NDArray[np.int64], start: int, most: int) -> int:
    """Return the last i with sums[i] <= sums[start] + most, for non-decreasing sums."""
    reach = min(int(sums[start]) + most, np.iinfo(np.int64).max)
    return int(np.searchsorted(sums, reach, side="right")) - 1
