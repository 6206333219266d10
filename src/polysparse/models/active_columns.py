"""The losses of a working set of columns that are built, and their Hessian."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.machine import require_memory
from polysparse.models.built_columns import BuiltColumns
from polysparse.models.solution import require_finite
from polysparse.models.updated_rows import UpdatedLosses

Vector = NDArray[np.float64]

# The Gram matrix is computed again when curvatures have changed by more than this. Until then, an
# iteration takes two products with the active columns, and leaves about this fraction of the error.
STALE = 0.2

# Relative to its sum of squares, the sum of squares about the mean of a column that is constant.
CONSTANT = 1e-13

MOST_PASSES = 20_000  # of coordinate descent, in one Newton iteration


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
        if self.k == 1:
            yield 0, 0, self._point.curvature
            return
        for second in range(self.k):
            one = np.zeros_like(self._point.curvature)
            one[:, second] = 1.0
            rows = self._point.hessian_product(one, 0.0, self.losses.n_jobs)
            for first in range(self.k):
                yield first, second, np.ascontiguousarray(rows[:, first])

    def _fill(self, first: int, second: int, rows: Vector, n: int) -> Vector:
        """Fill in the inner products of columns for two scores; return sums of columns."""
        if self.k == 1:
            return self.built.gram(rows, self._n, self._table)
        if first > second:  # the table is symmetric
            return self.built.apply_transposed(rows)
        products = np.empty((n, n))
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
            8 * size * size,
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
        strengths = l1.reshape(-1), l2.reshape(-1)
        cpu.descend(self._table, *strengths, slopes.reshape(-1), out.reshape(-1), tol, MOST_PASSES)
        return out


def _inverse(hessian: Vector) -> Vector:
    """Return the inverse of the Hessian of the intercepts, or what is nearest to it."""
    if hessian.size == 1:
        return 1 / np.maximum(hessian, np.finfo(np.float64).tiny)
    return np.asarray(np.linalg.pinv(hessian, hermitian=True), np.float64)
