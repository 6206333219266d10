"""Products of an expansion with vectors, and of its transpose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.expansion.by_blocks import iter_expand_columns
from polysparse.matrix.canonical import CanonicalCsr


def apply(
    columns: ColumnSpace, x: CanonicalCsr, coefficients: NDArray[Any], n_jobs: int | None
) -> NDArray[Any]:
    """Return the expansion times coefficients, which are of shape (n_columns, k)."""
    out = np.zeros((x.shape[0], coefficients.shape[1]), x.dtype)
    for rows, block in iter_expand_columns(columns, x, n_jobs=n_jobs, max_bytes=2**28, reuse=True):
        out[rows] = block @ coefficients
    return out


def apply_transposed(
    columns: ColumnSpace, x: CanonicalCsr, weights: NDArray[Any], n_jobs: int | None
) -> NDArray[Any]:
    """Return the transposed expansion times weights of the rows, of shape (n_rows, k)."""
    out = np.zeros((columns.n_columns, weights.shape[1]), x.dtype)
    for rows, block in iter_expand_columns(columns, x, n_jobs=n_jobs, max_bytes=2**28, reuse=True):
        out += block.T @ weights[rows]
    return out
