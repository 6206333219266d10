"""Quasi-Newton steps, each of which takes one pass over the data.

They are the first choice where sums over rows are cheap: see `newton`, which goes on where they do
not help.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.line_search import Quadratic, search
from polysparse.models.recent_secants import RecentSecants
from polysparse.models.secants import Secants
from polysparse.models.solution import EPS, End, Report, is_small, require_finite

Vector = NDArray[np.float64]

# Vectors that are kept, and the memory they may take: as much as the three tables of a sketch. With
# 30, 60, 100 and 400 pairs, L-BFGS takes 276, 232, 184 and 151 passes on a9a at C=1.
MOST_VECTORS, FEWEST_VECTORS = 256, 16
MOST_BYTES = 3 * 2**25

# The bound of the gap takes this many of the last secants. With 2, 10, 20 and 50 of them it is 1.9,
# 1.6, 1.55 and 1.5 times the gap on rare positives at C=1; with all of them, in the metric of the
# steps, it was 3.7 times the gap.
MOST_RECENT = 16

# The metric is the square root of the Hessian's diagonal, plus the penalty: with it a9a, one-hot
# columns, rare positives and separable classes take 151, 82, 50 and 28 passes at C=1; without 150,
# 95, 55 and 39; with the diagonal itself one-hot columns take 123. If there are fewer rows than
# this share of the coefficients, most eigenvalues are the penalty, and the metric would spread
# them: 300 rows of 80,600 columns take 10 passes without it and 28 with it.
MANY_COLUMNS = 0.25

# If the last step was longer or shorter than expected by more than this factor, the bound of the
# gap is not trusted.
MOST_SURPRISE = 4.0

STEPS_AT_A_TIME = 20  # are one iteration

# The line search ends when the slope is this fraction of the initial slope. With 0.5, 0.3, 0.1 and
# 0.02, agaricus takes 33, 30, 33 and 42 passes at C=1, and text 9, 8, 8 and 8.
FLAT = 0.3

HIDDEN = 16 * EPS  # rounding may hide a decrease of this fraction of the value


Model = tuple[Secants, RecentSecants | None]  # of the Hessian; the second one if that has no bound


@dataclass
class Memory:
    """What a fit leaves to the next one along a path of penalties, which starts where it ended.

    Attributes
    ----------
    model : tuple, or None
        What is known of the Hessian, or None if quasi-Newton steps did not reach the end.
    factor : float
        How many times as much the losses count in the next fit.
    """

    model: Model | None = None
    factor: float = 1.0

    def recall(self, penalty: Vector | float) -> Model | None:
        """Return the model for the next fit, whose penalty has this diagonal; forget it here."""
        model, self.model = self.model, None
        if model is not None:
            secants, recent = model
            secants.reweight(self.factor, penalty)
            if recent is not None:
                recent.reweight(self.factor)
        return model


def secants_of(at: Any) -> Model | None:
    """Return a model of the Hessian, with the secants of the last fit along a path, or without.

    None if it is not worth its memory.
    """
    factors, memory = at.penalty.factors, at.losses.memory
    if memory is not None and memory.model is not None:
        known: Model | None = memory.recall(1.0 if factors is None else factors)
        return known
    n = at.w.size
    room = MOST_BYTES // (8 * max(n, 1))
    if room < FEWEST_VECTORS:
        return None
    if at.losses.rows.describe()[0] < MANY_COLUMNS * n:
        scale = np.ones(n) if factors is None else factors
        return Secants(scale, min(MOST_VECTORS, room), at.n_jobs), None
    penalty = 1.0 if factors is None else factors
    scale = at.losses.typical_diagonal().reshape(-1)
    require_finite(scale, at.n_jobs)
    scale += penalty
    scale *= penalty
    np.sqrt(scale, out=scale)
    n_recent = min(MOST_RECENT, room // 8)
    capacity = min(MOST_VECTORS, room - 2 * n_recent)
    return Secants(scale, capacity, at.n_jobs), RecentSecants(factors, n, n_recent, at.n_jobs)


def descend(at: Any, max_iter: int, report: Report) -> tuple[int, End | None]:
    """Take quasi-Newton steps; return the number of iterations, and how the fit ended.

    `at`, a `newton.Iterate`, is moved. The end is None if the steps do not lead further, so that
    Newton's method has to go on.
    """
    found = secants_of(at)
    if found is None:
        return 0, None
    secants, recent = found
    bound = recent or secants
    path = np.abs(at.w)  # how far each coefficient went
    gradient, direction = at.gradient(), np.empty_like(at.w)
    step, n_steps, most_steps = None, 0, STEPS_AT_A_TIME * (max_iter - max_iter // 2)
    while True:
        norm = float(np.sqrt(at.squares))
        drift = at.change if step else 0.0
        if recent is not None:
            recent.observe(gradient, direction, step, drift)
        secants.observe(gradient, step, drift)
        slope = secants.find_direction(direction)
        is_trusted = step is None or 1 / MOST_SURPRISE <= step <= MOST_SURPRISE
        if is_trusted and -slope / 2 <= at.tol * at.value and bound.gap() <= at.tol * at.value:
            if at.is_known(path):
                is_done = is_small(bound.gap(), at.rounding, at.tol, at.value)
                if at.losses.memory is not None and is_done:
                    at.losses.memory.model = found
                return _iterations(n_steps), "converged" if is_done else None
            at.refresh()
            path = np.abs(at.w)
            gradient, step = at.gradient(), None
            continue
        if n_steps % STEPS_AT_A_TIME == 0:
            if n_steps == most_steps:
                return _iterations(n_steps), None
            report(_iterations(n_steps) + 1, at.value, norm)
        step = _step(at, direction, slope)
        if not step:
            return _iterations(n_steps), None
        n_steps += 1
        path += np.abs(step * direction)
        gradient = at.gradient()


def _iterations(n_steps: int) -> int:
    return -(-n_steps // STEPS_AT_A_TIME)


def _step(at: Any, direction: Vector, slope: float) -> float:
    """Step along a direction; return the size of the step, 0 if the value does not fall."""
    if not (np.isfinite(slope) and -slope > HIDDEN * at.value):
        return 0.0
    penalty = Quadratic.along(at.penalty, at.w, direction)
    table = direction.reshape(at.coefficients.shape)
    size = search(at.losses, table, slope, at.value, 0.0, penalty, FLAT)
    if size:
        at.move(direction, size)
    return size
