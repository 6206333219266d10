"""Projection of residuals: what is left of them when main effects are adjusted.

BLAS is not used, as in `models.preconditioners`: all sums are in a fixed order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.preconditioners import divide_by_root
from polysparse.operator.polynomial_operator import PolynomialOperator

Table = NDArray[np.float64]

MOST_FACTORED = 512  # columns; with more, conjugate gradients are faster
TOLERANCE, MAX_STEPS = 1e-7, 1000  # of conjugate gradients
DRAWS_FOR_RANK = 32


class Projection:
    """r - W A (A'W A)^-1 A' r, where A has a column of ones beside X.

    Parameters
    ----------
    X : sparse array of shape (n_rows, n_features)
        The features.
    weights : ndarray of shape (n_rows,) or (0,)
        The diagonal of W; empty if all are 1.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(self, X: Any, weights: NDArray[np.float64], n_jobs: int | None) -> None:
        self.operator = PolynomialOperator(X, degree=1, include_bias=True, n_jobs=n_jobs)
        self.weights = weights if len(weights) else np.ones(X.shape[0])
        squares = np.repeat(self.weights, np.diff(X.indptr)) * X.data**2
        diagonal = np.bincount(X.indices, squares, minlength=X.shape[1])
        diagonal = np.append(self.weights.sum(), diagonal)
        self.scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 0)
        self.rows = self._factored(X) if self.operator.shape[1] <= MOST_FACTORED else None

    def _factored(self, X: Any) -> Table:
        """Return the inverse of the Cholesky factor of the scaled A'W A.

        Rows of columns that depend on those before them are 0.
        """
        n = self.operator.shape[1]
        gram = np.empty((n, n))
        weighted = X.T.multiply(self.weights).tocsr()
        gram[0, 0] = self.weights.sum()
        gram[1:, 0] = gram[0, 1:] = X.T @ self.weights
        gram[1:, 1:] = (weighted @ X).toarray()
        gram *= self.scale[:, np.newaxis] * self.scale
        rows = np.eye(n)
        divide_by_root(gram, rows)
        return rows

    def apply(self, residuals: Table) -> None:
        """Project the columns of a table, in place."""
        sums = self.operator.T @ residuals
        sums *= self.scale[:, np.newaxis]
        coefficients = self._solve(sums)
        coefficients *= self.scale[:, np.newaxis]
        residuals -= self.weights[:, np.newaxis] * (self.operator @ coefficients)

    def rank(self) -> float:
        """Return the rank of A, or about that.

        Without a factor, it is what is lost of random vectors. Needs: weights of 1.
        """
        if self.rows is not None:
            return float(np.count_nonzero(np.diag(self.rows)))
        rng = np.random.default_rng(0)
        vectors = rng.choice([-1.0, 1.0], (self.operator.shape[0], DRAWS_FOR_RANK))
        left = vectors.copy()
        self.apply(left)
        return float(len(left) - np.einsum("ik,ik->", left, vectors) / DRAWS_FOR_RANK)

    def _solve(self, sums: Table) -> Table:
        """Solve the scaled normal equations, for each column of a table."""
        if self.rows is not None:
            halves = np.einsum("ij,jk->ik", self.rows, sums)
            solution: Table = np.einsum("ji,jk->ik", self.rows, halves)
            return solution
        return self._conjugate_gradients(sums)

    def _gram(self, directions: Table) -> Table:
        rows = self.operator @ (self.scale[:, np.newaxis] * directions)
        rows *= self.weights[:, np.newaxis]
        products: Table = self.operator.T @ rows
        products *= self.scale[:, np.newaxis]
        return products

    def _conjugate_gradients(self, residual: Table) -> Table:
        """Solve by conjugate gradients; the residual is overwritten."""
        solution, direction = np.zeros_like(residual), residual.copy()
        norm = np.einsum("ck,ck->k", residual, residual)
        enough = TOLERANCE**2 * norm
        for _ in range(MAX_STEPS):
            is_active = norm > enough
            if not is_active.any():
                break
            product = self._gram(direction)
            bend = np.einsum("ck,ck->k", direction, product)
            size = np.where(is_active & (bend > 0), norm / np.where(bend > 0, bend, 1), 0.0)
            solution += size * direction
            residual -= size * product
            before, norm = norm, np.einsum("ck,ck->k", residual, residual)
            direction *= np.where(is_active, norm / np.where(before > 0, before, 1), 0.0)
            direction += residual
        return solution
