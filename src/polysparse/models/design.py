"""Design: the expansion of X as a solver sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace, HashedColumns
from polysparse.matrix.canonical import CanonicalCsr
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
        return self._transposed(self.operator, weights)

    def centred_squares(self, weights: NDArray[Any], *, centred: bool) -> NDArray[Any]:
        """Return the weighted sum of squares of each column, about its mean if it is centred."""
        out = self._transposed(self._squared(), weights)
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
        pattern = self._operator(self.columns, np.ones_like(self.x.data))
        return self._transposed(pattern, np.ones(self.x.shape[0])).astype(np.int64)

    def _squared(self) -> PolynomialOperator:
        """Return the operator of the same columns with all their values squared.

        For hashed columns that is true only if no products of the same row share a column.
        """
        columns = self.columns
        if isinstance(columns, HashedColumns):
            columns = replace(columns, alternate_sign=False)
        with np.errstate(over="ignore"):  # the solvers refuse sums that are not finite
            return self._operator(columns, self.x.data * self.x.data)

    def _operator(self, columns: ColumnSpace, values: NDArray[Any]) -> PolynomialOperator:
        """Return the operator of a matrix with other values in the same places."""
        return PolynomialOperator.of(columns, replace(self.x, data=values), n_jobs=self.n_jobs)

    def _transposed(self, operator: PolynomialOperator, weights: NDArray[Any]) -> NDArray[Any]:
        self.n_products += 1
        product = operator.rmatvec if weights.ndim == 1 else operator.rmatmat
        return np.ascontiguousarray(product(weights))
