"""Conjugate gradients for penalised least squares, with the intercept always at its best."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from polysparse.models.newton import FEWEST_STEPS, Fit, Report, require_finite
from polysparse.models.objectives import SquaredErrors
from polysparse.models.vectors import Vector, add_scaled, blocks_of, dot

# The preconditioner is this power of the diagonal of the Hessian. To a relative gap of 1e-6 on a9a,
# with alpha 0.1, 1 and 10, and 1 with badly scaled columns, it takes 955, 485, 195 and 1005 passes;
# the diagonal itself 1085, 565, 233 and 1218; its square root 923, 432, 175 and over 1500.
POWER = 0.75

# If columns are badly scaled or nearly dependent, single steps gain little while much is left. With
# features that are 300 away from 0, the last step alone would end it at a gap of 1e-3.
RECENT = 5

VECTORS = 5  # of coefficients, in memory at the peak


def minimise(
    errors: SquaredErrors, alpha: float, *, tol: float, max_iter: int, report: Report
) -> Fit:
    """Minimise the weighted sum of squared errors plus alpha times the squared norm.

    It has converged when less than tol / 2 of the value is estimated to be left to gain: k times
    the most that any of the last RECENT of k steps gained. report(iteration, value, norm of the
    gradient) is called for each iteration.
    """
    value, scale = errors.begin()
    _precondition(scale, alpha)
    w = np.zeros(len(scale))
    p = np.zeros(len(scale))
    norm, first, has_converged = 0.0, 0.0, False
    rounding, gains, residual = 1e-15 * value, deque[float](maxlen=RECENT), None
    for iteration in range(1, max_iter + 1):
        residual = errors.gradient(w, residual)
        before, (norm, square) = norm, _take_penalty(residual, alpha, w, scale)
        first = first or norm
        if not math.isfinite(value + norm):
            raise ValueError(
                "y, or sample_weight, is so large that sums of squares are not finite: scale it."
            )
        report(iteration, value, 2 * float(np.sqrt(square)))
        if not norm > 1e-30 * first:
            has_converged = True
            break
        _turn(p, norm / before if before else 0.0, residual, scale)
        length = errors.length(p) + alpha * dot(p, p)
        if not length > 0:  # as if there was nothing to gain: squares are below every float
            has_converged = True
            break
        size = norm / length
        errors.move(size)
        add_scaled(w, size, p)
        value -= size * norm
        gains.append(size * norm)
        left = iteration * max(gains)
        if iteration >= FEWEST_STEPS and left <= max(tol / 2 * value, rounding):
            has_converged = True
            break
    value = errors.end(w) + alpha * dot(w, w)
    return Fit(w, errors.intercept, value, iteration, has_converged)


def _precondition(scale: Vector, alpha: float) -> None:
    """Make the diagonal of the Hessian what the gradient is divided by: a power of it."""
    require_finite(scale)
    np.add(scale, alpha, out=scale)
    scale[scale <= 0] = 1
    np.power(scale, POWER, out=scale)


def _take_penalty(residual: Vector, alpha: float, w: Vector, scale: Vector) -> tuple[float, float]:
    """Subtract alpha * w; return the squared norms with and without the preconditioner."""
    norm = square = 0.0
    for r_part, w_part, m_part in blocks_of(residual, w, scale):
        r_part -= alpha * w_part
        norm += float(np.einsum("i,i->", r_part, r_part / m_part))
        square += float(np.einsum("i,i->", r_part, r_part))
    return norm, square


def _turn(p: Vector, share: float, residual: Vector, scale: Vector) -> None:
    """Make the residual, divided, plus a share of p, the next direction."""
    for p_part, r_part, m_part in blocks_of(p, residual, scale):
        p_part *= share
        p_part += r_part / m_part
