"""The losses of a working set of columns that are built, and their Hessian."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from threadpoolctl import ThreadpoolController

from polysparse.engine import cpu
from polysparse.machine import require_memory
from polysparse.models.built_columns import BuiltColumns
from polysparse.models.solution import require_finite
from polysparse.models.updated_rows import UpdatedLosses

Vector = NDArray[np.float64]

# The Gram matrix is computed again when curvatures have changed by more than this. Until then, an
# iteration takes two products with the active columns, and leaves about this fraction of the error.
STALE = 0.2

# The curvature that a row with a flat loss is assumed to have, relative to its weight.
FLAT = 1e-8

# Relative to its sum of squares, the sum of squares about the mean of a column that is constant.
CONSTANT = 1e-13

# Passes of coordinate descent before Newton steps, how many such steps at most, and how often both
# are repeated, in one iteration.
PASSES, MOST_STEPS, MOST_CYCLES = 200, 20, 20

# Added to the diagonal of a matrix that is scaled to ones there, so that it can be factored.
JITTER = 1e-14

# Guards the number of threads of BLAS, which is a setting of the process. A fork waits for it.
_BLAS = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_BLAS.acquire, after_in_parent=_BLAS.release, after_in_child=_BLAS.release
    )


class ActiveLosses(UpdatedLosses):
    """The losses as a function of the coefficients of the built columns."""

    def column_squares(self) -> Vector:
        """Return the weighted sum of squares of each built column. Columns come and go."""
        self._squares = None
        return super().column_squares()

    def row_gradients(self) -> Vector:
        """Return the gradient with respect to scores; it sums to 0 if the intercept is free."""
        gradient, curvature = self._point.gradient, self._point.curvature
        if not self.intercept_search.is_free:
            return gradient  # type: ignore[no-any-return]
        # The intercept's gradient is 0 up to rounding, which columns far from 0 would multiply.
        left = gradient.sum(axis=0) + self.intercept_search.penalty * self.intercept
        totals = np.maximum(curvature.sum(axis=0), np.finfo(np.float64).tiny)
        return gradient - curvature * (left / totals)  # type: ignore[no-any-return]

    def gradient(self) -> Vector:
        """Return the gradient with respect to the coefficients of the built columns."""
        self.n_products += 1
        found: Vector = self.rows.block.design.apply_transposed(self.row_gradients())
        return found

    def squared_gradients(self) -> float:
        """Return a bound of the sum of squared gradients of rows, divided by their weights.

        If the loss is self-bounded, it is twice the value. Otherwise gradients include what the
        rounding of scores changes.
        """
        if self.loss.is_self_bounded:
            return 2 * float(self.value)
        point, weights = self._point, self.rows.block.weights
        sizes = np.abs(point.gradient) + point.curvature * np.abs(self._scores + self.intercept)
        return float(np.divide(sizes * sizes, weights, where=weights > 0, out=0 * sizes).sum())

    def curvature_or_least(self, point: Any) -> Vector:
        """Return the curvatures of rows; of those whose loss is flat, a fraction of their weights.

        Otherwise a quadratic model would not change a coefficient in whose rows the loss is flat,
        such as a squared hinge loss beyond the margin.
        """
        curvature: Vector = point.curvature
        weights = self.rows.block.weights
        least = FLAT * (weights if curvature.ndim == 1 else weights[:, np.newaxis])
        return np.where(curvature == 0, least, curvature)

    @property
    def total_weight(self) -> float:
        """The sum of weights of the rows."""
        return float(self.rows.block.weights.sum())

    @property
    def point(self) -> Any:
        """The derivatives of the losses of rows, where the coefficients are now."""
        return self._point

    def start_along(self, step: Vector) -> None:
        """Prepare evaluations along a step; the intercept follows it to first order."""
        self._change = self.scores(step)
        self._shift = self._intercept_shift(self._change)


class CenteredGram:
    """The Hessian of the losses with respect to the built columns, with the intercept eliminated.

    Coefficients are in the order of a table with a row for each column and, if there are several
    scores, a column for each of them.

    Parameters
    ----------
    losses : ActiveLosses
        The losses.
    built : BuiltColumns
        The columns.
    n_scores : int
        Number of scores of a row.
    """

    def __init__(self, losses: ActiveLosses, built: BuiltColumns, n_scores: int) -> None:
        self.losses, self.built, self.k = losses, built, n_scores
        self.change = np.inf  # of the curvatures since they were taken
        self._n = 0  # columns that are in the table
        self._table: Vector = np.zeros((0, 0))

    def update(self) -> None:
        """Add the columns that are new, or compute all again if curvatures have changed."""
        if self.change > STALE:
            self._point, self.change, self._n = self.losses.point, 0.0, 0
        n, old = len(self.built.numbers), self._n * self.k
        if n == self._n:
            return
        self._make_room(n)
        every = slice(0, n * self.k)
        sums, totals = np.empty((n * self.k, self.k)), np.empty((self.k, self.k))
        for first, second, rows in self._hessian_of_rows():
            sums[first :: self.k, second] = self._fill(first, second, rows, n)
            totals[first, second] = rows.sum()
        own, places = self._table[old : every.stop, every], np.arange(n * self.k - old)
        diagonal = own[places, old + places].copy()
        require_finite(diagonal, 1)
        if self.losses.intercept_search.is_free:
            totals += self.losses.intercept_search.penalty * np.eye(self.k)
            means = np.einsum("ij,jk->ik", sums, _inverse(totals))
            for along, other in zip(means.T, sums.T, strict=True):
                own -= np.multiply.outer(along[old:], other)
        # Rounding must not let the matrix have negative eigenvalues, nor a constant column move.
        centered = own[places, old + places] + CONSTANT * diagonal
        own[places, old + places] = np.where(centered <= 4 * CONSTANT * diagonal, 0.0, centered)
        self._table[every, old : every.stop] = own.T
        self._n = n

    def _hessian_of_rows(self) -> Iterator[tuple[int, int, Vector]]:
        """Yield the second derivatives of the losses of rows by each two scores."""
        curvature = self.losses.curvature_or_least(self._point)
        if self.k == 1:
            yield 0, 0, curvature
            return
        for second in range(self.k):
            one = np.zeros_like(self._point.curvature)
            one[:, second] = 1.0
            rows = self._point.hessian_product(one, 0.0, self.losses.n_jobs)
            rows[:, second] += curvature[:, second] - self._point.curvature[:, second]
            for first in range(self.k):
                yield first, second, np.ascontiguousarray(rows[:, first])

    def _fill(self, first: int, second: int, rows: Vector, n: int) -> Vector:
        """Fill in the inner products of columns for two scores; return sums of columns."""
        if self.k == 1:
            return self.built.gram(rows, self._n, self._table)
        if first > second:  # the table is symmetric
            return self.built.apply_transposed(rows)
        products, sums = np.zeros((n, n)), np.zeros(n)
        if first == second or rows.any():  # scores may not depend on each other
            sums = self.built.gram(rows, self._n, products)
        for a, b in {(first, second), (second, first)}:
            new = slice(self._n * self.k + a, n * self.k, self.k)
            self._table[new, b : n * self.k : self.k] = products[self._n :]
        return sums

    def _make_room(self, n: int) -> None:
        if len(self._table) >= n * self.k:
            return
        size = self.k * max(64, n + n // 2)
        require_memory(
            2 * 8 * size * size,  # Newton steps factor a copy
            f"The inner products of {n * self.k:,} coefficients that may not be 0",
            "Use a stronger penalty: a lower C, or a higher alpha.",
        )
        old, self._table = self._table, np.zeros((size, size))
        here = slice(0, self._n * self.k)
        self._table[here, here] = old[here, here]

    def keep(self, places: NDArray[np.int64]) -> None:
        """Drop all columns but those in these places."""
        if not self._n:
            return
        own = (self.k * places[:, np.newaxis] + np.arange(self.k)).ravel()
        self._table[: len(own), : len(own)] = self._table[np.ix_(own, own)]
        self._n = len(places)

    def minimize(self, w: Vector, gradient: Vector, l1: Vector, l2: Vector, tol: float) -> Vector:
        """Return the minimum of the quadratic model with the penalty."""
        out, slopes = w.copy(), gradient.copy()  # both are overwritten
        l1, l2 = np.ascontiguousarray(l1), np.ascontiguousarray(l2)
        own = l1.reshape(-1), l2.reshape(-1), slopes.reshape(-1)
        model = QuadraticModel(self._table, *own)
        model.drop_constant(out.reshape(-1))
        model.minimize(out.reshape(-1), tol)
        return out


class QuadraticModel:
    """A quadratic function with an elastic-net penalty, of coefficients that are in a vector.

    Coordinate descent takes many passes if columns are almost dependent. So it alternates with
    Newton steps for the coefficients that are not 0, each up to where one of them becomes 0.

    Parameters
    ----------
    hessian : ndarray of float64 of shape (n, n) or larger
        The Hessian.
    l1, l2 : ndarray of float64 of shape (n,)
        The penalties of coefficients.
    slopes : ndarray of float64 of shape (n,)
        The gradient without the penalty. It follows the coefficients.
    """

    def __init__(self, hessian: Vector, l1: Vector, l2: Vector, slopes: Vector) -> None:
        self.hessian, self.l1, self.l2, self.slopes = hessian, l1, l2, slopes

    def drop_constant(self, w: Vector) -> None:
        """Set coefficients to 0 that only add to the penalty, in place.

        Coordinate descent skips columns that are constant, but for rows whose loss is flat. One of
        them may have a coefficient from a step before, or from a fit to other rows.
        """
        diagonal = np.diagonal(self.hessian)[: len(w)]
        places = np.flatnonzero((diagonal == 0) & (w != 0) & (np.abs(self.slopes) < self.l1))
        if len(places):
            self.slopes -= self.hessian[: len(w), places] @ w[places]
            w[places] = 0.0

    def minimize(self, w: Vector, tol: float) -> None:
        """Minimize over the coefficients, in place."""
        for _ in range(MOST_CYCLES):
            if self._descend(w, tol) < PASSES:
                return
            with _one_thread():
                for _ in range(MOST_STEPS):
                    if not self._step(w):
                        break

    def _descend(self, w: Vector, tol: float) -> int:
        """Run passes of coordinate descent; return how many."""
        given = self.hessian, self.l1, self.l2, self.slopes, w, tol, PASSES
        return int(cpu.descend(*given))

    def _step(self, w: Vector) -> bool:
        """Take a Newton step; return whether it ended where a coefficient becomes 0."""
        diagonal = np.diagonal(self.hessian)[: len(w)]
        own = np.flatnonzero((w != 0) & (diagonal > 0))
        if not len(own):
            return False
        scale, at = 1 / np.sqrt(diagonal[own] + self.l2[own]), w[own]
        matrix = self.hessian[np.ix_(own, own)]
        matrix[np.diag_indices(len(own))] += self.l2[own]
        matrix *= scale
        matrix *= scale[:, np.newaxis]
        matrix[np.diag_indices(len(own))] += JITTER
        slopes = self.slopes[own] + self.l2[own] * at + self.l1[own] * np.sign(at)
        try:
            factor = linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return False
        step = -scale * linalg.cho_solve(factor, scale * slopes, check_finite=False)
        if not np.isfinite(step).all():
            return False
        with np.errstate(divide="ignore", over="ignore"):
            sizes = np.where(at * step < 0, -at / step, np.inf)
        size = min(1.0, float(sizes.min()))
        change = -w
        w[own] = np.where(sizes <= size, 0.0, at + size * step)
        change += w
        self.slopes += self.hessian[: len(w), : len(w)] @ change
        return size < 1


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let one thread compute linear algebra.

    Several take 100 times as long if other programs use the cores.
    """
    with _BLAS, _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _inverse(hessian: Vector) -> Vector:
    """Return the inverse of the Hessian of the intercepts, or what is nearest to it."""
    if hessian.size == 1:
        return 1 / np.maximum(hessian, np.finfo(np.float64).tiny)
    return np.asarray(np.linalg.pinv(hessian, hermitian=True), np.float64)
