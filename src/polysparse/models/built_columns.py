"""BuiltColumns: the few columns of an expansion that a sparse solver looks at, built one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.columns.spaces import ChosenColumns, ColumnSpace
from polysparse.engine import cpu
from polysparse.expansion.by_blocks import iter_expand_columns
from polysparse.machine import require_memory, threads_for
from polysparse.matrix.canonical import CanonicalCsr


@dataclass(frozen=True)
class SparseArrays:
    """A matrix by columns, or by rows: the others of each, in increasing order, and the values."""

    offsets: NDArray[np.int64]
    others: NDArray[np.int32]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, matrix: Any) -> SparseArrays:
        """Return the arrays of a CSR or CSC matrix of SciPy."""
        return cls(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32, copy=False),
            matrix.data,
        )

    def transposed(self, n_others: int) -> SparseArrays:
        """Return the same matrix the other way round."""
        own = sparse.csr_matrix(self.tuple, shape=(len(self.offsets) - 1, n_others))
        return SparseArrays.of(own.tocsc())

    @property
    def tuple(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The arrays in the order of SciPy."""
        return self.values, self.others, self.offsets

    def multiply(self, vectors: NDArray[np.float64], n_jobs: int | None) -> NDArray[np.float64]:
        """Return the products with a vector, or with a table of vectors side by side."""
        n_threads = threads_for(n_jobs, len(self.values))
        n = len(self.offsets) - 1
        own = np.ascontiguousarray(np.atleast_2d(vectors.T))
        out = np.empty((len(own), n))
        for vector, to in zip(own, out, strict=True):
            cpu.multiply_each(self.offsets, self.others, self.values, vector, to, n_threads)
        return out[0] if vectors.ndim == 1 else np.ascontiguousarray(out.T)


class BuiltColumns:
    """Some columns of an expansion, in memory, in the order in which they were added.

    It has the methods of a `Design` for these columns alone, so that an objective can be had of it.

    Parameters
    ----------
    columns : ColumnSpace
        All columns.
    x : CanonicalCsr
        The data, in float64.
    n_jobs : int or None
        Number of threads.

    Attributes
    ----------
    numbers : ndarray of int64
        Which columns were added.
    """

    def __init__(self, columns: ColumnSpace, x: CanonicalCsr, n_jobs: int | None) -> None:
        if x.shape[0] > np.iinfo(np.int32).max:
            raise ValueError(
                f"X has {x.shape[0]:,} rows; an L1 penalty takes at most 2**31 - 1. Fit to fewer "
                "rows, or with an L2 penalty."
            )
        self.columns, self.x, self.n_jobs = columns, x, n_jobs
        # X may change while it is read, and a number must stay within the matrix.
        indices = np.clip(x.indices, 0, max(x.shape[1] - 1, 0), dtype=x.indices.dtype)
        own = sparse.csr_matrix((x.data, indices, x.indptr), shape=x.shape)
        self._features = SparseArrays.of(own.tocsc())
        self.numbers = np.empty(0, np.int64)
        self.by_column = SparseArrays(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))
        self._by_row: SparseArrays | None = None

    @property
    def by_row(self) -> SparseArrays:
        """The matrix by rows."""
        if self._by_row is None:
            self._by_row = self.by_column.transposed(self.x.shape[0])
        return self._by_row

    def add(self, numbers: NDArray[np.int64]) -> None:
        """Build more columns."""
        if not len(numbers):
            return
        new, old = self._build(numbers), self.by_column
        self.by_column = SparseArrays(
            np.concatenate([old.offsets, new.offsets[1:] + old.offsets[-1]]),
            np.concatenate([old.others, new.others]),
            np.concatenate([old.values, new.values]),
        )
        self.numbers = np.concatenate([self.numbers, numbers])
        self._by_row = None

    def keep(self, places: NDArray[np.int64]) -> None:
        """Drop all columns but those in these places, which increase."""
        n_rows = self.x.shape[0]
        own = sparse.csc_matrix(self.by_column.tuple, shape=(n_rows, len(self.numbers)))
        self.by_column = SparseArrays.of(own[:, places])
        self.numbers = self.numbers[places]
        self._by_row = None

    def _build(self, numbers: NDArray[np.int64]) -> SparseArrays:
        if self.columns.kind == "hashed":
            return self._build_hashed(numbers)
        ranks = self.columns.ranks[numbers] if isinstance(self.columns, ChosenColumns) else numbers
        tuples = np.ascontiguousarray(self.columns.basis.unrank(ranks))
        x = self._features
        n_threads = threads_for(self.n_jobs, len(x.values))
        offsets = np.zeros(len(numbers) + 1, np.int64)
        arrays = tuples, x.offsets, x.others, x.values
        cpu.count_built(*arrays, offsets[1:], n_threads)
        np.cumsum(offsets, out=offsets)
        n = int(offsets[-1])
        require_memory(
            4 * 12 * (n + len(self.by_column.values)),
            f"{len(self.numbers) + len(numbers):,} columns that may have a coefficient",
            "Use a stronger penalty: a lower C, or a higher alpha.",
        )
        rows, values = np.empty(n, np.int32), np.empty(n)
        cpu.fill_built(*arrays, offsets, rows, values, n_threads)
        return SparseArrays(offsets, rows, values)

    def _build_hashed(self, numbers: NDArray[np.int64]) -> SparseArrays:
        blocks = iter_expand_columns(
            self.columns, self.x, n_jobs=self.n_jobs, max_bytes=2**28, reuse=True
        )
        parts = [block.tocsc()[:, numbers] for _, block in blocks]
        return SparseArrays.of(sparse.vstack(parts, format="csc"))

    # ------------------------------------------------------------------------------- as a design

    def apply(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the columns times coefficients, of shape (n,) or (n, k)."""
        return self.by_row.multiply(coefficients, self.n_jobs)

    def apply_transposed(
        self, weights: NDArray[np.float64], out: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the inner products of the columns with weights, of shape (n_rows,) or with k."""
        return self.by_column.multiply(weights, self.n_jobs)

    def sum_squares(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sum of squares of each column."""
        own = self.by_column
        squares = SparseArrays(own.offsets, own.others, own.values * own.values)
        return squares.multiply(weights, self.n_jobs)

    def gram(
        self, weights: NDArray[np.float64], first: int, out: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Write the weighted inner products of columns from `first` on with all others to `out`.

        Returns the weighted sums of all columns.
        """
        n_threads = threads_for(self.n_jobs, 8 * len(self.by_row.values))
        cpu.fill_column_gram(
            *(self.by_column.offsets, self.by_column.others, self.by_column.values),
            *(self.by_row.offsets, self.by_row.others, self.by_row.values),
            weights,
            first,
            out,
            n_threads,
        )
        return self.apply_transposed(weights)
