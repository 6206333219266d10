"""The squared epsilon-insensitive loss: squared errors beyond a tube around the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.intercepts import NoIntercept, ScalarIntercept
from polysparse.models.losses.elementwise import CompiledLoss
from polysparse.models.losses.interface import RowArray
from polysparse.models.row_store import RowStore


@dataclass(frozen=True)
class SquaredTubeLoss(CompiledLoss):
    """Half the square of how far the score is from the target, beyond epsilon.

    Attributes
    ----------
    epsilon : float
        Half the width of the tube.
    factor : float
        What the weights of rows are multiplied by.
    intercept_penalty : float
        Half of it times the squared intercept is added to the loss.
    """

    epsilon: float
    factor: float
    intercept_penalty: float
    kernel = "squared_tube"
    is_attained = True
    is_self_bounded = True

    @property
    def parameter(self) -> float:  # type: ignore[override]
        return self.epsilon

    def encode(
        self, y: NDArray[Any], weights: RowArray, offset: RowArray | None = None
    ) -> tuple[NDArray[Any], RowArray]:
        """Return targets and weights."""
        targets, weights = super().encode(y, weights, offset)
        return targets, weights * self.factor

    def intercept(self, rows: RowStore, *, is_free: bool) -> Any:
        return ScalarIntercept(self.intercept_penalty) if is_free else NoIntercept()

    def evaluate(self, targets: Any, scores: Any) -> tuple[Any, Any, Any]:
        """Return the value, the gradient and the curvature of each row."""
        error = scores - targets
        beyond = np.maximum(np.abs(error) - self.epsilon, 0)
        return beyond * beyond / 2, np.copysign(beyond, error), (beyond > 0) * 1.0
