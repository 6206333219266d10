"""What a fit needs to know of a loss: its targets, its sums over rows, and its derivatives.

A new loss of one score for each row is a subclass of `elementwise.ElementwiseLoss` with one method.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse.models.row_store import RowStore

RowArray = NDArray[np.float64]  # of shape (n_rows,), or (n_rows, n_scores)


@dataclass(frozen=True)
class LossSums:
    """Sums over rows, which add up over blocks of rows.

    The first fields describe the intercept (one for each class if there are several); the fields
    from `slope` on describe a direction in the space of scores, if one was given.

    Attributes
    ----------
    value : float
        The loss.
    intercept_gradient : float, or ndarray of shape (n_scores,)
        Derivative of the loss with respect to the intercept.
    intercept_hessian : float, or ndarray of shape (n_scores, n_scores)
        Second derivative of the loss with respect to the intercept.
    predicted_weights : float, or ndarray of shape (n_scores,)
        Total weight of each class, as predicted. Only used with several classes.
    min_score, max_score : float
        The smallest and the largest score, without the intercept.
    slope : float
        Derivative of the loss along the direction.
    intercept_cross : float, or ndarray of shape (n_scores,)
        Derivative of `intercept_gradient` along the direction.
    curvature : float
        Second derivative of the loss along the direction.
    old_curvature, curvature_change : float
        The same at an older point, without a shift and class by class, and the sum of the absolute
        differences of all rows since then.
    """

    value: float
    intercept_gradient: Any
    intercept_hessian: Any
    predicted_weights: Any
    min_score: float
    max_score: float
    slope: float = 0.0
    intercept_cross: Any = 0.0
    curvature: float = 0.0
    old_curvature: float = 0.0
    curvature_change: float = 0.0

    def __add__(self, other: LossSums) -> LossSums:
        added = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        added["min_score"] = min(self.min_score, other.min_score)
        added["max_score"] = max(self.max_score, other.max_score)
        return LossSums(**added)


class Point(Protocol):
    """The derivatives of the losses of rows at given scores.

    Attributes
    ----------
    gradient : ndarray of float64 of shape (n_rows,) or (n_rows, n_scores)
        Derivative of the loss with respect to each score.
    curvature : ndarray of float64 of the same shape
        The diagonal of the Hessian with respect to the scores.
    """

    @property
    def gradient(self) -> RowArray: ...

    @property
    def curvature(self) -> RowArray: ...

    def hessian_product(self, change: RowArray, shift: Any, n_jobs: int | None) -> RowArray:
        """Return the Hessian times `change - shift`."""

    def intercept_cross(self, change: RowArray, n_jobs: int | None) -> Any:
        """Return the sum over rows of the Hessian times `change`."""


class RowLosses(Protocol):
    """The loss of some rows, with their targets and weights."""

    def point(self, scores: RowArray, intercept: Any) -> Point:
        """Return the derivatives at `scores + intercept`."""

    def sums(
        self,
        scores: RowArray,
        intercept: Any,
        change: RowArray | None = None,
        old: Any = None,
        step: float = 0.0,
        shift: Any = 0.0,
    ) -> LossSums:
        """Return sums over rows at `scores + step * (change - shift) + intercept`.

        `old` is the point to compare the curvatures of rows with.
        """


class Loss(Protocol):
    """A convex loss of a row's target and its scores. It is sent to workers as it is.

    Attributes
    ----------
    n_scores : int
        Number of scores of a row, which is the number of coefficients of a column.
    is_attained : bool
        Whether there are always finite coefficients with the least loss, as for squared errors.
    is_self_bounded : bool
        Whether the curvature of a row is at most its weight, and its squared gradient at most twice
        its weight times its loss. Then the weights bound the effect of rounding errors of scores.
    """

    @property
    def n_scores(self) -> int: ...

    @property
    def is_attained(self) -> bool: ...

    @property
    def is_self_bounded(self) -> bool: ...

    def encode(
        self, y: NDArray[Any], weights: RowArray, offset: RowArray | None = None
    ) -> tuple[NDArray[Any], RowArray]:
        """Return targets and weights as `of_rows` takes them; ValueError if y is not valid.

        `offset` is added to the scores of rows. Only models with that parameter pass it.
        """

    def of_rows(self, targets: Any, weights: Any, n_jobs: int | None) -> RowLosses:
        """Return the losses of some rows."""

    def intercept(self, rows: RowStore, *, is_free: bool) -> Any:
        """Return how the best intercept is found: an object of `models.intercepts`."""
