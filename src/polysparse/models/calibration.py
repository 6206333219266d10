"""Whether predicted probabilities are as often true as they say, in bins; sums add up over rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

N_BINS = 10


@dataclass(frozen=True)
class CalibrationBins:
    """Sums over the rows of each bin of probabilities, of equal widths.

    Attributes
    ----------
    weights, predicted, observed : ndarray of float64 of shape (n_bins,)
        The weight of the rows, the weighted sum of their probabilities, and the weight of those in
        which the class is the true one.
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
        """Return the bins of rows, given the probability of a class and whether it is true."""
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
        """Return mean probabilities and true shares of the bins that have rows, and which."""
        used = np.flatnonzero(self.weights > 0)
        own = self.weights[used]
        return self.predicted[used] / own, self.observed[used] / own, used
