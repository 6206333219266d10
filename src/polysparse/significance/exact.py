"""Statistics of a few interactions, each computed by itself in one order of sums and products."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from polysparse.columns.spaces import ChosenColumns
from polysparse.expansion.whole import expand_columns
from polysparse.matrix.canonical import CanonicalCsr

Table = NDArray[np.float64]

LEAST = 1e-11  # of what a pivot was at first
AT_ONCE = 1000  # interactions whose members are copied


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
        main: csr_array,
        weights: NDArray[np.float64],
        n_jobs: int | None,
        columns: ChosenColumns,
    ) -> None:
        built = expand_columns(columns, x, n_jobs=n_jobs, max_bytes=None).tocsc()
        weights = weights if len(weights) else np.ones(x.shape[0])
        tuples = columns.basis.unrank(columns.ranks)
        members = np.searchsorted(features, tuples)
        is_repeated = tuples[:, 1:] == tuples[:, :-1]  # in a power
        members[tuples < 0] = members[:, 1:][is_repeated] = len(features)
        padded = csc_array(main)
        padded.resize(x.shape[0], len(features) + 1)  # a last feature without values
        parts = [slice(i, i + AT_ONCE) for i in range(0, len(members), AT_ONCE)]
        found = [_information(padded, members[p], built[:, p], weights) for p in parts]
        self._transposed = built.T.tocsr()
        self._scale = 1 / np.sqrt(np.concatenate(found))[:, np.newaxis]

    def take(self, places: NDArray[np.intp]) -> ExactStatistics:
        """Return the statistics of some of the interactions."""
        some = copy(self)
        some._transposed, some._scale = self._transposed[places], self._scale[places]
        return some

    def of(self, residuals: Table) -> Table:
        """Return a row for each interaction, a column for each draw of residuals."""
        found: Table = self._transposed @ residuals
        found *= self._scale
        return found


def _information(x: Any, members: NDArray[np.int64], z: Any, weights: Any) -> Table:
    """Return what weighted regressions of interactions on their members leave of them.

    `search/information.hpp` explains it, and computes the same.
    """
    columns = [*(x[:, own] for own in members.T), z]
    n = len(columns) + 1
    matrix = np.zeros((z.shape[1], n, n))
    matrix[:, 0, 0] = weights.sum()
    for i, one in enumerate(columns, 1):
        matrix[:, i, 0] = one.T @ weights
        for j, other in enumerate(columns[:i], 1):
            matrix[:, i, j] = one.multiply(other).T @ weights
    before = np.diagonal(matrix, axis1=1, axis2=2).copy()
    for k in range(n - 1):
        pivot = matrix[:, k, k]
        is_own = pivot > LEAST * before[:, k]  # does not depend on those before it
        below = matrix[:, k + 1 :, k]
        factors = below * np.where(is_own, 1 / np.where(is_own, pivot, 1), 0)[:, np.newaxis]
        matrix[:, k + 1 :, k + 1 :] -= factors[:, :, np.newaxis] * below[:, np.newaxis]
    left: Table = matrix[:, -1, -1]
    return left
