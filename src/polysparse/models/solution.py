"""Solution: what a solver found, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polysparse.models.vectors import dot

End = Literal["converged", "max_iter", "rounding", "unbounded"]

Report = Callable[[int, float, float], None]  # of an iteration, the value, the gradient's norm


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    Attributes
    ----------
    coefficients : ndarray of float64
        The coefficients.
    intercept : float, or ndarray of float64
        The optimal intercept for them.
    value : float
        The objective there.
    gap : float
        Upper bound of how far the value is above the minimum.
    n_iter : int
        Number of iterations.
    end : {"converged", "max_iter", "rounding", "unbounded"}
        Why the solver stopped. "rounding": a lower value than this could not be found, because of
        rounding errors, but it may not be as close to the minimum as it should be. "unbounded":
        the value has converged, but without a penalty no finite coefficients are optimal.
    """

    coefficients: NDArray[np.float64]
    intercept: Any
    value: float
    gap: float
    n_iter: int
    end: End

    @classmethod
    def of_several(cls, parts: list[Solution]) -> Solution:
        """Return the solutions of several targets as one, whose value is their sum."""
        ends = [part.end for part in parts]
        worst = next((end for end in ("max_iter", "rounding", "unbounded") if end in ends), None)
        return cls(
            np.stack([part.coefficients for part in parts], axis=1),
            np.array([part.intercept for part in parts]),
            sum(part.value for part in parts),
            sum(part.gap for part in parts),
            max(part.n_iter for part in parts),
            "converged" if worst is None else worst,
        )


EPS = float(np.finfo(np.float64).eps)
LEAST_TOL = 8 * EPS  # the least tol that is required once rounding errors prevent progress

SLACK = 1 + 1e-4  # factor for bounds, which have rounding errors themselves

# The largest relative rounding error of the value, if tol is smaller. It hardly changes where the
# minimum is.
EXACT = 1e-9


def is_small(gap: float, rounding: float, tol: float, value: float) -> bool:
    """Return whether a gap is within tol, and the value is known well enough to say so."""
    return gap <= tol * value and rounding <= max(tol, EXACT) * value


def require_finite(sums: NDArray[np.float64], n_jobs: int | None) -> None:
    """Raise ValueError if sums over rows, or their squares, are not finite."""
    flat = sums.reshape(-1)
    if not np.isfinite(dot(flat, flat, n_jobs)):
        raise ValueError(
            "Interactions are so large that sums of their squares are not finite: scale "
            "the features, for example with sklearn.preprocessing.MaxAbsScaler, or lower the "
            "degree."
        )
