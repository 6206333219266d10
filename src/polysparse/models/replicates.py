"""Refits of one loss with many weights of the rows, several at a time.

Refits differ in the weights of rows alone, and their solutions are near each other: they start from
the coefficients of one fit, share its preconditioner, and conjugate gradients multiply their
directions side by side. A refit ends when its objective is close to its minimum compared to how far
the first coefficients were above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.design import Design
from polysparse.models.preconditioners import Preconditioner, sketch_of
from polysparse.models.vectors import center, raise_shifted

Table = NDArray[np.float64]  # of shape (n_columns, k) or (n_rows, k), a column for each refit

FORCING = 0.1  # conjugate gradients end at this fraction of the decrease of a Newton step
ENOUGH = 1e-4  # the fraction of the promised decrease that a step must keep
MAX_NEWTON_STEPS, MAX_CG_STEPS, MAX_HALVINGS = 30, 500, 30


@dataclass(frozen=True)
class WeightedLosses:
    """The losses of all rows with the weights of one refit.

    Attributes
    ----------
    of_rows : RowLosses
        The losses.
    has_intercept : bool
        Whether there is an intercept.
    intercept_penalty : float
        What half its square is multiplied by.
    """

    of_rows: Any
    has_intercept: bool
    intercept_penalty: float

    def value(self, scores: Any, intercept: float) -> float:
        """Return the sum of the losses, with the penalty of the intercept."""
        value = float(self.of_rows.sums(scores, intercept).value)
        return value + self.intercept_penalty * intercept * intercept / 2


@dataclass(frozen=True)
class Start:
    """Where refits start, and what they share.

    Attributes
    ----------
    coefficients : ndarray of shape (n_columns,)
        The coefficients of the fit.
    intercept : float
        Its intercept.
    scores : ndarray of shape (n_rows,)
        The expansion times the coefficients.
    factors : ndarray of shape (n_columns,)
        The factors of the penalty: see `penalties`. Positive.
    preconditioner : Preconditioner
        What all refits divide their gradients by, tables of shape (n_columns, k).
    """

    coefficients: NDArray[np.float64]
    intercept: float
    scores: NDArray[np.float64]
    factors: NDArray[np.float64]
    preconditioner: Preconditioner


class SharedDiagonal:
    """A diagonal that each column of a table is divided by."""

    def __init__(self, scale: NDArray[np.float64]) -> None:
        self.scale = scale[:, np.newaxis]

    def divide(self, residual: Table, out: Table) -> float:
        """Write the residual, divided, to `out`; return their inner product."""
        np.divide(residual, self.scale, out=out)
        return float(np.einsum("ck,ck->", residual, out))


class Curvature:
    """The Hessian of the loss at the fit, given the curvatures of rows."""

    def __init__(self, design: Design, curvature: NDArray[np.float64], is_centered: bool) -> None:
        self.design, self.curvature, self.is_centered = design, curvature, is_centered
        self.total = max(float(curvature.sum()), np.finfo(np.float64).tiny)
        self.sums = design.apply_transposed(curvature) if is_centered else None

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal."""
        squares = self.design.sum_squares(self.curvature)
        if self.sums is not None:
            center(squares, self.sums.copy(), self.total, self.design.n_jobs)
        return squares

    def gram(self, directions: Table) -> Table:
        """Return its products with directions."""
        products = self.design.gram(self.curvature, directions)
        if self.sums is not None:
            along = np.einsum("c,ck->k", self.sums, directions)
            products -= self.sums[:, np.newaxis] * (along / self.total)
        return products

    def preconditioner(
        self, diagonal: NDArray[np.float64], factors: NDArray[np.float64]
    ) -> Preconditioner:
        """Return what refits are preconditioned by.

        On a9a at C=1, a refit takes 119 passes with a sketch and 242 with the diagonal.
        """
        sketch = sketch_of(self.gram, diagonal, float(factors.min()))
        if sketch is not None:
            return sketch
        return SharedDiagonal(raise_shifted(diagonal + factors, 0.0, self.design.n_jobs))


@dataclass
class Refits:
    """The state of a few refits.

    Attributes
    ----------
    coefficients : ndarray of shape (n_columns, k)
        Their coefficients.
    intercepts : ndarray of shape (k,)
        Their intercepts.
    is_done : ndarray of bool of shape (k,)
        Which of them have converged.
    """

    coefficients: Table
    intercepts: NDArray[np.float64]
    is_done: NDArray[np.bool_]


def refit(
    design: Design, start: Start, losses: list[WeightedLosses], tol: float, is_quadratic: bool
) -> Refits:
    """Minimize each of the losses plus half the squared coefficients times their factors.

    A refit has converged when it is estimated to be above its minimum by less than `tol` times how
    far the start was.
    """
    return _Block(design, start, losses, tol, is_quadratic).run()


