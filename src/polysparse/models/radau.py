"""An upper bound of how far conjugate gradients are from the solution.

Conjugate gradients for `A x = b` are Gauss quadrature of `b' A^-1 b`, which is too low by the error
`(x - x_k)' A (x - x_k)`. Gauss-Radau quadrature, with a node at a lower bound of the smallest
eigenvalue, is too high, so that their difference bounds the error. Its coefficient follows from
the steps: Meurant and Tichy, "On computing quadrature-based bounds for the A-norm of the error in
conjugate gradients" (2013).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

# The smallest ratio of the least to the largest eigenvalue. The rounding errors of products with a
# matrix are proportional to its largest eigenvalue, and may hide smaller ones.
LEAST_RATIO = 1e-12


class RadauBound:
    """The bound, which follows the steps of conjugate gradients.

    Parameters
    ----------
    least : float
        A lower bound of the eigenvalues of the (preconditioned) matrix. If it is found to be too
        large, it is divided by 10, and the bound is computed anew. Without a positive one, the
        bound is infinite.
    """

    def __init__(self, least: float) -> None:
        self.least = least
        self.factor = self._first()
        self._steps: list[tuple[float, float]] = []

    def advance(self, step: float, ratio: float) -> None:
        """Take a step into account.

        Parameters
        ----------
        step : float
            Its size.
        ratio : float
            The squared norm of the residual after it, divided by that before it.
        """
        self._steps.append((step, ratio))
        self._follow(step, ratio)
        while not self.factor > 0:
            self.least /= 10
            self.factor = self._first()
            for each in self._steps:
                self._follow(*each)

    def _first(self) -> float:
        return 1 / self.least if self.least > 1e-300 else math.inf

    def _follow(self, step: float, ratio: float) -> None:
        left = self.factor - step
        if self.factor < math.inf:
            self.factor = left / (self.least * left + ratio) if left > 0 else -1.0

    @property
    def is_reliable(self) -> bool:
        """Whether rounding errors are far below the least eigenvalue that was found.

        The eigenvalues are estimated by those of the tridiagonal matrix of the steps.
        """
        if len(self._steps) < 2:
            return True
        sizes, ratios = np.array(self._steps).T
        with np.errstate(over="ignore"):
            diagonal = 1 / sizes
            diagonal[1:] += ratios[:-1] / sizes[:-1]
            others = np.sqrt(ratios[:-1]) / sizes[:-1]
        if not np.isfinite(diagonal.sum() + others.sum()):
            return False
        values = eigvalsh_tridiagonal(diagonal, others)
        return bool(values[0] > LEAST_RATIO * values[-1])

    def error(self, norm: float) -> float:
        """Return the bound, given the squared norm of the residual now."""
        return self.factor * norm if norm > 0 else 0.0
