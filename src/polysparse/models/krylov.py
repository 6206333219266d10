"""A Krylov space, from which ridge regression has the solutions for all penalties.

The Lanczos process for the Gram matrix G of centered columns, which starts at a residual r, returns
orthonormal vectors V and a tridiagonal matrix T = V' G V. The best coefficients in the space are
V (T + alpha)^-1 V' r: one space serves all alphas. Gauss-Radau quadrature with a node at alpha, the
least eigenvalue there can be, bounds how far each of them is from the minimum.

Rounding errors make vectors lose their orthogonality, and conjugate gradients, which are the same
process, take more steps then. Here all vectors are kept, and a new one is orthogonalized once its
inner products with the others may exceed the root of the machine epsilon: Simon, "The Lanczos
algorithm with partial reorthogonalization" (1984).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh_tridiagonal, solveh_banded

from polysparse.models.radau import LEAST_RATIO
from polysparse.models.solution import EPS
from polysparse.models.vectors import add_rows, combine, dot, dots, rescale

Vector = NDArray[np.float64]

# Memory for vectors, and the fewest that are worth their steps. 2**28 bytes are 66 vectors for
# 501,500 columns, where 40 suffice, and 4,300 for 7,749, where 415 do.
MOST_BYTES, FEWEST_VECTORS = 2**28, 16
# Orthogonalizing a vector takes longer than a pass after some hundreds of steps.
MOST_VECTORS = 1024
_PART_BYTES = 2**25  # that are allocated at a time, and occupied as they are written

_ORTHOGONAL = math.sqrt(EPS)  # inner products up to this change T by less than rounding errors
_CANCELLED = 0.7  # a vector that shrinks by more is orthogonalized again
_ENOUGH = 0.9  # of the tolerance: rounding errors take some of it

_RECENT = 20  # steps in a row that gain less than rounding errors end the process


def most_vectors(n_columns: int) -> int:
    """Return how many vectors a space may have; 0 if it is not worth its memory."""
    n = min(MOST_VECTORS, MOST_BYTES // (8 * max(n_columns, 1)) - 1)
    return n if n >= FEWEST_VECTORS else 0


class Basis:
    """Vectors that are almost orthonormal, in tables that are allocated as they are needed."""

    def __init__(self, n_columns: int, n_jobs: int | None) -> None:
        self.n_jobs = n_jobs
        self.n_vectors = 0
        self._n_columns = n_columns
        self._per_part = max(1, _PART_BYTES // (8 * n_columns))
        self._parts: list[NDArray[np.float64]] = []

    def __getitem__(self, i: int) -> Vector:
        own: Vector = self._parts[i // self._per_part][i % self._per_part]
        return own

    def append(self, x: Vector, norm: float) -> None:
        """Add x / norm."""
        part, place = divmod(self.n_vectors, self._per_part)
        if part == len(self._parts):
            self._parts.append(np.empty((self._per_part, self._n_columns)))
        own = self._parts[part][place]
        own[:] = x
        rescale(own, 1 / norm, 0.0, self.n_jobs)
        self.n_vectors += 1

    def add_to(self, out: Vector, factors: Vector) -> None:
        """Add the first vectors, times factors, to `out`."""
        for first, part in enumerate(self._parts):
            own = factors[first * self._per_part : (first + 1) * self._per_part]
            add_rows(out, own, part[: len(own)], self.n_jobs)

    def orthogonalize(self, x: Vector, norm: float) -> float:
        """Subtract from x its components, in place; return its norm, or 0 if nothing is left."""
        first = norm
        while norm > EPS * first:
            for i, part in enumerate(self._parts):
                own = part[: self.n_vectors - i * self._per_part]
                add_rows(x, -dots(own, x, self.n_jobs), own, self.n_jobs)
            before, norm = norm, math.sqrt(dot(x, x, self.n_jobs))
            if norm > _CANCELLED * before:
                return norm
        return 0.0


class _Orthogonality:
    """Estimates of the inner products of the last two vectors with those before them."""

    def __init__(self) -> None:
        self.last, self.new = np.zeros(0), np.ones(1)
        self.is_second = False

    def is_lost(self, diagonal: list[float], others: list[float], norm: float) -> bool:
        """Return whether the next vector, of this norm, has to be orthogonalized.

        Two in a row are, because the one after them follows from both.
        """
        k = len(diagonal)
        d, o = np.array(diagonal), np.array([*others, norm])
        noise = EPS * (d.max() + 2 * o.max())
        next_ones = np.full(k + 1, 1.0)
        next_ones[k - 1] = noise
        products = o[: k - 1] * self.new[1:] + (d[:-1] - d[-1]) * self.new[:-1]
        if k > 1:
            products -= others[-1] * self.last[: k - 1]
            products[1:] += o[: k - 2] * self.new[: k - 2]
        next_ones[: k - 1] = np.abs(products) + noise
        next_ones[:k] /= max(norm, np.finfo(np.float64).tiny)
        self.last, self.new = self.new, next_ones
        is_lost = self.is_second or not next_ones[:k].max() <= _ORTHOGONAL
        if is_lost:
            next_ones[:k] = 2 * EPS
        self.is_second = is_lost and not self.is_second
        return is_lost


class KrylovSpace:
    """The space, and for each alpha how close its best coefficients are to the minimum.

    Parameters
    ----------
    errors : SquaredErrors
        The rows.
    residual : ndarray of float64 of shape (n_columns,)
        Half the negative gradient, not 0. It is overwritten.
    value : float
        The objective there.
    alphas : ndarray of float64 of shape (n_alphas,)
        Strengths of the penalty, above 0. If the coefficients are not 0, there is only one.
    """

    def __init__(self, errors: Any, residual: Vector, value: float, alphas: Vector) -> None:
        self.errors, self.alphas, self.n_jobs = errors, alphas, errors.n_jobs
        self.basis = Basis(len(residual), self.n_jobs)
        self.norm = math.sqrt(dot(residual, residual, self.n_jobs))
        self.basis.append(residual, self.norm)
        self.diagonal: list[float] = []
        self.others: list[float] = []  # beside the diagonal
        self._orthogonality = _Orthogonality()
        self._product = residual
        self._began = value
        self._last_pivot = math.inf  # of T; not positive if rounding errors hide it
        # The last pivots of T + alpha, less that of T: a difference would cancel.
        self._above = alphas.copy()
        # Of T + alpha: pivots, and the right side after elimination. `sizes` are those of the
        # spaces that each alpha needs.
        self._pivots, self._right = np.ones_like(alphas), np.full_like(alphas, self.norm)
        self.values, self.gaps = np.full_like(alphas, value), np.full_like(alphas, math.inf)
        self.sizes = np.zeros(len(alphas), dtype=np.int64)
        self._is_open = np.ones(len(alphas), dtype=bool)
        self._gains = np.full((_RECENT, len(alphas)), math.inf)

    def grow(self, tol: float, most: int, report: Callable[[int, float, float], None]) -> bool:
        """Add vectors until all gaps are below tol times the value; return whether they are.

        They count as such where rounding errors prevent more. There are `most` vectors at most.
        report(number of vectors, value, norm of the gradient) is called for the least alpha.
        """
        least = int(np.argmin(self.alphas))
        residual = self.norm
        while self._is_open.any() and len(self.diagonal) < most:
            report(len(self.diagonal) + 1, float(self.values[least]), 2 * residual)
            beside = self._step()
            self._follow(beside, tol)
            residual = beside * abs(self._right[least] / self._pivots[least])
            if beside == 0:  # the space has the minimum for every alpha
                self._is_open[:] = False
            else:
                self.basis.append(self._product, beside)
        return not self._is_open.any()

    def _step(self) -> float:
        """Set the next vector, which is not normalized, and return its norm."""
        k, basis, n_jobs = len(self.diagonal), self.basis, self.n_jobs
        own = basis[k]
        product = self._product = self.errors.normal_product(own, self._product)
        if k:
            combine(1.0, product, -self.others[-1], basis[k - 1], n_jobs)
        along = dot(product, own, n_jobs)
        combine(1.0, product, -along, own, n_jobs)
        self.diagonal.append(along)
        norm = math.sqrt(dot(product, product, n_jobs))
        if self._orthogonality.is_lost(self.diagonal, self.others, norm):
            norm = basis.orthogonalize(product, norm)
        self.others.append(norm)
        return norm

    def _follow(self, beside: float, tol: float) -> None:
        """Update the values and the gaps, and close those that are small or stopped."""
        k, own = len(self.diagonal), self._is_open
        before = self.others[-2] if k > 1 else 0.0
        ratio = before / self._pivots
        pivots = self.diagonal[-1] + self.alphas - ratio * before
        own &= pivots > 0  # if not, because of rounding errors, the space before is the last
        self._right = np.where(own, self._right * (-ratio if k > 1 else 1.0), self._right)
        self._pivots = np.where(own, pivots, self._pivots)
        gains = np.where(own, self._right**2 / self._pivots, 0.0)
        self.values -= gains
        self.sizes[own] = k
        self._gains[k % _RECENT] = gains
        residuals = (beside * self._right / self._pivots) ** 2
        gaps = residuals / self._radau_pivots(before, beside)
        self.gaps = np.where(own, gaps, self.gaps)
        is_stopped = self._gains.max(axis=0) <= EPS * self._began
        own &= ~(self.gaps <= _ENOUGH * tol * self.values) & ~is_stopped

    def _radau_pivots(self, before: float, beside: float) -> Vector:
        """Return the last pivots of T with one more row, whose least eigenvalue is 0, plus alpha.

        They are those of the next T + alpha less that of T. They are at least alpha, which is what
        remains if rounding errors hide the least eigenvalue of T.
        """
        if self._last_pivot > 0:
            self._last_pivot = self.diagonal[-1] - before / self._last_pivot * before
        if self._last_pivot <= LEAST_RATIO * max(self.diagonal):
            self._last_pivot = -1.0
            return self.alphas
        ratio = beside / self._last_pivot
        self._above = self.alphas + ratio * beside * (self._above / self._pivots)
        return self._above

    def is_closed(self, i: int, tol: float) -> bool:
        """Whether the gap is below tol times the value, far above rounding errors."""
        return bool(self.gaps[i] <= tol * self.values[i]) and self.is_reliable(i)

    def is_reliable(self, i: int) -> bool:
        """Whether rounding errors are far below the least eigenvalue that was found."""
        k = int(self.sizes[i])
        diagonal = np.array(self.diagonal[:k]) + self.alphas[i]
        if k < 2:
            return True
        values = eigvalsh_tridiagonal(diagonal, np.array(self.others[: k - 1]))
        return bool(values[0] > LEAST_RATIO * values[-1])

    def _solve(self, diagonal: Vector, others: Vector) -> Vector:
        """Return the best step, given the diagonal of T + alpha and what is beside it."""
        step = np.zeros(len(diagonal))
        step[0] = self.norm
        if len(step) == 1:
            step /= diagonal
            return step
        bands = np.stack([diagonal, np.append(others, 0.0)])
        found: Vector = solveh_banded(bands, step, lower=True, check_finite=False)
        return found

    def add_solution(self, i: int, coefficients: Vector) -> Vector:
        """Add the best step for an alpha to coefficients; return the residual that is left."""
        k, residual = int(self.sizes[i]), np.zeros_like(coefficients)
        if k == 0:
            self.basis.add_to(residual, np.array([self.norm]))
            return residual
        step = self._solve(self.diagonal[:k] + self.alphas[i], np.array(self.others[: k - 1]))
        self.basis.add_to(coefficients, step)
        if self.others[k - 1] > 0:
            own = self.basis[k]
            combine(1.0, residual, -self.others[k - 1] * float(step[-1]), own, self.n_jobs)
        return residual
