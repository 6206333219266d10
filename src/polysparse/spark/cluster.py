"""Spark as a Cluster: a pass is one job over blocks that Spark keeps, summed in their order.

Executors store the rows of their blocks as files (see `storing`), and a job sends the numbers of
blocks alone. Where a file is missing, because it is the first job, an executor was lost, or Spark
chose another one, the block is sent and stored before the job is run again.

What else is kept of a block is a description of how to make it. A worker makes it when it needs it,
and remembers it as long as its process lives and the fit needs it. Another worker makes it again.
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

from polysparse.clusters.calls import TOGETHER, Call
from polysparse.models.blocks import Function, add_in_order
from polysparse.spark.packing import NUMBER, unpack
from polysparse.spark.storing import remove, store, stored
from polysparse.spark.worker import prepare_process

MOST_FITS = 4  # that a worker remembers rows of
MOST_TRIALS = 3  # of a job that finds files missing, before all blocks are sent
_ROWS = 0  # the number of the step that stands for the rows
LARGE = 2**17  # bytes of what all blocks are told, which are sent apart


@dataclass(frozen=True, eq=False)
class Step:
    """A call of a function for every block, as it travels to the workers.

    Attributes
    ----------
    number : int
        Under which a worker remembers the result.
    call : Call, or a Broadcast of it
        The function, and what all blocks share. None stands for the rows themselves.
    sent : dict of Broadcast
        More of what they share, sent before.
    arguments : tuple of Step
        Whose results the function takes.
    is_once : bool
        Whether the result is not remembered.
    """

    number: int
    call: Any = None
    sent: tuple[tuple[str, Any], ...] = ()
    arguments: tuple[Step, ...] = ()
    is_once: bool = True


@dataclass(frozen=True)
class Sent:
    """What was sent to all workers before."""

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
    rows : Step
        What stands for the rows of every block.
    """

    def __init__(self, blocks: DataFrame, n_features: int) -> None:
        self.blocks = blocks
        self.n_features = n_features
        self.name = uuid4().hex
        self.rows = Step(_ROWS)
        self._context = blocks.sparkSession.sparkContext
        self._packed = blocks.rdd
        self._numbers_of_blocks = blocks.select(NUMBER).rdd
        self._is_stored = False
        self._numbers = count(1)
        self._alive: WeakSet[Step] = WeakSet()
        self._endings: list[Any] = []

    def __enter__(self) -> SparkCluster:
        return self

    def __exit__(self, *_: object) -> None:
        for end in self._endings:
            end()
        if self._is_stored:
            with suppress(Exception):  # what is left goes with the executor
                self._numbers_of_blocks.foreachPartition(partial(forget, self.name))
        self.blocks.unpersist()

    def share(self, value: Any) -> Sent:
        """Send a value to the workers once."""
        broadcast = self._context.broadcast(value)
        sent = Sent(broadcast)
        self._forget_with(sent, broadcast)
        return sent

    def keep(self, function: Function, /, *kept: Any, once: bool = False, **shared: Any) -> Step:
        """Keep function(*kept, **shared) of every block: every worker makes it for itself."""
        sent = {name: v.broadcast for name, v in shared.items() if isinstance(v, Sent)}
        own = {name: v for name, v in shared.items() if name not in sent}
        call: Any = Call.now(function, (), own)
        arrays = (value for value in own.values() if isinstance(value, np.ndarray))
        is_large = sum(array.nbytes for array in arrays) > LARGE
        if is_large:
            call = self._context.broadcast(call)
        step = Step(next(self._numbers), call, tuple(sent.items()), kept, once)
        if is_large:
            self._forget_with(step, call)
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
        for _ in range(MOST_TRIALS):
            parts = self._collect(self._numbers_of_blocks, job)
            missing = [i for _, part in parts if isinstance(part, Missing) for i in part.partitions]
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

    def _forget_with(self, owner: Any, broadcast: Any) -> None:
        """Let workers forget a broadcast when nothing refers to its owner, or the fit has ended."""
        self._endings = [end for end in self._endings if end.alive]
        self._endings.append(finalize(owner, broadcast.destroy))


# ---------------------------------------------------------------------------------- on the workers

_REMEMBERED: OrderedDict[str, dict[Any, dict[int, Any]]] = OrderedDict()


@dataclass(frozen=True)
class Missing:
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
    step: Step,
    fit: str,
    alive: frozenset[int],
    n_features: int,
    partition: int,
    blocks: Iterator[Any],
) -> Iterator[tuple[int, Any]]:
    """Yield the number of a partition and the sums of what its blocks contribute to a step.

    Blocks are packed, or only their numbers. If one of these is not stored here, Missing is yielded
    instead.
    """
    own = remembered(fit)

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
        for _ in blocks:  # Spark ends a worker that does not read all it is sent
            pass
        yield partition, Missing((partition,))


def remembered(fit: str) -> dict[Any, dict[int, Any]]:
    """Return what this worker remembers of a fit, by blocks."""
    prepare_process()
    own = _REMEMBERED.setdefault(fit, {})
    _REMEMBERED.move_to_end(fit)
    while len(_REMEMBERED) > MOST_FITS:
        _REMEMBERED.popitem(last=False)
    return own


def forget(fit: str, blocks: Iterator[Any]) -> None:
    """Forget what this worker remembers of a fit, and remove what its executor has stored."""
    for _ in blocks:
        pass
    _REMEMBERED.pop(fit, None)
    remove(fit)


def name_of(partition: int, packed: Any) -> str:
    """Return the name of a block, of which at least the number is given."""
    return f"{partition}-{packed[0]}"


def result_of(step: Step, known: dict[int, Any]) -> Any:
    """Return the result of a step for a block, made anew or remembered."""
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
    """Return at most TOGETHER numbered sums of n numbered ones, added by workers in their order."""
    while n > TOGETHER:
        n = -(-n // TOGETHER)
        grouped = parts.map(_with_group).partitionBy(n, _same)
        parts = grouped.mapPartitions(add_groups)
    return parts


def add_groups(pairs: Iterator[tuple[int, tuple[int, Any]]]) -> Iterator[tuple[int, Any]]:
    """Yield the sums of each group, whose parts may come in any order."""
    groups: dict[int, list[tuple[int, Any]]] = {}
    for group, part in pairs:
        groups.setdefault(group, []).append(part)
    for group, parts in groups.items():
        missing = [i for _, each in parts if isinstance(each, Missing) for i in each.partitions]
        if missing:
            yield group, Missing(tuple(missing))
        else:
            yield group, add_in_order(each for _, each in sorted(parts, key=_number_of))


def _with_group(part: tuple[int, Any]) -> tuple[int, tuple[int, Any]]:
    return part[0] // TOGETHER, part


def _number_of(part: tuple[int, Any]) -> int:
    return part[0]


def _same(group: int) -> int:
    return group
