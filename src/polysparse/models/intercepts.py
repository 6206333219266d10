"""The optimal intercept of a loss, which is eliminated: it is not a variable of the solver.

For given scores, the intercept that minimizes the loss is found from sums over rows. What remains
is a function of the scores, with its own gradient and Hessian, that is invariant to adding a
constant to the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.losses.interface import LossSums
from polysparse.models.solution import EPS

Evaluate = Callable[[Any], LossSums]  # sums over rows with an intercept

# Tolerance for the gradient of the intercept, relative to the sum of weights. It must be small: the
# gradient of features that are far from 0 is many times as large.
_TOLERANCE = 1e-13
_MAX_STEPS = 60
_MOST_HALVINGS = 2_200  # of an interval of float64, until no number is left within it

# The gradient has rounding errors of about this fraction of its terms, and of the scores times the
# curvatures. A step that is as small would follow them.
_ROUNDING = 4 * EPS
_FIRST_RADIUS, _LEAST_RADIUS = 5.0, 1e-30  # of log odds
_RESOLVED = 1e-14  # a difference of sums is known up to this fraction of them


class NoIntercept:
    """An intercept that stays 0."""

    is_free = False
    penalty = 0.0

    def best(self, at: Evaluate, start: Any) -> tuple[Any, LossSums]:
        zero = 0 * start
        return zero, at(zero)

    def shift(self, hessian: Any, cross: Any) -> Any:
        return 0 * cross


class ScalarIntercept:
    """The intercept of any convex loss of one score, by Newton's method within a bracket.

    Also those of several scores that do not depend on each other.

    Parameters
    ----------
    penalty : float, default=0.0
        Half of it times the squared intercept is added to the loss. The sums that `best` is given
        include it.
    """

    is_free = True
    first_width = 1.0  # of a step where Newton's method does not say how far to go

    def __init__(self, penalty: float = 0.0) -> None:
        self.penalty = penalty

    def best(self, at: Evaluate, start: Any) -> tuple[Any, LossSums]:
        """Return the optimal intercept, searched from `start`, and the sums there."""
        b = np.asarray(start, dtype=np.float64)
        low, high = np.full(b.shape, -np.inf), np.full(b.shape, np.inf)
        width, sums = self.first_width, at(_as_given(b))
        for _ in range(_MOST_HALVINGS):
            gradient = np.asarray(sums.intercept_gradient)
            is_done = self._is_done(b, gradient, sums)
            if np.all(is_done):
                break
            low, high = np.where(gradient < 0, b, low), np.where(gradient > 0, b, high)
            guess = self._guess(b, sums)
            with np.errstate(invalid="ignore"):
                guess = np.where((low < guess) & (guess < high), guess, (low + high) / 2)
            is_bracketed = np.isfinite(guess)
            guess = np.where(is_bracketed, guess, b - np.copysign(width, gradient))
            guess = np.where(is_done, b, guess)
            width = width if is_bracketed.all() else 4 * width
            if np.all(np.abs(guess - b) <= EPS * self._scale(b, sums)):
                break
            b = guess
            sums = at(_as_given(b))
        return _as_given(b), sums

    def _is_done(
        self, b: NDArray[np.float64], gradient: NDArray[np.float64], sums: LossSums
    ) -> NDArray[np.bool_]:
        """Return which intercepts are optimal as far as the gradient is known, or have none."""
        hessian = np.maximum(sums.intercept_hessian, 0)
        with np.errstate(invalid="ignore", over="ignore"):
            of_losses = np.sqrt(hessian) * math.sqrt(max(2 * sums.value, 0))
            bound = _ROUNDING * (of_losses + hessian * self._scale(b, sums))
        is_least = (gradient == 0) | ((bound < np.inf) & (np.abs(gradient) <= bound))
        done: NDArray[np.bool_] = is_least | np.isnan(gradient)
        return done

    def _scale(self, b: NDArray[np.float64], sums: LossSums) -> NDArray[np.float64]:
        """Return the size of the largest number that scores are added up from."""
        return np.maximum(np.abs(b), max(abs(sums.min_score), abs(sums.max_score)))

    def _guess(self, intercept: NDArray[np.float64], sums: LossSums) -> Any:
        """Return the next intercept by Newton's method; NaN if it does not say."""
        gradient, hessian = map(np.asarray, (sums.intercept_gradient, sums.intercept_hessian))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(hessian > 0, intercept - gradient / hessian, np.nan)

    def shift(self, hessian: Any, cross: Any) -> Any:
        """Return the decrease of the optimal intercept along a direction, to first order."""
        if np.ndim(hessian) == 0:
            return cross / hessian if hessian > 0 else 0.0
        return np.divide(cross, hessian, out=np.zeros_like(cross), where=hessian > 0)


class LogLinkIntercept(ScalarIntercept):
    """The intercept of a deviance of means exp(score): one step, where Newton's take many.

    The gradient of the intercept is the sum of ``mean ** (2 - power)`` less that of
    ``y * mean ** (1 - power)``. An intercept multiplies each of them by a number. Where rounding
    hides one of them, or exponentials overflow, as with a huge offset, the way to the optimum is
    long: steps become larger until it is passed, and then it is halved.

    Parameters
    ----------
    power : float
        The power of the mean that variances are proportional to, from 1 to 2.
    """

    first_width = -math.log(_RESOLVED)

    def __init__(self, power: float) -> None:
        super().__init__()
        self.power = power

    def _guess(self, intercept: NDArray[np.float64], sums: LossSums) -> Any:
        gradient, hessian = sums.intercept_gradient, sums.intercept_hessian
        rising = hessian + (self.power - 1) * gradient
        falling = hessian + (self.power - 2) * gradient
        if not math.isfinite(rising + falling):
            return np.nan
        # The smaller one is a difference.
        is_resolved = min(rising, falling) > _RESOLVED * max(rising, falling)
        return intercept + math.log(falling / rising) if is_resolved else np.nan


