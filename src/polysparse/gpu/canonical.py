"""The door for input on a GPU: arrays that the kernels can trust."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import cupy
import numpy as np

from polysparse.engine.cpu import CsrFault
from polysparse.gpu.compiling import MOST_BLOCKS, Struct, kernel, launch, struct
from polysparse.gpu.containers import Array, Container
from polysparse.matrix.canonical import CanonicalCsr, value_dtype
from polysparse.matrix.checking import index_dtype_of, refuse_fault, require_lengths
from polysparse.matrix.row_profile import RowProfile

FAULTS = {
    1: CsrFault.first_offset,
    2: CsrFault.falling_offset,
    3: CsrFault.last_offset,
    4: CsrFault.column_range,
}


@dataclass(frozen=True)
class DeviceCsr:
    """A checked CSR matrix on a GPU: columns increase within every row, and no zero is stored.

    indices and data may be the caller's own; they are only read. indptr is int64, and never is.
    """

    shape: tuple[int, int]
    indptr: Array
    indices: Array
    data: Array
    has_nan: bool
    has_infinity: bool

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the values."""
        dtype: np.dtype[Any] = self.data.dtype
        return dtype

    @cached_property
    def profile(self) -> RowProfile:
        """Row lengths, on which the size of the expansion depends."""
        lengths, counts = cupy.unique(cupy.diff(self.indptr), return_counts=True)
        return RowProfile(tuple(zip(lengths.tolist(), counts.tolist(), strict=True)))

    @property
    def as_struct(self) -> Struct:
        """The matrix as kernels take it."""
        return struct(self.indptr, self.indices, self.data, self.shape[0])

    def rows(self, rows: slice) -> DeviceCsr:
        """Return some of the rows. Offsets go on counting in values and indices of all rows."""
        shape = rows.stop - rows.start, self.shape[1]
        return replace(self, shape=shape, indptr=self.indptr[rows.start : rows.stop + 1])

    def get(self) -> CanonicalCsr:
        """Return a copy in main memory."""
        indptr, indices, data = (array.get() for array in (self.indptr, self.indices, self.data))
        return CanonicalCsr(self.shape, indptr, indices, data, is_array=True)


def as_canonical(X: Container, dtype: np.dtype[Any] | None = None) -> DeviceCsr:
    """Read a container; X itself is never changed. Values are converted first."""
    return Inspection.of(X, dtype).finish()


@dataclass(frozen=True)
class Inspection:
    """Arrays that the device is looking at. More may be asked of it before the end is awaited."""

    shape: tuple[int, int]
    indptr: Array
    indices: Array
    data: Array
    report: Array

    @classmethod
    def of(cls, X: Container, dtype: np.dtype[Any] | None = None) -> Inspection:
        """Begin to look at a container."""
        wanted = dtype or value_dtype(np.dtype(X.data.dtype))
        if X.data.ndim != 1:
            raise ValueError(f"X.data has {X.data.ndim} dimensions: the matrix is malformed.")
        data = cupy.ascontiguousarray(X.data.astype(wanted, copy=False))
        indices = X.indices.astype(index_dtype_of(X.indices, "X.indices"), copy=False)
        index_dtype_of(X.indptr, "X.indptr")
        indptr = X.indptr.astype(np.int64)  # a copy: nobody may change it after it was inspected
        require_lengths(indptr, indices, data, X.shape[0], "row")
        indices = cupy.ascontiguousarray(indices)
        report = cupy.zeros(7, dtype=np.int64)
        n_rows, n_stored, n_columns = X.shape[0], len(data), X.shape[1]
        rows = indptr, np.int64(n_rows), indices
        inspect_rows = kernel("inspect_rows", indices.dtype)
        arguments: tuple[Any, ...] = *rows, np.int64(n_stored), report
        launch(inspect_rows, n_rows, *arguments, most_blocks=MOST_BLOCKS)
        inspect_stored = kernel("inspect_stored", indices.dtype, data.dtype)
        arguments = *rows, data, np.int64(n_stored), np.int64(n_columns), report
        launch(inspect_stored, n_stored, *arguments, most_blocks=MOST_BLOCKS)
        return cls(X.shape, indptr, indices, data, report)

    def finish(self) -> DeviceCsr:
        """Return the checked matrix; raise ValueError if arrays are malformed."""
        fault, *counts = self.report.get().tolist()  # what inspect.cu's Report has
        indptr, indices, data = self.indptr, self.indices, self.data
        if fault:
            where = ~fault & (2**60 - 1)
            kind = FAULTS[~fault >> 60]
            refuse_fault(kind, where, indptr, indices, len(data), self.shape[1], "column")
        steps_down, at_row_starts, stored_zeros, nans, infinities, n_stored = counts
        if n_stored < len(data):
            indices, data = indices[:n_stored], data[:n_stored]
        if steps_down != at_row_starts or stored_zeros:
            indptr, indices, data = _settle(indptr, indices, data, self.shape[0])
        return DeviceCsr(self.shape, indptr, indices, data, nans > 0, infinities > 0)


def _settle(indptr: Array, indices: Array, data: Array, n_rows: int) -> tuple[Array, ...]:
    """Return copies with sorted columns, without repeats and zeros.

    Entries that are stored more than once are summed in the order in which they are stored.
    """
    n = len(data)
    rows = rows_of(indptr, n)
    order = cupy.argsort(indices)  # which is stable
    order = order[cupy.argsort(rows[order])]
    columns = indices[order]
    is_head = cupy.ones(n, dtype=bool)
    is_head[1:] = (columns[1:] != columns[:-1]) | (rows[1:] != rows[:-1])
    heads = cupy.flatnonzero(is_head)
    sums = sum_between(heads, order, data)
    # Compared by bits: to CuPy, float32 numbers below the smallest normal one are 0.
    is_kept = sums.view(f"u{sums.itemsize}") << 1 != 0
    heads, sums = heads[is_kept], sums[is_kept]
    return offsets_of(rows[heads], n_rows), columns[heads], sums


def rows_of(indptr: Array, n: int) -> Array:
    """Return the row of each of n stored values."""
    return cupy.searchsorted(indptr[1:], cupy.arange(n), side="right")


def offsets_of(rows: Array, n_rows: int) -> Array:
    """Return where rows begin, given the row of each stored value, in order."""
    return cupy.searchsorted(rows, cupy.arange(n_rows + 1))


def sum_between(heads: Array, order: Array, values: Array) -> Array:
    """Return the sums of values[order], each from one head to the next, in their order."""
    sums = cupy.empty(len(heads), dtype=values.dtype)
    ends = np.int64(len(heads)), np.int64(len(order))
    launch(kernel("sum_between", values.dtype), len(heads), heads, *ends, order, values, sums)
    return sums
