"""What conjugate gradients divide the gradient by: close to the Hessian, and easy to divide by.

A diagonal costs next to nothing. A sketch knows the directions in which the Hessian is largest, by
its products with a few random vectors: Frangella, Tropp and Udell, "Randomized Nystrom
Preconditioning" (2023). All sums are in a fixed order; BLAS is not used, see `vectors`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse.models.vectors import divide

# Random vectors of a sketch, and how much memory a table of them may take. A sketch takes three.
MOST_VECTORS, FEWEST_VECTORS = 64, 16
MOST_BYTES = 2**25

Table = NDArray[np.float64]
Gram = Callable[[Table], Table]  # what a table of directions, of shape (n_columns, k), becomes


class Preconditioner(Protocol):
    """What conjugate gradients divide by."""

    def divide(self, residual: Table, out: Table) -> float:
        """Write the residual, divided, to `out`; return their inner product."""


class Diagonal:
    """A diagonal, which is positive. `n_jobs` is the number of threads."""

    def __init__(self, scale: Table, n_jobs: int | None = 1) -> None:
        self.scale = scale.reshape(-1)
        self.n_jobs = n_jobs

    def divide(self, residual: Table, out: Table) -> float:
        """Write the residual, divided, to `out`; return their inner product."""
        return divide(residual.reshape(-1), self.scale, out.reshape(-1), self.n_jobs)


class Sketch:
    """A diagonal plus a sketch of a matrix, of which only products with a few vectors are known.

    Parameters
    ----------
    gram : callable
        Returns products of the matrix, which is positive semidefinite, with a table of vectors.
    scale : ndarray of float64 of shape (n_columns,)
        The diagonal, which is positive.
    n_vectors : int
        Number of vectors.
    """

    def __init__(self, gram: Gram, scale: NDArray[np.float64], n_vectors: int) -> None:
        self.scale = scale
        self.roots = np.sqrt(scale)[:, np.newaxis]
        # With R = diag(roots) and random vectors V, the sketch of S = R^-1 matrix R^-1 is
        # S V (V' S V)^-1 (S V)'. By Woodbury's identity, (1 + sketch)^-1 is 1 - Y' G^-1 Y with
        # Y = (S V)' and G = Y Y' + Y V; rows become L^-1 Y, where L L' = G.
        vectors = np.random.default_rng(0).standard_normal((len(scale), n_vectors))
        vectors /= self.roots
        rows = gram(vectors)
        rows /= self.roots
        vectors *= self.roots
        self.rows = np.ascontiguousarray(rows.T)
        others = np.ascontiguousarray(vectors.T)
        others += self.rows
        gram_of_rows = np.einsum("ic,jc->ij", self.rows, others)
        divide_by_root(gram_of_rows, self.rows)

    def divide(self, residual: Table, out: Table) -> float:
        """Write the residual, divided, to `out`; return their inner product."""
        r, d = (each.reshape(len(self.roots), -1) for each in (residual, out))
        np.divide(r, self.roots, out=d)
        for column in d.T:
            own = np.ascontiguousarray(column)
            parts = np.einsum("ic,c->i", self.rows, own)
            column -= np.einsum("ic,i->c", self.rows, parts)
        d /= self.roots
        return float(np.einsum("i,i->", residual.reshape(-1), out.reshape(-1)))


def divide_by_root(matrix: Table, rows: Table, least: float = 1e-12) -> None:
    """Divide rows by the Cholesky factor of a symmetric matrix, from the left.

    Rows become 0 if less than this share of the largest diagonal entry is left of theirs, because
    they depend on those before them. Both are overwritten.
    """
    least *= np.diag(matrix).max(initial=0.0)
    for i, row in enumerate(rows):
        pivot, below = matrix[i, i], matrix[i + 1 :, i]
        root = np.sqrt(pivot) if pivot > least else np.inf
        below /= root
        matrix[i + 1 :, i + 1 :] -= below[:, np.newaxis] * below
        row -= np.einsum("j,jc->c", matrix[i, :i], rows[:i])
        row /= root


def sketch_of(gram: Gram, diagonal: Table, penalty: float) -> Sketch | None:
    """Return a sketch of a matrix plus a penalty, or None if it is not worth its memory.

    The diagonal, of shape (n_columns,) or (n_columns, n_classes), is that of the matrix.
    """
    n = min(MOST_VECTORS, MOST_BYTES // (8 * len(diagonal)))
    if not FEWEST_VECTORS <= n <= len(diagonal) // 4:
        return None
    mean = diagonal if diagonal.ndim == 1 else diagonal.mean(axis=1)
    # Between the penalty, which is all there is in most directions, and the whole diagonal.
    least = max(penalty, 1e-6 * float(mean.mean()), np.finfo(np.float64).tiny)
    return Sketch(gram, np.sqrt(least) * np.sqrt(least + mean), n)
