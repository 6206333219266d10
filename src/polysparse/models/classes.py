"""The classes of rows, as scikit-learn finds them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

MOST_APART = 2**10  # integers that are counted, and not sorted
EXACT = 2**53  # up to here, every integer is a float64


def require_classes(y: Any) -> None:
    """Raise ValueError if y is no column of classes."""
    check_classification_targets(y)


def find_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes that occur, sorted, and which of them each row has.

    ValueError is raised if y is no column of classes.
    """
    found = _count_classes(y)
    if found is not None:
        return found
    require_classes(y)
    classes, numbers = np.unique(y, return_inverse=True)
    return classes, numbers


def _count_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]] | None:
    """Return the same if y has integers, close to each other, to which nobody could object.

    None stands for anything else. scikit-learn warns if there are more classes than half the rows.
    """
    if y.dtype.kind not in "biuf" or y.ndim != 1 or len(y) == 0:
        return None
    low, high = float(y.min()), float(y.max())
    if not (low > -EXACT and high < EXACT and high - low < MOST_APART):
        return None
    whole = y.astype(np.int64, copy=False)
    if y.dtype.kind == "f":
        is_same = (whole == y) & (np.signbit(y) == (whole < 0))  # -0.0 is none of them
        if not is_same.all():
            return None
    numbers = (whole - int(low)).astype(np.intp, copy=False)
    occurs = np.bincount(numbers) > 0
    offsets = np.flatnonzero(occurs)
    if 2 * len(offsets) > len(y):
        return None
    if len(offsets) < len(occurs):
        numbers = (np.cumsum(occurs) - 1)[numbers]
    return (offsets + int(low)).astype(y.dtype), numbers
