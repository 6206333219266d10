"""Losses of one score for each row, or of several that do not depend on each other.

Whole-array operations of NumPy or CuPy compute them, or compiled code on every core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.machine import threads_for
from polysparse.models.intercepts import NoIntercept, ScalarIntercept
from polysparse.models.losses.interface import LossSums, RowArray
from polysparse.models.row_store import RowStore
from polysparse.models.vectors import dot, multiply

COST = 8  # of the loss of a score, in outputs of an expansion


class ElementwiseLoss:
    """A convex loss of a target and one score. A subclass implements `evaluate`.

    It overrides `encode` if not every number is a valid target.
    """

    n_scores = 1
    is_attained = False
    is_self_bounded = False

    def evaluate(self, targets: Any, scores: Any) -> tuple[Any, Any, Any]:
        """Return the value, the gradient and the curvature of each row, without its weight."""
        raise NotImplementedError

    def encode(
        self, y: NDArray[Any], weights: RowArray, offset: RowArray | None = None
    ) -> tuple[NDArray[Any], RowArray]:
        """Return targets and weights. An offset is subtracted from y, as for squared errors."""
        y = y.astype(np.float64, copy=False)
        return y if offset is None else y - offset, weights

    def of_rows(self, targets: Any, weights: Any, n_jobs: int | None) -> Any:
        """Return the losses of some rows. A single thread computes them."""
        return ElementwiseRowLosses(self, targets, weights)

    def intercept(self, rows: RowStore, *, is_free: bool) -> Any:
        return ScalarIntercept() if is_free else NoIntercept()


class CompiledLoss(ElementwiseLoss):
    """A loss that compiled code computes on every core, and `evaluate` on a GPU.

    Attributes
    ----------
    kernel : str
        Its name in the kernels.
    parameter : float
        The number that it depends on, if any.
    """

    kernel: str
    parameter: float = 0.0

    def of_rows(self, targets: Any, weights: Any, n_jobs: int | None) -> CompiledRowLosses:
        """Return the losses of some rows."""
        return CompiledRowLosses(self, targets, weights, n_jobs)

    def weights_of_score(self, number: int, targets: Any, weights: Any) -> Any:
        """Return the weights of rows in the loss of one of several scores."""
        return weights


class ArrayRowLosses:
    """The losses of rows by array operations; a subclass says what they are at given scores.

    Parameters
    ----------
    targets : array of shape (n_rows,)
        The targets.
    weights : array of float64 of shape (n_rows,)
        Non-negative weights of the rows.
    """

    def __init__(self, targets: Any, weights: Any) -> None:
        self.targets = targets
        self.weights = weights

    def point(self, scores: Any, intercept: Any) -> Any:
        return self._at(scores, intercept)[1]

    def sums(
        self,
        scores: Any,
        intercept: Any,
        change: Any = None,
        old: Any = None,
        step: float = 0.0,
        shift: Any = 0.0,
    ) -> LossSums:
        z, along = scores, {}
        if change is not None:
            t = change - shift
            z = z + step * t
        value, point = self._at(z, intercept)
        if change is not None:
            product, squares = point.hessian_product(t), change * change
            along = {
                "slope": (point.gradient * t).sum(),
                "intercept_cross": product.sum(axis=0),
                "curvature": (t * product).sum(),
                "old_curvature": (old.curvature * squares).sum(),
                "curvature_change": (np.abs(point.curvature - old.curvature) * squares).sum(),
            }
        return LossSums(
            value,
            point.gradient.sum(axis=0),
            *self._intercept_sums(point),
            z.min() if len(z) else np.inf,
            z.max() if len(z) else -np.inf,
            **along,
        )

    def _at(self, scores: Any, intercept: Any) -> tuple[Any, Any]:
        """Return the loss of all rows, and their point."""
        raise NotImplementedError

    def _intercept_sums(self, point: Any) -> tuple[Any, Any]:
        """Return the Hessian of the intercept, and the predicted weights of classes."""
        raise NotImplementedError


@dataclass(frozen=True)
class ElementwisePoint:
    """The derivatives of losses of scores that do not depend on each other."""

    gradient: Any
    curvature: Any

    def hessian_product(self, change: Any, shift: Any = 0.0, n_jobs: int | None = None) -> Any:
        return self.curvature * (change - shift)

    def intercept_cross(self, change: Any, n_jobs: int | None) -> Any:
        if change.ndim == 2:
            return (self.curvature * change).sum(axis=0)
        return float(np.einsum("i,i->", self.curvature, change))


@dataclass(frozen=True)
class DiagonalPoint(ElementwisePoint):
    """The same in main memory, computed by several threads if there is one score."""

    def hessian_product(self, change: Any, shift: Any = 0.0, n_jobs: int | None = None) -> Any:
        if change.ndim == 2:
            return super().hessian_product(change, shift)
        return multiply(self.curvature, change, shift, n_jobs)

    def intercept_cross(self, change: Any, n_jobs: int | None) -> Any:
        if change.ndim == 2:
            return super().intercept_cross(change, n_jobs)
        return dot(self.curvature, change, n_jobs)


class ElementwiseRowLosses(ArrayRowLosses):
    """The losses of rows of an ElementwiseLoss."""

    def __init__(self, loss: ElementwiseLoss, targets: Any, weights: Any) -> None:
        super().__init__(targets, weights)
        self.loss = loss

    def _at(self, scores: Any, intercept: Any) -> tuple[Any, ElementwisePoint]:
        values, gradient, curvature = self.loss.evaluate(self.targets, scores + intercept)
        w = self.weights if scores.ndim == 1 else self.weights[:, None]
        return (w * values).sum(), ElementwisePoint(w * gradient, w * curvature)

    def _intercept_sums(self, point: ElementwisePoint) -> tuple[Any, Any]:
        return point.curvature.sum(axis=0), 0.0


class CompiledRowLosses:
    """The losses of rows of a CompiledLoss; of several scores, one after the other.

    Parameters
    ----------
    loss : CompiledLoss
        The loss.
    targets : ndarray of float64 of shape (n_rows, ...)
        The targets: the numbers that `kernel` takes, for each score if there are several.
    weights : ndarray of float64 of shape (n_rows,)
        Non-negative weights of the rows.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(self, loss: CompiledLoss, targets: Any, weights: Any, n_jobs: int | None) -> None:
        self.loss = loss
        self.targets = np.ascontiguousarray(targets, dtype=np.float64)
        self.weights = np.ascontiguousarray(weights, dtype=np.float64)
        self.n_jobs = n_jobs

    def point(self, scores: RowArray, intercept: Any) -> DiagonalPoint:
        gradient, curvature = np.empty_like(scores), np.empty_like(scores)
        if scores.ndim == 1:
            self._fill(scores, intercept, self.targets, self.weights, gradient, curvature)
            return DiagonalPoint(gradient, curvature)
        for number, column in enumerate(scores.T):
            own = np.empty((2, len(scores)))
            targets, weights = self._of_score(number)
            self._fill(np.ascontiguousarray(column), intercept[number], targets, weights, *own)
            gradient[:, number], curvature[:, number] = own
        return DiagonalPoint(gradient, curvature)

    def sums(
        self,
        scores: RowArray,
        intercept: Any,
        change: RowArray | None = None,
        old: Any = None,
        step: float = 0.0,
        shift: Any = 0.0,
    ) -> LossSums:
        before = None if old is None else old.curvature
        if scores.ndim == 1:
            given = self.targets, self.weights
            return self._sum(scores, intercept, *given, change, shift, step, before)
        shifts = np.broadcast_to(np.asarray(shift, np.float64), scores.shape[1])
        parts = [
            self._sum(
                np.ascontiguousarray(column),
                intercept[number],
                *self._of_score(number),
                None if change is None else np.ascontiguousarray(change[:, number]),
                float(shifts[number]),
                step,
                None if before is None else np.ascontiguousarray(before[:, number]),
            )
            for number, column in enumerate(scores.T)
        ]
        return _joined(parts)

    def _of_score(self, number: int) -> tuple[RowArray, RowArray]:
        """Return targets and weights of one of several scores."""
        targets = np.ascontiguousarray(self.targets[:, number])
        weights = self.loss.weights_of_score(number, targets, self.weights)
        return targets, np.ascontiguousarray(weights)

    def _fill(
        self,
        scores: RowArray,
        intercept: Any,
        targets: RowArray,
        weights: RowArray,
        gradient: RowArray,
        curvature: RowArray,
    ) -> None:
        cpu.fill_target_losses(
            self.loss.kernel,
            self.loss.parameter,
            scores,
            float(intercept),
            targets.reshape(len(targets), -1),
            weights,
            gradient,
            curvature,
            threads_for(self.n_jobs, COST * len(scores)),
        )

    def _sum(
        self,
        scores: RowArray,
        intercept: Any,
        targets: RowArray,
        weights: RowArray,
        change: RowArray | None,
        shift: Any,
        step: float,
        before: RowArray | None,
    ) -> LossSums:
        sums, extremes = np.empty(9), np.empty(2)
        cpu.sum_target_losses(
            self.loss.kernel,
            self.loss.parameter,
            scores,
            float(intercept),
            targets.reshape(len(targets), -1),
            weights,
            change,
            float(shift),
            step,
            before,
            sums,
            extremes,
            threads_for(self.n_jobs, COST * len(scores)),
        )
        value, slope, curvature, old, changed, gradient, predicted, cross, hessian = sums.tolist()
        lowest, highest = extremes.tolist()
        at = value, gradient, hessian, predicted, lowest, highest
        return LossSums(*at, slope, cross, curvature, old, changed)


def _joined(parts: list[LossSums]) -> LossSums:
    """Return the sums of several scores: those of intercepts as vectors."""

    def each(name: str) -> Any:
        return np.array([getattr(part, name) for part in parts])

    def summed(name: str) -> float:
        return float(each(name).sum())

    return LossSums(
        summed("value"),
        each("intercept_gradient"),
        each("intercept_hessian"),
        each("predicted_weights"),
        float(each("min_score").min()),
        float(each("max_score").max()),
        summed("slope"),
        each("intercept_cross"),
        summed("curvature"),
        summed("old_curvature"),
        summed("curvature_change"),
    )
