"""Working sets: a loss plus an elastic-net penalty, over many columns of which few are built.

The solver alternates between two steps:

- All columns are scanned: the gradient bounds how far the objective is above its minimum, and shows
  which columns can lower it. Some of them are built and join the active ones.
- Newton's method minimizes over the active columns. Its quadratic models need their weighted inner
  products (the Gram matrix), and coordinate descent minimizes them with the penalty. The Gram
  matrix is computed again only once the curvatures of rows have changed.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.models.active_columns import ActiveLosses, CenteredGram
from polysparse.models.built_columns import BuiltColumns
from polysparse.models.local_rows import Block, LocalRows
from polysparse.models.losses.interface import Loss
from polysparse.models.losses.squared import SquaredLoss
from polysparse.models.penalties import ElasticNetPenalty
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

Vector = NDArray[np.float64]

# At most so many columns are added at a time, for each that has a coefficient, or in all. A scan
# takes much less time than inner products of columns that stay 0.
GROWTH, LEAST_GROWTH = 0.5, 20

MAX_HALVINGS = 40
ENOUGH = 1e-4  # of the predicted decrease, for a step to be accepted

# Relative to the objective. Rounding may hide a smaller decrease.
HIDDEN = 16 * EPS

# What subgradients may be, relative to what the gap needs, and what is good enough while columns
# are missing, relative to the steepest of them.
ACCURACY, COARSE = 0.3, 0.1
FORCING = 0.03  # how accurately a model that changes is minimized, relative to the subgradient
PATIENCE = 20  # iterations that do not halve the subgradient

N_VECTORS = 4  # of coefficients of all columns, in memory at the peak


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
        # Squared errors about the mean of targets have smaller rounding errors.
        targets, self.mean = rows.block.targets, 0.0
        if has_intercept and isinstance(loss, SquaredLoss):
            targets, self.mean = _centered(rows.block)
        own = copy(rows)
        own.block = replace(rows.block, design=self.built, targets=targets)
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
        self._refresh(intercept - self.mean)

    def _refresh(self, intercept: Any) -> None:
        """Compute the scores from the coefficients."""
        self.losses.start(self.w, intercept)
        self.slopes, self._known_rounding, self.is_fresh = None, None, True

    def strongest(self, penalty: ElasticNetPenalty) -> float:
        """Return the least multiple of a penalty with which all coefficients are 0.

        No column has a coefficient yet. It is 1 if they are 0 with every penalty.
        """
        self.penalty = penalty
        self._gap()
        found = float(self.slopes.steepest) / penalty.l1
        return found if found > 0 else 1.0

    # ---------------------------------------------------------------------------------- one penalty

    def solve(
        self, penalty: ElasticNetPenalty, *, tol: float, max_iter: int, report: Report
    ) -> Solution:
        """Minimize with a penalty."""
        self.penalty, self.report, self._known_rounding = penalty, report, None
        self.n_iter, self.max_iter = 0, max_iter
        self._prune()
        accuracy = ACCURACY
        stuck, closest = np.inf, np.inf  # the value and the gap when no step helped
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
                    is_lower = self.value < (1 - max(HIDDEN, tol / 10)) * stuck
                    is_better = (is_lower or gap < closest / 2) and not is_fresh
                    stuck, closest = self.value, min(gap, closest)
                    end = None if is_better else "rounding"
        return self._solution(self._gap(), end, tol)

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
            own = float(self.losses.rounding(self.w, self.value))
            self._known_rounding = own + self._rounding_of_intercept
        return self._known_rounding

    @property
    def _rounding_of_intercept(self) -> float:
        """A bound of what the rounding of an intercept with the mean of targets adds."""
        error = EPS * (abs(self.mean) + np.abs(self.losses.intercept)) if self.mean else 0.0
        return self.losses.total_weight * float(error) ** 2 / 2

    @property
    def _rounding_of_gap(self) -> float:
        """An estimate of what the rounding of the gradient adds to the gap."""
        squares = float(self.losses.column_squares().max(initial=0.0))
        error = 4 * EPS * np.sqrt(self.losses.squared_gradients() * squares)
        return float(error * self.value / self.penalty.l1)

    def _solution(self, gap: float, end: End, tol: float) -> Solution:
        value = self.value
        coefficients = np.zeros((self.n_columns, *self.tail))
        coefficients[self.built.numbers] = self.w
        added = self._rounding_of_gap
        if end == "converged":  # the estimate is high, and tol was met
            added = min(added, max(tol * value - gap, 0.0))
        gap = min(SLACK * gap + added, value) + self._rounding
        intercept = self.losses.intercept + self.mean
        return Solution(coefficients, intercept, value, gap, self.n_iter, end)

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


def _centered(block: Block) -> tuple[Vector, float]:
    """Return targets less their weighted mean, and the mean: 0 if they are too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = block.weighted_sum(block.targets) / block.weighted_sum(np.ones_like(block.targets))
        centered = block.targets - mean
    return (centered, mean) if np.isfinite(centered).all() else (block.targets, 0.0)


def _places(w: Vector) -> NDArray[np.int64]:
    """Return the columns that have a coefficient."""
    return np.flatnonzero(w if w.ndim == 1 else w.any(axis=1))
