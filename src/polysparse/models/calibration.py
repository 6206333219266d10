"""Whether predictions hold on average, in bins: sums that add up over rows.

Probabilities are in bins of equal widths, and means in bins of equal weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

N_BINS = 10
SHIFT = 12  # bits of a float32 that are dropped: numbers that share the others are in one bucket
N_BUCKETS = 2 ** (32 - SHIFT)


@dataclass(frozen=True)
class CalibrationBins:
    """Sums over the rows of each bin.

    Attributes
    ----------
    weights, predicted, observed : ndarray of float64 of shape (n_bins,)
        The weight of the rows, and the weighted sums of their predictions and of their targets; the
        target of a probability is 1 if the class is the true one, otherwise 0.
    """

    weights: NDArray[np.float64]
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        probabilities: NDArray[np.float64],
        is_true: NDArray[np.bool_],
        n_bins: int = N_BINS,
        weights: NDArray[np.float64] | None = None,
    ) -> CalibrationBins:
        """Return bins of equal widths, given the probability of a class and whether it is true."""
        own = np.ones(len(probabilities)) if weights is None else weights
        which = np.minimum((probabilities * n_bins).astype(np.intp), n_bins - 1)
        each = (own, own * probabilities, own * is_true)
        return cls(*(np.bincount(which, values, n_bins).astype(np.float64) for values in each))

    def __add__(self, other: CalibrationBins) -> CalibrationBins:
        return CalibrationBins(
            self.weights + other.weights,
            self.predicted + other.predicted,
            self.observed + other.observed,
        )

    def points(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
        """Return mean predictions and targets of the bins that have a weight, and which."""
        used = np.flatnonzero(self.weights > 0)
        own = self.weights[used]
        return self.predicted[used] / own, self.observed[used] / own, used


class CalibrationByMean:
    """Sums over rows by their predicted means, which are in buckets that differ by 1 in 2,000."""

    def __init__(self) -> None:
        self._sums = np.zeros((3, N_BUCKETS))

    def add(
        self,
        means: NDArray[np.float64],
        targets: NDArray[Any],
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        """Add some rows."""
        own = np.ones(len(means)) if weights is None else weights
        which = buckets_of(means)
        for sums, values in zip(self._sums, (own, own * means, own * targets), strict=True):
            sums += np.bincount(which, values, N_BUCKETS)

    def bins(self, n_bins: int = N_BINS) -> CalibrationBins:
        """Return bins of about equal weights, from the smallest means to the largest."""
        sums = self._sums[:, self._sums[0] > 0]
        ends = np.cumsum(sums[0])
        total = ends[-1] if len(ends) else 1.0
        which = np.minimum(((ends - sums[0] / 2) / total * n_bins).astype(np.intp), n_bins - 1)
        found = (np.bincount(which, each, n_bins).astype(np.float64) for each in sums)
        return CalibrationBins(*found)


def buckets_of(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bucket of each number, which increases with it."""
    with np.errstate(over="ignore"):
        bits = (numbers + 0.0).astype(np.float32).view(np.int32).astype(np.int64)
    # Bits of negative numbers are mirrored.
    found: NDArray[np.int64] = np.where(bits >= 0, bits + 2**31, -1 - bits) >> SHIFT
    return found


def require_targets(y: NDArray[Any], n_rows: int, what: str) -> None:
    """Raise ValueError unless there is a class, or number, for each row."""
    if y.shape != (n_rows,):
        raise ValueError(
            f"y has shape {y.shape}; one {what} for each of the {n_rows} rows of X is needed."
        )
