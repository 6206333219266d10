"""L-BFGS and truncated Newton on the same objective as our solver, counted in passes over the data.

Both know the scores of their steps, so that a line search takes no pass. Each runs with the
intercept eliminated, and as a coefficient without a penalty.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.models.local_rows import LocalRows
from polysparse.models.losses.logistic import LogLoss

Array = NDArray[Any]
N_PAIRS = 30
MOST_PASSES = 1_500


def losses_of(X: Any, y: Array, C: float, *, with_bias: bool = False) -> tuple[Any, Array]:
    """The log losses at coefficients of 0, and these coefficients.

    The intercept is eliminated, or the coefficient of a column of ones, the first.
    """
    x = as_canonical_csr(X)
    columns = AllColumns(MonomialBasis(x.shape[1], 2, include_bias=with_bias))
    rows = LocalRows(x, y, np.ones(len(y)), None)
    classes = np.unique(y)
    loss = LogLoss(classes, np.full(len(classes), C))
    rows.set_targets(columns, loss)
    losses = rows.losses(loss, loss.intercept(rows, is_free=not with_bias), None)
    shape = () if loss.n_scores == 1 else (loss.n_scores,)
    return losses, np.zeros((columns.n_columns, *shape))


class Descent:
    """Where a solver is, and how many passes it took until its value was low enough.

    Parameters
    ----------
    losses : Losses
        The losses.
    w : ndarray of float64
        The first coefficients.
    is_joint : bool
        Whether the first of them is the intercept.
    enough : float
        The value to reach.
    """

    def __init__(self, losses: Any, w: Array, is_joint: bool, enough: float) -> None:
        self.losses, self.shape, self.enough = losses, w.shape, enough
        self.w = w.ravel().copy()
        self.factors = np.ones(w.shape)
        if is_joint:
            self.factors[0] = 0
        self.factors = self.factors.ravel()
        losses.start(w, 0.0 if w.ndim == 1 else np.zeros(w.shape[1]))
        self.passes = 0.0  # the scores of coefficients that are 0 take none
        self._set_value()

    def _set_value(self) -> None:
        self.value = self.losses.value + self.factors @ self.w**2 / 2
        self.is_done = self.value <= self.enough or self.passes > MOST_PASSES
        self.passes_then = self.passes if self.value <= self.enough else np.inf

    def gradient(self) -> Array:
        """Return the gradient, which takes half a pass."""
        self.passes += 0.5
        return self.factors * self.w - self._negative_gradient()

    def _negative_gradient(self) -> Array:
        return -self.losses.gradient().ravel()

    def go(self, d: Array, slope: float, first: float) -> bool:
        """Take a step along d, whose size fulfils Wolfe's conditions; False if there is none."""
        self.losses.start_line_search(d.reshape(self.shape))
        linear, squared = self.factors @ (self.w * d), self.factors @ d**2
        low, high, size = 0.0, np.inf, first
        for _ in range(50):
            value, own_slope, curvature = self.losses.evaluate_step(size)
            value += self.factors @ self.w**2 / 2 + size * linear + size**2 * squared / 2
            own_slope, curvature = own_slope + linear + size * squared, curvature + squared
            is_lower = value <= self.value + 1e-4 * size * slope
            if is_lower and abs(own_slope) <= 0.5 * abs(slope):
                break
            low, high = (size, high) if own_slope < 0 and is_lower else (low, size)
            size = size - own_slope / curvature if curvature > 0 else np.nan
            if not low < size < high:
                size = 2 * low + 1 if np.isinf(high) else (low + high) / 2
        if not value < self.value:
            return False
        self.w += size * d
        self.losses.move(self.w.reshape(self.shape))
        self._set_value()
        return True


def lbfgs(descent: Descent) -> float:
    """Passes that L-BFGS takes."""
    pairs: deque[tuple[Array, Array, float]] = deque(maxlen=N_PAIRS)
    g = descent.gradient()
    while not descent.is_done:
        d = -g
        alphas = []
        for s, y, sy in reversed(pairs):
            alphas.append(s @ d / sy)
            d -= alphas[-1] * y
        if pairs:
            s, y, sy = pairs[-1]
            d *= sy / (y @ y)
        for (s, y, sy), alpha in zip(pairs, reversed(alphas), strict=True):
            d += (alpha - y @ d / sy) * s
        before, descent.passes = descent.w.copy(), descent.passes + 0.5
        if not descent.go(d, g @ d, 1.0 if pairs else 1 / np.linalg.norm(g)):
            return np.inf
        if descent.is_done:
            break
        new = descent.gradient()
        s, y = descent.w - before, new - g
        if s @ y > 0:
            pairs.append((s, y, s @ y))
        g = new
    return descent.passes_then


def truncated_newton(descent: Descent) -> float:
    """Passes that Newton's method takes with conjugate gradients, without a preconditioner."""
    losses = descent.losses
    while not descent.is_done:
        g = descent.gradient()
        norm = np.linalg.norm(g)
        r, d = -g, np.zeros_like(g)
        p, enough = r.copy(), min(0.5, np.sqrt(norm)) * norm
        while np.linalg.norm(r) > enough and descent.passes <= MOST_PASSES:
            h = losses.hessian_product(p.reshape(descent.shape), None).ravel()
            h += descent.factors * p
            size = r @ r / (p @ h)
            losses.add_to_step(size)
            descent.passes += 1
            before = r @ r
            r, d = r - size * h, d + size * p
            p = r + r @ r / before * p
        if not descent.go(d, g @ d, 1.0):
            return np.inf
    return descent.passes_then


RIVALS = {"L-BFGS": lbfgs, "truncated Newton": truncated_newton}


def fewest_passes(X: Any, y: Array, C: float, enough: float) -> dict[str, float]:
    """Passes of each rival until its value is low enough, in the better of two ways."""
    found = {}
    for name, rival in RIVALS.items():
        each = []
        for is_joint in (False, True):
            losses, w = losses_of(X, y, C, with_bias=is_joint)
            each.append(losses.rows.run(rival, Descent(losses, w, is_joint, enough)))
        found[name] = min(each)
    return found
