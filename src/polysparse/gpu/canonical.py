"""The single entry point for input on a GPU: arrays that the kernels can trust."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from struct import unpack_from
from typing import Any, NamedTuple

import cupy
import numpy as np

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.engine.cpu import CsrFault
from polysparse.engine.descriptions import Basis
from polysparse.gpu.compiling import (
    REPORT_BYTES,
    ROWS_EACH,
    THREADS,
    Struct,
    kernel,
    launch,
    launch_blocks,
    struct,
)
from polysparse.gpu.containers import Array, Container
from polysparse.gpu.group_counts import count_led, count_rows
from polysparse.matrix.canonical import CanonicalCsr, value_dtype
from polysparse.matrix.checking import index_dtype_of, refuse_fault, require_lengths
from polysparse.matrix.row_profile import CountedProfile, RowProfile

# Rows and stored values that a block of threads looks at, at most.
MOST_ROWS, MOST_VALUES = ROWS_EACH * THREADS, 8192

# More outputs in all than this are not counted one by one.
MOST_COUNTED = 2.0**58

INT64 = np.dtype(np.int64)

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
    made_for: Basis | None = None  # whose groups the features are sorted by
    led: Array | None = None  # of groups, the tuples that each stored value leads: groups.cu

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

    def profile_for(self, basis: MonomialBasis) -> RowProfile:
        """Return the profile that has the exact size of the expansion into a basis."""
        if not basis._is_grouped:
            return self.profile
        degrees = range(basis.highest + 1)
        counted = tuple(_total(self.count_outputs(basis, d)) for d in degrees)
        most = self.count_outputs(basis)
        return CountedProfile(self.profile.lengths, counted, int(most.max()) if len(most) else 0)

    def for_basis(self, basis: Basis) -> DeviceCsr:
        """Return the matrix as kernels take it with a basis.

        With groups, features are sorted by group, and what follows each value is counted.
        """
        if not basis._is_grouped or self.made_for == basis:
            return self
        x = self
        if basis.groups.order is not None and not self._is_sorted_by(basis.groups):
            places = cupy.asarray(basis.groups.places.astype(self.indices.dtype))
            arrays = _canonicalize(self.indptr, places[self.indices], self.data, self.shape[0])
            x = replace(self, **dict(zip(("indptr", "indices", "data"), arrays, strict=True)))
        return replace(x, made_for=basis, led=count_led(basis, x.indptr, x.indices))

    def _is_sorted_by(self, groups: Any) -> bool:
        return self.made_for is not None and self.made_for.groups == groups

    def count_outputs(self, basis: Basis, degree: int | None = None) -> Array:
        """Return how many outputs each row has with groups or terms, in all or of one degree."""
        x = self.for_basis(basis)
        return count_rows(basis, x.indptr, x.indices, x.led, degree)

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


@dataclass(frozen=True)
class Offsets:
    """Where the outputs of rows begin: on the device, and their number."""

    starts: Array
    total: int


def as_canonical(X: Container, dtype: np.dtype[Any] | None = None) -> DeviceCsr:
    """Read a container; X itself is never changed. Values are converted first."""
    return read(X, dtype)[0]


def read(
    X: Container,
    dtype: np.dtype[Any] | None = None,
    basis: Basis | None = None,
    offset_dtype: np.dtype[Any] = INT64,
) -> tuple[DeviceCsr, Offsets | None]:
    """Read a container, and count the outputs of its rows, if a basis is given: see `count`."""
    wanted = dtype or value_dtype(np.dtype(X.data.dtype))
    if X.data.ndim != 1:
        raise ValueError(f"X.data has {X.data.ndim} dimensions: the matrix is malformed.")
    data = as_contiguous_aligned(X.data, wanted)
    indices = as_contiguous_aligned(X.indices, index_dtype_of(X.indices, "X.indices"))
    given = as_contiguous_aligned(X.indptr, index_dtype_of(X.indptr, "X.indptr"))
    require_lengths(given, indices, data, X.shape[0], "row")
    is_grouped = basis is not None and basis._is_grouped
    counted = None if is_grouped else basis
    indptr, starts, found = _inspect(given, indices, data, X.shape, counted, offset_dtype)
    if found.fault:
        where = ~found.fault & (2**60 - 1)
        kind = FAULTS[(~found.fault >> 60) & 15]
        refuse_fault(kind, where, indptr, indices, len(data), X.shape[1], "column")
    if found.n_stored < len(data):
        indices, data = indices[: found.n_stored], data[: found.n_stored]
    is_canonical = found.out_of_order == 0 and found.stored_zeros == 0
    if not is_canonical:
        indptr, indices, data = _canonicalize(indptr, indices, data, X.shape[0])
    x = DeviceCsr(X.shape, indptr, indices, data, found.nans > 0, found.infinities > 0)
    if basis is None or (is_canonical and not is_grouped):
        return x, found.offsets(starts)
    x = x.for_basis(basis)
    return x, count(basis, x, offset_dtype)


def count(basis: Basis, x: DeviceCsr, offset_dtype: np.dtype[Any] = INT64) -> Offsets | None:
    """Return the offsets of all rows' outputs, or None if there are too many to be counted.

    If there are too many for the given dtype, the offsets are those modulo 2^32.
    """
    if basis._is_grouped:
        counts = x.count_outputs(basis)
        total = _total(counts)
        starts = cupy.zeros(len(counts) + 1, dtype=offset_dtype)
        starts[1:] = cupy.cumsum(counts).astype(offset_dtype)
        return None if total > MOST_COUNTED else Offsets(starts, total)
    _, starts, found = _inspect(x.indptr, None, x.data, x.shape, basis, offset_dtype)
    return found.offsets(starts)


def _total(counts: Array) -> int:
    """Return the sum of counts, or 2^60 if it is larger."""
    if float(counts.astype(np.float64).sum()) > 2.0**59:
        return 2**60
    return int(counts.sum())


def as_contiguous_aligned(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return a contiguous and aligned array of a dtype; the same one if it is."""
    if array.data.ptr % array.itemsize:  # no kernel may read it
        if not array.flags.c_contiguous:
            raise ValueError("An array on the GPU is neither contiguous nor aligned: pass a copy.")
        array = array.view(np.uint8).copy().view(array.dtype)
    if array.dtype == dtype and array.flags.c_contiguous:
        return array
    return cupy.ascontiguousarray(array, dtype=dtype)


