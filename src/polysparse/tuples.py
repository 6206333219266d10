"""Reading what users give as monomials and as column numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from polysparse.basis import MonomialBasis

LAST = np.iinfo(np.int64).max


def as_int64(values: Any, argument: str) -> NDArray[np.int64]:
    """Read integers of any kind. Those beyond int64 become its limits: no column is so large."""
    array = np.asarray(values)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind == "O" and all(isinstance(value, Integral) for value in array.flat):
        clipped = [min(max(int(value), -LAST), LAST) for value in array.flat]
        return np.array(clipped, dtype=np.int64).reshape(array.shape)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{argument} must be integers; got dtype {array.dtype}.")
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(LAST))
    return np.asarray(array, dtype=np.int64)


def as_columns(basis: MonomialBasis, columns: Any) -> NDArray[np.int64]:
    """Read one column or several; raise for one that the basis does not have."""
    array = np.atleast_1d(as_int64(columns, "columns"))
    if array.ndim != 1:
        raise ValueError(f"columns must be an int or one-dimensional; got {array.ndim} dimensions.")
    outside = (array < 0) | (array >= basis.n_columns)
    if outside.any():
        raise ValueError(
            f"column {array[outside.argmax()]} is not in the basis, which has columns "
            f"[0, {basis.n_columns:,})."
        )
    return np.ascontiguousarray(array)


def as_rising(basis: MonomialBasis, tuples: Any) -> tuple[NDArray[np.int64], bool]:
    """Read one tuple or several as sorted rows, filled up with -1; and whether it was one."""
    rows, one = _as_rows(tuples)

    def refuse(bad: Any, why: str) -> None:
        if np.any(bad):
            row = rows[np.argmax(bad)]
            tuple_ = tuple(row.tolist() if one else row[row != -1].tolist())
            raise ValueError(f"tuple {tuple_} is not in the basis: {why}")

    stored = rows != -1
    refuse(one and not stored.all(), "-1 is no input column.")
    refuse((stored[:, 1:] & ~stored[:, :-1]).any(axis=1), "-1 may only stand at the end.")
    refuse(
        ((rows < -1) | (rows >= basis.n_features)).any(axis=1),
        f"input columns must be in [0, {basis.n_features}).",
    )
    degrees = stored.sum(axis=1)
    refuse((degrees == 0) & (not basis.include_bias), "include_bias=False.")
    refuse(
        (degrees > 0) & ((degrees < basis.lowest) | (degrees > basis.max_degree)),
        f"its degree is not in [{basis.lowest}, {basis.max_degree}].",
    )
    rising = np.sort(np.where(stored, rows, LAST), axis=1)
    if basis.interaction_only:
        repeated = (rising[:, 1:] == rising[:, :-1]) & (rising[:, 1:] != LAST)
        refuse(repeated.any(axis=1), "interaction_only=True allows no column twice.")
    return np.ascontiguousarray(np.where(rising == LAST, -1, rising)), one


def _as_rows(tuples: Any) -> tuple[NDArray[np.int64], bool]:
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
