"""Products with any columns on a GPU, one output after the other.

An output is made and multiplied, and nothing of it is kept. A product with the transposed expansion
adds to the columns in no order at all: as integers, whose sums do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import cupy
import numpy as np

from polysparse.columns.spaces import ColumnSpace
from polysparse.gpu.arguments import (
    basis_struct,
    hasher_struct,
    kind_of,
    rank_keys_struct,
    tuples_struct,
)
from polysparse.gpu.canonical import DeviceCsr
from polysparse.gpu.compiling import THREADS, Struct, kernel, launch, launch_blocks, struct
from polysparse.gpu.containers import Array
from polysparse.gpu.parts import RowParts
from polysparse.matrix.row_profile import require_countable

# Vectors that are multiplied together.
VECTORS = 4

# Terms of a column that its integers have room for: tuples.cu says why.
MOST_TERMS = 2**36


class TupleProducts:
    """Matrix-vector products with the expansion into columns of any kind."""

    def __init__(self, columns: ColumnSpace, x: DeviceCsr) -> None:
        self.columns, self.basis = columns, columns.basis
        self.x = x.for_basis(self.basis)

    def apply(self, coefficients: Array) -> Array:
        """Return the expansion times coefficients, of shape (n_columns, k)."""
        k = coefficients.shape[1]
        out = cupy.zeros((self.x.shape[0], k), dtype=self.x.dtype)
        if 0 in (*out.shape, len(coefficients)):
            return out
        parts = self._parts
        for c, together in _groups(k):
            own, sums, stride = out[:, c:], out[:, c:], k
            if parts.items is not None:
                sums, stride = cupy.empty((parts.n, together), dtype=out.dtype), together
            vectors = coefficients[:, c:], np.int64(k), sums, np.int64(stride)
            self._launch("dot_tuples", (together,), self.x.data, slice(0, parts.n), *vectors)
            if parts.items is not None:
                parts.add(sums, own, k)
        return out

    def apply_transposed(self, weights: Array, data: Array | None = None) -> Array:
        """Return the transposed expansion times weights of the rows, of shape (n_rows, k).

        `data` are other values of X, if they are given.
        """
        k = weights.shape[1]
        out = cupy.zeros((self.columns.n_columns, k), dtype=self.x.dtype)
        if 0 in (*out.shape, len(weights)):
            return out
        for c, together in _groups(k):
            values = self.x.data if data is None else data
            out[:, c : c + together] = self._scatter(weights[:, c:], k, together, values)
        return out

    def _scatter(self, weights: Array, stride: int, together: int, data: Array) -> Array:
        n = self.columns.n_columns * together
        sums, words = cupy.zeros(n), cupy.zeros(n, dtype=np.uint64)
        wraps, tops = cupy.zeros((2, n), dtype=np.uint32)
        to = struct(sums, words, wraps, tops)
        for some in self._rounds():
            for is_first in (True, False):
                kinds = together, is_first
                vectors = weights, np.int64(stride), to
                self._launch("scatter_tuples", kinds, data, some, *vectors)
            launch(kernel("finish_sums"), n, to, np.int64(n))
        return sums.reshape(-1, together)

    def _rounds(self) -> Iterator[slice]:
        """Yield parts that have no more outputs than integers have room for."""
        parts = self._parts
        n = parts.n if self._n_outputs < MOST_TERMS else max(1, MOST_TERMS // parts.size - 1)
        for first in range(0, parts.n, n):
            yield slice(first, min(first + n, parts.n))

    def _launch(
        self, name: str, kinds: tuple[Any, ...], data: Array, some: slice, *vectors: Any
    ) -> None:
        x, basis = self.x, self.basis
        highest, is_hashed = max(basis.highest, 1), self.columns.kind == "hashed"
        types = x.dtype, x.indices.dtype, highest, kind_of(basis), is_hashed
        launch_blocks(
            kernel(name, *types, *kinds),
            -(-(some.stop - some.start) // (THREADS // 32)),
            *(struct(x.indptr, x.indices, data, x.shape[0]), basis_struct(basis)),
            *(self._keys, tuples_struct(basis, x.led), self._parts.as_struct(some), *vectors),
        )

    @cached_property
    def _n_outputs(self) -> int:
        return self.x.profile_for(self.basis).outputs(self.basis)

    @cached_property
    def _parts(self) -> RowParts:
        require_countable(self._n_outputs)
        return RowParts.of(self.basis, self.x)

    @cached_property
    def _keys(self) -> Struct:
        """What outputs are known by, as kernels take it."""
        columns: Any = self.columns
        if columns.kind == "hashed":
            return hasher_struct(columns)
        if columns.kind == "all":
            return rank_keys_struct(self.basis)
        ranks, most = cupy.asarray(columns.ranks), self.basis.n_columns - 1
        shift = max(0, most.bit_length() - len(ranks).bit_length())
        starts = cupy.searchsorted(ranks >> shift, cupy.arange((most >> shift) + 2))
        return rank_keys_struct(self.basis, (ranks, starts, shift))


def _groups(k: int) -> Iterator[tuple[int, int]]:
    """Yield where vectors that are multiplied together begin, and their number."""
    for c in range(0, k - VECTORS + 1, VECTORS):
        yield c, VECTORS
    for c in range(k - k % VECTORS, k):
        yield c, 1
