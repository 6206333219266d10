"""Statistics of a few interactions, each computed by itself in one order of sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack

from polysparse.columns.spaces import ChosenColumns
from polysparse.expansion.whole import expand_columns
from polysparse.matrix.canonical import CanonicalCsr

LEAST = 1e-11  # of what a pivot was at first


class ExactStatistics:
    """Statistics of a few interactions, for any residuals.

    Parameters
    ----------
    x : CanonicalCsr
        The features.
    features : ndarray of int64
        Those of `main`, in increasing order.
    main : csr_array
        Some of the features, among them all that are ever stored.
    weights : ndarray of shape (n_rows,) or (0,)
        Weights of rows in the information; empty if all are 1.
    n_jobs : int or None
        Number of threads.
    columns : ChosenColumns
        The interactions.
    """

    def __init__(
        self,
        x: CanonicalCsr,
        features: NDArray[np.int64],
        main: Any,
        weights: NDArray[np.float64],
        n_jobs: int | None,
        columns: ChosenColumns,
    ) -> None:
        built = expand_columns(columns, x, n_jobs=n_jobs, max_bytes=None).tocsc()
        weights = weights if len(weights) else np.ones(x.shape[0])
        by_column = main.tocsc()

        def members_of(row: NDArray[np.int64]) -> Any:
            return by_column[:, np.searchsorted(features, np.unique(row[row >= 0]))]

        information = [
            _information(members_of(row), built[:, [i]], weights)
            for i, row in enumerate(columns.basis.unrank(columns.ranks))
        ]
        self._transposed = built.T.tocsr()
        self._scale = 1 / np.sqrt(information)[:, np.newaxis]

    def of(self, residuals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a row for each interaction, a column for each draw of residuals."""
        found: NDArray[np.float64] = self._transposed @ residuals
        found *= self._scale
        return found


def _information(members: Any, z: Any, weights: NDArray[np.float64]) -> float:
    """Return what a weighted regression of an interaction on its members leaves of it.

    `search/information.hpp` explains it, and computes the same.
    """
    columns = hstack([members, z]).tocsc()
    weighted = columns.multiply(weights[:, np.newaxis]).tocsc()
    n = columns.shape[1] + 1
    matrix = np.empty((n, n))
    matrix[0, 0] = weights.sum()
    matrix[1:, 0] = matrix[0, 1:] = weighted.sum(axis=0)
    matrix[1:, 1:] = (columns.T @ weighted).toarray()
    before = np.diag(matrix).copy()
    for k in range(n - 1):
        if matrix[k, k] > LEAST * before[k]:
            factors = matrix[k + 1 :, k] / matrix[k, k]
            matrix[k + 1 :, k + 1 :] -= np.multiply.outer(factors, matrix[k, k + 1 :])
    return float(matrix[-1, -1])
