"""Objectives whose rows are in blocks that may be lost, as on a cluster.

What is kept of a block is computed from coefficients alone, so that what is lost can be computed
again, bit for bit. Each call of `total` is a job that takes much longer than it computes, so there
are as few as possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polysparse.models import contributions
from polysparse.models.objectives import Losses, SquaredErrors, Vector
from polysparse.models.vectors import combine, dot

# The gradient of squared errors is updated by recurrence, as conjugate gradients do, and computed
# from the residuals after this many updates.
REFRESH = 50


class RecomputedLosses(Losses):
    """Losses whose scores are computed from the coefficients after every step."""

    def _use_means(self, means: Vector | None) -> None:
        """Keep the means of columns: of two classes, they give the shift of the intercept."""
        self._means = means if self.loss.n_scores == 1 else None

    def _scores_along(self, direction: Vector) -> tuple[Any, Any]:
        change = self.scores(direction, once=self._means is not None)
        if self._means is not None:
            return change, dot(self._means, direction, self.n_jobs)
        return change, self._intercept_shift(change)

    def _move_scores(self, size: float, coefficients: Vector) -> None:
        self._scores = self.scores(coefficients)


class RecomputedResiduals(SquaredErrors):
    """Squared errors whose gradient is updated, with one job for each step."""

    def _use_means(self, means: Vector | None) -> None:
        self._means = means

    def _set_residuals(self, residuals: Any) -> float:
        self._n_updates, self.intercept = 0, self._mean(residuals)
        value, self._gradient = self._squares_and_transposed(residuals, self.intercept)
        return value

    def _squares_and_transposed(self, rows: Any, shift: float) -> tuple[float, Vector]:
        value, product, left = self.rows.total(
            contributions.squares_and_transposed, rows, shift=shift
        )
        self.n_products += 1
        if self._means is not None:  # what is left is a rounding error
            combine(1.0, product, -left, self._means, self.n_jobs)
        return float(value), product

    def gradient(self, coefficients: Vector, out: Vector | None) -> Vector:
        if self._n_updates == REFRESH:
            self.refresh(coefficients)
        out = np.empty_like(self._gradient) if out is None else out
        out[:] = self._gradient
        return out

    def curvature(self, direction: Vector) -> float:
        curvature, self._product = self._curvature_and_product(direction)
        return curvature

    def normal_product(self, direction: Vector, out: Vector | None) -> Vector:
        return self._curvature_and_product(direction)[1]

    def _curvature_and_product(self, direction: Vector) -> tuple[float, Vector]:
        """Return half the second derivative along a direction, and half the Hessian times it."""
        change = self.scores(direction, once=True)
        shift = 0.0 if self._means is None else dot(self._means, direction, self.n_jobs)
        return self._squares_and_transposed(change, shift)

    def move(self, step: float) -> None:
        combine(1.0, self._gradient, -step, self._product, self.n_jobs)
        self._n_updates += 1
