"""Counting which columns occur in a dask array: each block where it is, then merged as a tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dask import delayed
from sklearn.base import clone

from polysparse.clusters.calls import threads_in_task
from polysparse.dask.arrays import as_row_blocks, errors_of_block
from polysparse.observation.tally import ColumnTally, Counted, count_columns

TALLIES_PER_TASK = 4  # that a task merges


def count(estimator: Any, X: Any, columns: Counted) -> ColumnTally:
    """Count columns in all rows of X, as a transformer reads them."""
    X = as_row_blocks(X)
    reader = clone(estimator).set_params(n_jobs=threads_in_task(estimator.n_jobs))
    reader.n_features_in_ = X.shape[1]
    read = partial(reader._read_sparse, reset=False, min_samples=0)
    return count_blocks(X, columns, read, reader.n_jobs)


def count_blocks(X: Any, columns: Counted, read: Callable[[Any], Any], n_jobs: int) -> ColumnTally:
    """Count columns in all rows of X; `read` makes a CanonicalCsr of a block.

    Only the counts of all rows together come to this process.
    """
    blocks = X.to_delayed().ravel()
    task = delayed(partial(count_block, columns=columns, read=read, n_jobs=n_jobs))
    tallies = [task(block, block_id=(i, 0)) for i, block in enumerate(blocks)]
    while len(tallies) > 1:
        groups = [
            tallies[i : i + TALLIES_PER_TASK] for i in range(0, len(tallies), TALLIES_PER_TASK)
        ]
        tallies = [delayed(ColumnTally.sum)(group) for group in groups]
    return tallies[0].compute()  # type: ignore[no-any-return]


def count_block(
    block: Any,
    columns: Counted,
    read: Callable[[Any], Any],
    n_jobs: int,
    block_id: tuple[int, ...],
) -> ColumnTally:
    """Count the columns in a block."""
    with errors_of_block(block_id):
        return count_columns(columns, read(block), n_jobs)
