"""Squared errors. PolynomialRidge minimizes them by `least_squares`, not by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from polysparse.models.losses.elementwise import ElementwiseLoss
from polysparse.models.losses.interface import RowArray


@dataclass(frozen=True)
class SquaredLoss(ElementwiseLoss):
    """Half the squared difference of the target and the score.

    Attributes
    ----------
    factor : float, default=1.0
        What the weights of rows are multiplied by.
    n_targets : int, optional
        Number of targets, if y is a table.
    target : int, default=0
        Which of them is encoded.
    """

    factor: float = 1.0
    n_targets: int | None = None
    target: int = 0
    is_attained = True
    is_self_bounded = True

    def encode(
        self, y: NDArray[Any], weights: RowArray, offset: RowArray | None = None
    ) -> tuple[NDArray[Any], RowArray]:
        """Return targets and weights."""
        own = y if self.n_targets is None else y[:, self.target]
        targets, weights = super().encode(own, weights, offset)
        return targets, weights * self.factor

    def evaluate(self, targets: Any, scores: Any) -> tuple[Any, Any, Any]:
        """Return the value, the gradient and the curvature of each row."""
        error = scores - targets
        return error * error / 2, error, 0 * error + 1
