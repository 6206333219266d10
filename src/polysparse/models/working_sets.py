"""Working sets: a loss plus an elastic-net penalty, over many columns of which few are built.

The solver alternates between two steps:

- All columns are scanned: the gradient bounds how far the objective is above its minimum, and shows
  which columns can lower it. Some of them are built and join the active ones.
- Newton's method minimizes over the active columns. Its quadratic models need their weighted inner
  products (the Gram matrix), and coordinate descent minimizes them with the penalty. The Gram
  matrix is computed again only once the curvatures of rows have changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import cpu
from polysparse.machine import require_memory
from polysparse.models.built_columns import BuiltColumns
from polysparse.models.local_rows import LocalRows
from polysparse.models.losses.interface import Loss
from polysparse.models.slopes import Slopes
from polysparse.models.solution import (
    EPS,
    EXACT,
    SLACK,
    End,
    Report,
    Solution,
    is_small,
    require_finite,
)
from polysparse.models.updated_rows import UpdatedLosses

Vector = NDArray[np.float64]

# At most so many columns are added at a time, for each that has a coefficient, or in all. A scan
# takes much less time than inner products of columns that stay 0.
GROWTH, LEAST_GROWTH = 0.5, 20

# The Gram matrix is computed again when curvatures have changed by more than this. Until then, an
# iteration takes two products with the active columns, and leaves about this fraction of the error.
STALE = 0.2

MOST_PASSES = 20_000  # of coordinate descent, in one Newton iteration
MAX_HALVINGS = 40
ENOUGH = 1e-4  # of the predicted decrease, for a step to be accepted

# Relative to the objective. Rounding may hide a smaller decrease.
HIDDEN = 16 * EPS

# Relative to its sum of squares, the sum of squares about the mean of a column that is constant.
CONSTANT = 1e-13

# What subgradients may be, relative to what the gap needs, and what is good enough while columns
# are missing, relative to the steepest of them.
ACCURACY, COARSE = 0.3, 0.1
FORCING = 0.03  # how accurately a model that changes is minimized, relative to the subgradient
PATIENCE = 20  # iterations that do not halve the subgradient

N_VECTORS = 4  # of coefficients of all columns, in memory at the peak


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


class SparseSolver:
    """Minimizes the losses of rows plus an elastic-net penalty, for one penalty after another.

    Each fit starts from the solution of the last.

    Parameters
    ----------
    rows : LocalRows
        The rows, with targets for the loss.
    columns : ColumnSpace
        All columns.
    loss : Loss
        The loss.
    has_intercept : bool
        Whether the intercept is free; otherwise it stays 0.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(
        self, rows: LocalRows, columns: ColumnSpace, loss: Loss, has_intercept: bool, n_jobs: Any
    ) -> None:
        self.n_columns, self.n_jobs = columns.n_columns, n_jobs
        self.design = rows.block.design
        self.built = BuiltColumns(columns, rows.x, n_jobs)
        own = copy(rows)
        own.block = replace(rows.block, design=self.built)
        search = loss.intercept(rows, is_free=has_intercept)
        self.losses = ActiveLosses(own, loss, search, n_jobs)
        self.gram = CenteredGram(self.losses, self.built, loss.n_scores)
        self.tail = () if loss.n_scores == 1 else (loss.n_scores,)
        self.w = np.zeros((0, *self.tail))
        self.slopes: Any = None
        self._known_rounding: float | None = None
        self.last_change = np.inf
        self._refresh(np.zeros(self.tail) if self.tail else 0.0)

    def start(self, coefficients: Vector, intercept: Any) -> None:
        """Set the coefficients of all columns, and an intercept to search from."""
        numbers = _places(coefficients)
        self.built.add(numbers)
        self.w = np.ascontiguousarray(coefficients[numbers])
        self._refresh(intercept)

    def _refresh(self, intercept: Any) -> None:
        """Compute the scores from the coefficients."""
        self.losses.start(self.w, intercept)
        self.slopes, self._known_rounding, self.is_fresh = None, None, True

    def steepest(self, penalty: ElasticNetPenalty) -> float:
        """Return the largest slope divided by its factor: the least l1 for which all are 0.

        No column has a coefficient yet.
        """
        self.penalty = penalty
        self._gap()
        return float(self.slopes.steepest)

    # ---------------------------------------------------------------------------------- one penalty

    def solve(
        self, penalty: ElasticNetPenalty, *, tol: float, max_iter: int, report: Report
    ) -> Solution:
        """Minimize with a penalty."""
        self.penalty, self.report, self._known_rounding = penalty, report, None
        self.n_iter, self.max_iter = 0, max_iter
        self._prune()
        accuracy, stuck = ACCURACY, np.inf  # and the value when no step helped
        end: End | None = None
        while end is None:
            gap = self._gap()
            if gap <= tol * self.value:
                if self.is_fresh:
                    end = "converged" if self._is_known(gap, tol) else "rounding"
                else:
                    self._refresh(self.losses.intercept)
            elif self.n_iter >= max_iter:
                end = "max_iter"
            else:
                n_most = max(int(GROWTH * self.support), LEAST_GROWTH)
                new = self.slopes.beyond(penalty.l1, n_most)
                self._add(new)
                goal = accuracy * self._goal(tol)
                if len(new):
                    goal = max(goal, COARSE * (self.slopes.steepest - penalty.l1))
                else:
                    accuracy *= COARSE
                is_stuck = not self._descend(goal)
                if is_stuck and not len(new):
                    is_fresh = self.is_fresh
                    self._refresh(self.losses.intercept)
                    is_lower = self.value < (1 - HIDDEN) * stuck
                    end, stuck = None if is_lower and not is_fresh else "rounding", self.value
        return self._solution(self._gap(), end)

    @property
    def support(self) -> int:
        """How many columns have a coefficient."""
        return len(_places(self.w))

    @property
    def value(self) -> float:
        """The objective."""
        return float(self.losses.value) + self._norm(self.w)

    def _norm(self, w: Vector) -> float:
        """Return the penalty of coefficients of the built columns."""
        l1, l2 = self.penalty.of(self.built.numbers, w)
        return float((np.abs(w) * l1).sum() + (w * w * l2).sum() / 2)

    def _gap(self) -> float:
        """Return a bound of how far the objective is above its minimum, by a scan of all columns.

        The loss is above its tangent, by which the least objective is bounded: either with the
        square of each coefficient, or with the sum of absolute coefficients, which is at most the
        objective divided by l1.
        """
        if self.slopes is None:
            rows = self.losses.row_gradients()
            self.slopes = Slopes(self.design, rows, self.penalty.factors, self.built.numbers)
        w, (l1, l2) = self.w, self.penalty.of(self.built.numbers, self.w)
        gradient = self.losses.gradient()
        require_finite(gradient, self.n_jobs)
        full = gradient + l2 * w
        beyond = np.maximum(np.abs(full) - l1, 0.0) * (self.penalty.l1 / l1)
        most = max(float(beyond.max(initial=0.0)), self.slopes.steepest - self.penalty.l1)
        slack = float((full * w).sum() + (l1 * np.abs(w)).sum())
        gap = slack + max(most, 0.0) * self.value / self.penalty.l1
        if self.penalty.l2 > 0:
            beyond = np.maximum(np.abs(gradient) - l1, 0.0)
            excess = float((beyond * beyond / l2).sum())
            excess += self.slopes.excess(self.penalty.l1) / self.penalty.l2
            gap = min(gap, slack - float((l2 * w * w).sum()) / 2 + excess / 2)
        return float(max(gap, 0.0))

    def _goal(self, tol: float) -> float:
        """Return how far slopes may be from optimal for the gap to be small, relative to l1."""
        norm = float((np.abs(self.w)).sum())
        l1, value = self.penalty.l1, self.value
        goal = l1
        if self.penalty.l2 > 0 and tol > 0:
            goal = max(goal, float(np.sqrt(self.penalty.l2 * value / (tol * (1 + self.w.size)))))
        return tol * min(goal, value / norm if norm > 0 else np.inf)

    def _is_known(self, gap: float, tol: float) -> bool:
        """Return whether rounding errors allow to say that the gap is small."""
        rounding, value = self._rounding, self.value
        return is_small(gap, rounding, tol, value) or value <= 2 * rounding

    @property
    def _rounding(self) -> float:
        """An estimate of the rounding error of the value, which is kept until that changes."""
        if self._known_rounding is None:
            self._known_rounding = float(self.losses.rounding(self.w, self.value))
        return self._known_rounding

    def _solution(self, gap: float, end: End) -> Solution:
        value = self.value
        coefficients = np.zeros((self.n_columns, *self.tail))
        coefficients[self.built.numbers] = self.w
        gap = min(SLACK * gap, value) + self._rounding
        return Solution(coefficients, self.losses.intercept, value, gap, self.n_iter, end)

    # ------------------------------------------------------------------------------ active columns

    def _add(self, numbers: NDArray[np.int64]) -> None:
        self.built.add(numbers)
        self.slopes.leave_out(numbers)
        self.w = np.concatenate([self.w, np.zeros((len(numbers), *self.tail))])

    def _prune(self) -> None:
        """Drop columns that have no coefficient, and would not get one now."""
        if not len(self.w):
            return
        l1, _ = self.penalty.of(self.built.numbers, self.w)
        slopes = np.abs(self.losses.gradient()) * (self.penalty.l1 / l1)
        places = _places((self.w != 0) | (slopes > self.penalty.l1))
        if len(places) < len(self.w):
            self.gram.keep(places)
            self.built.keep(places)
            self.w = np.ascontiguousarray(self.w[places])
            self.slopes = None

    def _descend(self, goal: float) -> bool:
        """Minimize over the active columns; return False if the goal cannot be reached.

        `goal` is for the largest subgradient of the objective, of those with the least norm.
        """
        best, n_since = np.inf, 0
        while self.n_iter < self.max_iter:
            gradient = self.losses.gradient()
            residual = self._residual(gradient)
            if residual <= goal:
                return True
            n_since = 0 if residual < best / 2 else n_since + 1
            best = min(best, residual)
            if n_since:
                self.gram.change = np.inf
            if n_since > PATIENCE or not self._step(gradient, residual, goal):
                return False
            self.report(self.n_iter, self.value, residual)
        return True

    def _residual(self, gradient: Vector) -> float:
        """Return the largest subgradient, in units of a factor of 1."""
        w, (l1, l2) = self.w, self.penalty.of(self.built.numbers, self.w)
        full = gradient + l2 * w
        own = np.where(w == 0, np.maximum(np.abs(full) - l1, 0.0), np.abs(full + np.sign(w) * l1))
        return float((own * (self.penalty.l1 / l1)).max(initial=0.0))

    def _step(self, gradient: Vector, residual: float, goal: float) -> bool:
        """Take a Newton step; return False if none helps."""
        self.gram.update()
        l1, l2 = self.penalty.of(self.built.numbers, self.w)
        is_exact = self.last_change == 0  # the loss is quadratic
        tol = max(goal / 2, 0.0 if is_exact else FORCING * residual)
        target = self.gram.minimize(self.w, gradient, l1, l2, tol)
        step, value = target - self.w, self.value
        # Differences of each coefficient: those of sums would be rounded too much.
        added = l1 * (np.abs(target) - np.abs(self.w)) + l2 * step * (target + self.w) / 2
        slope = float((gradient * step + added).sum())
        if not slope < 0:
            return False
        noise = max(HIDDEN * value, self._rounding) if -slope <= EXACT * value else 0.0
        self.losses.start_along(step)
        size = 1.0
        for _ in range(MAX_HALVINGS):
            new = target if size == 1 else self.w + size * step
            after = self.losses.evaluate_step(size)[0] + self._norm(new)
            if after <= value + ENOUGH * size * slope + (noise if -slope <= noise else 0.0):
                break
            size /= 2
        else:
            return False
        self.w = new
        self.last_change = self.losses.move(new)
        self.gram.change += self.last_change
        self.slopes, self._known_rounding, self.is_fresh = None, None, False
        self.n_iter += 1
        return True


def _places(w: Vector) -> NDArray[np.int64]:
    """Return the columns that have a coefficient."""
    return np.flatnonzero(w if w.ndim == 1 else w.any(axis=1))
