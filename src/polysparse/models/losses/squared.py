"""Squared errors. PolynomialRidge minimizes them by `least_squares`, not by Newton's method."""

from __future__ import annotations

from typing import Any

from polysparse.models.losses.elementwise import ElementwiseLoss


class SquaredLoss(ElementwiseLoss):
    """Half the squared difference of the target and the score."""

    def evaluate(self, targets: Any, scores: Any) -> tuple[Any, Any, Any]:
        """Return the value, the gradient and the curvature of each row."""
        error = scores - targets
        return error * error / 2, error, 0 * error + 1
