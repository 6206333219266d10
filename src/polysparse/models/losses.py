"""The logistic losses of rows of scores, with the intercept always at its best.

The intercept is not a variable of the solver: for given scores, the intercept with the least loss
is found here, on numbers of rows alone. What is left is a function of the scores with a gradient
and a Hessian of its own, in which a constant score has no effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polysparse.models.vectors import blocks_of, dot

Rows = NDArray[np.float64]  # of shape (n_rows,), or (n_rows, n_classes)

_ENOUGH = 1e-11  # of the sum of weights: what the gradient of the intercept may be
_MOST_STEPS = 60  # after which the intercept is as good as it gets


@dataclass(frozen=True)
class BinaryPoint:
    """The logistic loss of two classes at given scores.

    Attributes
    ----------
    value : float
        The loss.
    intercept : float
        The intercept, at its best.
    residuals : ndarray of float64
        The gradient: how the loss changes with each score.
    weights : ndarray of float64
        The diagonal of the Hessian for a fixed intercept.
    total : float
        The sum of weights; 0 if there is no intercept.
    """

    value: float
    intercept: float
    residuals: Rows
    weights: Rows
    total: float

    def curve(self, scores: Rows) -> Rows:
        """Return the Hessian times other scores."""
        out: Rows = scores - self.best_shift(scores)
        out *= self.weights
        return out

    def best_shift(self, scores: Rows) -> float:
        """Return by how much the intercept falls if these scores are added, to first order."""
        return dot(self.weights, scores) / self.total if self.total > 0 else 0.0


class BinaryLoss:
    """The logistic loss of two classes.

    Parameters
    ----------
    is_second : ndarray of bool of shape (n_rows,)
        Whether a row is of the second class.
    weights : ndarray of float64 of shape (n_rows,)
        Non-negative weights of the rows, positive for some rows of each class.
    has_intercept : bool
        Whether there is an intercept; otherwise it stays 0.
    """

    def __init__(self, is_second: NDArray[np.bool_], weights: Rows, has_intercept: bool) -> None:
        self.is_second = is_second
        self.weights = weights
        self.has_intercept = has_intercept
        self.first, self.second = float(weights[~is_second].sum()), float(weights[is_second].sum())
        self.total = self.first + self.second
        self.prior = math.log(self.second) - math.log(self.first)

    def at(self, scores: Rows, intercept: float, out: Rows | None = None) -> BinaryPoint:
        """Return the loss at these scores. The best intercept is sought from the one given.

        The residuals are written to `out`, if it is given.
        """
        residuals = np.empty_like(scores) if out is None else out
        weights = np.empty_like(scores)
        # A mean of sigmoids lies between those of the least and of the largest score.
        low, high = self.prior - float(scores.max()), self.prior - float(scores.min())
        if self.has_intercept:
            intercept = min(max(intercept, low), high)
        for _ in range(_MOST_STEPS):
            value = self._fill(scores, intercept, residuals, weights)
            slope, curvature = float(residuals.sum()), float(weights.sum())
            if not self.has_intercept or abs(slope) <= _ENOUGH * self.total:
                break
            low, high = (low, min(high, intercept)) if slope > 0 else (max(low, intercept), high)
            intercept = self._next(intercept, slope, curvature, low, high)
        total = curvature if self.has_intercept else 0.0
        return BinaryPoint(value, intercept, residuals, weights, total)

    def _fill(self, scores: Rows, intercept: float, residuals: Rows, weights: Rows) -> float:
        """Write the gradient and the diagonal of the Hessian, and return the loss."""
        value = 0.0
        rows = scores, self.is_second, self.weights, residuals, weights
        for z, is_second, row_weights, r, w in blocks_of(*rows):
            margins = z + intercept
            small = np.exp(-np.abs(margins))
            share = 1 / (1 + small)
            likely = np.where(margins >= 0, share, small * share)
            np.multiply(row_weights, likely - is_second, out=r)
            np.multiply(row_weights, small * share * share, out=w)
            # log(1 + exp(-|margin|)), and |margin| if the row is on the wrong side
            losses = np.log1p(small) + np.maximum(np.where(is_second, -margins, margins), 0)
            value += dot(row_weights, losses)
        return value

    def _next(
        self, intercept: float, slope: float, curvature: float, low: float, high: float
    ) -> float:
        """Return Newton's guess for the logit of the mean, or the middle if it is no better.

        That logit is almost a line, so that a step is hardly ever too long.
        """
        first, second = self.first - slope, self.second + slope
        if min(first, second) > 0 and curvature > 0:
            error = math.log(second) - math.log(first) - self.prior
            guess = intercept - error * first * second / (self.total * curvature)
            if low < guess < high:
                return guess
        return (low + high) / 2


@dataclass(frozen=True)
class SoftmaxPoint:
    """The logistic loss of several classes at given scores.

    Attributes
    ----------
    value, intercept, residuals, weights
        As those of BinaryPoint, with a column or a number for each class.
    row_weights : ndarray of float64 of shape (n_rows,)
        Weights of the rows.
    likely : ndarray of float64 of shape (n_rows, n_classes)
        Probabilities of the classes.
    hessian : ndarray of float64 of shape (n_classes, n_classes), or None
        The Hessian of the intercepts, if there are any.
    """

    value: float
    intercept: NDArray[np.float64]
    residuals: Rows
    weights: Rows
    row_weights: Rows
    likely: Rows
    hessian: NDArray[np.float64] | None

    def curve(self, scores: Rows) -> Rows:
        """Return the Hessian times other scores."""
        if self.hessian is not None:
            scores = scores - self.best_shift(scores)
        return self._curve(scores)

    def _curve(self, scores: Rows) -> Rows:
        means = np.einsum("ic,ic->i", self.likely, scores)
        out: Rows = scores - means[:, None]
        out *= self.likely
        out *= self.row_weights[:, None]
        return out

    def best_shift(self, scores: Rows) -> NDArray[np.float64]:
        """Return by how much the intercepts fall if these scores are added, to first order."""
        if self.hessian is None:
            return np.zeros(scores.shape[1])
        return _solve(self.hessian, self._curve(scores).sum(axis=0))


class SoftmaxLoss:
    """The logistic loss of several classes.

    Parameters
    ----------
    classes : ndarray of int64 of shape (n_rows,)
        The class of each row, counted from 0.
    weights : ndarray of float64 of shape (n_rows,)
        Non-negative weights of the rows, positive for some rows of each class.
    has_intercept : bool
        Whether there is an intercept for each class; otherwise they stay 0.
    """

    def __init__(self, classes: NDArray[np.int64], weights: Rows, has_intercept: bool) -> None:
        self.classes = classes
        self.weights = weights
        self.has_intercept = has_intercept
        self.total = float(weights.sum())
        self.shares = np.bincount(classes, weights)

    def at(
        self, scores: Rows, intercept: NDArray[np.float64], out: Rows | None = None
    ) -> SoftmaxPoint:
        """Return the loss at these scores. The best intercept is sought from the one given.

        Newton's steps are taken while they help, else one of iterative scaling. `out` is not used.
        """
        point = self._at(scores, intercept)
        for _ in range(_MOST_STEPS if self.has_intercept else 0):
            slopes = point.residuals.sum(axis=0)
            if np.abs(slopes).max() <= _ENOUGH * self.total:
                break
            newer = self._at(scores, point.intercept - _solve(point.hessian, slopes))
            if not _is_better(newer, point):
                newer = self._at(scores, self._rescaled(point))
                if not _is_better(newer, point):
                    break
            point = newer
        return point

    def _rescaled(self, point: SoftmaxPoint) -> NDArray[np.float64]:
        """Return intercepts after a step of iterative scaling, which never raises the loss."""
        expected = np.einsum("i,ic->c", self.weights, point.likely)
        expected = np.maximum(expected, np.finfo(np.float64).tiny)
        out: Rows = point.intercept + np.log(self.shares) - np.log(expected)
        return out

    def _at(self, scores: Rows, intercept: NDArray[np.float64]) -> SoftmaxPoint:
        margins = scores + intercept
        margins -= margins.max(axis=1, keepdims=True)
        likely = np.exp(margins)
        sums = likely.sum(axis=1)
        likely /= sums[:, None]
        rows = np.arange(len(scores))
        value = dot(self.weights, np.log(sums) - margins[rows, self.classes])
        weighted = self.weights[:, None] * likely
        weights = weighted * (1 - likely)
        hessian = None
        if self.has_intercept:
            hessian = np.diag(weighted.sum(axis=0)) - np.einsum("ic,id->cd", weighted, likely)
        residuals = weighted
        residuals[rows, self.classes] -= self.weights
        return SoftmaxPoint(
            value, _without_mean(intercept), residuals, weights, self.weights, likely, hessian
        )


def _is_better(new: SoftmaxPoint, old: SoftmaxPoint) -> bool:
    """Return whether the loss is lower, or the same but for rounding, and flatter."""
    if abs(new.value - old.value) > 1e-12 * old.value:
        return new.value < old.value
    steepest = (float(np.abs(each.residuals.sum(axis=0)).max()) for each in (new, old))
    return next(steepest) < next(steepest)


def _solve(hessian: Rows | None, slopes: Rows) -> Rows:
    """Return the step of intercepts that changes slopes by these.

    Adding a constant to all intercepts has no effect, so that the Hessian is singular: the step
    sums to 0. Nor has any other change much, if all probabilities are 0 or 1: the step is bounded.
    """
    assert hessian is not None
    n, total = len(slopes), float(np.trace(hessian))
    if not total > 1e-200:
        return np.zeros(n)
    full = hessian + total / n + np.eye(n) * (1e-12 * total)
    return _without_mean(np.linalg.solve(full, slopes).astype(np.float64))


def _without_mean(intercept: Rows) -> Rows:
    """Return equivalent intercepts that sum to 0: adding a constant to all has no effect."""
    out: Rows = intercept - intercept.mean()
    return out


Point = BinaryPoint | SoftmaxPoint
Loss = BinaryLoss | SoftmaxLoss
