"""A bound of the gap by the last few secants: how far the objective is above its minimum.

The Hessian is at least the penalty, and it fulfils the secants. The bound is that of the least such
matrix. Its inner products are those of the penalty, so vectors of coefficients are kept, and not
coordinates as in `secants`, whose metric is another one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polysparse.models.secants import MOST_DRIFT, least_gap
from polysparse.models.vectors import dot, dots

Vector = NDArray[np.float64]


class RecentSecants:
    """The last secants `H s = y`, as vectors of coefficients.

    Parameters
    ----------
    penalty : ndarray of float64 of shape (n,), or None
        The positive factors of the penalty; None if they are 1.
    n : int
        Number of coefficients.
    capacity : int
        How many secants are kept; each of them takes two vectors.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(self, penalty: Vector | None, n: int, capacity: int, n_jobs: int | None) -> None:
        self.roots = None if penalty is None else np.sqrt(penalty)
        self.capacity, self.n_jobs, self.n_seen = capacity, n_jobs, 0
        # With s and y in the metric of the penalty, rows are s, and the excess e = y - s.
        self.steps, self.excesses = np.empty((2, capacity, n))
        self.inner, self.of_excesses = np.zeros((2, capacity, capacity))  # s'e and e'e
        self.curvatures = np.zeros(capacity)  # s'y
        self.drifts = np.zeros(capacity)  # of the Hessian since each secant
        self.gradient = np.zeros(0)

    def observe(
        self, gradient: Vector, direction: Vector, step: float | None, drift: float
    ) -> None:
        """Take the gradient after a step of this size along a direction.

        `drift` is the relative change of the Hessian by that step. Without a step, the gradient
        replaces the last one.
        """
        own = gradient.copy() if self.roots is None else gradient / self.roots
        self.drifts += drift
        if step is not None:
            self._add(direction, step, own, drift)
        self.gradient = own

    def _add(self, direction: Vector, step: float, gradient: Vector, drift: float) -> None:
        i = self.n_seen % self.capacity
        self.n_seen += 1
        used, n_jobs = min(self.n_seen, self.capacity), self.n_jobs
        s, e = self.steps[i], self.excesses[i]
        np.multiply(direction, step, out=s)
        if self.roots is not None:
            s *= self.roots
        np.subtract(gradient, self.gradient, out=e)
        self.curvatures[i], self.drifts[i] = dot(s, e, n_jobs), drift
        e -= s
        self.inner[i, :used] = dots(self.excesses[:used], s, n_jobs)
        self.inner[:used, i] = dots(self.steps[:used], e, n_jobs)
        self.of_excesses[i, :used] = dots(self.excesses[:used], e, n_jobs)
        self.of_excesses[:used, i] = self.of_excesses[i, :used]

    def gap(self) -> float:
        """Return a bound of how much lower the quadratic model is at its minimum."""
        n_used = min(self.n_seen, self.capacity)
        newest_first = (self.n_seen - 1 - np.arange(n_used)) % self.capacity
        is_valid = (self.curvatures > 0) & (self.drifts <= MOST_DRIFT)
        own = newest_first[is_valid[newest_first]]
        lengths = np.sqrt(self.curvatures[own])
        products = np.multiply.outer(lengths, lengths)
        return least_gap(
            self.inner[np.ix_(own, own)] / products,
            self.of_excesses[np.ix_(own, own)] / products,
            dots(self.excesses[:n_used], self.gradient, self.n_jobs)[own] / lengths,
            dot(self.gradient, self.gradient, self.n_jobs),
        )