class Found(NamedTuple):
    """What was found about arrays: Report of inspect.cu."""

    fault: int
    out_of_order: int
    stored_zeros: int
    nans: int
    infinities: int
    n_stored: int
    n_outputs: int
    n_outputs_about: float

    def offsets(self, starts: Array) -> Offsets | None:
        """Return where outputs begin, unless there are too many."""
        too_many = max(self.n_outputs_about, self.n_outputs) > MOST_COUNTED
        return None if too_many else Offsets(starts, self.n_outputs)


def _inspect(
    given: Array,
    indices: Array | None,
    data: Array,
    shape: tuple[int, int],
    basis: Basis | None,
    offset_dtype: np.dtype[Any],
) -> tuple[Array, Array, Found]:
    """Inspect arrays, and wait for the result.

    Return a copy of the offsets of rows as int64, which cannot change after they were inspected;
    the offsets of outputs; and what was found. Without indices, only offsets are looked at.
    """
    n_rows, n_stored = shape[0], len(data)
    n_looked = 0 if indices is None else n_stored
    n_blocks = max(1, -(-n_rows // MOST_ROWS), -(-n_looked // MOST_VALUES))
    values_each = -(-n_looked // n_blocks // 4) * 4
    offsets, starts = cupy.ndarray(n_rows + 1, INT64), cupy.ndarray(n_rows + 1, offset_dtype)
    n_bytes = REPORT_BYTES + 8 * (2 + n_blocks)
    report = cupy.cuda.alloc(n_bytes)
    report.memset_async(0, n_bytes)
    report_out = cupy.cuda.alloc_pinned_memory(REPORT_BYTES)
    numbers = (0, 1, 0, 0)  # no degree
    if basis is not None:
        numbers = basis.n_features, basis.lowest, basis.highest, int(basis.include_bias)
    arguments = struct(
        *(given, 0 if indices is None else indices, data, n_rows, n_stored, shape[1], *numbers),
        *(-(-n_rows // n_blocks), values_each, offsets, starts),
        *(report.ptr, report_out.ptr, *(report.ptr + REPORT_BYTES + 8 * k for k in range(3))),
    )
    index_dtype = np.dtype(np.int32) if indices is None else indices.dtype
    strict = basis is not None and basis.interaction_only
    inspect = kernel("inspect", given.dtype, index_dtype, data.dtype, offset_dtype, strict)
    launch_blocks(inspect, n_blocks, arguments)
    cupy.cuda.get_current_stream().synchronize()
    return offsets, starts, Found(*unpack_from("7qd", report_out))


def _canonicalize(indptr: Array, indices: Array, data: Array, n_rows: int) -> tuple[Array, ...]:
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
