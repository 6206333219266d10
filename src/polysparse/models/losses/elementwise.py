"""Losses of one score for each row, computed by whole-array operations of NumPy or CuPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.intercepts import NoIntercept, ScalarIntercept
from polysparse.models.losses.interface import LossSums, RowArray
from polysparse.models.row_store import RowStore


class ElementwiseLoss:
    """A convex loss of a target and one score. A subclass implements `evaluate`.

    It overrides `encode` if not every number is a valid target.
    """

    n_scores = 1

    def evaluate(self, targets: Any, scores: Any) -> tuple[Any, Any, Any]:
        """Return the value, the gradient and the curvature of each row, without its weight."""
        raise NotImplementedError

    def encode(self, y: NDArray[Any], weights: RowArray) -> tuple[NDArray[Any], RowArray]:
        """Return targets and weights."""
        return y.astype(np.float64, copy=False), weights

    def of_rows(self, targets: Any, weights: Any, n_jobs: int | None) -> ElementwiseRowLosses:
        """Return the losses of some rows. A single thread computes them."""
        return ElementwiseRowLosses(self, targets, weights)

    def intercept(self, rows: RowStore, *, is_free: bool) -> Any:
        return ScalarIntercept() if is_free else NoIntercept()


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
    """The derivatives of losses of one score for each row."""

    gradient: Any
    curvature: Any

    def hessian_product(self, change: Any, shift: Any = 0.0, n_jobs: int | None = None) -> Any:
        return self.curvature * (change - shift)

    def intercept_cross(self, change: Any, n_jobs: int | None) -> float:
        return float(np.einsum("i,i->", self.curvature, change))


class ElementwiseRowLosses(ArrayRowLosses):
    """The losses of rows of an ElementwiseLoss."""

    def __init__(self, loss: ElementwiseLoss, targets: Any, weights: Any) -> None:
        super().__init__(targets, weights)
        self.loss = loss

    def _at(self, scores: Any, intercept: float) -> tuple[Any, ElementwisePoint]:
        values, gradient, curvature = self.loss.evaluate(self.targets, scores + intercept)
        w = self.weights
        return (w * values).sum(), ElementwisePoint(w * gradient, w * curvature)

    def _intercept_sums(self, point: ElementwisePoint) -> tuple[Any, Any]:
        return point.curvature.sum(), 0.0
