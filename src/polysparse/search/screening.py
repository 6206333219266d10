"""Screen pairs in memory: a matrix-vector product finds which features are worth searching.

A matrix-vector product with the transposed expansion computes the sums of all pairs, up to
rounding, in a fraction of the time of a search. Then only features of pairs that may be among the
best are searched, which computes exact counts and scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import AllColumns
from polysparse.machine import available_if_less
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.operator.products import Products
from polysparse.search.question import Question

MOST_CHOSEN = 20  # pairs for each of the k best; more would not be worth it


def promising_features(
    question: Question, x: CanonicalCsr, n_jobs: int | None
) -> NDArray[np.bool_] | None:
    """Return which features the best pairs have; None if all must be searched.

    `x` has the features sorted by group, and rows of positive weight only.
    """
    basis, targets = question.basis, question.targets
    n_columns, n_targets = basis.n_columns, targets.values.shape[1]
    if not (
        question.score == "dot"
        and question.min_count == 1
        and question.restriction.among is None
        and basis.highest == 2
        and not basis._is_grouped
        and n_columns <= _n_pairs(x)
        and question.k < n_columns
        and available_if_less(8 * n_columns * (n_targets + 2)) is None
    ):
        return None
    sums = Products(AllColumns(basis), x, n_jobs).apply_transposed(targets.values)
    sizes = np.abs(sums).max(axis=1)
    largest = max(float(np.abs(x.data).max(initial=0.0)), 1.0) ** 2
    off = (x.shape[0] + 20) * np.finfo(float).eps
    error = off * largest * float(np.abs(targets.values).sum(axis=0).max())
    least = np.partition(sizes, n_columns - question.k)[n_columns - question.k]
    if not least > 2 * error:
        return None
    chosen = np.flatnonzero(sizes >= least - 2 * error)
    if len(chosen) > MOST_CHOSEN * question.k:
        return None
    found = np.zeros(x.shape[1], dtype=bool)
    tuples = basis.unrank(chosen)
    found[tuples[tuples >= 0]] = True
    return found


def _n_pairs(x: CanonicalCsr) -> Any:
    """Return how many pairs rows have."""
    lengths = np.diff(x.indptr).astype(np.int64)
    return lengths @ lengths // 2
