"""The logistic losses of rows of scores, with the intercept always at its best.

The intercept is not a variable of the solver: for given scores, the intercept with the least loss
is found here, on numbers of rows alone. What is left is a function of the scores with a gradient
and a Hessian of its own, in which a constant score has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polysparse.models.vectors import dot

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
    has_intercept : bool
        Whether there is an intercept; otherwise it is 0.
    """

    value: float
    intercept: float
    residuals: Rows
    weights: Rows
    has_intercept: bool

    def curve(self, scores: Rows) -> Rows:
        """Return the Hessian times other scores."""
        return self.weights * (scores - self.best_shift(scores))

    def best_shift(self, scores: Rows) -> float:
        """Return by how much the intercept falls if these scores are added, to first order."""
        total = float(self.weights.sum())
        return dot(self.weights, scores) / total if self.has_intercept and total > 0 else 0.0


class BinaryLoss:
    """The logistic loss of two classes.

    Parameters
    ----------
    is_second : ndarray of float64 of shape (n_rows,)
        1 for rows of the second class, 0 for the others.
    weights : ndarray of float64 of shape (n_rows,)
        Non-negative weights of the rows, positive for some rows of each class.
    has_intercept : bool
        Whether there is an intercept; otherwise it stays 0.
    """

    def __init__(self, is_second: Rows, weights: Rows, has_intercept: bool) -> None:
        self.is_second = is_second
        self.weights = weights
        self.has_intercept = has_intercept
        n_second = dot(weights, is_second)
        self.total = float(weights.sum())
        self.prior = np.log(n_second) - np.log(self.total - n_second)

    def at(self, scores: Rows, intercept: float) -> BinaryPoint:
        """Return the loss at these scores. The best intercept is sought from the one given."""
        # A mean of sigmoids lies between those of the least and of the largest score.
        low, high = self.prior - float(scores.max()), self.prior - float(scores.min())
        if self.has_intercept:
            intercept = min(max(intercept, low), high)
        for _ in range(_MOST_STEPS):
            margins = scores + intercept
            small = np.exp(-np.abs(margins))
            share = 1 / (1 + small)
            likely = np.where(margins >= 0, share, small * share)
            residuals = self.weights * (likely - self.is_second)
            weights = self.weights * (small * share * share)
            slope = float(residuals.sum())
            if not self.has_intercept or abs(slope) <= _ENOUGH * self.total:
                break
            low, high = (low, min(high, intercept)) if slope > 0 else (max(low, intercept), high)
            intercept = self._next(intercept, likely, weights, low, high)
        losses = np.maximum(margins, 0) + np.log1p(small) - self.is_second * margins
        value = dot(self.weights, losses)
        return BinaryPoint(value, intercept, residuals, weights, self.has_intercept)

    def _next(
        self, intercept: float, likely: Rows, weights: Rows, low: float, high: float
    ) -> float:
        """Return Newton's guess for the logit of the mean, or the middle if it is no better.

        That logit is almost a line, so that a step is hardly ever too long.
        """
        second = dot(self.weights, likely)
        first = self.total - second
        if min(first, second) > 0:
            slope = self.total * float(weights.sum()) / (first * second)
            error = np.log(second) - np.log(first) - self.prior
            if slope > 0 and low < intercept - error / slope < high:
                return float(intercept - error / slope)
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
    inverse : ndarray of float64 of shape (n_classes, n_classes), or None
        Inverse of the Hessian of the intercepts, if there are any.
    """

    value: float
    intercept: NDArray[np.float64]
    residuals: Rows
    weights: Rows
    row_weights: Rows
    likely: Rows
    inverse: NDArray[np.float64] | None

    def curve(self, scores: Rows) -> Rows:
        """Return the Hessian times other scores."""
        if self.inverse is not None:
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
        if self.inverse is None:
            return np.zeros(scores.shape[1])
        out: Rows = np.einsum("cd,d->c", self.inverse, self._curve(scores).sum(axis=0))
        return out


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

    def at(self, scores: Rows, intercept: NDArray[np.float64]) -> SoftmaxPoint:
        """Return the loss at these scores. The best intercept is sought from the one given."""
        point = self._at(scores, intercept)
        for _ in range(_MOST_STEPS if self.has_intercept else 0):
            slopes = point.residuals.sum(axis=0)
            if np.abs(slopes).max() <= _ENOUGH * self.total:
                break
            assert point.inverse is not None
            step = np.einsum("cd,d->c", point.inverse, slopes)
            newer = self._at(scores, point.intercept - step)
            if not newer.value <= point.value:
                newer = self._at(scores, self._rescaled(point))
                if not newer.value < point.value:  # but for rounding, it is at its best
                    break
            point = newer
        return point

    def _rescaled(self, point: SoftmaxPoint) -> NDArray[np.float64]:
        """Return the intercept after a step of iterative scaling, which never raises the loss."""
        expected = np.einsum("i,ic->c", self.weights, point.likely)
        expected = np.maximum(expected, np.finfo(np.float64).tiny)
        return _without_mean(point.intercept + np.log(self.shares) - np.log(expected))

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
        inverse = None
        if self.has_intercept:
            hessian = np.diag(weighted.sum(axis=0)) - np.einsum("ic,id->cd", weighted, likely)
            inverse = np.linalg.pinv(hessian, hermitian=True)
        residuals = weighted
        residuals[rows, self.classes] -= self.weights
        return SoftmaxPoint(
            value, _without_mean(intercept), residuals, weights, self.weights, likely, inverse
        )


def _without_mean(intercept: Rows) -> Rows:
    """Return equivalent intercepts that sum to 0: adding a constant to all has no effect."""
    out: Rows = intercept - intercept.mean()
    return out


Point = BinaryPoint | SoftmaxPoint
Loss = BinaryLoss | SoftmaxLoss
