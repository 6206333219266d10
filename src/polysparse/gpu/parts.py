"""Rows divided into parts of so many outputs, so that several warps share a long one."""

from __future__ import annotations

from dataclasses import dataclass

import cupy
import numpy as np

from polysparse.engine.descriptions import Basis
from polysparse.gpu.arguments import basis_struct
from polysparse.gpu.canonical import DeviceCsr
from polysparse.gpu.compiling import Struct, kernel, launch, struct
from polysparse.gpu.containers import Array

# Outputs that a warp multiplies at most.
PART = 2**13


@dataclass(frozen=True)
class RowParts:
    """Parts of rows, one behind the other.

    Attributes
    ----------
    n : int
        How many there are.
    size : int
        How many outputs each of them has at most.
    items : cupy.ndarray of int64, or None
        Where the parts of each row begin; None if each row is one part.
    """

    n: int
    size: int
    items: Array | None

    @classmethod
    def of(cls, basis: Basis, x: DeviceCsr) -> RowParts:
        """Divide the rows of a matrix."""
        if basis._is_grouped:
            return cls.of_sizes(x.count_outputs(basis))
        n_rows = x.shape[0]
        items = cupy.empty(n_rows + 1, dtype=np.int64)
        numbers = x.indptr, np.int64(n_rows), basis_struct(basis), np.int64(PART)
        launch(kernel("count_parts", basis.interaction_only), n_rows, *numbers, items)
        return cls._of_counts(items)

    @classmethod
    def of_sizes(cls, sizes: Array) -> RowParts:
        """Divide rows that have so many outputs."""
        items = cupy.zeros(len(sizes) + 1, dtype=np.int64)
        items[1:] = cupy.maximum((sizes + (PART - 1)) // PART, 1)
        return cls._of_counts(items)

    @classmethod
    def _of_counts(cls, items: Array) -> RowParts:
        """Return the parts, given how many each row has, behind a 0."""
        cupy.cumsum(items, out=items)
        n = int(items[-1])
        return cls(n, PART, items if n > len(items) - 1 else None)

    def as_struct(self, some: slice) -> Struct:
        """Return some of the parts as kernels take them."""
        return struct(0 if self.items is None else self.items, some.start, some.stop, self.size)

    def add(self, sums: Array, out: Array, stride: int) -> None:
        """Write the sums of each row's parts to `out`, whose rows are `stride` apart."""
        n_rows = len(out)
        for c in range(sums.shape[1]):
            numbers = self.items, np.int64(n_rows), sums[:, c:], np.int64(sums.shape[1])
            add_parts = kernel("add_parts", sums.dtype)
            launch(add_parts, n_rows, *numbers, out[:, c:], np.int64(stride))
