"""The losses of rows that are not in main memory, by what their library does with whole arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polysparse.models.losses import BinaryPoint, Rows, Sums


class _ArrayLosses:
    """What the losses share.

    Parameters
    ----------
    classes : array of shape (n_rows,)
        The class of each row, counted from 0.
    weights : array of float64 of shape (n_rows,)
        Non-negative weights of the rows.
    """

    def __init__(self, classes: Any, weights: Rows) -> None:
        self.classes = classes
        self.weights = weights

    def point(self, scores: Rows, intercept: Any) -> Any:
        """Return the losses of rows at these scores."""
        return self._at(scores, intercept)[1]

    def sums(
        self,
        scores: Rows,
        intercept: Any,
        change: Rows | None = None,
        old: Any = None,
        size: float = 0.0,
        shift: Any = 0.0,
    ) -> Sums:
        """Return sums over rows, as `losses.RowLosses` does."""
        z, along = scores, {}
        if change is not None:
            t = change - shift
            z = z + size * t
        value, point = self._at(z, intercept)
        if change is not None:
            curved, squares = point.curve(t), change * change
            along = {
                "along": (point.residuals * t).sum(),
                "cross": curved.sum(axis=0),
                "square": (t * curved).sum(),
                "before": (old.weights * squares).sum(),
                "changed": (np.abs(point.weights - old.weights) * squares).sum(),
            }
        return Sums(
            value,
            point.residuals.sum(axis=0),
            self._hessian(point),
            self._expected(point),
            z.min() if len(z) else np.inf,
            z.max() if len(z) else -np.inf,
            **along,
        )

    def _at(self, scores: Rows, intercept: Any) -> tuple[Any, Any]:
        """Return the loss of all rows, and their point."""
        raise NotImplementedError

    def _hessian(self, point: Any) -> Any:
        """Return the Hessian of the intercept."""
        raise NotImplementedError

    def _expected(self, point: Any) -> Any:
        """Return the weights of classes, as they are predicted."""
        raise NotImplementedError


class BinaryArrayLosses(_ArrayLosses):
    """The logistic losses of rows of two classes."""

    def _at(self, scores: Rows, intercept: float) -> tuple[Any, BinaryPoint]:
        is_second, weights = self.classes != 0, self.weights
        margins = scores + intercept
        small = np.exp(-np.abs(margins))
        share = 1 / (1 + small)
        wrong = np.where(is_second, -margins, margins)
        # log(1 + exp(-|margin|)), and |margin| if the row is on the wrong side
        losses = np.log1p(small) + np.maximum(wrong, 0)
        unlikely = np.where(wrong > 0, share, small * share)
        residuals = weights * np.where(is_second, -unlikely, unlikely)
        return (weights * losses).sum(), BinaryPoint(residuals, weights * (small * share * share))

    def _hessian(self, point: BinaryPoint) -> Any:
        return point.weights.sum()

    def _expected(self, point: BinaryPoint) -> Any:
        return (point.residuals + self.weights * (self.classes != 0)).sum()


@dataclass(frozen=True)
class SoftmaxArrayPoint:
    """The losses of rows of several classes at given scores; see `losses.SoftmaxPoint`."""

    residuals: Rows
    weights: Rows
    row_weights: Rows
    likely: Rows

    def curve(self, change: Rows, shift: Any = 0.0, n_jobs: int | None = None) -> Rows:
        """Return the Hessian times a change of scores, less a shift."""
        change = change - shift
        out: Rows = change - (self.likely * change).sum(axis=1)[:, None]
        out *= self.likely
        out *= self.row_weights[:, None]
        return out

    def cross(self, change: Rows, n_jobs: int | None) -> Rows:
        """Return the sums over rows of the Hessian times a change of scores."""
        out: Rows = self.curve(change).sum(axis=0)
        return out


class SoftmaxArrayLosses(_ArrayLosses):
    """The logistic losses of rows of several classes."""

    def _at(self, scores: Rows, intercept: Rows) -> tuple[Any, SoftmaxArrayPoint]:
        row_weights = self.weights
        margins = scores + intercept
        margins -= margins.max(axis=1, keepdims=True)
        likely = np.exp(margins)
        sums = likely.sum(axis=1)
        likely /= sums[:, None]
        each = np.arange(len(scores), like=scores)
        value = (row_weights * (np.log(sums) - margins[each, self.classes])).sum()
        residuals = row_weights[:, None] * likely
        weights = residuals * (1 - likely)
        residuals[each, self.classes] -= row_weights
        return value, SoftmaxArrayPoint(residuals, weights, row_weights, likely)

    def _hessian(self, point: SoftmaxArrayPoint) -> Any:
        weighted = point.row_weights[:, None] * point.likely
        return np.diag(weighted.sum(axis=0)) - np.einsum("ic,id->cd", weighted, point.likely)

    def _expected(self, point: SoftmaxArrayPoint) -> Any:
        return np.einsum("i,ic->c", self.weights, point.likely)


def array_losses_for(classes: Any, weights: Rows, n_classes: int) -> _ArrayLosses:
    """Return the losses of rows of two or more classes, counted from 0."""
    return (BinaryArrayLosses if n_classes == 2 else SoftmaxArrayLosses)(classes, weights)
