"""Newton's method for a loss of the scores plus half the squared norm of the coefficients.

Each step is found by conjugate gradients. Their products give the scores of the step too, so the
search along it reads rows alone: an iteration takes as many passes as conjugate gradients do, and
one and a half for the gradient and the preconditioner. Blocks of rows that are elsewhere take one
more: they are told of coefficients alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.objectives import LogLosses
from polysparse.models.preconditioners import Diagonal, Preconditioner, sketch_of
from polysparse.models.vectors import combine, dot, rescale

# The preconditioner is 1 - SHARE + SHARE * diagonal of the Hessian, about the means of columns. On
# a9a at C=0.1 and C=1 it takes 117 and 297 passes to a relative gap of 1e-6, with a slack of 0.3;
# not about the means 140 and 454. The square root of the diagonal takes 130 and 268, but is far
# behind if columns are badly scaled.
SHARE = 0.01

# If one step of Newton's takes so many of conjugate gradients, a sketch of the Hessian is worth its
# passes. With 64 vectors, which take the time of 29 passes, a9a takes 111, 207 and 512 passes at
# C=0.1, 1 and 10, and 370 at C=1 with badly scaled columns; without a sketch 129, 326, 673, 712.
MANY_STEPS = 15

# What conjugate gradients leave to gain is estimated by k times what the last of k steps gained.
# They end when that is a share of what all of them gained: MOST_SLACK at first, then SLACK times
# the change of curvature over the last iteration. A model that changes is not worth more.
SLACK = 0.5
LEAST_SLACK, MOST_SLACK = 0.01, 0.3

# If curvatures change by less than this, and after some steps, what is left is believed to be: k
# times the most that any of the last RECENT of k steps gained. Single steps may gain little while
# much is left: with features that are 100 away from 0, and C=100, the last step alone would end the
# fit at a gap of 2e-4. On a9a this takes 6% and 8% more passes.
SMALL_CHANGE = 0.1
FEWEST_STEPS = 10
RECENT = 3
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
    losses: LogLosses,
    coefficients: NDArray[np.float64],
    intercept: Any,
    *,
    tol: float,
    max_iter: int,
    report: Report,
) -> Fit:
    """Minimise losses plus half the squared norm of the coefficients, which are changed in place.

    It has converged when less than tol / 2 of the value is estimated to be left to gain, and
    curvatures hardly changed. report(iteration, value, norm of the gradient) is called for each
    iteration.
    """
    w, n_jobs = coefficients.reshape(-1), losses.n_jobs
    losses.begin(coefficients, intercept)
    value = losses.value + dot(w, w, n_jobs) / 2
    slack, small, has_converged = MOST_SLACK, 0.0, False
    sketch, n_steps = None, 0
    for iteration in range(1, max_iter + 1):
        residual, scale = losses.model()
        require_finite(residual, n_jobs)
        r = residual.reshape(-1)
        combine(-1.0, r, -1.0, w, n_jobs)
        report(iteration, value, float(np.sqrt(dot(r, r, n_jobs))))
        require_finite(scale, n_jobs)
        if sketch is None and n_steps >= MANY_STEPS:
            sketch = sketch_of(losses.gram, scale, 1.0)
        step = _find_step(losses, residual, sketch or _diagonal(scale, n_jobs), slack, small)
        n_steps = step.n_steps
        del residual, r, scale
        d = step.coefficients.reshape(-1)
        size = _search(losses, step, dot(w, d, n_jobs), dot(d, d, n_jobs))
        combine(1.0, w, size, d, n_jobs)
        curved = losses.move(coefficients)
        value = losses.value + dot(w, w, n_jobs) / 2
        if curved <= SMALL_CHANGE and step.left <= tol / 2 * value:
            has_converged = True
            break
        slack = min(MOST_SLACK, max(LEAST_SLACK, SLACK * curved))
        small = tol / 2 * value if curved <= SMALL_CHANGE else 0.0
        del step, d
    return Fit(coefficients, losses.intercept, value, iteration, has_converged)


@dataclass(frozen=True)
class Step:
    """A change of coefficients.

    `slope` is that of the objective at the start. `left` estimates how much lower the quadratic
    model is at its minimum; infinite if it is not known. `n_steps` were taken to find it.
    """

    coefficients: NDArray[np.float64]
    slope: float
    left: float
    n_steps: int


def _find_step(
    losses: LogLosses,
    residual: NDArray[np.float64],
    preconditioner: Preconditioner,
    slack: float,
    small: float,
) -> Step:
    """Minimise the quadratic model where losses are by preconditioned conjugate gradients.

    They end when what is left to gain is estimated to be `small`, or the share `slack` of what was
    gained. residual, the negative gradient, is overwritten.
    """
    out, direction = np.zeros(residual.shape), np.empty_like(residual)
    (r, p, d), n_jobs = (v.reshape(-1) for v in (residual, direction, out)), losses.n_jobs
    norm = preconditioner.divide(residual, direction)
    least, gained, product = 1e-30 * norm, 0.0, None
    gains = deque[float](maxlen=RECENT)
    for k in range(1, MOST_STEPS + 1):
        if not norm > least:
            return Step(out, -2 * gained, 0.0, k)
        product = losses.curve(direction, product)
        h = product.reshape(-1)
        combine(1.0, h, 1.0, p, n_jobs)
        size = norm / dot(p, h, n_jobs)
        losses.advance(size)
        gain = size * norm / 2
        combine(1.0, r, -size, h, n_jobs)
        combine(1.0, d, size, p, n_jobs)
        before, norm = norm, preconditioner.divide(residual, product)
        gained += gain
        gains.append(gain)
        left = k * max(gains)
        if (k >= FEWEST_STEPS) if left <= small else (k * gain <= slack * gained):
            break
        combine(norm / before, p, 1.0, h, n_jobs)
    return Step(out, -2 * gained, left if k >= FEWEST_STEPS else np.inf, k)


def _diagonal(scale: NDArray[np.float64], n_jobs: int | None) -> Diagonal:
    """Return the preconditioner of a diagonal of the Hessian, which is overwritten."""
    rescale(scale.reshape(-1), SHARE, 1.0, n_jobs)
    return Diagonal(scale, n_jobs)


def _search(losses: LogLosses, step: Step, along: float, length: float) -> float:
    """Return how far to go; only rows are read.

    The slope rises along a step, because the objective is convex: Newton's method for its root,
    within bounds.
    """
    losses.look_along(step.coefficients)
    low, high, next_size = 0.0, np.inf, 1.0
    for _ in range(MOST_TRIALS):
        size = next_size
        slope, curvature = losses.trial(size)
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
