"""Products of an expansion with vectors, and of its transpose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import engine_for
from polysparse.machine import threads_for
from polysparse.matrix import output
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.matrix.row_profile import require_countable


def apply(
    columns: ColumnSpace,
    x: CanonicalCsr,
    coefficients: NDArray[Any],
    n_outputs: int,
    n_jobs: int | None,
) -> NDArray[Any]:
    """Return the expansion times coefficients, which are of shape (n_columns, k)."""
    out = output.allocate((x.shape[0], coefficients.shape[1]), x.dtype)
    n_threads = threads_for(n_jobs, n_outputs)
    engine_for(x).apply(columns, x, coefficients, out, n_outputs, n_threads)
    return out


def apply_transposed(
    columns: ColumnSpace,
    x: CanonicalCsr,
    weights: NDArray[Any],
    n_outputs: int,
    n_jobs: int | None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Return the transposed expansion times weights of the rows, of shape (n_rows, k).

    It is written to `out`, if that is given. A solver that gives its last result back need not wait
    for fresh memory, which may take longer than the product.
    """
    if out is None:
        out = np.zeros((columns.n_columns, weights.shape[1]), x.dtype)
    else:
        out.fill(0)
    n_threads = threads_for(n_jobs, n_outputs)
    engine_for(x).apply_transposed(columns, x, weights, out, n_outputs, n_threads)
    return out


def count_outputs(columns: ColumnSpace, x: CanonicalCsr) -> int:
    """Return how many outputs are multiplied, which is what products take as `n_outputs`.

    Those are counted, too, that are not chosen, and those that are merged. MemoryError is raised if
    there are more than can be counted.
    """
    n_outputs = x.profile.outputs(columns.basis)
    require_countable(n_outputs)
    return n_outputs
