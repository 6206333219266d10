"""The squared hinge loss of two classes, or of each of several against the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.intercepts import NoIntercept, ScalarIntercept
from polysparse.models.losses.elementwise import CompiledLoss
from polysparse.models.losses.interface import RowArray
from polysparse.models.losses.logistic import count_scores
from polysparse.models.row_store import RowStore


@dataclass(frozen=True)
class SquaredHingeLoss(CompiledLoss):
    """Half the square of what the score of a row lacks to be 1, or -1 if the row is negative.

    With two classes, rows of the second one are positive. With more, there is a score for each
    class, for which its rows are positive and all others negative.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    factor : float
        What the weights of rows are multiplied by.
    class_factors : ndarray of float64 of shape (n_classes,)
        What the weights of the rows of each class are multiplied by; with more than two classes,
        only where these rows are positive.
    intercept_penalty : float
        Half of it times the squared intercept is added to the loss.
    """

    classes: NDArray[Any]
    factor: float
    class_factors: NDArray[np.float64]
    intercept_penalty: float
    kernel = "squared_hinge"
    is_attained = True
    is_self_bounded = True

    @property
    def n_scores(self) -> int:  # type: ignore[override]
        """One score if there are two classes, otherwise one for each class."""
        return count_scores(len(self.classes))

    def encode(
        self, y: NDArray[Any], weights: RowArray, offset: RowArray | None = None
    ) -> tuple[NDArray[Any], RowArray]:
        """Return 1 for positive rows and -1 for others, for each score, and weights."""
        numbers = np.searchsorted(self.classes, y)
        if self.n_scores == 1:
            targets = 2.0 * numbers - 1
            return targets, weights * (self.factor * self.class_factors)[numbers]
        targets = np.where(numbers[:, np.newaxis] == np.arange(self.n_scores), 1.0, -1.0)
        return targets, weights * self.factor

    def weights_of_score(self, number: int, targets: Any, weights: Any) -> Any:
        """Return the weights of rows in the loss of one of several scores."""
        return weights * np.where(targets > 0, self.class_factors[number], 1.0)

    def intercept(self, rows: RowStore, *, is_free: bool) -> Any:
        return ScalarIntercept(self.intercept_penalty) if is_free else NoIntercept()

    def evaluate(self, targets: Any, scores: Any) -> tuple[Any, Any, Any]:
        """Return the value, the gradient and the curvature of each row."""
        lack = np.maximum(1 - targets * scores, 0)
        values, gradient, curvature = lack * lack / 2, -targets * lack, (lack > 0) * 1.0
        if scores.ndim == 1:
            return values, gradient, curvature
        own = np.asarray(self.class_factors, like=scores)
        factors = np.where(targets > 0, own, 1.0)
        return factors * values, factors * gradient, factors * curvature
