"""Slopes: how the loss falls along every column, of which a sparse solver wants the steepest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polysparse.models.design import Design

Vector = NDArray[np.float64]


class Slopes:
    """The gradient of the loss with respect to the coefficients of columns that are not built.

    These methods are all that a sparse solver asks about them, so a search that does not visit all
    columns can take the place of this class.

    Parameters
    ----------
    design : Design
        The expansion.
    rows : ndarray of float64 of shape (n_rows,) or (n_rows, k)
        The gradient of the loss with respect to scores, which sums to 0 if the intercept is free.
    factors : ndarray of float64 of shape (n_columns,), or None
        What the penalty of each column is multiplied by; None if that is 1.
    known : ndarray of int64
        Columns that are left out.

    Attributes
    ----------
    steepest : float
        The largest absolute gradient, divided by the factor of its column.
    """

    def __init__(
        self, design: Design, rows: Vector, factors: Vector | None, known: NDArray[np.int64]
    ) -> None:
        slopes = design.apply_transposed(rows)
        np.abs(slopes, out=slopes)
        if factors is not None:
            slopes /= factors if slopes.ndim == 1 else factors[:, np.newaxis]
        self._slopes, self._factors = slopes, factors
        self._of_column = slopes if slopes.ndim == 1 else slopes.max(axis=1)
        self.leave_out(known)

    def leave_out(self, known: NDArray[np.int64]) -> None:
        """Leave out more columns, which have been built."""
        self._slopes[known] = 0.0
        self._of_column[known] = 0.0
        self.steepest = float(self._of_column.max(initial=0.0))

    def excess(self, l1: float) -> float:
        """Return the sum of squares of what exceeds l1, times the factors."""
        where = self._of_column > l1
        beyond = self._slopes[where]
        beyond -= l1
        np.maximum(beyond, 0.0, out=beyond)
        beyond *= beyond
        if self._factors is not None:
            transposed = beyond.T
            transposed *= self._factors[where]
        return float(beyond.sum())

    def beyond(self, threshold: float, n: int) -> NDArray[np.int64]:
        """Return the n steepest columns that exceed a threshold, in increasing order.

        Of equally steep ones, the first are taken.
        """
        own = self._of_column
        steep = own[own > threshold]
        if len(steep) <= n:
            return np.flatnonzero(own > threshold)
        steep.partition(len(steep) - n)
        least = steep[len(steep) - n]
        del steep  # may be as long as all columns
        above = np.flatnonzero(own > least)
        equal = np.flatnonzero(own == least)[: n - len(above)]
        return np.sort(np.concatenate([above, equal]))