class _Block:
    """A few refits, whose vectors are side by side in tables."""

    def __init__(
        self,
        design: Design,
        start: Start,
        losses: list[WeightedLosses],
        tol: float,
        is_quadratic: bool,
    ) -> None:
        k = len(losses)
        self.design, self.losses, self.tol = design, losses, tol
        # A quadratic objective has one Newton step, which may as well be exact.
        self.forcing = tol / 2 if is_quadratic else FORCING
        self.factors = start.factors[:, np.newaxis]
        self.preconditioner = start.preconditioner
        self.w = np.repeat(start.coefficients[:, np.newaxis], k, axis=1)
        self.z = np.repeat(start.scores[:, np.newaxis], k, axis=1)
        self.c = np.full(k, float(start.intercept))
        self.is_free = np.array([each.has_intercept for each in losses])
        self.penalties = np.array([each.intercept_penalty for each in losses])
        self.is_done, self.is_stuck = np.zeros(k, bool), np.zeros(k, bool)
        self.decrease = np.zeros(k)  # since the start
        self.values = np.array([self._value(b, self.z[:, b], self.c[b]) for b in range(k)])
        self.values += self._penalty(self.w)

    def run(self) -> Refits:
        """Take Newton steps until all have converged, or cannot go on."""
        for _ in range(MAX_NEWTON_STEPS):
            self._step()
            if (self.is_done | self.is_stuck).all():
                break
        return Refits(self.w, self.c, self.is_done)

    def _value(self, b: int, scores: Any, intercept: float) -> float:
        return self.losses[b].value(np.ascontiguousarray(scores), intercept)

    def _penalty(self, w: Table) -> NDArray[np.float64]:
        squares: NDArray[np.float64] = np.einsum("ck,ck,c->k", w, w, self.factors[:, 0])
        return squares / 2

    def _step(self) -> None:
        """Take a Newton step of each refit that goes on."""
        own = np.flatnonzero(~(self.is_done | self.is_stuck))
        gradients = np.empty((len(self.z), len(own)))
        curvature = np.empty_like(gradients)
        for i, b in enumerate(own.tolist()):
            point = self.losses[b].of_rows.point(np.ascontiguousarray(self.z[:, b]), self.c[b])
            gradients[:, i], curvature[:, i] = point.gradient, point.curvature
        # The intercept is eliminated: its own step follows from that of the coefficients.
        slopes = gradients.sum(axis=0) + self.penalties[own] * self.c[own]
        total = curvature.sum(axis=0) + self.penalties[own]
        is_free = self.is_free[own] & (total > 0)
        inverse = np.where(is_free, 1 / np.where(is_free, total, 1.0), 0.0)
        gradients -= curvature * (slopes * inverse)
        residual = self.design.apply_transposed(gradients)
        residual += self.factors * self.w[:, own]
        np.negative(residual, out=residual)
        step, change, promised = self._conjugate_gradients(residual, curvature, inverse)
        promised += slopes * slopes * inverse / 2
        shift = -(slopes + np.einsum("ik,ik->k", curvature, change)) * inverse
        for i, b in enumerate(own.tolist()):
            self._search(b, step[:, i], change[:, i], shift[i], promised[i])

    def _conjugate_gradients(
        self, residual: Table, weights: Table, inverse: NDArray[np.float64]
    ) -> tuple[Table, Table, Any]:
        """Return steps, the changes of the scores, and how much they decrease the quadratic model.

        The Hessian is that of rows with these weights, of whose sums the inverse is given, or 0
        without an intercept. The residual is overwritten.
        """
        step, change = np.zeros_like(residual), np.zeros_like(weights)
        decrease = np.zeros(residual.shape[1])
        divided = np.empty_like(residual)
        self.preconditioner.divide(residual, divided)
        direction, norm = divided.copy(), np.einsum("ck,ck->k", residual, divided)
        is_active = norm > 0
        for n_steps in range(1, MAX_CG_STEPS + 1):
            if not is_active.any():
                break
            scores = self.design.apply(direction)
            rows = scores - np.einsum("ik,ik->k", weights, scores) * inverse
            rows *= weights
            product = self.design.apply_transposed(rows)
            product += self.factors * direction
            bend = np.einsum("ck,ck->k", direction, product)
            is_active &= bend > 0
            size = np.where(is_active, norm / np.where(is_active, bend, 1.0), 0.0)
            step += size * direction
            change += size * scores
            residual -= size * product
            decrease += size * norm / 2
            # As in `newton`: what remains is about n_steps times the last decrease.
            is_active &= n_steps * size * norm / 2 > self.forcing * decrease
            self.preconditioner.divide(residual, divided)
            before, norm = norm, np.einsum("ck,ck->k", residual, divided)
            direction *= norm / np.where(before > 0, before, 1.0)
            direction += divided
        return step, change, decrease

    def _search(self, b: int, step: Any, change: Any, shift: float, promised: float) -> None:
        """Take the longest of some shorter and shorter steps that is good enough."""
        size = 1.0
        for _ in range(MAX_HALVINGS):
            w, z, c = self.w[:, b] + size * step, self.z[:, b] + size * change, self.c[b]
            c = c + size * shift
            value = self._value(b, z, c)
            value += float(np.einsum("c,c,c->", w, w, self.factors[:, 0])) / 2
            decrease = self.values[b] - value
            if decrease >= ENOUGH * size * promised:
                break
            size /= 2
        else:
            # Rounding errors hide what is left.
            self.is_stuck[b] = promised > self.tol * self.decrease[b]
            self.is_done[b] = not self.is_stuck[b]
            return
        self.w[:, b], self.z[:, b], self.c[b], self.values[b] = w, z, c, value
        self.decrease[b] += decrease
        # The model was minimized but for a fraction, and was wrong by what it promised in vain.
        remaining = self.forcing * promised + 2 * abs(decrease - promised)
        self.is_done[b] = remaining <= self.tol * self.decrease[b]
