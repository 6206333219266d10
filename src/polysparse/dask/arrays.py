"""Dask arrays as blocks of rows, and functions mapped over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from scipy import sparse

from polysparse.estimators.tabular import encoder_of
from polysparse.matrix.canonical import require_two_dimensions


def as_row_blocks(X: Any) -> Any:
    """Return a dask array with all columns in one chunk; raise if their number is unknown."""
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a dask array; got {type(X).__name__}. A dask DataFrame becomes one by "
            "X.to_dask_array(), one with categories by X.map_partitions(encoder.transform), where "
            "encoder is a fitted TableEncoder, and a delayed block by dask.array.from_delayed."
        )
    require_two_dimensions(X)
    if math.isnan(X.shape[1]):
        raise ValueError(
            f"X has an unknown number of columns (shape {X.shape}). X.compute_chunk_sizes() finds "
            "it out, which computes X."
        )
    return X.rechunk({1: -1})


def rows_like(X: Any, n_rows: int) -> Any:
    """Return rows of zeros in the container and the dtype that a dask array says it has."""
    meta, shape = X._meta, (n_rows, X.shape[1])
    if sparse.issparse(meta):
        return type(meta)(shape, dtype=X.dtype)
    return np.zeros_like(meta, shape=shape, dtype=X.dtype)


def as_encoded(estimator: Any, rows: Any) -> Any:
    """Return rows as CSR, if an estimator was fitted to a table: they are taken as encoded ones.

    Dense rows in memory are taken as a table instead. What a dask array states about its blocks is
    not reliable: after `map_partitions` of a DataFrame it states dense ones, though they are CSR.
    """
    if encoder_of(estimator) is None or sparse.issparse(rows):
        return rows
    return sparse.csr_array(rows)


def sample_of(X: Any) -> Any:
    """Return a row of zeros in place of the data of X, or no row if X has none.

    It is as wide as X, for checks that do not read values.
    """
    X = as_row_blocks(X)
    return rows_like(X, 0 if X.shape[0] == 0 else 1)


def map_rows(
    function: Callable[..., Any],
    X: Any,
    n_columns: int,
    *,
    name: str,
    meta: Any,
    same: Any,
    **more: Any,
) -> Any:
    """Return function(block, same, ...) for every block of rows, lazily.

    `meta` is what the function returns for no rows. `same` may be large: it is in the graph once.
    """
    return da.map_blocks(
        function,
        X,
        same=delayed(same, name=f"{name}-same", traverse=False),
        **more,
        name=name,
        chunks=(X.chunks[0], (n_columns,)),
        meta=meta[:, :0],
        dtype=meta.dtype,
    )


def concatenated(blocks: Iterable[tuple[Any, tuple[float, ...], Any]]) -> Any:
    """Return an array of delayed blocks, given with their shapes and what they are made of."""
    arrays = [da.from_delayed(block, shape, meta=meta) for block, shape, meta in blocks]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


@contextmanager
def errors_of_block(block_id: tuple[int, ...] | None) -> Iterator[None]:
    """Add the number of a block to errors."""
    try:
        yield
    except Exception as error:
        if block_id is not None:
            error.add_note(f"X is X.blocks[{block_id[0]}] of a dask array here.")
        raise
