"""Newton's method with conjugate gradients, for a loss plus half the squared coefficient norm.

Conjugate gradients compute the scores of their directions, and so those of the step: the line
search reads rows alone. An iteration takes as many passes over the data as conjugate gradients do,
and one and a half for the gradient and the preconditioner. `recomputed_rows` takes one more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.objectives import Losses
from polysparse.models.preconditioners import Diagonal, Preconditioner, sketch_of
from polysparse.models.vectors import combine, dot, rescale

# The preconditioner is 1 - DIAGONAL_SHARE + DIAGONAL_SHARE * diagonal of the Hessian, about the
# means of columns. On a9a at C=0.1 and C=1 it takes 117 and 297 passes to a relative gap of 1e-6,
# with a forcing term of 0.3; not about the means 140 and 454. The square root of the diagonal takes
# 130 and 268, but is far behind if columns are badly scaled.
DIAGONAL_SHARE = 0.01

# After a Newton step with this many iterations of conjugate gradients, a sketch of the Hessian is
# worth its passes. With 64 vectors, which take the time of 29 passes, a9a takes 111, 207 and 512
# passes at C=0.1, 1 and 10, and 370 at C=1 with badly scaled columns; without a sketch 129, 326,
# 673, 712.
MANY_CG_STEPS = 15

# After k steps of conjugate gradients, the remaining decrease of the quadratic model is estimated
# by k times the last decrease. They stop when that is less than a fraction (the forcing term) of
# the total decrease: MAX_FORCING at first, then FORCING times the change of curvature over the last
# iteration. A more accurate minimum of a model that changes is not worth its passes.
FORCING = 0.5
MIN_FORCING, MAX_FORCING = 0.01, 0.3

# If curvatures change by less than SMALL_CHANGE, and after MIN_CG_STEPS, convergence is tested with
# k times the largest of the last RECENT decreases. Single steps may gain little while much is left:
# with features that are 100 away from 0, and C=100, the last step alone would end the fit at a gap
# of 2e-4. On a9a this takes 6% and 8% more passes.
SMALL_CHANGE = 0.1
MIN_CG_STEPS = 10
RECENT = 3
MAX_CG_STEPS = 1_000

# The line search ends when the slope is this fraction of the initial slope.
FLAT = 0.1
MAX_TRIALS = 30

N_VECTORS = 7  # of coefficients, in memory at the peak


@dataclass(frozen=True)
class Solution:
    """What a solver found."""

    coefficients: NDArray[np.float64]
    intercept: Any
    value: float
    n_iter: int
    has_converged: bool


Report = Callable[[int, float, float], None]


def minimize(
    losses: Losses,
    coefficients: NDArray[np.float64],
    intercept: Any,
    *,
    tol: float,
    max_iter: int,
    report: Report,
) -> Solution:
    """Minimize the losses plus half the squared norm of the coefficients, changed in place.

    It has converged when the remaining decrease is estimated to be below tol / 2 times the value
    and curvatures hardly changed. report(iteration, value, norm of the gradient) is called in each
    iteration.
    """
    w, n_jobs = coefficients.reshape(-1), losses.n_jobs
    losses.start(coefficients, intercept)
    value = losses.value + dot(w, w, n_jobs) / 2
    forcing, small, has_converged = MAX_FORCING, 0.0, False
    sketch, n_cg_steps = None, 0
    for iteration in range(1, max_iter + 1):
        residual, diagonal = losses.gradient_and_diagonal()
        require_finite(residual, n_jobs)
        r = residual.reshape(-1)
        combine(-1.0, r, -1.0, w, n_jobs)
        report(iteration, value, float(np.sqrt(dot(r, r, n_jobs))))
        require_finite(diagonal, n_jobs)
        if sketch is None and n_cg_steps >= MANY_CG_STEPS:
            sketch = sketch_of(losses.gram, diagonal, 1.0)
        preconditioner = sketch or _diagonal_preconditioner(diagonal, n_jobs)
        step = _find_step(losses, residual, preconditioner, forcing, small)
        n_cg_steps = step.n_cg_steps
        del residual, r, diagonal, preconditioner
        d = step.coefficients.reshape(-1)
        size = _line_search(losses, step, dot(w, d, n_jobs), dot(d, d, n_jobs))
        combine(1.0, w, size, d, n_jobs)
        change = losses.move(coefficients)
        value = losses.value + dot(w, w, n_jobs) / 2
        if change <= SMALL_CHANGE and step.remaining <= tol / 2 * value:
            has_converged = True
            break
        forcing = min(MAX_FORCING, max(MIN_FORCING, FORCING * change))
        small = tol / 2 * value if change <= SMALL_CHANGE else 0.0
        del step, d
    return Solution(coefficients, losses.intercept, value, iteration, has_converged)


@dataclass(frozen=True)
class NewtonStep:
    """A change of coefficients.

    Attributes
    ----------
    coefficients : ndarray of float64
        The change.
    slope : float
        Derivative of the objective along it, at the start.
    remaining : float
        Estimate of how much lower the quadratic model is at its minimum; infinite if unknown.
    n_cg_steps : int
        Number of steps of conjugate gradients that found it.
    """

    coefficients: NDArray[np.float64]
    slope: float
    remaining: float
    n_cg_steps: int


def _find_step(
    losses: Losses,
    residual: NDArray[np.float64],
    preconditioner: Preconditioner,
    forcing: float,
    small: float,
) -> NewtonStep:
    """Minimize the quadratic model of the objective by preconditioned conjugate gradients.

    They stop when the remaining decrease is estimated to be below `small`, or below `forcing` times
    the decrease so far. residual, the negative gradient, is overwritten.
    """
    out, direction = np.zeros(residual.shape), np.empty_like(residual)
    (r, p, d), n_jobs = (v.reshape(-1) for v in (residual, direction, out)), losses.n_jobs
    norm = preconditioner.divide(residual, direction)
    least, total, product = 1e-30 * norm, 0.0, None
    recent = deque[float](maxlen=RECENT)
    for k in range(1, MAX_CG_STEPS + 1):
        if not norm > least:
            return NewtonStep(out, -2 * total, 0.0, k)
        product = losses.hessian_product(direction, product)
        h = product.reshape(-1)
        combine(1.0, h, 1.0, p, n_jobs)
        size = norm / dot(p, h, n_jobs)
        losses.add_to_step(size)
        decrease = size * norm / 2
        combine(1.0, r, -size, h, n_jobs)
        combine(1.0, d, size, p, n_jobs)
        before, norm = norm, preconditioner.divide(residual, product)
        total += decrease
        recent.append(decrease)
        remaining = k * max(recent)
        if (k >= MIN_CG_STEPS) if remaining <= small else (k * decrease <= forcing * total):
            break
        combine(norm / before, p, 1.0, h, n_jobs)
    return NewtonStep(out, -2 * total, remaining if k >= MIN_CG_STEPS else np.inf, k)


def _diagonal_preconditioner(diagonal: NDArray[np.float64], n_jobs: int | None) -> Diagonal:
    """Return the preconditioner for a diagonal of the Hessian, which is overwritten."""
    rescale(diagonal.reshape(-1), DIAGONAL_SHARE, 1.0, n_jobs)
    return Diagonal(diagonal, n_jobs)


def _line_search(losses: Losses, step: NewtonStep, along: float, length: float) -> float:
    """Return the size of the step; only rows are read.

    The objective is convex, so its slope increases along the step: Newton's method for the root of
    the slope, within a bracket. The penalty's slope is `along + size * length`.
    """
    losses.start_line_search(step.coefficients)
    low, high, next_size = 0.0, np.inf, 1.0
    for _ in range(MAX_TRIALS):
        size = next_size
        slope, curvature = losses.evaluate_step(size)
        slope += along + size * length
        if abs(slope) <= FLAT * abs(step.slope):
            break
        low, high = (size, high) if slope < 0 else (low, size)
        next_size = size - slope / (curvature + length)
        if not low < next_size < high:
            next_size = 2 * low + 1 if np.isinf(high) else (low + high) / 2
    return size


def require_finite(sums: NDArray[np.float64], n_jobs: int | None) -> None:
    """Raise ValueError if sums over rows, or their squares, are not finite."""
    flat = sums.reshape(-1)
    if not np.isfinite(dot(flat, flat, n_jobs)):
        raise ValueError(
            "Products of features are so large that sums of their squares are not finite: scale X, "
            "for example with sklearn.preprocessing.MaxAbsScaler, or lower the degree."
        )
