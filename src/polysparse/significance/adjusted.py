"""p-values of many tests at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

Vector = NDArray[np.float64]

ROUNDING = 1e-9  # statistics that differ by less, relatively, are equal


def step_down(observed: Vector, simulated: Vector, others: Vector) -> Vector:
    """Return adjusted p-values by the step-down maximum of Westfall and Young.

    Parameters
    ----------
    observed : ndarray of shape (k,)
        The sizes of the largest statistics, the largest first.
    simulated : ndarray of shape (k, n_null)
        The same statistics of each simulated target.
    others : ndarray of shape (n_null,)
        The maximum of all other statistics of each.

    Returns
    -------
    ndarray of shape (k,)
        p-values, in increasing order. The share of simulated targets is counted with the observed
        one among them, so it is never 0.
    """
    p = np.empty(len(observed))
    maxima = others
    for i in reversed(range(len(observed))):
        maxima = np.maximum(maxima, simulated[i])
        n_as_large = np.count_nonzero(maxima >= observed[i] * (1 - ROUNDING))
        p[i] = (1 + n_as_large) / (1 + len(others))
    return np.maximum.accumulate(p)


def bonferroni(scores: Vector, n_tests: int) -> Vector:
    """Return adjusted p-values of scores that are standard normal by themselves."""
    p: Vector = np.minimum(1.0, n_tests * erfc(np.abs(scores) / np.sqrt(2)))
    return p
