"""Rows that are too large to learn from: their squares would not be finite in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.online.scaling import LARGEST_SCALED, Scaling

MOST = 1e16  # of a weight * a target * a product of features
SUSPECT = 1e18  # a value beyond it may be a mark for a missing one ...
SUSPECT_GROWTH = 1e9  # ... if all values before are smaller by that factor


class UnlearnableRows(ValueError):
    """Rows that cannot be learned from; the model is as it was before.

    Attributes
    ----------
    are_bad : ndarray of bool
        Which of the rows that were given.
    """

    def __init__(self, message: str, are_bad: NDArray[np.bool_]) -> None:
        super().__init__(message)
        self.are_bad = are_bad


def require_learnable(
    x: CanonicalCsr,
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    degree: int,
    has_classes: bool,
    scaling: Scaling | None,
    earlier: CanonicalCsr | None,
) -> None:
    """Raise UnlearnableRows if values, targets or weights are too large.

    `earlier` has rows that were accepted before, but not yet learned from.
    """
    sizes = weights if has_classes else weights * np.maximum(np.abs(targets), 1)
    if scaling is None:
        largest = np.maximum(_largest_of_rows(np.abs(x.data, dtype=np.float64), x), 1)
        with np.errstate(over="ignore"):
            products = largest**degree
    else:
        products = np.full(len(targets), LARGEST_SCALED**degree)
    with np.errstate(over="ignore", invalid="ignore"):
        are_bad = ~(sizes * products <= MOST)
    if are_bad.any():
        row = int(np.argmax(are_bad))
        is_target = not has_classes and abs(targets[row]) * weights[row] > MOST / 2**degree
        what = f"the target {targets[row]:g}"
        if not is_target:
            what = f"a product of features of up to {products[row]:g}"
        raise UnlearnableRows(
            f"row {row} cannot be learned from: {what}, times its weight {weights[row]:g}, is too "
            f"large; at most {MOST:g} fits the state. Scale y or X, or leave the row out.",
            are_bad,
        )
    if scaling is not None:
        _require_no_marks(x, scaling, earlier)


def _largest_of_rows(values: NDArray[np.float64], x: CanonicalCsr) -> NDArray[np.float64]:
    out = np.zeros(x.shape[0])
    filled = np.diff(x.indptr) > 0
    if filled.any():
        out[filled] = np.maximum.reduceat(values, x.indptr[:-1][filled])
    return out


def _require_no_marks(x: CanonicalCsr, scaling: Scaling, earlier: CanonicalCsr | None) -> None:
    """Raise UnlearnableRows for values such as 1e20 of a feature whose other values are near 1.

    With such a scale, the feature would never count again.
    """
    if x.data.max(initial=0) <= SUSPECT and x.data.min(initial=0) >= -SUSPECT:
        return
    are_bad = np.zeros(x.shape[0], bool)
    first: tuple[int, Any, int] | None = None
    known: dict[int, float] = {}
    n_earlier = 0 if earlier is None else earlier.shape[0]
    for part, offset in ((earlier, -n_earlier), (x, 0)):
        if part is None:
            continue
        suspects = np.unique(x.indices[np.abs(x.data) > SUSPECT])
        where = np.flatnonzero(np.isin(part.indices, suspects))
        rows = np.searchsorted(part.indptr, where, side="right") - 1 + offset
        for row, k in zip(rows.tolist(), where.tolist(), strict=True):  # in order
            feature, value = int(part.indices[k]), float(part.data[k])
            before = known.get(feature, float(scaling.largest[feature]))
            if abs(value) > SUSPECT and 0 < before < abs(value) / SUSPECT_GROWTH and row >= 0:
                are_bad[row] = True
                first = first or (row, value, feature)
            else:
                known[feature] = max(before, abs(value))
    if first is not None:
        row, value, feature = first
        raise UnlearnableRows(
            f"row {row} cannot be learned from: feature {feature} is {value:g}, which is more than "
            f"{SUSPECT_GROWTH:g} times as large as before. Leave the row out, or store nothing for "
            "values that are missing.",
            are_bad,
        )
