"""Deviances of means exp(score): Poisson, Gamma and what is between them (Tweedie)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.models.intercepts import LogLinkIntercept, NoIntercept
from polysparse.models.losses.elementwise import CompiledLoss
from polysparse.models.losses.interface import RowArray
from polysparse.models.row_store import RowStore
from polysparse.models.weights import TargetRange

FAR = 1e30  # beyond all scores


@dataclass(frozen=True)
class LogLinkLoss(CompiledLoss):
    """Half the deviance of a number y and the mean exp(score + offset).

    The variance of y is proportional to a power of its mean. The loss is convex in the score if the
    power is from 1 (Poisson) to 2 (Gamma).

    Attributes
    ----------
    power : float
        The power.
    factor : float
        What the weights of rows are multiplied by.
    """

    power: float
    factor: float

    @property
    def kernel(self) -> str:  # type: ignore[override]
        return {1.0: "poisson", 2.0: "gamma"}.get(self.power, "tweedie")

    @property
    def parameter(self) -> float:  # type: ignore[override]
        return self.power

    def encode(
        self, y: NDArray[Any], weights: RowArray, offset: RowArray | None = None
    ) -> tuple[NDArray[Any], RowArray]:
        """Return targets of shape (n_rows, 2): log(y) less the offset, and y**(2 - power).

        Both are 0, less the offset, if y is 0. With ``x = score - targets[:, 0]``, a = 2 - power
        and b = power - 1, half the deviance is ``targets[:, 1] * (f(a * x) / a + f(-b * x) / b)``,
        where ``f(x) = exp(x) - 1 - x``, or ``exp(a * x) / a`` if y is 0. So nothing cancels where
        the fit is good, and an offset, however large, is a shift of the score. Rows without a
        weight get a target that exponentials are 0 for: 0 times infinity is NaN.
        """
        y = np.ascontiguousarray(y, dtype=np.float64)
        is_zero = y == 0
        logs = logarithms(np.where(is_zero, 1.0, y))
        scales = y if self.power == 1 else exponentials((2 - self.power) * logs)
        shifted = logs if offset is None else logs - offset
        out = np.column_stack([shifted, np.where(is_zero, 0.0, scales)])
        out[weights == 0] = (FAR, 0.0) if self.power < 2 else (-FAR, 1.0)
        return out, weights * self.factor

    def require_valid(self, y: TargetRange, *, has_intercept: bool) -> None:
        """Raise ValueError if some y are not in the domain of the deviance."""
        if y.lowest < 0:
            raise ValueError(
                f"y has the value {y.lowest:g}; a model with power={self.power:g} needs numbers "
                "that are 0 or above."
            )
        if self.power == 2 and y.lowest == 0:
            raise ValueError(
                "y has the value 0; a model with power=2 (Gamma) needs numbers above 0. For "
                "amounts that may be 0, use PolynomialTweedieRegressor with a power between 1 and "
                "2."
            )
        if has_intercept and not y.weighted_sum > 0:
            raise ValueError(
                "y is 0 in all rows that have a weight, so the intercept would be minus infinity."
            )

    def intercept(self, rows: RowStore, *, is_free: bool) -> Any:
        return LogLinkIntercept(self.power) if is_free else NoIntercept()

    def evaluate(self, targets: Any, scores: Any) -> tuple[Any, Any, Any]:
        """Return the value, the gradient and the curvature of each row."""
        x, factor = scores - targets[:, 0], targets[:, 1]
        rising, falling = 2 - self.power, self.power - 1
        is_zero = factor == 0
        values, gradient, curvature = 0.0, 0.0, 0.0
        if rising > 0:
            up, up_minus_1, above_tangent = _exponential(rising * x)
            values = np.where(is_zero, up / rising, factor * (above_tangent / rising))
            gradient = np.where(is_zero, up, factor * up_minus_1)
            curvature = np.where(is_zero, rising * up, factor * rising * up)
        if falling > 0:
            down, down_minus_1, above_tangent = _exponential(-falling * np.where(is_zero, 0.0, x))
            values = values + factor * (above_tangent / falling)
            gradient = gradient - factor * down_minus_1
            curvature = curvature + factor * falling * down
        return values, gradient, curvature


def _exponential(x: Any) -> tuple[Any, Any, Any]:
    """Return exp(x), exp(x) - 1 and exp(x) - 1 - x without cancellation; finite from 709 on."""
    own = np.minimum(x, 709.0)
    value, minus_1 = np.exp(own), np.expm1(own)
    series = own * own * (0.5 + own * (1 / 6 + own * (1 / 24 + own * (1 / 120 + own / 720))))
    return value, minus_1, np.where(np.abs(x) < 1e-2, series, minus_1 - x)


def exponentials(x: RowArray) -> RowArray:
    """Return exp(x), bit-identical on every processor; finite from 709 on."""
    return _computed(cpu.fill_exponentials, x)


def logarithms(x: RowArray) -> RowArray:
    """Return log(x) of positive numbers, bit-identical on every processor."""
    return _computed(cpu.fill_logarithms, x)


def _computed(fill: Any, x: RowArray) -> RowArray:
    x = np.ascontiguousarray(x, dtype=np.float64)
    out = np.empty_like(x)
    fill(x, out, 1)
    return out
