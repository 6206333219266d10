"""fit and transform of the transformers, on matrices on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from polysparse.gpu.canonical import DeviceCsr, as_canonical
from polysparse.gpu.containers import Container, container_of
from polysparse.gpu.expansion import expand_columns
from polysparse.gpu.memory import require_dense_room
from polysparse.matrix.canonical import value_dtype
from polysparse.observation.tally import ColumnTally, Counted, count_columns


def sample_of(X: Any) -> Any:
    """Return a row of zeros in main memory in place of X, or no row if X has none.

    X is inspected first: malformed arrays, NaN and infinity are refused as scikit-learn does.
    """
    container = container_of(X)
    with container.on_its_device():
        read_finite(container)
    return zeros_like(container)


def zeros_like(container: Container) -> Any:
    """Return a row of zeros in main memory that is as wide as a container, if that has any."""
    shape = min(container.shape[0], 1), container.shape[1]
    return sparse.csr_matrix(shape, dtype=value_dtype(np.dtype(container.data.dtype)))


def read_finite(container: Container, dtype: np.dtype[Any] | None = None) -> DeviceCsr:
    """Read a container; raise ValueError, in scikit-learn's words, if a value is not finite."""
    x = as_canonical(container, dtype)
    if x.has_nan:
        raise ValueError("Input X contains NaN.")
    if x.has_infinity:
        raise ValueError(f"Input X contains infinity or a value too large for {x.dtype!r}.")
    return x


def transform(estimator: Any, X: Any) -> Any:
    """Return what a fitted transformer gives, of the kind of X, or dense if it says so."""
    container = container_of(X)
    estimator._transform_rows(zeros_like(container), min_samples=1)  # scikit-learn's checks
    columns = estimator.column_space(container.shape[1])
    with container.on_its_device():
        x = read_finite(container)
        shape = x.shape[0], columns.n_columns
        if not getattr(estimator, "sparse_output", True):
            require_dense_room(
                shape, x.dtype, "Set sparse_output=True, or transform fewer rows at a time."
            )
        arrays = expand_columns(columns, x, max_bytes="available", ways_out=estimator._ways_out)
        out = container.wrap(shape, *arrays)
        if getattr(estimator, "sparse_output", True):
            return out
        return out.to_dense() if hasattr(out, "to_dense") else out.toarray()


def count(estimator: Any, X: Any, columns: Counted) -> ColumnTally:
    """Count the columns that occur. X is copied to main memory for it."""
    container = container_of(X)
    with container.on_its_device():
        x = read_finite(container).get()
    return count_columns(columns, x, estimator.n_jobs)
