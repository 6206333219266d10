"""Products of an expansion with vectors, and of its transpose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import engine_for
from polysparse.expansion.planning import plan_expansion
from polysparse.machine import threads_for
from polysparse.matrix import output
from polysparse.matrix.canonical import CanonicalCsr


def apply(
    columns: ColumnSpace, x: CanonicalCsr, coefficients: NDArray[Any], n_jobs: int | None
) -> NDArray[Any]:
    """Return the expansion times coefficients, which are of shape (n_columns, k)."""
    out = output.allocate((x.shape[0], coefficients.shape[1]), x.dtype)
    engine_for(x).apply(columns, x, coefficients, out, *_effort(columns, x, n_jobs))
    return out


def apply_transposed(
    columns: ColumnSpace, x: CanonicalCsr, weights: NDArray[Any], n_jobs: int | None
) -> NDArray[Any]:
    """Return the transposed expansion times weights of the rows, of shape (n_rows, k)."""
    out = np.zeros((columns.n_columns, weights.shape[1]), x.dtype)
    engine_for(x).apply_transposed(columns, x, weights, out, *_effort(columns, x, n_jobs))
    return out


def _effort(columns: ColumnSpace, x: CanonicalCsr, n_jobs: int | None) -> tuple[int, int]:
    """Return the number of outputs that are multiplied, and of threads that are worth starting."""
    n_outputs = min(plan_expansion(columns, x).nnz, 2**62)
    return n_outputs, threads_for(n_jobs, n_outputs)
