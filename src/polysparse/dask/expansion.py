"""expand and iter_expand of dask arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dask.base import tokenize

from polysparse.basis.degrees import Degree
from polysparse.clusters.calls import threads_in_task
from polysparse.columns.arguments import as_column_space
from polysparse.columns.spaces import ColumnSpace
from polysparse.dask.arrays import (
    as_row_blocks,
    errors_of_block,
    map_rows,
    rows_like,
)
from polysparse.dispatch import require_no_out
from polysparse.expansion.by_blocks import iter_expand_columns
from polysparse.expansion.whole import expand_columns
from polysparse.matrix.canonical import Canonical, as_canonical

WAYS_OUT = (
    "smaller blocks, by X.rechunk((n_rows, -1))",
    "max_bytes=None tries all the same",
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
    """Return the expansion of a dask array as a dask array; nothing is computed."""
    require_no_out(X, out)
    X = as_row_blocks(X)
    space = as_column_space(columns, X.shape[1], degree=degree, **flags)
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
        x = read_block(block, same, n_jobs)
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
    space = as_column_space(columns, X.shape[1], degree=degree, **flags)
    return _iter_expand(X, space, {"n_jobs": n_jobs, "max_bytes": max_bytes, "reuse": reuse})


def _iter_expand(X: Any, space: ColumnSpace, how: dict[str, Any]) -> Iterator[tuple[slice, Any]]:
    start = 0
    for number, block in enumerate(X.to_delayed().ravel()):
        with errors_of_block((number, 0)):
            x = read_block(block.compute(), space, how["n_jobs"])
            blocks = iter_expand_columns(space, x, **how)
        for rows, out in blocks:
            yield slice(start + rows.start, start + rows.stop), out
        start += x.shape[0]


def read_block(block: Any, space: ColumnSpace, n_jobs: int | None) -> Canonical:
    """Read a block in a form that can be expanded into given columns."""
    x = as_canonical(block, n_jobs)
    if x.shape[1] != space.basis.n_features:
        raise ValueError(
            f"the block has {x.shape[1]} features, but the array has {space.basis.n_features}."
        )
    return x if space.is_exact else x.as_sparse()


def token_of(space: ColumnSpace) -> tuple[Any, ...]:
    """Return what distinguishes columns from others, for names of lazy results."""
    return space.basis.as_dict(), space.describe()
