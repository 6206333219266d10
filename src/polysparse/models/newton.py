"""Newton's method for a loss of the scores plus half the squared norm of the coefficients.

Each step is found by conjugate gradients. Their products give the scores of the step too, so the
search along it reads rows alone: an iteration takes as many passes as conjugate gradients do, and
one and a half for the gradient and the preconditioner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.design import Design
from polysparse.models.losses import Loss, Point, Rows
from polysparse.models.vectors import Vector, add_scaled, blocks_of, dot

# The preconditioner is 1 - SHARE + SHARE * diagonal of the Hessian, about the means of columns. On
# a9a this took fewer passes than the diagonal, its square root or nothing, at C=0.1 and C=1.
SHARE = 0.01

# Conjugate gradients end when the last of k steps lowered the quadratic model by less than
# ENOUGH / k of what all of them did. Of 0.03 to 0.5, this took the fewest passes.
ENOUGH = 0.3

# Fewer steps than this do not show that the optimum is near.
FEWEST_STEPS = 10
MOST_STEPS = 1_000

# The search along a step ends when the slope is this share of what it was.
FLAT = 0.1
MOST_TRIALS = 30

VECTORS = 7  # of coefficients, in memory at the peak


@dataclass(frozen=True)
class Fit:
    """What a solver found."""

    coefficients: NDArray[np.float64]
    intercept: Any
    value: float
    n_iter: int
    has_converged: bool


Report = Callable[[int, float, float], None]


def minimise(
    design: Design,
    loss: Loss,
    coefficients: NDArray[np.float64],
    intercept: Any,
    *,
    tol: float,
    max_iter: int,
    report: Report,
) -> Fit:
    """Minimise a loss plus half the squared norm of the coefficients, which are changed in place.

    It has converged when a step is predicted to lower the value by less than tol times the value.
    report(iteration, value, norm of the gradient) is called for each iteration.
    """
    w = coefficients.reshape(-1)
    scores = design.apply(coefficients)
    point = loss.at(scores, intercept)
    value = point.value + dot(w, w) / 2
    has_converged = False
    for iteration in range(1, max_iter + 1):
        residual = require_finite(design.apply_transposed(point.residuals))
        np.add(residual, coefficients, out=residual)
        np.negative(residual, out=residual)
        report(iteration, value, float(np.sqrt(dot(residual, residual))))
        step = _find_step(design, loss, point, residual, tol * value)
        del residual
        d = step.coefficients.reshape(-1)
        along, length = dot(w, d), dot(d, d)
        size, point = _search(loss, point, scores, step, along, length)
        add_scaled(w, size, d)
        scores += size * step.scores
        value = point.value + dot(w, w) / 2
        if step.decrease <= tol * value:
            has_converged = True
            break
        del step, d
    return Fit(coefficients, point.intercept, value, iteration, has_converged)


@dataclass(frozen=True)
class Step:
    """A change of coefficients, the change of scores that it makes, and what it should gain."""

    coefficients: NDArray[np.float64]
    scores: Rows
    decrease: float


def _find_step(
    design: Design, loss: Loss, point: Point, residual: NDArray[np.float64], small: float
) -> Step:
    """Minimise the quadratic model at a point by preconditioned conjugate gradients.

    residual, the negative gradient, is overwritten. A decrease below `small` is trusted only after
    some steps.
    """
    scale = _precondition(design, loss, point)
    out, scores = np.zeros_like(residual), np.zeros_like(point.residuals)
    direction = np.divide(residual, scale)
    r, m, p, d = (v.reshape(-1) for v in (residual, scale, direction, out))
    norm, decrease = dot(r, p), 0.0
    first = norm
    for k in range(1, MOST_STEPS + 1):
        if not norm > 1e-30 * first:
            break
        gained = design.apply(direction)
        product = design.apply_transposed(point.curve(gained))
        np.add(product, direction, out=product)
        h = product.reshape(-1)
        size = norm / dot(p, h)
        scores += size * gained
        before, norm = norm, _advance(size, p, h, r, d, m)
        decrease += size * before / 2
        is_flat = k * size * before / 2 <= ENOUGH * decrease
        if is_flat and (decrease > small or k >= FEWEST_STEPS):
            break
        _turn(p, norm / before, h)
        del product, h
    return Step(out, scores, decrease)


def _precondition(design: Design, loss: Loss, point: Point) -> NDArray[np.float64]:
    """Return what the gradient is divided by."""
    scale = design.centred_squares(point.weights, centred=loss.has_intercept)
    np.multiply(scale, SHARE, out=scale)
    np.add(scale, 1, out=scale)
    return scale


def _advance(size: float, p: Vector, h: Vector, r: Vector, d: Vector, m: Vector) -> float:
    """Go along p; return the new squared norm of the residual, which is left divided in h."""
    norm = 0.0
    for p_part, h_part, r_part, d_part, m_part in blocks_of(p, h, r, d, m):
        h_part *= size
        r_part -= h_part
        np.multiply(p_part, size, out=h_part)
        d_part += h_part
        np.divide(r_part, m_part, out=h_part)
        norm += float(np.einsum("i,i->", r_part, h_part))
    return norm


def _turn(p: Vector, share: float, h: Vector) -> None:
    """Make h, plus a share of p, the next direction."""
    for p_part, h_part in blocks_of(p, h):
        p_part *= share
        p_part += h_part


def _search(
    loss: Loss, point: Point, scores: Rows, step: Step, along: float, length: float
) -> tuple[float, Point]:
    """Return how far to go, and the loss there; only rows are read.

    The slope rises along a step, because the objective is convex: Newton's method for its root,
    within bounds.
    """
    change = step.scores
    start: Any = point.intercept
    shift: Any = point.best_shift(change)
    slope = steep = dot(point.residuals, change) + along
    size, low, high = 0.0, 0.0, np.inf
    newer = point
    for trial in range(MOST_TRIALS):
        curvature = dot(change, newer.curve(change)) + length
        guess = size - slope / curvature if trial else 1.0
        if not low < guess < high:
            guess = 2 * low + 1 if np.isinf(high) else (low + high) / 2
        size = guess
        newer = loss.at(scores + size * change, start - size * shift)
        slope = dot(newer.residuals, change) + along + size * length
        if abs(slope) <= FLAT * abs(steep):
            break
        low, high = (size, high) if slope < 0 else (low, size)
    return size, newer


def require_finite(gradient: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the gradient; raise ValueError if it overflowed."""
    if not np.isfinite(dot(gradient, gradient)):
        raise ValueError(
            "Products of features are so large that the gradient is not finite: scale X, for "
            "example with sklearn.preprocessing.MaxAbsScaler, or lower the degree."
        )
    return gradient
