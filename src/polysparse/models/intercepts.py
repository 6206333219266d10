"""The best intercept of a logistic loss, which is not a variable of the solver.

For given scores, the intercept with the least loss is sought by sums over rows. What is left is a
function of the scores with a gradient and a Hessian of its own, in which a constant score has no
effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.losses import Sums

Evaluate = Callable[[Any], Sums]  # sums over rows with an intercept

# What the slope of the intercept may be, of the sum of weights. The gradient of features that are
# far from 0 has many times as much.
_ENOUGH = 1e-13
_MOST_STEPS = 60  # after which the intercept is as good as it gets


class NoIntercept:
    """An intercept that stays 0."""

    is_free = False

    def best(self, at: Evaluate, start: Any) -> tuple[Any, Sums]:
        """Return an intercept of 0, and the sums there."""
        zero = 0 * start
        return zero, at(zero)

    def shift(self, hessian: Any, cross: Any) -> Any:
        """Return 0."""
        return 0 * cross


class BinaryIntercept:
    """The intercept of two classes.

    Parameters
    ----------
    shares : ndarray of float64 of shape (2,)
        The sums of weights of the classes, both above 0.
    """

    is_free = True

    def __init__(self, shares: NDArray[np.float64]) -> None:
        self.first, self.second = map(float, shares)
        self.total = self.first + self.second
        self.prior = math.log(self.second) - math.log(self.first)

    def best(self, at: Evaluate, start: float) -> tuple[float, Sums]:
        """Return the intercept with the least loss, sought from `start`, and the sums there."""
        intercept, low, high = start, -math.inf, math.inf
        sums = at(intercept)
        for _ in range(_MOST_STEPS):
            if abs(sums.slopes) <= _ENOUGH * self.total:
                break
            # A mean of sigmoids lies between those of the least and of the largest score.
            low, high = max(low, self.prior - sums.highest), min(high, self.prior - sums.lowest)
            if sums.slopes > 0:
                high = max(low, min(high, intercept))
            else:
                low = min(high, max(low, intercept))
            before, intercept = intercept, self._next(intercept, sums, low, high)
            if intercept == before:
                break
            sums = at(intercept)
        return intercept, sums

    def shift(self, hessian: float, cross: float) -> float:
        """Return by how much the intercept falls along a change of scores, to first order."""
        return cross / hessian if hessian > 0 else 0.0

    def _next(self, intercept: float, sums: Sums, low: float, high: float) -> float:
        """Return Newton's guess for the logit of the mean, or the middle if it is no better.

        That logit is almost a line, so that a step is hardly ever too long.
        """
        first, second = self.first - sums.slopes, self.second + sums.slopes
        if min(first, second) > 0 and sums.hessian > 0:
            error = math.log(second) - math.log(first) - self.prior
            guess = intercept - error * first * second / (self.total * sums.hessian)
            if low < guess < high:
                return float(guess)
        return (low + high) / 2


class SoftmaxIntercepts:
    """The intercepts of several classes, which sum to 0.

    Parameters
    ----------
    shares : ndarray of float64 of shape (n_classes,)
        The sums of weights of the classes, all above 0.
    """

    is_free = True

    def __init__(self, shares: NDArray[np.float64]) -> None:
        self.shares = shares
        self.total = float(shares.sum())

    def best(self, at: Evaluate, start: NDArray[np.float64]) -> tuple[NDArray[np.float64], Sums]:
        """Return the intercepts with the least loss, sought from `start`, and the sums there.

        Newton's steps are taken while they help, else one of iterative scaling.
        """
        intercept = _without_mean(start)
        sums = at(intercept)
        for _ in range(_MOST_STEPS):
            if np.abs(sums.slopes).max() <= _ENOUGH * self.total:
                break
            next_one = _without_mean(intercept - _solve(sums.hessian, sums.slopes))
            newer = at(next_one)
            if not _is_better(newer, sums):
                next_one = self._rescaled(intercept, sums)
                newer = at(next_one)
                if not _is_better(newer, sums):
                    break
            intercept, sums = next_one, newer
        return intercept, sums

    def shift(
        self, hessian: NDArray[np.float64], cross: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return by how much the intercepts fall along a change of scores, to first order."""
        return _solve(hessian, cross)

    def _rescaled(self, intercept: NDArray[np.float64], sums: Sums) -> NDArray[np.float64]:
        """Return intercepts after a step of iterative scaling, which never raises the loss."""
        expected = np.maximum(sums.expected, np.finfo(np.float64).tiny)
        return _without_mean(intercept + np.log(self.shares) - np.log(expected))


def intercept_for(shares: NDArray[np.float64], has_intercept: bool) -> Any:
    """Return how to find the intercept of classes with these sums of weights."""
    if not has_intercept:
        return NoIntercept()
    return (BinaryIntercept if len(shares) == 2 else SoftmaxIntercepts)(shares)


def _is_better(new: Sums, old: Sums) -> bool:
    """Return whether the loss is lower, or the same but for rounding, and flatter."""
    if abs(new.value - old.value) > 1e-12 * old.value:
        return new.value < old.value
    return float(np.abs(new.slopes).max()) < float(np.abs(old.slopes).max())


def _solve(hessian: NDArray[np.float64], slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the step of intercepts that changes slopes by these.

    Adding a constant to all intercepts has no effect, so that the Hessian is singular: the step
    sums to 0. Nor has any other change much, if all probabilities are 0 or 1: the step is bounded.
    """
    n, total = len(slopes), float(np.trace(hessian))
    if not total > 1e-200:
        return np.zeros(n)
    full = hessian + total / n + np.eye(n) * (1e-12 * total)
    return _without_mean(np.linalg.solve(full, slopes).astype(np.float64))


def _without_mean(intercept: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return equivalent intercepts that sum to 0: adding a constant to all has no effect."""
    out: NDArray[np.float64] = intercept - intercept.mean()
    return out
