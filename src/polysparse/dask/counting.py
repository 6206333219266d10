"""Counting which columns occur in a dask array: each block where it is, then merged as a tree."""

from __future__ import annotations

from typing import Any

from dask import delayed
from sklearn.base import clone

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.clusters.calls import threads_in_task
from polysparse.dask.arrays import as_row_blocks, errors_of_block
from polysparse.observation.tally import ColumnTally, count_columns

TALLIES_PER_TASK = 4  # that a task merges


def count(estimator: Any, X: Any, basis: MonomialBasis) -> ColumnTally:
    """Count the columns of a basis in all rows of X, as a transformer reads them.

    Only the counts of all rows together come to this process.
    """
    X = as_row_blocks(X)
    reader = clone(estimator).set_params(n_jobs=threads_in_task(estimator.n_jobs))
    reader.n_features_in_ = X.shape[1]
    blocks = X.to_delayed().ravel()
    tallies = [delayed(count_block)(b, reader, basis, (i, 0)) for i, b in enumerate(blocks)]
    while len(tallies) > 1:
        groups = [
            tallies[i : i + TALLIES_PER_TASK] for i in range(0, len(tallies), TALLIES_PER_TASK)
        ]
        tallies = [delayed(ColumnTally.sum)(group) for group in groups]
    return tallies[0].compute()  # type: ignore[no-any-return]


def count_block(
    block: Any, reader: Any, basis: MonomialBasis, block_id: tuple[int, ...]
) -> ColumnTally:
    """Count the columns in a block."""
    with errors_of_block(block_id):
        x = reader._read_sparse(block, reset=False, min_samples=0)
        return count_columns(basis, x, reader.n_jobs)
