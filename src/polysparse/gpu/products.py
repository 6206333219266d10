"""Matrix-vector products with an expansion and its transpose on a GPU.

Sums are added in an order that only depends on the matrix. A matrix-vector product with the
transposed expansion is partitioned by columns of X: the outputs that begin with a column are a
strip of the result, which a few threads compute. They read the rows in order. Rows are divided into
chunks, each with its own result.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import cupy
import numpy as np

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns, ColumnSpace
from polysparse.gpu import engine
from polysparse.gpu.arguments import basis_struct, ends_struct, has_degrees, table_of
from polysparse.gpu.canonical import DeviceCsr, rows_of
from polysparse.gpu.compiling import (
    PAIR_LANES,
    THREADS,
    kernel,
    launch_blocks,
    most_shared_bytes,
    struct,
)
from polysparse.gpu.containers import Array
from polysparse.gpu.parts import RowParts
from polysparse.gpu.tuple_products import TupleProducts

# Of products of pairs: values of a row at most, and vectors multiplied together.
MOST_PAIRED = 64
VECTORS = 4

# Columns of a basis, of which some are chosen, whose coefficients are kept at most; and the highest
# degree that is multiplied by strips.
MOST_OF_BASIS = 2**28
HIGHEST = 8

# Threads of a product with the transpose, and bytes of the results of chunks, at most. Blocks that
# take more than enough shared memory are few at a time.
ENOUGH_THREADS = 2**21
CHUNK_BYTES = 2**27
ENOUGH_SHARED_BYTES = 48 * 1024


def products_of(columns: ColumnSpace, x: DeviceCsr) -> Products | TupleProducts:
    """Return products with an expansion: by strips, if its columns allow it."""
    columns.require_indexable()
    basis = columns.basis
    engine.require_short_rows(basis, x)
    is_of_strips = (not basis._is_grouped and basis.highest <= HIGHEST) and (
        columns.kind == "all" or (columns.kind == "chosen" and basis.n_columns <= MOST_OF_BASIS)
    )
    return (Products if is_of_strips else TupleProducts)(columns, x)


class Products:
    """Matrix-vector products with the expansion into all columns of a basis, or chosen columns.

    Chosen columns are multiplied by way of all columns of their basis.
    """

    def __init__(self, columns: ColumnSpace, x: DeviceCsr) -> None:
        self.columns, self.x = columns, x
        self.basis = columns.basis

    @cached_property
    def ranks(self) -> Array:
        """The chosen columns."""
        columns: Any = self.columns
        return cupy.asarray(columns.ranks)

    def apply(self, coefficients: Array) -> Array:
        """Return the expansion times coefficients, of shape (n_columns, k)."""
        if isinstance(self.columns, AllColumns):
            return self._apply_all(coefficients)
        shape = self.basis.n_columns, coefficients.shape[1]
        of_all = cupy.zeros(shape, dtype=coefficients.dtype)
        of_all[self.ranks] = coefficients
        out = self._apply_all(of_all)
        if bool(cupy.isfinite(out).all()):
            return out  # otherwise a value of a column that is not chosen, times 0, may be in it
        return TupleProducts(self.columns, self.x).apply(coefficients)

    def _apply_all(self, coefficients: Array) -> Array:
        """Return the same for all columns of the basis."""
        out = cupy.zeros((self.x.shape[0], coefficients.shape[1]), dtype=self.x.dtype)
        if not has_degrees(self.basis):
            return out + coefficients if self.basis.include_bias else out
        k = out.shape[1]
        if out.size == 0:
            return out
        if not self._is_of_pairs:
            for c in range(k):
                self._dot(coefficients[:, c:], out[:, c:], k)
            return out
        together = VECTORS if k % VECTORS == 0 else 1
        for c in range(0, k, together):
            self._dot_pairs(coefficients[:, c:], out[:, c:], k, together)
        return out

    @cached_property
    def _is_of_pairs(self) -> bool:
        """Whether only pairs of short rows are multiplied, which there is room for."""
        is_short = self.basis.highest == 2 and self._longest <= MOST_PAIRED
        return is_short and self._pair_bytes <= most_shared_bytes()

    @property
    def _pair_bytes(self) -> int:
        """Shared memory in which a block of threads multiplies pairs."""
        return THREADS // PAIR_LANES * (self._longest | 1) * self._stored_bytes

    @property
    def _stored_bytes(self) -> int:
        """A value and a column: Stored of products.cu, which checks it."""
        return 2 * max(self.x.dtype.itemsize, self._word.itemsize)

    @property
    def _word(self) -> np.dtype[Any]:
        """What kernels count columns with."""
        return np.dtype(np.int32 if self.basis.n_columns < 2**31 else np.int64)

    @cached_property
    def _longest(self) -> int:
        """The most values that a row stores."""
        return int(cupy.diff(self.x.indptr).max())

    def _dot_pairs(self, coefficients: Array, out: Array, stride: int, together: int) -> None:
        x, basis = self.x, self.basis
        kinds = x.dtype, x.indices.dtype, self._word, basis.interaction_only, together
        launch_blocks(
            kernel("dot_pairs", *kinds, self._stored_bytes),
            -(-x.shape[0] // (THREADS // PAIR_LANES)),
            *(x.as_struct, basis_struct(basis), ends_struct(basis)),
            *(np.int32(self._longest | 1), coefficients, np.int64(stride), out, np.int64(stride)),
            shared_bytes=self._pair_bytes,
        )

    @cached_property
    def _parts(self) -> RowParts:
        return RowParts.of(self.basis, self.x)

    def _dot(self, coefficients: Array, out: Array, stride: int) -> None:
        x, basis, parts = self.x, self.basis, self._parts
        items, strict = parts.items, basis.interaction_only
        sums, step = (out, stride) if items is None else (cupy.empty((parts.n, 1), x.dtype), 1)
        table, longest = table_of(basis)
        launch_blocks(
            kernel("dot_rows", x.dtype, x.indices.dtype, self._word, basis.highest, strict),
            -(-parts.n // (THREADS // 32)),
            *(x.as_struct, basis_struct(basis), ends_struct(basis), table),
            *(np.int32(longest), np.intp(0) if items is None else items, np.int64(parts.n)),
            *(np.int64(parts.size), coefficients, np.int64(stride), sums, np.int64(step)),
        )
        if items is not None:
            parts.add(sums, out, stride)

    def apply_transposed(self, weights: Array, data: Array | None = None) -> Array:
        """Return the transposed expansion times weights of the rows, of shape (n_rows, k).

        `data` are other values of X, if they are given.
        """
        basis, k = self.basis, weights.shape[1]
        out = cupy.zeros((basis.n_columns, k), dtype=self.x.dtype)
        for c in range(k):
            if has_degrees(basis) and len(self.x.data):
                out[:, c] = self._scatter(weights[:, c:], k, self.x.data if data is None else data)
            if basis.include_bias:
                out[0, c] = weights[:, c].sum()  # which is faster than the sums of all columns
        return out if isinstance(self.columns, AllColumns) else out[self.ranks]

    def _scatter(self, weights: Array, stride: int, data: Array) -> Array:
        x, basis, index = self.x, self.basis, self._index
        kinds, strict = (x.dtype, x.indices.dtype), basis.interaction_only
        name, more = ("scatter_pairs", ()) if index.is_staged else ("scatter", (basis.highest,))
        out = cupy.zeros((index.n_chunks, basis.n_columns), dtype=x.dtype)
        launch_blocks(
            kernel(name, *kinds, *more, strict, index.lanes),
            index.n_blocks,
            *(struct(x.indptr, x.indices, data, x.shape[0]), index.as_struct),
            *(basis_struct(basis), ends_struct(basis)),
            *(weights, np.int64(stride), out, np.int64(basis.n_columns)),
            shared_bytes=index.strip_bytes if index.is_staged else 0,
        )
        return out[0] if index.n_chunks == 1 else out.sum(axis=0)

    @cached_property
    def _index(self) -> ByColumns:
        return ByColumns(self.basis, self.x)


class ByColumns:
    """The places of what each column of a matrix stores in each chunk of rows, in their order.

    So many `lanes`, which are threads, have one column and one chunk. If it `is_staged`, they add
    up what begins with the column in shared memory.
    """

    def __init__(self, basis: MonomialBasis, x: DeviceCsr) -> None:
        self.x = x
        n_rows, n_features = x.shape
        length = len(x.data) / n_rows
        self.lanes = 8 if length <= 24 else 16 if length <= 48 else 32
        while self.lanes < 32 and self.strip_bytes > ENOUGH_SHARED_BYTES:
            self.lanes *= 2
        self.is_staged = basis.highest == 2 and self.strip_bytes <= most_shared_bytes()
        wanted = -(-ENOUGH_THREADS // (self.lanes * n_features))
        most = CHUNK_BYTES // (basis.n_columns * x.dtype.itemsize)
        self.n_chunks: int = max(1, min(wanted, most, n_rows // 64))

    @property
    def strip_bytes(self) -> int:
        """Shared memory in which a block of threads adds up."""
        itemsize: int = self.x.dtype.itemsize
        return THREADS // self.lanes * self.x.shape[1] * itemsize

    @property
    def n_blocks(self) -> int:
        """How many blocks of threads there are."""
        n_features, together = self.x.shape[1], THREADS // self.lanes
        if self.lanes == 32:
            return -(-n_features * self.n_chunks // together)
        return n_features * -(-self.n_chunks // together)

    @cached_property
    def as_struct(self) -> Any:
        """Where columns and chunks begin, the places, and their rows, as kernels take them."""
        x, n = self.x, self.n_chunks
        order = cupy.argsort(x.indices)  # which is stable
        rows = rows_of(x.indptr, len(x.indices))[order]
        parts = x.indices[order].astype(np.int64) * n + rows // -(-x.shape[0] // n)
        starts = cupy.searchsorted(parts, cupy.arange(x.shape[1] * n + 1))
        return struct(starts, order, rows, n)
