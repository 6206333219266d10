"""Solvers for ridge regression, with the intercept always optimal.

A Krylov space whose vectors are kept has the solutions for all penalties. Where it has no room for
enough vectors, or there is no penalty, preconditioned conjugate gradients go on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from polysparse.models.krylov import KrylovSpace, most_vectors
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
    errors: SquaredErrors, alpha: float, *, tol: float, max_iter: int, report: Report
) -> Solution:
    """Minimize the weighted sum of squared errors plus alpha times the squared coefficient norm.

    A method stops when its bound of the gap is below tol times the value. Then the residuals are
    computed from the coefficients, and if the bound holds there, it has converged. Otherwise a
    method begins again there, as long as that helps.

    report(iteration, value, norm of the gradient) is called in each iteration.
    """
    path = minimize_path(errors, [alpha], tol=tol, max_iter=max_iter, report=report)
    return next(solution for _, solution in path)


def minimize_path(
    errors: SquaredErrors, alphas: Sequence[float], *, tol: float, max_iter: int, report: Report
) -> Iterator[tuple[int, Solution]]:
    """Minimize for each alpha, from the largest to the smallest, as `minimize` does.

    If one Krylov space serves several, the weakest penalty is verified first: its solution takes
    all vectors and rounds most. If it holds, the others are not computed from their coefficients
    again: that took a third of the time of 20 penalties on 80,000 rows of 20 ones.

    Yields
    ------
    int
        The position in alphas.
    Solution
        The solution.
    """
    order = sorted(range(len(alphas)), key=lambda i: -alphas[i])
    value, diagonal, means = errors.start()
    require_finite(diagonal, errors.n_jobs)
    own = np.array([float(alphas[i]) for i in order if alphas[i] > 0])
    space = _open_space(errors, value, own, len(diagonal))
    is_complete = space is not None and space.grow(
        tol, min(max_iter, most_vectors(len(diagonal))), report
    )

    def solver_for(place: int) -> _Solver:
        alpha = alphas[order[place]]
        return _Solver(errors, alpha, diagonal, value, tol, max_iter, report)

    w, last = np.zeros(len(diagonal)), len(own) - 1
    verified: Solution | None = None
    if len(own) > 1 and is_complete and space is not None:
        mean, weakest = errors.intercept, solver_for(last)
        weakest.project(space, last)
        if weakest.verify() == "converged":
            verified = weakest.run("converged")
        del weakest
    for place, i in enumerate(order):
        if verified is not None and place == last:
            space, w = None, verified.coefficients
            yield i, verified
            continue
        solver = solver_for(place)
        if verified is not None and space is not None and space.is_closed(place, tol):
            yield i, solver.trust(space, place, mean, means)
            continue
        solver.has_room = is_complete and place < len(own)
        end: End | None = None
        if space is not None and place < len(own):
            solver.project(space, place)
            space = None if place == len(own) - 1 else space  # frees it
            end = solver.verify()
        elif place:
            solver.start_at(w)
        yield i, solver.run(end)
        w = solver.w


def _open_space(
    errors: SquaredErrors, value: float, alphas: NDArray[np.float64], n_columns: int
) -> KrylovSpace | None:
    """Return the space that starts at 0, or None if it is not worth its memory, or empty."""
    if not (len(alphas) and most_vectors(n_columns)):
        return None
    residual = errors.gradient(np.zeros(n_columns), None)
    squares = dot(residual, residual, errors.n_jobs)
    _require_finite_value(value + squares)
    return KrylovSpace(errors, residual, value, alphas) if squares > 0 else None


def _require_finite_value(value: float) -> None:
    if not math.isfinite(value):
        raise ValueError(
            "y, or sample_weight, is so large that sums of squares are not finite: scale it."
        )


class _Solver:
    """What is kept between the cycles of a method."""

    def __init__(
        self,
        errors: SquaredErrors,
        alpha: float,
        diagonal: Vector,
        value: float,
        tol: float,
        max_iter: int,
        report: Report,
    ) -> None:
        self.errors, self.alpha, self.n_jobs = errors, alpha, errors.n_jobs
        self.tol, self.max_iter, self.report = tol, max_iter, report
        self.value = self.start = self.gap = self.began = value
        self.diagonal: Vector | None = diagonal
        self.preconditioner: Preconditioner | None = None  # of conjugate gradients, once they run
        self.has_room = False  # whether a Krylov space sufficed, so that another one may
        self.is_reliable = True
        self.w = np.zeros(len(diagonal))
        self.best: Vector | None = None  # where this cycle began; None is 0
        self.residual: Vector | None = None  # half the negative gradient
        self.p: Vector | None = None
        self.divided: Vector | None = None
        self.iteration = 0

    def start_at(self, w: Vector) -> None:
        """Begin at these coefficients."""
        self.w, self.best = w.copy(), w.copy()
        self.value = self.errors.refresh(w) + self.alpha * dot(w, w, self.n_jobs)

    def run(self, end: End | None) -> Solution:
        """Run cycles until one of them is the last."""
        while end is None:
            if self.has_room:
                self._search_krylov_space()
            else:
                self.descend()
            end = self.verify()
        return Solution(self.w, self.errors.intercept, self.value, self.gap, self.iteration, end)

    def trust(self, space: KrylovSpace, place: int, mean: float, means: Vector | None) -> Solution:
        """Return the best point of a Krylov space, with the value and the gap that are known there.

        `mean` is that of the targets, and `means` those of columns if there is an intercept.
        """
        self.project(space, place)
        self.value = float(space.values[place])
        self.errors.intercept = 0.0 if means is None else mean - dot(means, self.w, self.n_jobs)
        self.gap += self._rounding()
        intercept = self.errors.intercept
        return Solution(self.w, intercept, self.value, self.gap, self.iteration, "converged")

    def _search_krylov_space(self) -> None:
        """Go to the best point of a new Krylov space."""
        residual = self.errors.gradient(self.w, None)
        combine(1.0, residual, -self.alpha, self.w, self.n_jobs)
        if not dot(residual, residual, self.n_jobs) > 0:
            self.has_room = False
            return
        space = KrylovSpace(self.errors, residual, self.value, np.array([self.alpha]))
        most = min(self.max_iter - self.iteration, most_vectors(len(self.w)))
        self.has_room = space.grow(self.tol, most, self._report_later)
        self.project(space, 0)

    def _report_later(self, iteration: int, value: float, gradient: float) -> None:
        self.report(self.iteration + iteration, value, gradient)

    def project(self, space: KrylovSpace, place: int) -> None:
        """Go to the best point of a Krylov space that starts here."""
        self.began = self.value
        self.residual = space.add_solution(place, self.w)
        self.gap = float(space.gaps[place])
        self.iteration += int(space.sizes[place])
        self.is_reliable = space.is_reliable(place)

    def _prepare(self) -> None:
        """Prepare conjugate gradients."""
        assert self.diagonal is not None
        # To a relative gap of 1e-6 on a9a, with alpha 0.1, 1 and 10, and 1 with badly scaled
        # columns, the diagonal to the power of 3/4 takes 955, 485, 195 and 1005 passes; the
        # diagonal itself 1085, 565, 233 and 1218; its square root 923, 432, 175 and over 1500.
        scale = raise_shifted(self.diagonal, self.alpha, self.n_jobs)
        self.preconditioner = Diagonal(scale, self.n_jobs)
        self.least = self._least_eigenvalue(self.diagonal, scale)
        self.p, self.divided = np.zeros_like(scale), np.zeros_like(scale)

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
        if self.preconditioner is None:
            self._prepare()
        assert self.preconditioner is not None
        assert self.p is not None
        assert self.divided is not None
        w, p, divided, n_jobs = self.w, self.p, self.divided, self.n_jobs
        self.began = value = self.value
        norm, step, self.bound = 0.0, 0.0, RadauBound(self.least)
        recent = deque([math.inf] * RECENT, maxlen=RECENT)
        while True:
            self.residual = self.errors.gradient(w, self.residual)
            combine(1.0, self.residual, -self.alpha, w, n_jobs)
            if self.iteration >= MANY_STEPS - 1 and self.diagonal is not None:
                self._precondition()
                norm, self.bound = 0.0, RadauBound(self.least)
            before, norm = norm, self.preconditioner.divide(self.residual, divided)
            if before:
                self.bound.advance(step, norm / before)
            _require_finite_value(value + norm)
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
        self.is_reliable = self.bound.is_reliable

    def verify(self) -> End | None:
        """Compute the value and the gap from the coefficients; return why to stop, or None."""
        self.value = self.errors.refresh(self.w) + self.alpha * dot(self.w, self.w, self.n_jobs)
        # Conjugate gradients, which see residuals, go on where rounding errors stop a Krylov space.
        is_last = self.preconditioner is not None
        if not self.value <= self.began * (1 + LEAST_TOL):
            self._go_to(self.best)
            self.has_room = False
            return self._stop("rounding") if is_last else None
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
            if is_last:
                return self._stop("rounding")
            self.has_room = False
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
        gap = math.inf
        if self.is_reliable:
            error = self._effect(self.residual)
            gap = (math.sqrt(self.gap) + math.sqrt(error)) ** 2
        return min(gap, squares / self.alpha) if self.alpha > 0 else gap

    def _effect(self, residual: Vector) -> float:
        """Return a bound of how far the value is from where this part of the residual leads."""
        if self.preconditioner is None:
            return dot(residual, residual, self.n_jobs) / self.alpha
        assert self.p is not None
        error = self.preconditioner.divide(residual, self.p) / self.bound.least
        return min(error, self.errors.drift)

    def _rounding(self) -> float:
        return self.errors.rounding(self.w, self.value)

    def _stop(self, end: End) -> End:
        """Return why the fit stops; go back to 0 if the value may be higher here than there."""
        if self.value + self._rounding() > self.start:
            self._go_to(None)
        return end

    def _go_to(self, w: Vector | None) -> None:
        """Go to these coefficients, or to 0."""
        self.w = np.zeros(len(self.w)) if w is None else w.copy()
        self.value = self.errors.refresh(self.w) + self.alpha * dot(self.w, self.w, self.n_jobs)
        self.gap = self.value + self._rounding()
