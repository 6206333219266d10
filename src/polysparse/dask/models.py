"""Models on dask arrays: fitted to the blocks where they are, and lazy predictions."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask import delayed
from dask.base import tokenize
from dask.delayed import Delayed
from sklearn.utils.validation import check_is_fitted

from polysparse.clusters.calls import GROUP_SIZE, Call, threads_in_task
from polysparse.clusters.data_blocks import DataBlock
from polysparse.clusters.row_store import ClusterRows
from polysparse.clusters.worker_copies import copy_for_workers
from polysparse.dask.arrays import as_encoded, as_row_blocks, errors_of_block, rows_like
from polysparse.dask.expansion import token_of
from polysparse.estimators.tabular import encoder_for, read_table, sample_for
from polysparse.models.local_rows import add_in_order
from polysparse.models.row_store import Function
from polysparse.models.sample_weight import as_offset, as_weights

with suppress(ImportError):
    # Importing it later, within dask.config.set, would lose its defaults when the block ends.
    import distributed  # noqa: F401

# Dask warns of large graphs. Ours contains the coefficients, once.
NO_GRAPH_WARNING = {"distributed.admin.large-graph-warning-threshold": "1TB"}


class BlockResults(list[Any]):
    """The delayed results of a call, one for each block."""


@dataclass(frozen=True, eq=False)
class Shared:
    """A value that all blocks share."""

    value: Any

    @cached_property
    def delayed(self) -> Delayed:
        """The value as Dask holds it, for graphs."""
        (sent,) = dask.persist(_in_graph(self.value))
        return sent


@dataclass(frozen=True)
class Placeholder:
    """Stands for one of the arguments of a task."""

    number: int


class DaskCluster:
    """The current scheduler of Dask: threads of this process, or the workers of a client.

    What is kept is persisted, so that Dask computes it again if a worker is lost.
    """

    def __init__(self) -> None:
        self._holders: Any = None  # workers that hold blocks

    def share(self, value: Any) -> Any:
        """Return a reference to a value; it is sent to each worker once, when it is needed."""
        return Shared(value)

    def keep(self, function: Function, /, *kept: Any, once: bool = False, **shared: Any) -> Any:
        """Keep function(*kept, **shared) of every block."""
        call = Call.now(function, kept, shared)
        if once:
            return call
        call, needed = _placed(call)
        holders = self._holders_of(_rows(needed))
        with dask.config.set(NO_GRAPH_WARNING):
            if holders is None:
                return BlockResults(dask.persist(*_tasks(call, needed)))
            copies = holders.copies(call, _rows(needed))
            tasks = [MAKE(*each) for each in zip(copies, *_held(needed, holders), strict=True)]
            return BlockResults(holders.client.persist(tasks))

    def total(self, function: Function, /, *kept: Any, **shared: Any) -> tuple[Any, ...]:
        """Return the sums over all blocks: a tree, in the order of the blocks."""
        call, needed = _placed(Call.now(function, kept, shared))
        parts = self._call_workers(call, needed)
        if parts is not None:
            return _add_up(parts, add_in_order)  # type: ignore[no-any-return]
        with dask.config.set(NO_GRAPH_WARNING):
            lazy = _add_up(_tasks(call, needed), ADD)
            (sums,) = dask.compute(lazy, optimize_graph=False)
        return sums  # type: ignore[no-any-return]

    def _call_workers(self, call: Call, needed: list[Any]) -> list[Any] | None:
        """Return the results of a call on the workers, or None if it needs a graph."""
        holders = self._holders_of(_rows(needed))
        if holders is None:
            return None
        with dask.config.set(NO_GRAPH_WARNING):
            blocks = list(zip(*_held(needed, holders), strict=True))
        return holders.make(partial(make_call, call), blocks)  # type: ignore[no-any-return]

    def _holders_of(self, rows: BlockResults) -> Any:
        """Return the workers that hold rows, or None if they are held by this process."""
        if self._holders is None and "distributed" in sys.modules:
            from polysparse.dask.holders import Holders

            self._holders = Holders.of(rows)
        return self._holders


def _rows(needed: list[Any]) -> BlockResults:
    """Return the first thing that is kept of every block."""
    return next(each for each in needed if isinstance(each, BlockResults))


def _held(needed: list[Any], holders: Any) -> list[Any]:
    """Return what is needed for each block, where the workers that hold the rows have it."""
    rows = _rows(needed)
    return [
        each if isinstance(each, BlockResults) else holders.shared_copies(each, rows)
        for each in needed
    ]


def _placed(call: Call) -> tuple[Call, list[Any]]:
    """Return a call with placeholders for what Dask holds, and what they stand for."""
    needed: list[Any] = []

    def placed(value: Any) -> Any:
        if isinstance(value, Call):
            shared = {name: placed(each) for name, each in value.shared.items()}
            return Call(value.function, tuple(map(placed, value.arguments)), shared)
        if not isinstance(value, BlockResults | Shared):
            return value
        needed.append(value)
        return Placeholder(len(needed) - 1)

    return placed(call), needed


def _tasks(call: Call, needed: list[Any]) -> list[Any]:
    """Return a delayed task for each block, which makes a call and those that it needs.

    What all tasks share is one node of the graph.
    """
    node = _in_graph(call)
    return [
        MAKE(
            node, *(each[i] if isinstance(each, BlockResults) else each.delayed for each in needed)
        )
        for i in range(len(_rows(needed)))
    ]


def _add_up(parts: list[Any], add: Callable[[list[Any]], Any]) -> Any:
    """Return the sum of parts, a few at a time."""
    while True:
        parts = [add(parts[i : i + GROUP_SIZE]) for i in range(0, len(parts), GROUP_SIZE)]
        if len(parts) == 1:
            return parts[0]


def make_call(call: Call, *arguments: Any) -> Any:
    """Make a call, in a task."""

    def find(value: Any) -> Any:
        if isinstance(value, Call):
            return value.make(find)
        return arguments[value.number] if isinstance(value, Placeholder) else value

    return call.make(find)


def _in_graph(value: Any) -> Any:
    """Return a value as one node of a graph."""
    return delayed(value, name=f"shared-{uuid4().hex}", traverse=False)


MAKE, ADD = (delayed(each, pure=False) for each in (make_call, add_in_order))


# ----------------------------------------------------------------------------------------- fitting


@contextmanager
def open_rows(
    model: Any, X: Any, y: Any, sample_weight: Any, offset: Any = None
) -> Iterator[ClusterRows]:
    """Read the rows of a dask array. Its blocks are computed once, and held during the fit.

    y, and sample_weight and offset unless they are numbers, are dask arrays with blocks of as many
    rows, or in this process, if Dask knows how many rows the blocks of X have.
    """
    X = as_row_blocks(X)
    sample = sample_for(model, X)
    encoder = encoder_for(model.categorical_features, sample)
    if encoder is not None:
        read_table(model, encoder, sample, reset=True, ensure_min_samples=0)
    reader = type(model)(n_jobs=threads_in_task(model.n_jobs))
    reader.n_features_in_ = X.shape[1]
    blocks = X.to_delayed().ravel()
    targets = _like_rows("y", y, X).to_delayed()
    weights = _of_rows("sample_weight", sample_weight, X)
    offsets = _of_rows("offset", offset, X)
    cluster = DaskCluster()
    numbers = [(i, 0) for i in range(len(blocks))]
    given = map(BlockResults, (blocks, targets, weights, offsets, numbers))
    data = cluster.keep(read_block, *given, reader=reader)
    yield ClusterRows(cluster, data, X.shape[1], model.n_jobs)


def _of_rows(name: str, values: Any, X: Any) -> Any:
    """Return the blocks of a column; a number, or None, is the same for all of them."""
    if values is None or np.ndim(values) == 0:
        return [values] * X.numblocks[0]
    return _like_rows(name, values, X).to_delayed()


def _like_rows(name: str, values: Any, X: Any) -> Any:
    """Return a column as a dask array whose blocks are those of the rows of X."""
    rows = X.chunks[0]
    is_known = not any(map(math.isnan, rows))
    if hasattr(values, "to_dask_array"):  # a column of a dask DataFrame
        values = values.to_dask_array()
    if not isinstance(values, da.Array):
        if not is_known:
            raise ValueError(
                f"{name} is not a dask array, and Dask does not know how many rows the blocks of X "
                "have. Call X.compute_chunk_sizes(), which computes X."
            )
        values = da.from_array(np.asarray(values), chunks=-1)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must have one dimension; got shape {values.shape}.")
    if is_known and not any(map(math.isnan, values.chunks[0])):
        if values.shape[0] != X.shape[0]:
            raise ValueError(f"{name} has {values.shape[0]} rows, and X has {X.shape[0]}.")
        values = values.rechunk((rows,))
    elif values.numblocks[0] != len(rows):
        raise ValueError(
            f"{name} has {values.numblocks[0]} blocks, and X has {len(rows)}: both need the same "
            "rows in each block. If Dask knows the rows of blocks, by compute_chunk_sizes(), it "
            "divides them alike."
        )
    return values


def read_block(
    X: Any, y: Any, sample_weight: Any, offset: Any, number: tuple[int, ...], reader: Any
) -> DataBlock:
    """Read a block as a model does."""
    with errors_of_block(number):
        x, y = reader._read(X, y=y, reset=False, y_numeric=reader._y_numeric, ensure_min_samples=0)
        n_rows = x.shape[0]
        return DataBlock(x, y, as_weights(sample_weight, n_rows), as_offset(offset, n_rows))


# -------------------------------------------------------------------------------------- predicting


def predict(model: Any, X: Any, offset: Any = None, *, method: str) -> Any:
    """Return what a method of a fitted model gives for a dask array; nothing is computed."""
    check_is_fitted(model)
    X = as_row_blocks(X)
    light = copy_for_workers(model)
    meta = getattr(light, method)(as_encoded(light, rows_like(X, 1)))[:0]
    token = tokenize(
        X.name, method, light.coef_, light.intercept_, token_of(light.column_space_), offset
    )
    shape: dict[str, Any] = {"drop_axis": 1}
    if meta.ndim == 2:
        shape = {"chunks": (X.chunks[0], (meta.shape[1],))}
    if offset is not None and np.ndim(offset) > 0:
        offset = _like_rows("offset", offset, X)[:, np.newaxis]
    return da.map_blocks(
        predict_block,
        X,
        offset,
        same=delayed(light, name=f"{method}-same-{token}", traverse=False),
        method=method,
        name=f"{method}-{token}",
        meta=meta,
        dtype=meta.dtype,
        **shape,
    )


def predict_block(
    block: Any, offset: Any, same: Any, method: str, block_id: tuple[int, ...] | None = None
) -> Any:
    """Predict the rows of a block; its offset is a column, a number or None."""
    with errors_of_block(block_id):
        more = {} if offset is None else {"offset": offset[:, 0] if np.ndim(offset) else offset}
        if block.shape[0] == 0:
            one = np.zeros((1, block.shape[1]))
            return getattr(same, method)(as_encoded(same, one))[:0]
        return getattr(same, method)(as_encoded(same, block), **more)
