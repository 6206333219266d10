"""The logistic losses of rows of two or more classes, by compiled code on every core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.machine import threads_for
from polysparse.models.intercepts import BinaryIntercept, NoIntercept, SoftmaxIntercepts
from polysparse.models.losses.elementwise import COST, DiagonalPoint
from polysparse.models.losses.interface import LossSums, RowArray
from polysparse.models.row_store import RowStore


@dataclass(frozen=True)
class LogLoss:
    """The logistic loss, binary or multinomial.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    factors : ndarray of float64 of shape (n_classes,)
        What the weights of the rows of each class are multiplied by.
    """

    classes: NDArray[Any]
    factors: NDArray[np.float64]
    is_attained = False
    is_self_bounded = True

    @property
    def n_scores(self) -> int:
        """One score if there are two classes, otherwise one for each class."""
        return count_scores(len(self.classes))

    def encode(
        self, y: NDArray[Any], weights: RowArray, offset: RowArray | None = None
    ) -> tuple[NDArray[Any], RowArray]:
        """Return the numbers of the rows' classes, from 0, and weights with their factors."""
        numbers = np.searchsorted(self.classes, y)
        with np.errstate(over="ignore"):
            return numbers, weights * self.factors[numbers]

    def of_rows(self, targets: Any, weights: Any, n_jobs: int | None) -> LogRowLosses:
        return LogRowLosses(targets, weights, self.n_scores, n_jobs)

    def intercept(self, rows: RowStore, *, is_free: bool) -> Any:
        if not is_free:
            return NoIntercept()
        weights = rows.weights_by_class(len(self.classes))
        return (BinaryIntercept if self.n_scores == 1 else SoftmaxIntercepts)(weights)


@dataclass(frozen=True)
class SoftmaxPoint:
    """The derivatives of logistic losses of several classes.

    Attributes
    ----------
    gradient, curvature : ndarray of float64 of shape (n_rows, n_classes)
        The gradient, and the diagonal of the Hessian.
    row_weights : ndarray of float64 of shape (n_rows,)
        Weights of the rows.
    probabilities : ndarray of float64 of shape (n_rows, n_classes)
        Predicted probabilities of the classes.
    """

    gradient: RowArray
    curvature: RowArray
    row_weights: RowArray
    probabilities: RowArray

    def hessian_product(self, change: RowArray, shift: Any, n_jobs: int | None) -> RowArray:
        out = np.empty_like(change)
        shifts = _for_each(shift, change.shape[1])
        n_threads = _threads(n_jobs, change)
        cpu.fill_hessian_products(
            self.probabilities, self.row_weights, change, shifts, out, n_threads
        )
        return out

    def intercept_cross(self, change: RowArray, n_jobs: int | None) -> NDArray[np.float64]:
        shifts, out = (np.zeros(change.shape[1]) for _ in range(2))
        n_threads = _threads(n_jobs, change)
        cpu.sum_hessian_products(
            self.probabilities, self.row_weights, change, shifts, out, n_threads
        )
        return out


class LogRowLosses:
    """The logistic losses of rows of two or more classes.

    Parameters
    ----------
    numbers : ndarray of shape (n_rows,)
        The number of each row's class, from 0.
    weights : ndarray of float64 of shape (n_rows,)
        Non-negative weights of the rows.
    n_scores : int
        Number of scores of a row: 1 if there are two classes.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(
        self, numbers: NDArray[Any], weights: RowArray, n_scores: int, n_jobs: int | None = 1
    ) -> None:
        self.numbers = np.ascontiguousarray(numbers, dtype=np.int64)
        self.weights = np.ascontiguousarray(weights, dtype=np.float64)
        self.n_scores = n_scores
        self.n_jobs = n_jobs

    def point(self, scores: RowArray, intercept: Any) -> DiagonalPoint | SoftmaxPoint:
        gradient, curvature = np.empty_like(scores), np.empty_like(scores)
        probabilities = None if self.n_scores == 1 else np.empty_like(scores)
        cpu.fill_log_losses(
            self._table(scores),
            _for_each(intercept, self.n_scores),
            self.numbers,
            self.weights,
            self._table(gradient),
            self._table(curvature),
            probabilities,
            _threads(self.n_jobs, scores),
        )
        if probabilities is None:
            return DiagonalPoint(gradient, curvature)
        return SoftmaxPoint(gradient, curvature, self.weights, probabilities)

    def sums(
        self,
        scores: RowArray,
        intercept: Any,
        change: RowArray | None = None,
        old: Any = None,
        step: float = 0.0,
        shift: Any = 0.0,
    ) -> LossSums:
        k = self.n_scores
        sums, extremes = np.empty(5 + 3 * k + k * k), np.empty(2)
        cpu.sum_log_losses(
            self._table(scores),
            _for_each(intercept, k),
            self.numbers,
            self.weights,
            None if change is None else self._table(change),
            _for_each(shift, k),
            step,
            None if old is None else self._table(old.curvature),
            sums,
            extremes,
            _threads(self.n_jobs, scores),
        )
        value, slope, curvature, old_curvature, curvature_change = sums[:5].tolist()
        lists: list[Any] = [*sums[5 : 5 + 3 * k].reshape(3, k), sums[5 + 3 * k :].reshape(k, k)]
        gradient, predicted, cross, hessian = lists if k > 1 else (each.item() for each in lists)
        lowest, highest = extremes.tolist()
        return LossSums(
            value,
            gradient,
            hessian,
            predicted,
            lowest,
            highest,
            slope,
            cross,
            curvature,
            old_curvature,
            curvature_change,
        )

    def _table(self, rows: RowArray) -> RowArray:
        """Return rows with a column for each score."""
        return rows.reshape(len(rows), self.n_scores)


def count_scores(n_classes: int) -> int:
    """Return how many scores a row has: one for two classes, otherwise one for each class."""
    return 1 if n_classes == 2 else n_classes


def probabilities(scores: NDArray[np.float64], n_jobs: int | None) -> NDArray[np.float64]:
    """Return the probabilities of classes, given the scores of `decision_function`."""
    table = np.ascontiguousarray(scores if scores.ndim == 2 else scores[:, np.newaxis])
    out = np.empty((len(table), max(2, table.shape[1])))
    cpu.fill_probabilities(table, out, _threads(n_jobs, table))
    return out


def log_probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithms of `probabilities`."""
    if scores.ndim == 1:
        # log(1 + exp(s)), with an exponential that cannot overflow
        rest = np.log1p(np.exp(-np.abs(scores)))
        return -np.column_stack([np.maximum(scores, 0) + rest, np.maximum(-scores, 0) + rest])
    scores = scores - scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores


def _for_each(value: Any, n_scores: int) -> NDArray[np.float64]:
    """Return a number for each score of a row, given one for each or one for all."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(value, np.float64), n_scores))


def _threads(n_jobs: int | None, scores: RowArray) -> int:
    return threads_for(n_jobs, COST * scores.size)
