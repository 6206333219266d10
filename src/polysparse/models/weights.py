"""The weights and targets of rows, and sums of them that add up over blocks.

A Spark worker imports this module for its first task: it does not import scikit-learn, which takes
seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class WeightRange:
    """The smallest, the largest and the sum of weights; ranges add up over blocks of rows."""

    lowest: float
    highest: float
    total: float

    @classmethod
    def of(cls, weights: NDArray[np.float64]) -> WeightRange:
        """Return the range of weights, which may be empty."""
        lowest, highest = weights.min(initial=np.inf), weights.max(initial=-np.inf)
        with np.errstate(over="ignore"):
            return cls(float(lowest), float(highest), float(weights.sum()))

    def __add__(self, other: WeightRange) -> WeightRange:
        lowest, highest = min(self.lowest, other.lowest), max(self.highest, other.highest)
        return WeightRange(lowest, highest, self.total + other.total)

    def require_valid(self) -> None:
        """Raise ValueError if rows cannot have such weights."""
        if self.lowest < 0 or not 0 < self.total < np.inf:
            raise ValueError(
                "sample_weight must be finite, not negative, and not zero for all rows; got "
                f"weights from {self.lowest} to {self.highest}."
            )


@dataclass(frozen=True)
class TargetRange:
    """The range of numbers to predict, and weighted sums; ranges add up over blocks of rows.

    Attributes
    ----------
    lowest, highest : float
        The smallest and the largest.
    weighted_sum : float
        The sum of ``weights * y``.
    weight : float
        The sum of weights.
    """

    lowest: float
    highest: float
    weighted_sum: float
    weight: float

    @classmethod
    def of(cls, y: NDArray[np.float64], weights: NDArray[np.float64]) -> TargetRange:
        """Return the range of the targets of some rows, which may be none."""
        y = y.astype(np.float64, copy=False)
        lowest, highest = y.min(initial=np.inf), y.max(initial=-np.inf)
        with np.errstate(over="ignore"):
            total = float(np.sum(weights * y))
        return cls(float(lowest), float(highest), total, float(weights.sum()))

    def __add__(self, other: TargetRange) -> TargetRange:
        return TargetRange(
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            self.weighted_sum + other.weighted_sum,
            self.weight + other.weight,
        )


def sums_by_class(
    numbers: NDArray[np.intp], weights: NDArray[np.float64], n_classes: int
) -> NDArray[np.float64]:
    """Return the sum of weights of each class."""
    sums = np.bincount(numbers, weights, n_classes)
    return sums.astype(np.float64, copy=False)  # bincount returns integers if there are no rows
