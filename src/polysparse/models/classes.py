"""The classes of rows, as scikit-learn finds them, and their weights.

A Spark worker imports this module for its first task, and importing scikit-learn takes seconds: it
is imported only where its checks are needed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.tables.columns import require_targets

MAX_SPREAD = 2**10  # of integers that are counted instead of sorted
EXACT = 2**53  # up to here, every integer is a float64


@dataclass(frozen=True)
class ClassWeights:
    """The classes that occur, sorted, and the sum of the weights of each; add up over blocks.

    `fault` says why y has no classes, if it has none.
    """

    classes: NDArray[Any]
    weights: NDArray[np.float64]
    fault: str | None = None

    def __add__(self, other: ClassWeights) -> ClassWeights:
        if self.fault or len(other.classes) == 0:  # whose dtype may be another
            return self
        if other.fault or len(self.classes) == 0:
            return other
        classes = np.unique(np.concatenate([self.classes, other.classes]))
        weights = np.zeros(len(classes))
        for each in (self, other):
            weights[np.searchsorted(classes, each.classes)] += each.weights
        return ClassWeights(classes, weights)


def require_classes(y: Any) -> None:
    """Raise ValueError if y is not a column of classes."""
    from sklearn.utils.multiclass import check_classification_targets

    check_classification_targets(y)


def find_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes that occur, sorted, and the number of each row's class.

    ValueError is raised if y is not a column of classes.
    """
    if y.ndim == 1 and len(y):
        found = _find_texts(y) if y.dtype == np.dtype(object) else _count_classes(y)
        if found is not None:
            return found
    if y.dtype == np.dtype(object):
        require_targets(y)  # which cannot be compared with texts
    require_classes(y)
    classes, numbers = np.unique(y, return_inverse=True)
    return classes, numbers


def _count_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]] | None:
    """Return the same if y has integers that are close to each other and certainly valid.

    Otherwise return None. scikit-learn warns if there are more classes than half the rows.
    """
    if y.dtype.kind not in "biuf":
        return None
    low, high = float(y.min()), float(y.max())
    if not (low > -EXACT and high < EXACT and high - low < MAX_SPREAD):
        return None
    whole = y.astype(np.int64, copy=False)
    if y.dtype.kind == "f":
        is_same = (whole == y) & (np.signbit(y) == (whole < 0))  # not -0.0
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


def _find_texts(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]] | None:
    """Return the same if y has str objects alone, which are hashed instead of sorted."""
    texts = y.tolist()
    try:
        classes = list(set(texts))
    except TypeError:  # of what cannot be hashed
        return None
    if 2 * len(classes) > len(y) or not all(type(each) is str for each in classes):
        return None
    classes.sort()
    number_of = {text: number for number, text in enumerate(classes)}
    numbers = np.fromiter(map(number_of.__getitem__, texts), np.intp, len(texts))
    return np.array(classes, dtype=object), numbers


def fault_in_classes(classes: NDArray[Any]) -> str | None:
    """Return scikit-learn's error for these classes of some rows, or None if they are valid."""
    if classes.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # floats beyond all integers
            is_whole = classes == classes.astype(np.int64)
        if is_whole.all():
            return None
    try:
        with warnings.catch_warnings():  # of many classes among few rows
            warnings.simplefilter("ignore")
            require_classes(classes)
    except ValueError as error:
        return str(error)
    return None
