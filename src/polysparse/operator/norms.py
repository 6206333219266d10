"""Euclidean norms of the columns and rows of an expansion.

The square of a monomial is the monomial of squares, so columns with one monomial each take a
matrix-vector product with the expanded squares of X. Hashed columns contain sums of monomials, so
rows are expanded in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import cpu
from polysparse.expansion.by_blocks import iter_expand_columns
from polysparse.machine import threads_for
from polysparse.matrix import output
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.operator.products import Products


def column_norms(
    columns: ColumnSpace, x: CanonicalCsr, weights: NDArray[Any], n_jobs: int | None
) -> NDArray[Any]:
    """Return the norms of the columns, with weights of the rows of shape (n_rows, k)."""
    if columns.kind == "hashed":
        sums = np.zeros((columns.n_columns, weights.shape[1]), x.dtype)
        for rows, indices, squares in _squares(columns, x, n_jobs):
            for out, weight in zip(sums.T, weights.T, strict=True):
                np.add.at(out, indices, squares * weight[rows])  # in order, whatever the blocks
    else:
        sums = Products(columns, _squared(x), n_jobs).apply_transposed(weights)
    return np.sqrt(sums, out=sums)


def row_norms(columns: ColumnSpace, x: CanonicalCsr, n_jobs: int | None) -> NDArray[Any]:
    """Return the norms of the rows; in closed form for all columns of a basis."""
    if columns.kind == "all":
        norms = output.allocate(x.shape[0], x.dtype)
        cpu.row_norms(columns, x, norms, threads_for(n_jobs, len(x.data)))
        return norms
    if columns.kind == "hashed":
        sums = np.zeros(x.shape[0], x.dtype)
        for rows, _, squares in _squares(columns, x, n_jobs):
            np.add.at(sums, rows, squares)
    else:
        ones = np.ones(columns.n_columns, x.dtype)
        sums = Products(columns, _squared(x), n_jobs).apply(ones)
    return np.sqrt(sums, out=sums)


def _squared(x: CanonicalCsr) -> CanonicalCsr:
    """Return the matrix of squares, in which a square may be a stored zero."""
    return replace(x, data=np.square(x.data))


def _squares(
    columns: ColumnSpace, x: CanonicalCsr, n_jobs: int | None
) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Yield row, column and squared value of what the expansion stores, in blocks."""
    blocks = iter_expand_columns(columns, x, n_jobs=n_jobs, max_bytes=2**62, reuse=True)
    for rows, block in blocks:
        row_of_each = np.repeat(np.arange(rows.start, rows.stop), np.diff(block.indptr))
        yield row_of_each, block.indices, np.square(block.data)
