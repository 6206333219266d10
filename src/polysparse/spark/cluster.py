"""Spark as a Cluster: a pass is one job over blocks that Spark keeps, summed in their order.

What else is kept of a block is a description of how to make it. A worker makes it when it needs it,
and remembers it as long as its process lives and the fit needs it. Another worker makes it again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any
from uuid import uuid4
from weakref import WeakSet, finalize

import numpy as np
from pyspark import RDD

from polysparse.clusters.calls import Call
from polysparse.clusters.fitting import TOGETHER
from polysparse.clusters.rows import Rows
from polysparse.models.blocks import Function, add_in_order
from polysparse.spark.packing import Packed, unpack

MOST_FITS = 4  # that a worker remembers rows of


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
    blocks : RDD
        The blocks, packed.

    Attributes
    ----------
    rows : Step
        What stands for the rows of every block.
    """

    def __init__(self, blocks: RDD[Packed]) -> None:
        self.blocks = blocks
        self.name = uuid4().hex
        self.rows = Step(0)
        self._numbers = count(1)
        self._alive: WeakSet[Step] = WeakSet()
        self._endings: list[Any] = []

    def __enter__(self) -> SparkCluster:
        return self

    def __exit__(self, *_: object) -> None:
        for end in self._endings:
            end()
        self.blocks.unpersist()

    def share(self, value: Any) -> Sent:
        """Send a value to the workers once."""
        broadcast = self.blocks.context.broadcast(value)
        sent = Sent(broadcast)
        self._forget_with(sent, broadcast)
        return sent

    def keep(self, function: Function, /, *kept: Any, once: bool = False, **shared: Any) -> Step:
        """Keep function(*kept, **shared) of every block: every worker makes it for itself."""
        sent = {name: v.broadcast for name, v in shared.items() if isinstance(v, Sent)}
        own = {name: v for name, v in shared.items() if name not in sent}
        call: Any = Call.now(function, (), own)
        is_large = any(isinstance(value, np.ndarray) for value in own.values())
        if is_large:
            call = self.blocks.context.broadcast(call)
        step = Step(next(self._numbers), call, tuple(sent.items()), kept, once)
        if is_large:
            self._forget_with(step, call)
        self._alive.add(step)
        return step

    def total(self, function: Function, /, *kept: Any, **shared: Any) -> tuple[Any, ...]:
        """Return the sums over all blocks: a tree, in the order of partitions."""
        step = self.keep(function, *kept, once=True, **shared)
        alive = frozenset(each.number for each in self._alive)
        sums = self.blocks.mapPartitionsWithIndex(partial(contribute, step, self.name, alive))
        parts = in_order(sums, self.blocks.getNumPartitions()).collect()
        return add_in_order(part for _, part in sorted(parts, key=_number_of))

    def _forget_with(self, owner: Any, broadcast: Any) -> None:
        """Let workers forget a broadcast when nothing refers to its owner, or the fit has ended."""
        self._endings = [end for end in self._endings if end.alive]
        self._endings.append(finalize(owner, broadcast.destroy))


# ---------------------------------------------------------------------------------- on the workers

_REMEMBERED: OrderedDict[str, dict[Any, dict[int, Any]]] = OrderedDict()


def contribute(
    step: Step, fit: str, alive: frozenset[int], partition: int, blocks: Iterator[Packed]
) -> Iterator[tuple[int, Any]]:
    """Yield the number of a partition and the sums of what its blocks contribute to a step."""
    own = _REMEMBERED.setdefault(fit, {})
    _REMEMBERED.move_to_end(fit)
    while len(_REMEMBERED) > MOST_FITS:
        _REMEMBERED.popitem(last=False)

    def sums() -> Iterator[Any]:
        for number, packed in enumerate(blocks):
            known = own.setdefault((partition, number), {})
            for old in known.keys() - alive:
                del known[old]
            yield result_of(step, unpack(packed), known)

    yield partition, add_in_order(sums())


def result_of(step: Step, rows: Rows, known: dict[int, Any]) -> Any:
    """Return the result of a step for a block, made anew or remembered."""
    if step.call is None:
        return rows
    if step.number in known:
        return known[step.number]
    call = step.call if isinstance(step.call, Call) else step.call.value
    shared = {name: each.value for name, each in step.sent}
    arguments = (result_of(each, rows, known) for each in step.arguments)
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
        yield group, add_in_order(each for _, each in sorted(parts, key=_number_of))


def _with_group(part: tuple[int, Any]) -> tuple[int, tuple[int, Any]]:
    return part[0] // TOGETHER, part


def _number_of(part: tuple[int, Any]) -> int:
    return part[0]


def _same(group: int) -> int:
    return group
