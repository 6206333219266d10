"""Newton's method with conjugate gradients, for a loss plus half the squared coefficient norm.

Where sums over rows are cheap, quasi-Newton steps come first (`quasi_newton`): they took 70, 130
and 250 passes on a9a at C=0.1, 1 and 10, and Newton's method alone 148, 226 and 461. It is for
clusters, few columns, very many, coefficients without a penalty, and where those steps fail.

Conjugate gradients compute the scores of their directions, and so those of the step: the line
search reads rows alone. An iteration takes as many passes over the data as conjugate gradients do,
and one and a half for the gradient and the preconditioner. `recomputed_rows` takes one more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models import quasi_newton
from polysparse.models.line_search import Quadratic, search
from polysparse.models.objectives import Losses
from polysparse.models.penalties import Penalty, with_tiny
from polysparse.models.preconditioners import Diagonal, Preconditioner, Sketch, sketch_of
from polysparse.models.radau import RadauBound
from polysparse.models.solution import (
    EPS,
    EXACT,
    LEAST_TOL,
    SLACK,
    End,
    Report,
    Solution,
    is_small,
    require_finite,
)
from polysparse.models.vectors import combine, dot, rescale

# The preconditioner is 1 - DIAGONAL_SHARE + DIAGONAL_SHARE * diagonal of the Hessian, about the
# means of columns. On a9a at C=0.1 and C=1 it takes 117 and 297 passes to a relative gap of 1e-6,
# with a forcing term of 0.3; not about the means 140 and 454. The square root of the diagonal takes
# 130 and 268, but is far behind if columns are badly scaled.
DIAGONAL_SHARE = 0.01

# After a Newton step with this many iterations of conjugate gradients, a sketch of the Hessian is
# worth its passes. In the trials, a9a took 111, 207 and 512 passes at C=0.1, 1 and 10 with 64
# vectors, which take the time of 29 passes, and 370 at C=1 with badly scaled columns; without a
# sketch 129, 326, 673, 712.
MANY_CG_STEPS = 15

# After k steps of conjugate gradients, the remaining decrease of the quadratic model is estimated
# by k times the last decrease. They stop when that is less than a fraction (the forcing term) of
# the total decrease: MAX_FORCING at first, then FORCING times the change of curvature over the last
# iteration. A more accurate minimum of a model that changes is not worth its passes.
FORCING = 0.5
MIN_FORCING, MAX_FORCING = 0.1, 0.3

# If curvatures change by less than this, the quadratic model is good enough to stop by.
SMALL_CHANGE = 0.1
MAX_CG_STEPS = 1_000

FLAT = 0.1  # the line search ends when the slope is this fraction of the initial slope

NOTHING = 1e-14  # relative to the value at the start, what counts as no loss
SMALLER = 1e-3  # the factor of a tiny penalty that is compared with it
MOST_LOSS = 1e150  # of a loss like exponentials, whose derivatives are as large
MOVED = 0.05  # scores that move by more, without their tiny penalty, are not bounded

HIDDEN = 16 * EPS  # rounding may hide a decrease of this fraction of the value

N_VECTORS = 7  # of coefficients, in memory at the peak

# With so few columns, a fit ends by a bound. Where that takes more than MANY_ITERATIONS, as with
# columns that are far from 0, Newton steps have at least FEW_STEPS steps of conjugate gradients.
FEW_COLUMNS, FEW_STEPS, MANY_ITERATIONS = 1_000, 30, 8


def minimize(
    losses: Losses,
    coefficients: NDArray[np.float64],
    intercept: Any,
    *,
    tol: float,
    max_iter: int,
    report: Report,
    factors: NDArray[np.float64] | None = None,
) -> Solution:
    """Minimize the losses plus half the squared norm of the coefficients.

    `factors` are those of the squared coefficients of columns, 1 by default; see `penalties`. If a
    factor is 0 and the optimum is not finite, the solution ends "unbounded".

    It has converged when the gap is estimated to be below tol times the value, by the gradient at
    the solution, with scores that are computed from the coefficients. If they do not confirm what
    the last step promised, iteration goes on, as long as the value falls.

    report(iteration, value, norm of the gradient) is called in each iteration.
    """
    solver = Iterate(losses, coefficients, intercept, tol, factors)
    iteration, end = 0, None
    if solver.may_follow_secants:
        iteration, end = quasi_newton.descend(solver, max_iter, report)
    while end is None:
        norm = solver.differentiate()
        if solver.is_converged():
            end = "converged"
        elif iteration == max_iter:
            end = "max_iter"
        else:
            iteration += 1
            report(iteration, solver.value, norm)
            end = solver.step()
    return solver.solution(iteration, end)


class Iterate:
    """What is kept between Newton's iterations."""

    def __init__(
        self,
        losses: Losses,
        coefficients: NDArray[np.float64],
        intercept: Any,
        tol: float,
        factors: NDArray[np.float64] | None,
    ) -> None:
        self.losses, self.n_jobs, self.tol = losses, losses.n_jobs, tol
        self.coefficients = coefficients.copy()
        self.w = self.coefficients.reshape(-1)
        self.forcing, self.small, self.change = MAX_FORCING, 0.0, np.inf
        self.sketch: Sketch | None = None
        self.last: NewtonStep | None = None
        self.n_steps = 0
        self.squares_before = self.squares_at_refresh = np.inf
        losses.start(coefficients, intercept)
        if not (losses.loss.is_self_bounded or losses.value <= MOST_LOSS):
            raise ValueError(
                f"The loss is {losses.value:.3g} at the first coefficients, so large that its "
                "derivatives are not finite. Bring offsets and the logarithms of y closer to each "
                "other; or closer to 0, if fit_intercept=False."
            )
        self.is_free = np.zeros(0, bool)  # which coefficients have no penalty
        if factors is not None:
            per_column = self.w.size // max(len(factors), 1)
            self.is_free = np.repeat(factors == 0, per_column)
            factors = with_tiny(factors, losses.gradient_and_diagonal()[1])
        self.penalty = Penalty(factors, self.n_jobs)
        self.value = self._value()
        self.start = self.best = Best(coefficients, losses.intercept, self.value)
        self.is_fresh, self.rounding = True, 8 * EPS * self.value

    @property
    def may_follow_secants(self) -> bool:
        """Whether quasi-Newton steps may help."""
        is_large = len(self.w) > FEW_COLUMNS
        return is_large and self.losses.has_cheap_sums and not self.is_free.any()

    def _value(self) -> float:
        return float(self.losses.value + self.penalty.inner(self.w, self.w) / 2)

    def gradient(self) -> NDArray[np.float64]:
        """Return the gradient here, as one vector."""
        gradient = self.losses.gradient().reshape(-1)
        require_finite(gradient, self.n_jobs)
        self.penalty.add_to(gradient, 1.0, self.w)
        self.squares = self.penalty.inverse(gradient)
        return gradient

    def differentiate(self) -> float:
        """Compute the gradient, the preconditioner and a bound of the gap here.

        Returns the norm of the gradient.
        """
        residual, diagonal = self.losses.gradient_and_diagonal()
        require_finite(residual, self.n_jobs)
        require_finite(diagonal, self.n_jobs)
        r = residual.reshape(-1)
        combine(-1.0, r, -1.0, self.penalty.times(self.w), self.n_jobs)
        self.residual, self.squares = residual, self.penalty.inverse(r)
        factors = self.penalty.factors
        if self.sketch is None and self._is_slow():
            least = 1.0 if factors is None else float(factors.min())
            self.sketch = sketch_of(self.losses.gram, diagonal, least)
        if self.sketch is not None:
            self.preconditioner: Preconditioner = self.sketch
            largest = float(self.sketch.roots.max()) ** 2
        else:
            self.preconditioner = _diagonal_preconditioner(diagonal, factors, self.n_jobs)
            largest = float(diagonal.max(initial=1.0))
        self.least = 1 / max(1.0, largest)
        if factors is not None:
            scale = self.preconditioner.scale if self.sketch is None else self.sketch.scale
            self.least = min(1.0, float((factors.reshape(len(scale), -1).T / scale).min()))
        return float(np.sqrt(dot(r, r, self.n_jobs)))

    def _is_slow(self) -> bool:
        """Return whether the last step took long, and is not the last."""
        return (
            self.last is not None
            and self.last.n_cg_steps >= MANY_CG_STEPS
            and self.last.remaining > self.tol * self.value
        )

    def is_converged(self) -> bool:
        """Return whether the gap is small, with scores that are computed from the coefficients."""
        if not self._gap() <= self.tol * self.value:
            return False
        if not self.is_fresh:
            self.refresh()
            self.differentiate()
        return is_small(self._gap(), self.rounding, self.tol, self.value)

    def _gap(self) -> float:
        """Return an estimate of the gap: a bound, or what the last step promised if it holds."""
        gap = self.squares / 2
        if self.last is None or self.change > SMALL_CHANGE:
            return gap
        if len(self.w) > FEW_COLUMNS:
            scratch = np.empty_like(self.residual)
            norm = self.preconditioner.divide(self.residual, scratch)
            if norm <= 2 * self.last.norm:
                change = self.change * np.sqrt(-self.last.slope / 2)
                gap = min(gap, (np.sqrt(2 * self.last.remaining) + change) ** 2)
        return gap

    def is_known(self, path: NDArray[np.float64]) -> bool:
        """Return whether scores that were updated are as good as computed ones.

        `path` is how far each coefficient went: rounding errors are those of its scores.
        """
        if self.is_fresh:
            return True
        rounding = self.losses.rounding(path.reshape(self.coefficients.shape), self.value)
        if not rounding <= EXACT * self.value:
            return False
        self.is_fresh, self.rounding = True, rounding
        if self.value < self.best.value:
            self.best = Best(self.coefficients, self.losses.intercept, self.value)
        return True

    def refresh(self) -> None:
        """Compute the scores from the coefficients."""
        self.losses.start(self.coefficients, self.losses.intercept)
        self.value, self.is_fresh = self._value(), True
        self.rounding = self.losses.rounding(self.coefficients, self.value)
        if self.value < self.best.value:
            self.best = Best(self.coefficients.copy(), self.losses.intercept, self.value)

    def step(self) -> End | None:
        """Take a Newton step; return "rounding" if there is none that helps."""
        if self.squares > self.squares_before / 2:
            return self._stop_or_refresh()
        is_certified = len(self.w) <= FEW_COLUMNS
        step = _find_step(
            self.losses,
            self.residual,
            self.preconditioner,
            self.penalty,
            None if is_certified else self.least,
            self.forcing,
            self.small,
            FEW_STEPS if is_certified and self.n_steps > MANY_ITERATIONS else 1,
        )
        self.n_steps += 1
        del self.residual, self.preconditioner
        d = step.coefficients.reshape(-1)
        penalty = Quadratic.along(self.penalty, self.w, d)
        noise = max(HIDDEN * self.value, self.rounding)
        size = search(self.losses, step.coefficients, step.slope, self.value, noise, penalty, FLAT)
        if size == 0:
            return self._stop_or_refresh()
        # A decrease that rounding hides must show in the gradient.
        self.squares_before = self.squares if -step.slope <= noise else np.inf
        self.move(d, size)
        self.forcing = min(MAX_FORCING, max(MIN_FORCING, FORCING * self.change))
        self.small = self.tol / 2 * self.value if self.change <= SMALL_CHANGE else 0.0
        self.last = replace(step, coefficients=None)
        return None

    def move(self, d: NDArray[np.float64], size: float) -> None:
        """Take the step that the line search found, `size` times d."""
        combine(1.0, self.w, size, d, self.n_jobs)
        self.change = self.losses.move(self.coefficients)
        self.value, self.is_fresh = self._value(), False

    def _stop_or_refresh(self) -> End | None:
        """Stop, unless it may help to compute the scores from the coefficients."""
        if self.is_fresh or self.squares > self.squares_at_refresh / 2:
            gap, tol = self.squares / 2, max(self.tol, LEAST_TOL)
            return "converged" if is_small(gap, self.rounding, tol, self.value) else "rounding"
        self.squares_at_refresh = self.squares
        self.refresh()
        self.last, self.change, self.squares_before = None, np.inf, np.inf
        return None

    def solution(self, n_iter: int, end: End) -> Solution:
        """Return the best point, and how far it may be above the minimum."""
        if not self.is_fresh:
            self.refresh()
            self.differentiate()
        best = self.best
        if end == "rounding" and self.value + self.rounding > self.start.value:
            best = self.start  # the value may be higher than there
        if self.value > best.value or best is self.start:
            self.coefficients, self.w = best.coefficients, best.coefficients.reshape(-1)
            self.losses.intercept = best.intercept
            self.refresh()
            self.differentiate()
        gap = min(SLACK * self.squares / 2, self.value) + self.rounding
        if self.is_free.any():
            gap, end = self._without_tiny(gap, end)
        return Solution(self.coefficients, self.losses.intercept, self.value, gap, n_iter, end)

    def _without_tiny(self, gap: float, end: End) -> tuple[float, End]:
        """Leave out the tiny penalty of free coefficients; return the gap, and how the fit ended.

        If only that penalty keeps the optimum finite, a much smaller one moves it, and the scores
        of some rows with it: a Newton step tells. Another one, for the whole gradient, tells how
        much lower the loss is at its own minimum. A tiny penalty hides directions of even less
        curvature, so the gap that is returned is at least half of tol times the value.
        """
        free = np.where(self.is_free, self.w, 0.0)
        gradient, added = self.penalty.times(free), self.penalty.inner(free, free) / 2
        full, self.value = self.value, self.value - added
        is_attained = self.losses.loss.is_attained
        if is_attained and self.value <= NOTHING * self.start.value:  # 0, its lower bound
            return self.value + self.rounding, "converged"
        if end != "converged":
            return self.value + self.rounding, end
        if "preconditioner" not in vars(self):
            self.differentiate()
        most = self.value + self.rounding
        if not is_attained:
            step = self._step_without_tiny(gradient.copy())
            if self.losses.power_of_scores(step.coefficients) > MOVED**8:
                return most, "unbounded"
        decrease = -self._step_without_tiny(self.residual.reshape(-1) + gradient).slope / 2
        if decrease > max(self.tol, EXACT) * full:
            return most, "rounding"
        return min(max(gap + 2 * decrease, self.tol / 2 * self.value), most), "converged"

    def _step_without_tiny(self, residual: NDArray[np.float64]) -> NewtonStep:
        """Return a Newton step with a much smaller penalty of free coefficients.

        residual, the negative gradient, is overwritten.
        """
        assert self.penalty.factors is not None
        smaller = np.where(self.is_free, SMALLER, 1.0) * self.penalty.factors
        return _find_step(
            self.losses,
            residual.reshape(self.coefficients.shape),
            self.preconditioner,
            Penalty(smaller, self.n_jobs),
            None,
            SMALLER,
            0.0,
            FEW_STEPS,
        )


