"""What the gradients at a few points tell about the Hessian, in the space that they span.

Quasi-Newton steps and gradients, all in the metric of a diagonal, stay in the span of the
gradients. So one vector is kept for each step, instead of two, and everything else is computed with
their coordinates: as many secants are kept as there is memory for, and if the metric is that of the
penalty, an upper bound of the gap costs nothing. Otherwise `recent_secants` has one. All sums are
in a fixed order; BLAS is not used for long vectors, see `vectors`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from polysparse.models.preconditioners import divide_by_root
from polysparse.models.vectors import add_rows, dot, dots

Vector = NDArray[np.float64]
Table = NDArray[np.float64]

# A second orthogonalization helps if less than this share of a squared norm is left by the first.
CANCELLED = 0.25
NOTHING_NEW = 1e-20  # the share of a squared norm that is a rounding error

# The bound of the gap takes the last secants: older ones are of a Hessian that has changed. If it
# has changed by more than MOST_DRIFT since then, or if less than the share CONSISTENT of its
# curvature is not explained by later ones, a secant is left out.
N_RECENT, MOST_DRIFT, CONSISTENT = 50, 0.3, 1e-2

ROUNDED = 1e-9  # the share of a squared gradient that is never known to be explained by secants
SINGULAR = 1e-12  # the ratio of eigenvalues that is a rounding error

_CHUNK = 2**13  # columns that are rotated at a time
_FEW = 2**9  # columns that fit a cache, with all vectors


class Secants:
    """Secants `H s = y` of a Hessian, between points where the gradient is known.

    Parameters
    ----------
    scale : ndarray of float64 of shape (n,)
        A positive diagonal that is roughly in proportion to the Hessian: the metric.
    capacity : int
        How many vectors may be kept. If there are more, the directions in which least is known of
        the Hessian are forgotten.
    n_jobs : int or None, default=1
        Number of threads.
    """

    def __init__(self, scale: Vector, capacity: int, n_jobs: int | None = 1) -> None:
        self.roots, self.capacity, self.n_jobs = np.sqrt(scale), capacity, n_jobs
        self.basis = np.empty((capacity, len(scale)))
        self.size = 0
        self.known = np.zeros(0)  # curvatures along the first vectors, from before a restart
        self.steps, self.changes = np.zeros((2, capacity, capacity))  # rows are secants
        self.products = np.zeros((capacity, capacity))  # of steps and changes
        self.of_changes = np.zeros((2, capacity, capacity))  # along known vectors, and others
        self.drifts = np.zeros(capacity)  # of the Hessian since each secant
        self.n_secants = 0
        self.typical = 0.0  # the curvature where nothing is known
        self.gradient = self.direction = np.zeros(capacity)

    def observe(self, gradient: Vector, step: float | None, drift: float = 0.0) -> None:
        """Take the gradient after a step of this size along the last direction.

        `drift` is the relative change of the Hessian by that step. Without a step, the gradient
        replaces the last one. It is overwritten.
        """
        self.drifts[: self.n_secants] += drift
        if self.capacity in (self.size, self.n_secants):
            self._restart()
        gradient /= self.roots
        own, total = np.zeros(self.capacity), dot(gradient, gradient, self.n_jobs)
        used = self.basis[: self.size]
        left = total
        for _ in range(2):
            parts = dots(used, gradient, self.n_jobs)
            own[: self.size] += parts
            add_rows(gradient, -parts, used, self.n_jobs)
            before, left = left, dot(gradient, gradient, self.n_jobs)
            if left > CANCELLED * before:
                break
        if left > NOTHING_NEW * total:
            own[self.size] = np.sqrt(left)
            np.divide(gradient, own[self.size], out=self.basis[self.size])
            self.size += 1
        if step is None:
            self.typical = self.typical or float(np.sqrt(total)) or 1.0
        else:
            self._add(step * self.direction, own - self.gradient, drift)
        self.gradient = own

    def _add(self, step: Vector, change: Vector, drift: float) -> None:
        curvature = _dot(step, change)
        if curvature > 0:
            k, self.n_secants = self.n_secants, self.n_secants + 1
            self.steps[k], self.changes[k], self.drifts[k] = step, change, drift
            s, y, n = self.steps[: k + 1], self.changes[: k + 1], len(self.known)
            self.products[: k + 1, k] = np.einsum("ic,c->i", s, change)
            parts = change[:n] / self.known, change[n:]
            for table, own, part in zip(self.of_changes, (y[:, :n], y[:, n:]), parts, strict=True):
                table[k, : k + 1] = table[: k + 1, k] = np.einsum("ic,c->i", own, part)
            self.typical = _dot(change, change) / curvature

    def find_direction(self, out: Vector) -> float:
        """Write the quasi-Newton direction to `out`; return the slope along it."""
        self.direction = -self._divide(self.gradient)
        out[:] = 0
        add_rows(out, self.direction[: self.size], self.basis[: self.size], self.n_jobs)
        out /= self.roots
        return _dot(self.gradient, self.direction)

    def _divide(self, x: Vector) -> Vector:
        """Return coordinates divided by the Hessian, as BFGS knows it.

        That is the compact form of Byrd, Nocedal and Schnabel, "Representations of quasi-Newton
        matrices and their use in limited memory methods" (1994).
        """
        first = np.full(self.capacity, 1 / self.typical)
        first[: len(self.known)] = 1 / self.known
        k = self.n_secants
        if not k:
            return first * x
        s, y, upper = self.steps[:k], self.changes[:k], self.products[:k, :k]
        a = solve_triangular(upper, np.einsum("ic,c->i", s, x))
        b = np.einsum("ic,c->i", y, first * x)
        of_changes = self.of_changes[0, :k, :k] + self.of_changes[1, :k, :k] / self.typical
        right = np.diag(upper) * a + np.einsum("ij,j->i", of_changes, a) - b
        u = solve_triangular(upper, right, trans="T")
        out: Vector = first * (x - np.einsum("ic,i->c", y, a)) + np.einsum("ic,i->c", s, u)
        return out

    def gap(self) -> float:
        """Return a bound of how much lower the quadratic model is at its minimum.

        The metric must be that of the penalty: the Hessian is at least 1.
        """
        old = int(np.sum(self.drifts[: self.n_secants] > MOST_DRIFT))
        recent = slice(max(old, self.n_secants - N_RECENT), self.n_secants)
        s, y = self.steps[recent][::-1], self.changes[recent][::-1]
        lengths = np.sqrt(np.einsum("ic,ic->i", s, y))[:, np.newaxis]
        s, e = s / lengths, (y - s) / lengths
        return least_gap(
            np.einsum("ic,jc->ij", s, e),
            np.einsum("ic,jc->ij", e, e),
            np.einsum("ic,c->i", e, self.gradient),
            _dot(self.gradient, self.gradient),
        )

    def reweight(self, factor: float, penalty: Vector | float) -> None:
        """Let the losses count `factor` times as much, beside the same penalty.

        `penalty` is the diagonal of its Hessian. What it adds to a change of gradients is known,
        but for a part outside of the vectors, which is ignored. Without it, changes and curvatures
        are multiplied.
        """
        vectors, k, n = self.basis[: self.size], self.n_secants, len(self.known)
        own = np.zeros((self.capacity, self.capacity))
        scale = penalty / self.roots**2
        for start in range(0, len(scale), _FEW):
            part = vectors[:, start : start + _FEW]
            weighted = part * scale[start : start + _FEW]
            own[: self.size, : self.size] += np.einsum("ic,jc->ij", part, weighted)
        along = np.diag(own)
        self.known = factor * self.known - (factor - 1) * along[:n]
        mean = float(along.sum()) / max(self.size, 1)
        self.typical = factor * self.typical - (factor - 1) * mean
        s = self.steps[:k]
        self.changes[:k] = factor * self.changes[:k] - (factor - 1) * np.einsum("ij,jk->ik", s, own)
        y = self.changes[:k]
        self.products[:k, :k] = np.triu(np.einsum("ic,jc->ij", s, y))
        self.of_changes[0, :k, :k] = np.einsum("ic,jc->ij", y[:, :n] / self.known, y[:, :n])
        self.of_changes[1, :k, :k] = np.einsum("ic,jc->ij", y[:, n:], y[:, n:])

    def _restart(self) -> None:
        """Forget half of the vectors, where curvatures are closest to the typical one."""
        k = self.size
        inverse = np.array([self._divide(unit)[:k] for unit in np.eye(k, self.capacity)])
        values, vectors = np.linalg.eigh((inverse + inverse.T) / 2)
        values = np.maximum(values, SINGULAR * values[-1])
        distance = np.abs(np.log(values * self.typical))
        kept = np.sort(np.argsort(-distance, kind="stable")[: self.capacity // 2])
        rotation, self.known = vectors[:, kept], 1 / values[kept]
        left = self.gradient[:k].copy()
        left -= np.einsum("ik,k->i", rotation, np.einsum("ik,i->k", rotation, left))
        norm = np.sqrt(_dot(left, left))  # the last gradient stays in the span
        if len(kept) < k and norm > 0:
            rotation = np.column_stack([rotation, left / norm])
            self.known = np.append(self.known, self.typical)
        self.size = rotation.shape[1]
        for start in range(0, self.basis.shape[1], _CHUNK):
            part = self.basis[:k, start : start + _CHUNK]
            part[: self.size] = np.einsum("ik,ic->kc", rotation, part)
        self.gradient, self.direction = (
            np.append(np.einsum("ik,i->k", rotation, each[:k]), np.zeros(self.capacity - self.size))
            for each in (self.gradient, self.direction)
        )
        self.n_secants = 0
        self.steps[:], self.changes[:] = 0, 0


def least_gap(inner: Table, of_excesses: Table, along: Vector, square: float) -> float:
    """Bound a gap by the least Hessian that fulfils secants and is not below 1.

    With secants of curvature 1 as rows, the last one first, and E = Y - S: `inner` is K = S E',
    `of_excesses` is E E', `along` is E times the gradient, whose squared norm is `square`. That
    Hessian is 1 + E' K^-1 E.
    """
    whiten = np.eye(len(along))
    divide_by_root((inner + inner.T) / 2, whiten, CONSISTENT)
    white = np.einsum("ij,jk->ik", whiten, of_excesses)
    white = np.einsum("ij,kj->ik", white, whiten)
    white[np.diag_indices_from(white)] += 1
    parts = np.einsum("ij,j->i", whiten, along)[:, np.newaxis]
    divide_by_root(white, parts)
    return max(square - float(np.einsum("ij,ij->", parts, parts)), ROUNDED * square) / 2


def _dot(a: Vector, b: Vector) -> float:
    return float(np.einsum("i,i->", a, b))