def _as_given(intercept: NDArray[np.float64]) -> Any:
    """Return a float for one score, and an array for several."""
    return float(intercept) if intercept.ndim == 0 else intercept


class BinaryIntercept(ScalarIntercept):
    """The intercept of two classes.

    Parameters
    ----------
    weights : ndarray of float64 of shape (2,)
        The sums of weights of the classes, both above 0.
    """

    def __init__(self, weights: NDArray[np.float64]) -> None:
        super().__init__()
        self.first, self.second = map(float, weights)
        self.total = self.first + self.second
        self.prior = math.log(self.second) - math.log(self.first)

    def best(self, at: Evaluate, start: float) -> tuple[float, LossSums]:
        """Return the optimal intercept, searched from `start`, and the sums there."""
        intercept, low, high = start, -math.inf, math.inf
        sums = at(intercept)
        for _ in range(_MAX_STEPS):
            if abs(sums.intercept_gradient) <= _TOLERANCE * min(self.total, sums.value):
                break
            # A mean of sigmoids lies between those of the least and of the largest score.
            low, high = (
                max(low, self.prior - sums.max_score),
                min(high, self.prior - sums.min_score),
            )
            if sums.intercept_gradient > 0:
                high = max(low, min(high, intercept))
            else:
                low = min(high, max(low, intercept))
            before, intercept = intercept, self._next(intercept, sums, low, high)
            if intercept == before:
                break
            sums = at(intercept)
        return intercept, sums

    def _next(self, intercept: float, sums: LossSums, low: float, high: float) -> float:
        """Return the next intercept: a Newton step for the logit of the mean, or bisection.

        The logit is almost linear in the intercept, so a Newton step is rarely too long.
        """
        first, second = self.first - sums.intercept_gradient, self.second + sums.intercept_gradient
        if min(first, second) > 0 and sums.intercept_hessian > 0:
            error = math.log(second) - math.log(first) - self.prior
            guess = intercept - error * (first / self.total) * (second / sums.intercept_hessian)
            if low < guess < high:
                return float(guess)
        return (low + high) / 2


class SoftmaxIntercepts:
    """The intercepts of several classes, which sum to 0.

    Parameters
    ----------
    weights : ndarray of float64 of shape (n_classes,)
        The sums of weights of the classes, all above 0.
    """

    is_free = True
    penalty = 0.0

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self.weights = weights
        self.total = float(weights.sum())

    def best(
        self, at: Evaluate, start: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], LossSums]:
        """Return the optimal intercepts, searched from `start`, and the sums there.

        Newton's method, with steps that are limited to a radius, which grows with every step that
        helps: where almost all probabilities are 0 or 1, the Hessian does not say how far to go.
        """
        intercept, radius = _without_mean(start), _FIRST_RADIUS
        sums = at(intercept)
        for _ in range(_MAX_STEPS):
            steepest = float(np.abs(sums.intercept_gradient).max())
            if steepest <= _TOLERANCE * min(self.total, sums.value) or radius < _LEAST_RADIUS:
                break
            step = _solve(sums.intercept_hessian, sums.intercept_gradient, steepest / radius)
            next_one = _without_mean(intercept - step)
            if np.array_equal(next_one, intercept):
                break
            newer = at(next_one)
            if _is_better(newer, sums):
                intercept, sums, radius = next_one, newer, 8 * radius
            else:
                radius = min(radius, float(np.abs(step).max())) / 8
        return intercept, sums

    def shift(
        self, hessian: NDArray[np.float64], cross: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the decrease of the optimal intercepts along a direction, to first order."""
        return _solve(hessian, cross)


def _is_better(new: LossSums, old: LossSums) -> bool:
    """Return whether the loss is lower, or equal up to rounding with a smaller gradient."""
    if abs(new.value - old.value) > 1e-12 * old.value:
        return new.value < old.value
    return float(np.abs(new.intercept_gradient).max()) < float(np.abs(old.intercept_gradient).max())


def _solve(
    hessian: NDArray[np.float64], gradient: NDArray[np.float64], damping: float = 0.0
) -> NDArray[np.float64]:
    """Return the solution of `(hessian + damping) @ step = gradient` that sums to 0.

    The Hessian is singular: adding a constant to all intercepts has no effect. It is regularized,
    because it is almost zero if all probabilities are 0 or 1.
    """
    n, total = len(gradient), float(np.trace(hessian))
    if not total + damping > 1e-200:
        return np.zeros(n)
    full = hessian + total / n + np.eye(n) * (damping + 1e-12 * total)
    return _without_mean(np.linalg.solve(full, gradient).astype(np.float64))


def _without_mean(intercept: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return equivalent intercepts that sum to 0: adding a constant to all has no effect."""
    out: NDArray[np.float64] = intercept - intercept.mean()
    return out
