"""Design: the expansion of X as a solver sees it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace, HashedColumns
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.vectors import combine, multiply
from polysparse.observation.tally import batches_of_rows
from polysparse.operator.products import Products

_SCORES = 2**21  # that `gram` has in memory


class Design:
    """Matrix-vector products with an expansion, without building it."""

    def __init__(self, columns: ColumnSpace, x: CanonicalCsr, n_jobs: int | None) -> None:
        self.columns = columns
        self.x = x.sorted_by_group(columns.basis)
        self.n_jobs = n_jobs
        self.products = Products(columns, self.x, n_jobs)

    def apply(self, coefficients: NDArray[Any]) -> NDArray[Any]:
        """Return the expansion times coefficients, of shape (n_columns,) or (n_columns, k)."""
        return self.products.apply(np.ascontiguousarray(coefficients))

    def apply_transposed(
        self, weights: NDArray[Any], out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the transposed expansion times weights, of shape (n_rows,) or (n_rows, k).

        It is written to `out`, if that is given: an earlier result that is not needed any more.
        """
        return self.products.apply_transposed(np.ascontiguousarray(weights), out)

    def sum_squares(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return the weighted sum of squares of each column.

        For hashed columns that is true only if no products of the same row share a column.
        """
        columns = self.columns
        if isinstance(columns, HashedColumns):
            columns = replace(columns, alternate_sign=False)
        return self._sum_rows(columns, weights, of_squares=True)

    def gram(self, weights: NDArray[Any], directions: NDArray[Any]) -> NDArray[Any]:
        """Return the transposed expansion times weights times the expansion times directions.

        Rows are taken a few at a time, so that their scores, one for each direction, need not be
        kept.
        """
        out = np.zeros_like(directions)
        n_rows = max(1, _SCORES // directions.shape[1])
        for start in range(0, len(weights), n_rows):
            rows = slice(start, min(start + n_rows, len(weights)))
            part = Design(self.columns, self.x.rows(rows), self.n_jobs)
            scores = part.apply(directions)
            scores *= weights[rows, np.newaxis]
            out += part.apply_transposed(scores)
        return out

    def count_rows(self) -> NDArray[np.int64]:
        """Return in how many rows each column occurs."""
        counts = self._sum_rows(self.columns, np.ones(self.x.shape[0]), of_squares=False)
        return counts.astype(np.int64)

    def _sum_rows(
        self, columns: ColumnSpace, weights: NDArray[Any], *, of_squares: bool
    ) -> NDArray[Any]:
        """Return weighted sums over the rows of the expansion of squared values, or of ones.

        Values are squared for some rows at a time, and take no more memory than the sums do, or a
        sixth of X.
        """
        shape = columns.n_columns, *weights.shape[1:]
        at_a_time = max(math.prod(shape), len(self.x.data) // 4, 2**20)
        batches, offsets = batches_of_rows(self.x.indptr, at_a_time), self.x.indptr
        n_most = max((int(offsets[b.stop] - offsets[b.start]) for b in batches), default=0)
        room = np.empty(n_most) if of_squares else np.ones(n_most)
        out = part = None
        for rows in batches:
            x = self.x.rows(rows)
            values = room[: len(x.data)]
            if of_squares:
                multiply(x.data, x.data, 0.0, self.n_jobs, values)
            changed = Products(columns, replace(x, data=values), self.n_jobs)
            part = changed.apply_transposed(np.ascontiguousarray(weights[rows]), part)
            if out is None:
                out, part = part, None
            else:
                combine(1.0, out.reshape(-1), 1.0, part.reshape(-1), self.n_jobs)
        return np.zeros(shape) if out is None else out
