"""Spark as a Cluster: a pass is one job over blocks that Spark keeps, summed in their order.

Executors store the rows of their blocks as files (see `block_files`), and a job sends only the
numbers of blocks. Where a file is missing, because an executor was lost or Spark chose another one,
the block is sent and stored before the job is run again.

Other results for a block are described by a DeferredResult. A worker computes one when it is needed
and caches it while its process and the fit last. Another worker computes it again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any
from uuid import uuid4
from weakref import WeakSet, finalize

import numpy as np
from pyspark import RDD
from pyspark.sql import DataFrame

from polysparse.clusters.calls import GROUP_SIZE, Call
from polysparse.models.local_rows import add_in_order
from polysparse.models.row_store import Function
from polysparse.spark.block_files import remove, store, stored
from polysparse.spark.packing import NUMBER, unpack
from polysparse.spark.worker import prepare_process

MAX_FITS = 4  # whose rows a worker caches
MAX_ATTEMPTS = 3  # of a job that finds files missing, before all blocks are sent
_ROWS = 0  # the number of the step that stands for the rows
LARGE_BYTES = 2**17  # of arrays that all blocks share; larger ones are broadcast


@dataclass(frozen=True, eq=False)
class DeferredResult:
    """The result of a function for every block, computed by workers when it is needed.

    Attributes
    ----------
    number : int
        Key under which a worker caches the result.
    call : Call, or a Broadcast of it
        The function, and what all blocks share. None stands for the rows themselves.
    sent : dict of Broadcast
        More of what they share, sent before.
    arguments : tuple of DeferredResult
        Results that the function takes.
    is_once : bool
        Whether the result is not cached.
    """

    number: int
    call: Any = None
    sent: tuple[tuple[str, Any], ...] = ()
    arguments: tuple[DeferredResult, ...] = ()
    is_once: bool = True


@dataclass(frozen=True)
class SharedValue:
    """A value that was broadcast to all workers."""

    broadcast: Any


class SparkCluster:
    """Blocks of rows that Spark keeps, for the time of a fit.

    Parameters
    ----------
    blocks : DataFrame
        The blocks, packed.
    n_features : int
        Number of features.

    Attributes
    ----------
    rows : DeferredResult
        Stands for the rows of every block.
    """

    def __init__(self, blocks: DataFrame, n_features: int) -> None:
        self.blocks = blocks
        self.n_features = n_features
        self.name = uuid4().hex
        self.rows = DeferredResult(_ROWS)
        self._context = blocks.sparkSession.sparkContext
        self._packed = blocks.rdd
        self._numbers_of_blocks = blocks.select(NUMBER).rdd
        self._is_stored = False
        self._numbers = count(1)
        self._alive: WeakSet[DeferredResult] = WeakSet()
        self._finalizers: list[Any] = []

    def __enter__(self) -> SparkCluster:
        return self

    def __exit__(self, *_: object) -> None:
        for end in self._finalizers:
            end()
        if self._is_stored:
            with suppress(Exception):  # Spark removes the rest with the executor
                self._numbers_of_blocks.foreachPartition(partial(forget, self.name))
        self.blocks.unpersist()

    def share(self, value: Any) -> SharedValue:
        """Send a value to the workers once."""
        broadcast = self._context.broadcast(value)
        sent = SharedValue(broadcast)
        self._destroy_with(sent, broadcast)
        return sent

    def keep(
        self, function: Function, /, *kept: Any, once: bool = False, **shared: Any
    ) -> DeferredResult:
        """Return function(*kept, **shared) of every block, which workers compute when needed."""
        sent = {name: v.broadcast for name, v in shared.items() if isinstance(v, SharedValue)}
        own = {name: v for name, v in shared.items() if name not in sent}
        call: Any = Call.now(function, (), own)
        arrays = (value for value in own.values() if isinstance(value, np.ndarray))
        is_large = sum(array.nbytes for array in arrays) > LARGE_BYTES
        if is_large:
            call = self._context.broadcast(call)
        step = DeferredResult(next(self._numbers), call, tuple(sent.items()), kept, once)
        if is_large:
            self._destroy_with(step, call)
        self._alive.add(step)
        return step

    def total(self, function: Function, /, *kept: Any, **shared: Any) -> tuple[Any, ...]:
        """Return the sums over all blocks: a tree, in the order of partitions."""
        step = self.keep(function, *kept, once=True, **shared)
        alive = frozenset(each.number for each in self._alive)
        job = partial(contribute, step, self.name, alive, self.n_features)
        if not self._is_stored:
            self._store(list(range(self._packed.getNumPartitions())))
            self._is_stored = True
        for _ in range(MAX_ATTEMPTS):
            parts = self._collect(self._numbers_of_blocks, job)
            missing = [
                i for _, part in parts if isinstance(part, MissingBlocks) for i in part.partitions
            ]
            if not missing:
                break
            self._store(missing)
        else:
            parts = self._collect(self._packed, job)
        return add_in_order(part for _, part in sorted(parts, key=_number_of))

    def _collect(self, blocks: RDD[Any], job: Any) -> list[tuple[int, Any]]:
        sums = blocks.mapPartitionsWithIndex(job)
        parts: list[tuple[int, Any]] = in_order(sums, blocks.getNumPartitions()).collect()
        return parts

    def _store(self, partitions: list[int]) -> None:
        """Send the blocks of some partitions, to be stored where Spark keeps them."""
        storing = self._packed.mapPartitionsWithIndex(
            partial(store_blocks, self.name, self.n_features)
        )
        self._context.runJob(storing, list, partitions)

    def _destroy_with(self, owner: Any, broadcast: Any) -> None:
        """Destroy a broadcast when nothing refers to its owner, or the fit has ended."""
        self._finalizers = [end for end in self._finalizers if end.alive]
        self._finalizers.append(finalize(owner, broadcast.destroy))


# ---------------------------------------------------------------------------------- on the workers

_CACHE: OrderedDict[str, dict[Any, dict[int, Any]]] = OrderedDict()


@dataclass(frozen=True)
class MissingBlocks:
    """In place of sums: partitions of which blocks are not stored where they are needed."""

    partitions: tuple[int, ...]


class _NotStored(Exception):
    pass


def store_blocks(
    fit: str, n_features: int, partition: int, blocks: Iterator[Any]
) -> Iterator[None]:
    """Store the blocks of a partition; yield nothing."""
    for packed in blocks:
        store(fit, name_of(partition, packed), unpack(packed, n_features))
    yield from ()


def contribute(
    step: DeferredResult,
    fit: str,
    alive: frozenset[int],
    n_features: int,
    partition: int,
    blocks: Iterator[Any],
) -> Iterator[tuple[int, Any]]:
    """Yield the number of a partition and the sums of a result over its blocks.

    Blocks are packed, or only their numbers. If one of these is not stored here, MissingBlocks is
    yielded instead.
    """
    own = cached_results(fit)

    def sums() -> Iterator[Any]:
        for packed in blocks:
            name = name_of(partition, packed)
            known = own.setdefault(name, {})
            if _ROWS not in known:
                is_sent = len(packed) > 1
                rows = unpack(packed, n_features) if is_sent else stored(fit, name, n_features)
                if rows is None:
                    raise _NotStored
                known[_ROWS] = rows
            for old in known.keys() - alive - {_ROWS}:
                del known[old]
            yield result_of(step, known)

    try:
        yield partition, add_in_order(sums())
    except _NotStored:
        for _ in blocks:  # Spark stops a worker that leaves input unread
            pass
        yield partition, MissingBlocks((partition,))


def cached_results(fit: str) -> dict[Any, dict[int, Any]]:
    """Return what this worker has cached for a fit, by block."""
    prepare_process()
    own = _CACHE.setdefault(fit, {})
    _CACHE.move_to_end(fit)
    while len(_CACHE) > MAX_FITS:
        _CACHE.popitem(last=False)
    return own


def forget(fit: str, blocks: Iterator[Any]) -> None:
    """Clear what this worker has cached for a fit, and remove what its executor has stored."""
    for _ in blocks:
        pass
    _CACHE.pop(fit, None)
    remove(fit)


def name_of(partition: int, packed: Any) -> str:
    """Return the name of a block, of which at least the number is given."""
    return f"{partition}-{packed[0]}"


def result_of(step: DeferredResult, known: dict[int, Any]) -> Any:
    """Return the result of a step for a block, computed or cached."""
    if step.number in known:
        return known[step.number]
    call = step.call if isinstance(step.call, Call) else step.call.value
    shared = {name: each.value for name, each in step.sent}
    arguments = (result_of(each, known) for each in step.arguments)
    result = call.function(*arguments, **call.shared, **shared)
    if not step.is_once:
        known[step.number] = result
    return result


def in_order(parts: RDD[Any], n: int) -> RDD[Any]:
    """Return at most GROUP_SIZE numbered sums of n numbered ones, added in order by workers."""
    while n > GROUP_SIZE:
        n = -(-n // GROUP_SIZE)
        grouped = parts.map(_with_group).partitionBy(n, _same)
        parts = grouped.mapPartitions(add_groups)
    return parts


def add_groups(pairs: Iterator[tuple[int, tuple[int, Any]]]) -> Iterator[tuple[int, Any]]:
    """Yield the sums of each group, whose parts may come in any order."""
    groups: dict[int, list[tuple[int, Any]]] = {}
    for group, part in pairs:
        groups.setdefault(group, []).append(part)
    for group, parts in groups.items():
        missing = [
            i for _, each in parts if isinstance(each, MissingBlocks) for i in each.partitions
        ]
        if missing:
            yield group, MissingBlocks(tuple(missing))
        else:
            yield group, add_in_order(each for _, each in sorted(parts, key=_number_of))


def _with_group(part: tuple[int, Any]) -> tuple[int, tuple[int, Any]]:
    return part[0] // GROUP_SIZE, part


def _number_of(part: tuple[int, Any]) -> int:
    return part[0]


def _same(group: int) -> int:
    return group
