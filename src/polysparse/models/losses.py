"""The logistic losses of rows of scores: values, gradients and curvatures, and sums of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.machine import threads_for
from polysparse.models.vectors import dot, multiply

Rows = NDArray[np.float64]  # of shape (n_rows,), or (n_rows, n_classes)

COST = 8  # of the loss of a score, in outputs of an expansion


@dataclass(frozen=True)
class Sums:
    """Sums over rows, which add up over blocks of rows.

    The first ones are about an intercept, or one for each class; the last ones about a change of
    the scores of rows, if there is one.

    Attributes
    ----------
    value : float
        The loss.
    slopes : float, or ndarray of shape (n_classes,)
        How the loss changes with the intercept.
    hessian : float, or ndarray of shape (n_classes, n_classes)
        How the slopes change with it.
    expected : float, or ndarray of shape (n_classes,)
        Weights of the classes, as they are predicted: of the second one if there are two.
    lowest, highest : float
        The least and the largest score, without the intercept.
    along : float
        How the loss changes along the change of scores.
    cross : float, or ndarray of shape (n_classes,)
        How the slopes change along it.
    square : float
        The curvature along it.
    before, changed : float
        The curvature along it without a shift, each class for itself, at an older point, and by how
        much those of rows have changed since then.
    """

    value: float
    slopes: Any
    hessian: Any
    expected: Any
    lowest: float
    highest: float
    along: float = 0.0
    cross: Any = 0.0
    square: float = 0.0
    before: float = 0.0
    changed: float = 0.0

    def __add__(self, other: Sums) -> Sums:
        added = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        added["lowest"] = min(self.lowest, other.lowest)
        added["highest"] = max(self.highest, other.highest)
        return Sums(**added)


@dataclass(frozen=True)
class BinaryPoint:
    """The logistic losses of rows of two classes at given scores.

    Attributes
    ----------
    residuals : ndarray of float64 of shape (n_rows,)
        The gradient: how the loss changes with each score.
    weights : ndarray of float64 of shape (n_rows,)
        The diagonal of the Hessian, which has nothing else.
    """

    residuals: Rows
    weights: Rows

    def curve(self, change: Rows, shift: float = 0.0, n_jobs: int | None = 1) -> Rows:
        """Return the Hessian times a change of scores, less a shift."""
        return multiply(self.weights, change, shift, n_jobs)

    def cross(self, change: Rows, n_jobs: int | None) -> float:
        """Return the sum over rows of the Hessian times a change of scores."""
        return dot(self.weights, change, n_jobs)


@dataclass(frozen=True)
class SoftmaxPoint:
    """The logistic losses of rows of several classes at given scores.

    Attributes
    ----------
    residuals, weights : ndarray of float64 of shape (n_rows, n_classes)
        As those of BinaryPoint, with a column for each class.
    row_weights : ndarray of float64 of shape (n_rows,)
        Weights of the rows.
    likely : ndarray of float64 of shape (n_rows, n_classes)
        Probabilities of the classes.
    """

    residuals: Rows
    weights: Rows
    row_weights: Rows
    likely: Rows

    def curve(self, change: Rows, shift: Any = 0.0, n_jobs: int | None = 1) -> Rows:
        """Return the Hessian times a change of scores, less a shift for each class."""
        out = np.empty_like(change)
        shifts = _for_each(shift, change.shape[1])
        n_threads = _threads(n_jobs, change)
        cpu.fill_hessian_products(self.likely, self.row_weights, change, shifts, out, n_threads)
        return out

    def cross(self, change: Rows, n_jobs: int | None) -> NDArray[np.float64]:
        """Return the sums over rows of the Hessian times a change of scores."""
        shifts, out = (np.zeros(change.shape[1]) for _ in range(2))
        n_threads = _threads(n_jobs, change)
        cpu.sum_hessian_products(self.likely, self.row_weights, change, shifts, out, n_threads)
        return out


class RowLosses:
    """The logistic losses of rows of two or more classes.

    Parameters
    ----------
    classes : ndarray of shape (n_rows,)
        The class of each row, counted from 0.
    weights : ndarray of float64 of shape (n_rows,)
        Non-negative weights of the rows.
    n_classes : int
        Number of classes. If there are two, rows have one score each.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(
        self, classes: NDArray[Any], weights: Rows, n_classes: int, n_jobs: int | None = 1
    ) -> None:
        self.classes = np.ascontiguousarray(classes, dtype=np.int64)
        self.weights = np.ascontiguousarray(weights, dtype=np.float64)
        self.n_scores = 1 if n_classes == 2 else n_classes
        self.n_jobs = n_jobs

    def point(self, scores: Rows, intercept: Any) -> BinaryPoint | SoftmaxPoint:
        """Return the losses of rows at these scores."""
        residuals, weights = np.empty_like(scores), np.empty_like(scores)
        likely = None if self.n_scores == 1 else np.empty_like(scores)
        cpu.fill_log_losses(
            self._table(scores),
            _for_each(intercept, self.n_scores),
            self.classes,
            self.weights,
            self._table(residuals),
            self._table(weights),
            likely,
            _threads(self.n_jobs, scores),
        )
        if likely is None:
            return BinaryPoint(residuals, weights)
        return SoftmaxPoint(residuals, weights, self.weights, likely)

    def sums(
        self,
        scores: Rows,
        intercept: Any,
        change: Rows | None = None,
        old: Any = None,
        size: float = 0.0,
        shift: Any = 0.0,
    ) -> Sums:
        """Return sums over rows at these scores, or so many times a change, less a shift, further.

        `old` is the point to compare the curvatures of rows with.
        """
        k = self.n_scores
        sums, extremes = np.empty(5 + 3 * k + k * k), np.empty(2)
        cpu.sum_log_losses(
            self._table(scores),
            _for_each(intercept, k),
            self.classes,
            self.weights,
            None if change is None else self._table(change),
            _for_each(shift, k),
            size,
            None if old is None else self._table(old.weights),
            sums,
            extremes,
            _threads(self.n_jobs, scores),
        )
        value, along, square, before, changed = sums[:5].tolist()
        lists: list[Any] = [*sums[5 : 5 + 3 * k].reshape(3, k), sums[5 + 3 * k :].reshape(k, k)]
        slopes, expected, cross, hessian = lists if k > 1 else (each.item() for each in lists)
        lowest, highest = extremes.tolist()
        return Sums(
            value, slopes, hessian, expected, lowest, highest, along, cross, square, before, changed
        )

    def _table(self, rows: Rows) -> Rows:
        """Return rows with a column for each score."""
        return rows.reshape(len(rows), self.n_scores)


def _for_each(value: Any, n_scores: int) -> NDArray[np.float64]:
    """Return a number for each score of a row; one that is given stands for all."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(value, np.float64), n_scores))


def _threads(n_jobs: int | None, scores: Rows) -> int:
    return threads_for(n_jobs, COST * scores.size)
