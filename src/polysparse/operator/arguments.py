"""Read the arguments of operators; errors are the same in memory and on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysparse.matrix.canonical import VALUE_DTYPES

WAYS_OUT = (
    "rows(slice(start, stop)) builds some of the rows",
    "matrix-vector products with the operator do not need the matrix",
)
WAY_OUT_OF_DENSE = f"tocsr() leaves out zeros; {'; '.join(WAYS_OUT)}."
WAY_OUT_OF_VECTORS = (
    "Pass columns: an ObservedPolynomialFeatures keeps only those present in the data, a "
    "HashedPolynomialFeatures has n_columns of them."
)


def as_value_dtype(dtype: Any) -> np.dtype[Any]:
    """Read a dtype of values; raise ValueError if there are no such."""
    wanted: np.dtype[Any] = np.dtype(dtype)
    if wanted not in VALUE_DTYPES:
        raise ValueError(f"dtype must be float32 or float64; got {dtype!r}.")
    return wanted


def as_row_range(rows: Any, n_rows: int) -> slice:
    """Read a slice of rows that follow one another; return it with a start and a stop."""
    if not isinstance(rows, slice):
        raise TypeError(f"rows must be a slice, such as slice(0, 10); got {rows!r}.")
    start, stop, step = rows.indices(n_rows)
    if step != 1:
        raise ValueError(f"rows must have a step of 1; got {rows!r}.")
    return slice(start, max(start, stop))


def require_numbers(array: Any, argument: str, *, may_be_complex: bool = False) -> None:
    """Raise ValueError unless an array has a dtype of numbers; objects are left to NumPy."""
    if array.dtype.kind not in ("biufcO" if may_be_complex else "biufO"):
        wanted = "numbers" if may_be_complex else "real numbers"
        raise ValueError(
            f"{argument} has dtype {array.dtype}, which cannot be multiplied: {wanted} are needed. "
            f"Convert it first, with {argument}.astype(float)"
            f"{'' if may_be_complex else f' or {argument}.real'}."
        )


def require_weights(weights: Any, n_rows: int) -> None:
    """Raise ValueError if an array does not have weights of rows."""
    if weights.ndim not in (1, 2) or len(weights) != n_rows:
        raise ValueError(
            f"weights must have a weight for each of {n_rows:,} rows; got shape {weights.shape}."
        )
    if (weights < 0).any():
        first = np.argwhere(weights < 0)[0].tolist()
        raise ValueError(f"weights must not be negative, but weights{first} is {weights[*first]}.")


def require_features(n_others: int, n_features: int) -> None:
    """Raise ValueError if Z has other features than X."""
    if n_others != n_features:
        raise ValueError(f"Z has {n_others} features; X has {n_features}.")


def name_vectors(n_columns: int, k: int) -> str:
    """Name vectors of coefficients, for a message."""
    vectors = "A vector" if k == 1 else f"{k} vectors"
    return f"{vectors} with an entry for each of {n_columns:,} columns"
