"""expand and iter_expand of dask arrays."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.clusters.calls import threads_in_task
from polysparse.columns.arguments import as_column_space
from polysparse.columns.spaces import ColumnSpace
from polysparse.dask.arrays import (
    as_row_blocks,
    errors_of_block,
    map_rows,
    rows_like,
)
from polysparse.dask.counting import count_blocks
from polysparse.dispatch import require_no_out
from polysparse.expansion.by_blocks import iter_expand_columns
from polysparse.expansion.whole import expand_columns
from polysparse.matrix.canonical import Canonical, as_canonical

WAYS_OUT = (
    "smaller blocks, by X.rechunk((n_rows, -1))",
    "max_bytes=None tries anyway",
)


def expand(
    X: Any,
    degree: Degree,
    *,
    columns: Any,
    n_jobs: int | None,
    max_bytes: int | str | None,
    out: Any,
    **flags: Any,
) -> Any:
    """Return the expansion of a dask array as a dask array.

    Nothing is computed, unless X has to be searched for observed columns.
    """
    require_no_out(X, out)
    X = as_row_blocks(X)
    space = _column_space(X, columns, degree, n_jobs, flags)
    how: dict[str, Any] = {"n_jobs": threads_in_task(n_jobs), "max_bytes": max_bytes}
    return map_rows(
        expand_block,
        X,
        space.n_columns,
        name=f"expand-{tokenize(X.name, token_of(space), how)}",
        meta=expand_block(rows_like(X, 0), space, **how),
        same=space,
        **how,
    )


def expand_block(
    block: Any,
    same: ColumnSpace,
    n_jobs: int,
    max_bytes: int | str | None,
    block_id: tuple[int, ...] | None = None,
) -> Any:
    """Return the expansion of a block."""
    with errors_of_block(block_id):
        x = read_block(block, same.basis, n_jobs, as_sparse=not same.is_exact)
        return expand_columns(same, x, n_jobs=n_jobs, max_bytes=max_bytes, ways_out=WAYS_OUT)


def iter_expand(
    X: Any,
    degree: Degree,
    *,
    columns: Any,
    n_jobs: int | None,
    max_bytes: int,
    reuse: bool,
    **flags: Any,
) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of the expansion in this process, computing the blocks of X one by one."""
    X = as_row_blocks(X)
    space = _column_space(X, columns, degree, n_jobs, flags)
    return _iter_expand(X, space, {"n_jobs": n_jobs, "max_bytes": max_bytes, "reuse": reuse})


def _iter_expand(X: Any, space: ColumnSpace, how: dict[str, Any]) -> Iterator[tuple[slice, Any]]:
    start = 0
    for number, block in enumerate(X.to_delayed().ravel()):
        with errors_of_block((number, 0)):
            as_sparse = not space.is_exact
            x = read_block(block.compute(), space.basis, how["n_jobs"], as_sparse=as_sparse)
            blocks = iter_expand_columns(space, x, **how)
        for rows, out in blocks:
            yield slice(start + rows.start, start + rows.stop), out
        start += x.shape[0]


def _column_space(
    X: Any, columns: Any, degree: Degree, n_jobs: int | None, flags: dict[str, Any]
) -> ColumnSpace:
    """Return the columns requested for a dask array, which is computed if they are observed."""

    def observe(basis: MonomialBasis) -> NDArray[np.int64]:
        n_threads = threads_in_task(n_jobs)
        read = partial(read_block, basis=basis, n_jobs=n_threads, as_sparse=True)
        return count_blocks(X, basis, read, n_threads).chosen(1, None, n_jobs)[0]

    return as_column_space(columns, X.shape[1], observe=observe, degree=degree, **flags)


def read_block(
    block: Any, basis: MonomialBasis, n_jobs: int | None, *, as_sparse: bool
) -> Canonical:
    """Read a block of an array that is as wide as a basis."""
    x = as_canonical(block, n_jobs)
    if x.shape[1] != basis.n_features:
        raise ValueError(
            f"the block has {x.shape[1]} features, but the array has {basis.n_features}."
        )
    return x.as_sparse() if as_sparse else x


def token_of(space: ColumnSpace) -> tuple[Any, ...]:
    """Return what distinguishes columns from others, for names of lazy results."""
    return space.basis.as_dict(), space.describe()
