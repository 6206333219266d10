"""Design: the expansion of X as a solver sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace, HashedColumns
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.observation.tally import batches_of_rows
from polysparse.operator.polynomial_operator import PolynomialOperator


class Design:
    """Products with an expansion, and how many passes over the data they took.

    A pass is one product with the expansion and one with its transpose.
    """

    def __init__(self, columns: ColumnSpace, x: CanonicalCsr, n_jobs: int | None) -> None:
        self.columns = columns
        self.x = x
        self.n_jobs = n_jobs
        self.n_products = 0
        self.operator = PolynomialOperator.of(columns, x, n_jobs=n_jobs)

    @property
    def n_passes(self) -> float:
        """Passes over the data so far."""
        return self.n_products / 2

    def apply(self, coefficients: NDArray[Any]) -> NDArray[Any]:
        """Return the expansion times coefficients, of shape (n_columns,) or (n_columns, k)."""
        self.n_products += 1
        return self.operator @ coefficients

    def apply_transposed(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return the transposed expansion times weights, of shape (n_rows,) or (n_rows, k)."""
        self.n_products += 1
        return _times(self.operator, weights)

    def centred_squares(self, weights: NDArray[Any], *, centred: bool) -> NDArray[Any]:
        """Return the weighted sum of squares of each column, about its mean if it is centred."""
        out = self._sum_squares(weights)
        if centred:
            sums = self.apply_transposed(weights)
            total = np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
            with np.errstate(over="ignore", invalid="ignore"):
                np.square(sums, out=sums)
                np.divide(sums, total, out=sums)
                np.subtract(out, sums, out=out)
            np.maximum(out, 0, out=out)  # rounding
        return out

    def count_rows(self) -> NDArray[np.int64] | None:
        """Return in how many rows each column occurs; None if columns are hashed."""
        if isinstance(self.columns, HashedColumns):
            return None
        counts = self._sum_rows(self.columns, np.ones_like, np.ones(self.x.shape[0]))
        return counts.astype(np.int64)

    def _sum_squares(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return the weighted sum of squares of each column.

        For hashed columns that is true only if no products of the same row share a column.
        """
        columns = self.columns
        if isinstance(columns, HashedColumns):
            columns = replace(columns, alternate_sign=False)
        with np.errstate(over="ignore"):  # the solvers refuse sums that are not finite
            return self._sum_rows(columns, np.square, weights)

    def _sum_rows(
        self, columns: ColumnSpace, function: Callable[..., Any], weights: NDArray[Any]
    ) -> NDArray[Any]:
        """Return weighted sums over the rows of the expansion of X with changed values.

        Values are changed for some rows at a time, and take no more memory than the sums do, or a
        sixth of X.
        """
        self.n_products += 1
        out = np.zeros((columns.n_columns, *weights.shape[1:]))
        for rows in batches_of_rows(self.x.indptr, max(out.size, len(self.x.data) // 4, 2**20)):
            x = self.x.rows(rows)
            changed = replace(x, data=function(x.data))
            operator = PolynomialOperator.of(columns, changed, n_jobs=self.n_jobs)
            out += _times(operator, weights[rows])
        return out


def _times(operator: PolynomialOperator, weights: NDArray[Any]) -> NDArray[Any]:
    """Return the transposed operator times weights of its rows."""
    product = operator.rmatvec if weights.ndim == 1 else operator.rmatmat
    return np.ascontiguousarray(product(weights))
