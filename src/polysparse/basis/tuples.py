"""Parse integers, and tuples of integers, in whatever form users pass them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.engine.contiguous import as_contiguous_aligned

LAST = np.iinfo(np.int64).max


def as_int64(values: Any, argument: str) -> NDArray[np.int64]:
    """Read integers of any kind as int64.

    Integers beyond int64 are clipped to +-(2**63 - 1), which is never a valid column.
    """
    array = np.asarray(values)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind == "f":  # NumPy reads a list of int64 and larger integers as floats
        array = np.asarray(values, dtype=object)
    if array.dtype.kind == "O" and all(isinstance(value, Integral) for value in array.flat):
        clipped = [min(max(int(value), -LAST), LAST) for value in array.flat]
        return np.array(clipped, dtype=np.int64).reshape(array.shape)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{argument} must be integers; got dtype {np.asarray(values).dtype}.")
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(LAST))
    return np.asarray(array, dtype=np.int64)


def as_columns(columns: Any, n_columns: int) -> NDArray[np.int64]:
    """Read one column or several; raise ValueError for one that is not in [0, n_columns)."""
    array = np.atleast_1d(as_int64(columns, "columns"))
    if array.ndim != 1:
        raise ValueError(f"columns must be an int or one-dimensional; got {array.ndim} dimensions.")
    outside = (array < 0) | (array >= n_columns)
    if outside.any():
        given = np.atleast_1d(np.asarray(columns, dtype=object))  # neither clipped nor rounded
        column = given[outside.argmax()]
        raise ValueError(
            f"column {column} is not in the basis, which has columns [0, {n_columns:,})."
        )
    return as_contiguous_aligned(array)


def as_rows(tuples: Any) -> tuple[NDArray[np.int64], bool]:
    """Read one tuple or several as rows padded with -1; also return whether it was a single one."""
    if not isinstance(tuples, np.ndarray):
        if not isinstance(tuples, Iterable):
            raise ValueError(
                f"tuples must be a tuple of input columns, or several; got {tuples!r}."
            )
        tuples = list(tuples)
        if any(isinstance(row, Sequence | np.ndarray) for row in tuples):
            if not all(isinstance(row, Sequence | np.ndarray) for row in tuples):
                raise ValueError(f"tuples must all be sequences of input columns; got {tuples!r}.")
            width = max(len(row) for row in tuples)
            tuples = [[*row, *[-1] * (width - len(row))] for row in tuples]
            tuples = np.array(tuples).reshape(len(tuples), width)
    array = as_int64(tuples, "tuples")
    if array.ndim not in (1, 2):
        raise ValueError(
            f"tuples must be one tuple or an (n, k) array; got {array.ndim} dimensions."
        )
    return np.atleast_2d(array), array.ndim == 1


def sort_rows(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort each row, keeping the -1 that pad it at its end."""
    increasing = np.sort(np.where(rows == -1, LAST, rows), axis=1)
    return np.ascontiguousarray(np.where(increasing == LAST, -1, increasing))
