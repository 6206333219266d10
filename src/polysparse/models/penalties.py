"""The penalty of a model: squared coefficients, and absolute ones, each times its factor.

A factor of 0 leaves a coefficient free. Solvers give it a penalty that is too small to matter, so
that their objective has a minimum, and bounds of the gap, even if columns depend on each other or
the optimum is not finite.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polysparse.models.vectors import combine, dot, multiply

Vector = NDArray[np.float64]

# The penalty of a free coefficient, relative to the curvature of the loss along it.
TINY = 1e-12


class Penalty:
    """Half the sum of ``factors * w**2``.

    Parameters
    ----------
    factors : ndarray of float64, or None
        Positive factors, one for each coefficient; None if all are 1.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(self, factors: Vector | None, n_jobs: int | None) -> None:
        self.factors, self.n_jobs = factors, n_jobs

    def inner(self, a: Vector, b: Vector) -> float:
        """Return the sum of ``factors * a * b``."""
        return dot(a if self.factors is None else self.times(a), b, self.n_jobs)

    def times(self, w: Vector) -> Vector:
        """Return ``factors * w``."""
        return w if self.factors is None else multiply(self.factors, w, 0.0, self.n_jobs)

    def add_to(self, out: Vector, size: float, w: Vector) -> None:
        """Add ``size * factors * w`` to `out`, in place."""
        combine(1.0, out, size, self.times(w), self.n_jobs)

    def inverse(self, gradient: Vector) -> float:
        """Return the sum of ``gradient**2 / factors``: twice a bound of the gap."""
        if self.factors is None:
            return dot(gradient, gradient, self.n_jobs)
        return dot(gradient, gradient / self.factors, self.n_jobs)


@dataclass(frozen=True)
class ElasticNetPenalty:
    """The sum of ``factors * (l1 * abs(w) + l2 * w**2 / 2)``, with l1 above 0.

    Attributes
    ----------
    l1, l2 : float
        The strengths.
    factors : ndarray of float64 of shape (n_columns,), or None
        Positive factors of all columns; None if they are 1.
    """

    l1: float
    l2: float
    factors: Vector | None = None

    def of(self, columns: NDArray[np.int64], w: Vector) -> tuple[Vector, Vector]:
        """Return l1 and l2, times the factor, for each coefficient of some columns."""
        own = np.ones(len(columns)) if self.factors is None else self.factors[columns]
        every = np.broadcast_to(own if w.ndim == 1 else own[:, np.newaxis], w.shape)
        return self.l1 * every, self.l2 * every

    def times(self, strength: float) -> ElasticNetPenalty:
        """Return the penalty, stronger by this factor."""
        return replace(self, l1=strength * self.l1, l2=strength * self.l2)


def with_tiny(factors: Vector, diagonal: Vector) -> Vector:
    """Return factors that are all positive, given the diagonal of the Hessian of the loss."""
    flat = diagonal.reshape(-1)
    every = np.repeat(factors, flat.size // factors.size)
    typical = float(flat.mean()) if flat.size else 0.0
    tiny = TINY * np.where(flat > 0, flat, typical if typical > 0 else 1.0)
    return np.where(every > 0, every, np.maximum(tiny, np.finfo(np.float64).tiny))
