"""Objectives whose rows are in one place, where scores and residuals are updated in place.

Besides `keep` and `total`, they call `add` of the store; see `local_rows.LocalRows`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polysparse.models import contributions
from polysparse.models.objectives import Losses, SquaredErrors, Vector


class UpdatedLosses(Losses):
    """Losses whose scores follow the solver's steps."""

    has_cheap_sums = True

    def _scores_along(self, direction: Vector) -> tuple[Any, Any]:
        change = self.scores(direction)
        return change, self._intercept_shift(change)

    def add_to_step(self, size: float) -> None:
        super().add_to_step(size)
        if self._change is None:
            self._change = self._last
            self._change *= size
        else:
            self.rows.add(self._change, size, self._last)

    def start_line_search(self, step: Vector) -> None:
        if self._change is None:  # no conjugate gradients: the intercept follows to first order
            self._change, self._shift = self._scores_along(step)
        super().start_line_search(step)

    def _move_scores(self, size: float, coefficients: Vector) -> None:
        self.rows.add(self._scores, size, self._change)


class UpdatedResiduals(SquaredErrors):
    """Squared errors whose residuals follow the solver's steps."""

    drift = np.inf

    @property
    def residuals(self) -> Any:
        """Targets less scores and intercept of all rows, those without weight included."""
        return self._residuals

    def refresh(self, coefficients: Vector) -> float:
        old = self._residuals
        value = super().refresh(coefficients)
        self.rows.add(old, -1.0, self._residuals)
        self.drift = self._sum_squares(old)
        return value

    def _set_residuals(self, residuals: Any) -> float:
        # Twice: the first mean of large residuals leaves a rounding error.
        self._residuals, self.intercept = residuals, 0.0
        for _ in range(2 if self.has_intercept else 0):
            mean = self._mean(residuals)
            self._residuals -= mean
            self.intercept += mean
        return self._sum_squares(self._residuals)

    def _sum_squares(self, rows: Any, shift: float = 0.0) -> float:
        (value,) = self.rows.total(contributions.squares, rows, shift=shift)
        return float(value)

    def gradient(self, coefficients: Vector, out: Vector | None) -> Vector:
        # The mean is a rounding error, which columns that are far from 0 multiply.
        return self._transposed(self._residuals, out)

    def _transposed(self, rows: Any, out: Vector | None) -> Vector:
        """Return the transposed expansion times the weighted rows about their mean."""
        self.n_products += 1
        (product,) = self.rows.total(
            contributions.transposed, rows, shift=self._mean(rows), out=out
        )
        return product  # type: ignore[no-any-return]

    def normal_product(self, direction: Vector, out: Vector | None) -> Vector:
        return self._transposed(self.scores(direction, once=True), out)

    def curvature(self, direction: Vector) -> float:
        self._last = self.scores(direction, once=True)
        self._shift = self._mean(self._last)
        return self._sum_squares(self._last, self._shift)

    def move(self, step: float) -> None:
        self.rows.add(self._residuals, -step, self._last, self._shift)
        self.intercept -= step * self._shift
