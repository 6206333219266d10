"""Sums of the weights of rows, which add up over blocks.

A worker of Spark imports this module for its first task, without scikit-learn, which would take it
seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Extent:
    """The least, the largest and the sum of weights, which add up over blocks of rows."""

    least: float
    most: float
    total: float

    @classmethod
    def of(cls, weights: NDArray[np.float64]) -> Extent:
        """Return the extent of weights, of which there may be none."""
        least, most = weights.min(initial=np.inf), weights.max(initial=-np.inf)
        with np.errstate(over="ignore"):
            return cls(float(least), float(most), float(weights.sum()))

    def __add__(self, other: Extent) -> Extent:
        least, most = min(self.least, other.least), max(self.most, other.most)
        return Extent(least, most, self.total + other.total)

    def require_valid(self) -> None:
        """Raise ValueError if rows cannot have such weights."""
        if self.least < 0 or not 0 < self.total < np.inf:
            raise ValueError(
                "sample_weight must be finite, not negative, and not zero for all rows; got "
                f"weights from {self.least} to {self.most}."
            )


def sums_by_class(
    numbers: NDArray[np.intp], weights: NDArray[np.float64], n_classes: int
) -> NDArray[np.float64]:
    """Return the sum of weights of each class."""
    sums = np.bincount(numbers, weights, n_classes)
    return sums.astype(np.float64, copy=False)  # bincount counts if there are no rows
