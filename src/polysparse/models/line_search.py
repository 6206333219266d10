"""The line search, which only reads rows: it takes no pass over the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polysparse.models.objectives import Losses
from polysparse.models.penalties import Penalty

Vector = NDArray[np.float64]

MAX_TRIALS = 30


@dataclass(frozen=True)
class Quadratic:
    """The penalty of `w + size * d`, as a function of the size."""

    constant: float
    linear: float
    squared: float

    @classmethod
    def along(cls, penalty: Penalty, w: Vector, d: Vector) -> Quadratic:
        """Return the penalty along d."""
        return cls(penalty.inner(w, w), penalty.inner(w, d), penalty.inner(d, d))

    def at(self, size: float) -> tuple[float, float, float]:
        """Return the value, the slope and the curvature."""
        slope = self.linear + size * self.squared
        return (self.constant + size * (self.linear + slope)) / 2, slope, self.squared


def search(
    losses: Losses,
    direction: Vector,
    initial_slope: float,
    value: float,
    noise: float,
    penalty: Quadratic,
    flat: float,
) -> float:
    """Return the size of the step, or 0 if the value does not fall along it.

    The search ends when the slope is `flat` times the initial slope. Decreases that are smaller
    than the noise are accepted unseen.

    The objective is convex, so its slope increases along the step: Newton's method for the root of
    the slope, within a bracket.
    """
    highest = value + (noise if -initial_slope <= noise else 0.0)
    if not initial_slope < 0:
        return 0.0
    losses.start_line_search(direction)
    low, high, next_size = 0.0, np.inf, 1.0
    for _ in range(MAX_TRIALS):
        size = next_size
        at_size = zip(losses.evaluate_step(size), penalty.at(size), strict=True)
        new, slope, curvature = (a + b for a, b in at_size)
        is_lower = new < highest
        if is_lower and abs(slope) <= flat * abs(initial_slope):
            return size
        low, high = (size, high) if slope < 0 and is_lower else (low, size)
        next_size = size - slope / curvature if curvature > 0 else np.nan
        # Where exponentials are large, the root is much closer to 0 than Newton's method guesses.
        is_far = not is_lower and next_size > (low + size) / 2
        if is_far or not low < next_size < high:
            next_size = 2 * low + 1 if np.isinf(high) else (low + high) / 2
    return size if is_lower else 0.0
