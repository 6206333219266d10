"""The logistic losses of rows of scores: values, gradients and curvatures, and sums of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.vectors import dot, map_blocks

Rows = NDArray[np.float64]  # of shape (n_rows,), or (n_rows, n_classes)


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

    def curve(self, change: Rows) -> Rows:
        """Return the Hessian times a change of scores."""
        return self.weights * change

    @property
    def hessian(self) -> float:
        """The Hessian of the intercept."""
        return float(self.weights.sum())


class _Loss:
    """What the losses share: sums over rows, made of a few rows at a time.

    A subclass says by `_at` what a few rows are at given scores.
    """

    weights: Rows
    n_jobs: int | None

    def point(self, scores: Rows, intercept: Any) -> Any:
        """Return the losses of rows at these scores."""
        _, one = self._at(scores[:1], intercept, slice(0, 1))
        whole = {
            name: np.empty_like(values, shape=(len(scores), *values.shape[1:]))
            for name, values in vars(one).items()
        }

        def write(rows: slice) -> None:
            _, point = self._at(scores[rows], intercept, rows)
            for name, values in vars(point).items():
                whole[name][rows] = values

        map_blocks(write, scores, self.n_jobs)
        return type(one)(**whole)

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

        def at(rows: slice) -> Sums:
            z, along = scores[rows], {}
            if change is not None:
                t = change[rows] - shift
                z = z + size * t
            value, point = self._at(z, intercept, rows)
            if change is not None:
                curved, before = point.curve(t), old.weights[rows]
                squares = change[rows] * change[rows]
                along = {
                    "along": dot(point.residuals, t),
                    "cross": curved.sum(axis=0),
                    "square": dot(t, curved),
                    "before": dot(before, squares),
                    "changed": dot(np.abs(point.weights - before), squares),
                }
            slopes = point.residuals.sum(axis=0)
            return Sums(
                value,
                slopes,
                point.hessian,
                self._expected(point, slopes, rows),
                float(z.min()) if len(z) else np.inf,
                float(z.max()) if len(z) else -np.inf,
                **along,
            )

        total: Sums
        total, *others = map_blocks(at, scores, self.n_jobs)
        return sum(others, total)

    def _at(self, scores: Rows, intercept: Any, rows: slice) -> tuple[float, Any]:
        """Return the loss of a few rows, and their point."""
        raise NotImplementedError

    def _expected(self, point: Any, slopes: Any, rows: slice) -> Any:
        """Return the weights of classes, as they are predicted."""
        return np.einsum("i,i...->...", self.weights[rows], point.likely)


class BinaryLoss(_Loss):
    """The logistic losses of rows of two classes.

    Parameters
    ----------
    classes : ndarray of shape (n_rows,)
        The class of each row: 0 or 1, False or True.
    weights : ndarray of float64 of shape (n_rows,)
        Non-negative weights of the rows.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(self, classes: NDArray[Any], weights: Rows, n_jobs: int | None) -> None:
        self.n_jobs = n_jobs
        self.is_second = classes.astype(np.bool_, copy=False)
        self.weights = weights

    def _at(self, scores: Rows, intercept: float, rows: slice) -> tuple[float, BinaryPoint]:
        is_second, weights = self.is_second[rows], self.weights[rows]
        margins = scores + intercept
        small = np.exp(-np.abs(margins))
        share = 1 / (1 + small)
        likely = np.where(margins >= 0, share, small * share)
        # log(1 + exp(-|margin|)), and |margin| if the row is on the wrong side
        losses = np.log1p(small) + np.maximum(np.where(is_second, -margins, margins), 0)
        point = BinaryPoint(weights * (likely - is_second), weights * (small * share * share))
        return dot(weights, losses), point

    def _expected(self, point: BinaryPoint, slopes: Any, rows: slice) -> float:
        return float(slopes + dot(self.weights[rows], self.is_second[rows]))


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

    def curve(self, change: Rows) -> Rows:
        """Return the Hessian times a change of scores."""
        means = np.einsum("ic,ic->i", self.likely, change)
        out: Rows = change - means[:, None]
        out *= self.likely
        out *= self.row_weights[:, None]
        return out

    @property
    def hessian(self) -> Rows:
        """The Hessian of the intercepts."""
        weighted = self.row_weights[:, None] * self.likely
        out: Rows = np.diag(weighted.sum(axis=0)) - np.einsum("ic,id->cd", weighted, self.likely)
        return out


class SoftmaxLoss(_Loss):
    """The logistic losses of rows of several classes.

    Parameters
    ----------
    classes : ndarray of int64 of shape (n_rows,)
        The class of each row, counted from 0.
    weights : ndarray of float64 of shape (n_rows,)
        Non-negative weights of the rows.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(self, classes: NDArray[np.int64], weights: Rows, n_jobs: int | None) -> None:
        self.n_jobs = n_jobs
        self.classes = classes
        self.weights = weights

    def _at(self, scores: Rows, intercept: Rows, rows: slice) -> tuple[float, SoftmaxPoint]:
        classes, row_weights = self.classes[rows], self.weights[rows]
        margins = scores + intercept
        margins -= margins.max(axis=1, keepdims=True)
        likely = np.exp(margins)
        sums = likely.sum(axis=1)
        likely /= sums[:, None]
        each = np.arange(len(scores), like=scores)
        value = dot(row_weights, np.log(sums) - margins[each, classes])
        residuals = row_weights[:, None] * likely
        weights = residuals * (1 - likely)
        residuals[each, classes] -= row_weights
        return value, SoftmaxPoint(residuals, weights, row_weights, likely)


def loss_for(
    classes: NDArray[Any], weights: Rows, n_classes: int, n_jobs: int | None = 1
) -> BinaryLoss | SoftmaxLoss:
    """Return the losses of rows of two or more classes, counted from 0."""
    return (BinaryLoss if n_classes == 2 else SoftmaxLoss)(classes, weights, n_jobs)