@dataclass(frozen=True)
class Best:
    """A point, with scores that were computed from the coefficients."""

    coefficients: NDArray[np.float64]
    intercept: Any
    value: float


@dataclass(frozen=True)
class NewtonStep:
    """A change of coefficients.

    Attributes
    ----------
    coefficients : ndarray of float64
        The change.
    slope : float
        Derivative of the objective along it, at the start.
    norm : float
        Squared norm of the gradient of the quadratic model after it, divided by the preconditioner.
    remaining : float
        Bound of how much lower the quadratic model is at its minimum.
    n_cg_steps : int
        Number of steps of conjugate gradients that found it.
    """

    coefficients: Any
    slope: float
    norm: float
    remaining: float
    n_cg_steps: int


def _find_step(
    losses: Losses,
    residual: NDArray[np.float64],
    preconditioner: Preconditioner,
    penalty: Penalty,
    least: float | None,
    forcing: float,
    small: float,
    least_steps: int,
) -> NewtonStep:
    """Minimize the quadratic model of the objective by preconditioned conjugate gradients.

    They stop when the remaining decrease is below `small`, or, after `least_steps`, when it is
    estimated to be below `forcing` times the decrease so far. `least` is the least eigenvalue of
    the preconditioned Hessian; without it, what remains is bounded by the gradient. residual, the
    negative gradient, is overwritten.
    """
    out, direction = np.zeros(residual.shape), np.empty_like(residual)
    (r, p, d), n_jobs = (v.reshape(-1) for v in (residual, direction, out)), losses.n_jobs
    norm = preconditioner.divide(residual, direction)
    stop, total, product, k = 1e-30 * norm, 0.0, None, 0
    bound = None if least is None else RadauBound(least)
    remaining = np.inf
    while norm > stop and k < MAX_CG_STEPS:
        product = losses.hessian_product(direction, product)
        h = product.reshape(-1)
        penalty.add_to(h, 1.0, p)
        curvature = dot(p, h, n_jobs)
        if not curvature > 0:
            break
        size, k = norm / curvature, k + 1
        decrease = size * norm / 2
        losses.add_to_step(size)
        combine(1.0, r, -size, h, n_jobs)
        combine(1.0, d, size, p, n_jobs)
        before, norm = norm, preconditioner.divide(residual, product)
        total += decrease
        if bound is None:
            remaining = penalty.inverse(r) / 2
        else:
            bound.advance(size, norm / before)
            remaining = bound.error(norm) / 2
        is_enough = k >= least_steps and k * decrease <= forcing * total
        if remaining <= small or (is_enough and remaining > 16 * small):
            break
        combine(norm / before, p, 1.0, h, n_jobs)
    return NewtonStep(out, -2 * total, norm, remaining, k)


def _diagonal_preconditioner(
    diagonal: NDArray[np.float64], factors: NDArray[np.float64] | None, n_jobs: int | None
) -> Diagonal:
    """Return the preconditioner for a diagonal of the Hessian, which is overwritten."""
    rescale(diagonal.reshape(-1), DIAGONAL_SHARE, 1.0 if factors is None else 0.0, n_jobs)
    if factors is not None:
        combine(1.0, diagonal.reshape(-1), 1.0, factors, n_jobs)
    return Diagonal(diagonal, n_jobs)
