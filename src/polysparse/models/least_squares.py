"""Conjugate gradients for ridge regression, with the intercept always optimal."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from polysparse.models.objectives import SquaredErrors
from polysparse.models.preconditioners import Diagonal, Preconditioner, sketch_of
from polysparse.models.radau import RadauBound
from polysparse.models.solution import (
    EPS,
    LEAST_TOL,
    SLACK,
    End,
    Report,
    Solution,
    is_small,
    require_finite,
)
from polysparse.models.vectors import combine, dot, raise_shifted

Vector = NDArray[np.float64]

# After this many steps a sketch of the Hessian is worth its passes, and conjugate gradients are
# restarted. To a gap of 1e-6, a sketch of 100 vectors takes 195 and 79 steps on a9a with alpha 1
# and 10, and 340 with badly scaled columns; the diagonal alone 485, 194 and over 700.
MANY_STEPS = 20

# Without a penalty, nothing bounds the eigenvalues from below. Directions whose eigenvalue is less
# than this fraction of a column's are ignored.
NO_EFFECT = 1e-20

RECENT = 20  # a cycle ends after so many steps that gain less than rounding errors

N_VECTORS = 7  # of coefficients, in memory at the peak


def minimize(
    errors: SquaredErrors,
    alpha: float,
    *,
    tol: float,
    max_iter: int,
    report: Report,
    start: Vector | None = None,
) -> Solution:
    """Minimize the weighted sum of squared errors plus alpha times the squared coefficient norm.

    Conjugate gradients begin at the coefficients `start`, if they are better than 0.
    Conjugate gradients stop when their bound of the gap is below tol times the value. Then the
    residuals are computed from the coefficients, and if the bound holds there, it has converged.
    Otherwise conjugate gradients begin again there, as long as that helps.

    report(iteration, value, norm of the gradient) is called in each iteration.
    """
    solver = _Solver(errors, alpha, tol, max_iter, report)
    if start is not None:
        solver.begin_at(start)
    while True:
        solver.descend()
        end = solver.verify()
        if end is not None:
            break
    return Solution(solver.w, errors.intercept, solver.value, solver.gap, solver.iteration, end)


class _Solver:
    """What is kept between the cycles of conjugate gradients."""

    def __init__(
        self, errors: SquaredErrors, alpha: float, tol: float, max_iter: int, report: Report
    ) -> None:
        self.errors, self.alpha, self.n_jobs = errors, alpha, errors.n_jobs
        self.tol, self.max_iter, self.report = tol, max_iter, report
        self.value, diagonal = errors.start()
        require_finite(diagonal, self.n_jobs)
        # To a relative gap of 1e-6 on a9a, with alpha 0.1, 1 and 10, and 1 with badly scaled
        # columns, the diagonal to the power of 3/4 takes 955, 485, 195 and 1005 passes; the
        # diagonal itself 1085, 565, 233 and 1218; its square root 923, 432, 175 and over 1500.
        scale = raise_shifted(diagonal, alpha, self.n_jobs)
        self.preconditioner: Preconditioner = Diagonal(scale, self.n_jobs)
        self.least = self._least_eigenvalue(diagonal, scale)
        self.diagonal: Vector | None = diagonal
        self.w, self.p, self.divided = (np.zeros(len(diagonal)) for _ in range(3))
        self.best: Vector | None = None  # where this cycle began; None is 0
        self.residual: Vector | None = None  # half the negative gradient
        self.iteration, self.gap, self.start = 0, self.value, self.value

    def begin_at(self, w: Vector) -> None:
        """Begin at these coefficients, unless 0 is better."""
        self._go_to(w)
        if self.value < self.start:
            self.best = w.copy()
        else:
            self._go_to(None)

    def _least_eigenvalue(self, diagonal: Vector, scale: Vector) -> float:
        """Return a lower bound of the eigenvalues of the preconditioned Hessian.

        The Hessian is at least alpha. A sketch is at most the Hessian, and does not change that.
        """
        largest = float(scale.max(initial=0.0))
        if self.alpha > 0 or not largest > 0:
            return min(1.0, self.alpha / largest) if largest > 0 else 1.0
        own = diagonal > 0
        return NO_EFFECT * float((diagonal[own] / scale[own]).min(initial=1.0))

    def _precondition(self) -> None:
        """Replace the diagonal by a sketch, if that is worth its memory."""
        assert self.diagonal is not None
        sketch = sketch_of(self.errors.gram, self.diagonal, self.alpha)
        if sketch is not None:
            self.preconditioner = sketch
            self.least = self._least_eigenvalue(self.diagonal, sketch.roots[:, 0] ** 2)
        self.diagonal = None

    def descend(self) -> None:
        """Run conjugate gradients until the gap is small, or rounding errors dominate."""
        w, p, divided, n_jobs = self.w, self.p, self.divided, self.n_jobs
        self.began = value = self.value
        norm, step, self.bound = 0.0, 0.0, RadauBound(self.least)
        recent = deque([math.inf] * RECENT, maxlen=RECENT)
        while True:
            self.residual = self.errors.gradient(w, self.residual)
            combine(1.0, self.residual, -self.alpha, w, n_jobs)
            if self.iteration == MANY_STEPS - 1 and self.diagonal is not None:
                self._precondition()
                norm, self.bound = 0.0, RadauBound(self.least)
            before, norm = norm, self.preconditioner.divide(self.residual, divided)
            if before:
                self.bound.advance(step, norm / before)
            if not math.isfinite(value + norm):
                raise ValueError(
                    "y, or sample_weight, is so large that sums of squares are not finite: scale "
                    "it."
                )
            self.gap = self.bound.error(norm)
            if self.gap <= self.tol * value or self.iteration == self.max_iter:
                break
            combine(norm / before if before else 0.0, p, 1.0, divided, n_jobs)
            curvature = self.errors.curvature(p) + self.alpha * dot(p, p, n_jobs)
            step = norm / curvature if curvature > 0 else math.inf
            recent.append(step * norm)
            if not EPS * value < max(recent) or not step * norm <= value - EPS * self.began:
                break  # the decrease is less than rounding errors, or more than the value
            self.iteration += 1
            self.report(
                self.iteration, value, 2 * math.sqrt(dot(self.residual, self.residual, n_jobs))
            )
            self.errors.move(step)
            combine(1.0, w, step, p, n_jobs)
            value -= step * norm

    def verify(self) -> End | None:
        """Compute the value and the gap from the coefficients; return why to stop, or None."""
        self.value = self.errors.refresh(self.w) + self.alpha * dot(self.w, self.w, self.n_jobs)
        if not self.value <= self.began * (1 + LEAST_TOL):
            self._go_to(self.best)
            return self._stop("rounding")
        bound, rounding = min(self.value, SLACK * self._true_gap()), self._rounding()
        self.gap = bound + rounding
        # A value as small as the rounding errors of the targets counts as 0, its lower bound.
        is_zero = max(self.value, rounding / 100) <= self.errors.zero
        if is_zero or is_small(bound, rounding, self.tol, self.value):
            return "converged"
        if self.iteration == self.max_iter:
            return self._stop("max_iter")
        if self.began - self.value <= self.tol / 10 * self.value:
            if is_small(bound, rounding, max(self.tol, LEAST_TOL), self.value):
                return "converged"
            return self._stop("rounding")
        self.best = self.w.copy()
        return None

    def _true_gap(self) -> float:
        """Return a bound of the gap, given residuals that are computed from the coefficients."""
        assert self.residual is not None
        n_jobs = self.n_jobs
        gradient = self.errors.gradient(self.w, self.divided)
        combine(1.0, gradient, -self.alpha, self.w, n_jobs)
        squares = dot(gradient, gradient, n_jobs)
        combine(-1.0, self.residual, 1.0, gradient, n_jobs)
        error = self.preconditioner.divide(self.residual, self.p) / self.bound.least
        error = min(error, self.errors.drift)
        gap = math.inf
        if self.bound.is_reliable:
            gap = (math.sqrt(self.gap) + math.sqrt(error)) ** 2
        return min(gap, squares / self.alpha) if self.alpha > 0 else gap

    def _rounding(self) -> float:
        return self.errors.rounding(self.w, self.value)

    def _stop(self, end: End) -> End:
        """Return why the fit stops; go back to 0 if the value may be higher here than there."""
        if self.value + self._rounding() > self.start:
            self._go_to(None)
        return end

    def _go_to(self, w: Vector | None) -> None:
        """Go to these coefficients, or to 0."""
        self.w = np.zeros(len(self.w)) if w is None else w
        self.value = self.errors.refresh(self.w) + self.alpha * dot(self.w, self.w, self.n_jobs)
        self.gap = self.value + self._rounding()
