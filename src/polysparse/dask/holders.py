"""Direct calls of the workers that hold the blocks of a fit.

A fit waits for the result of each pass. Dask takes about 30 ms to schedule a graph, and more with
many blocks; a direct call takes three. If it fails, a graph is computed instead, with the same
result: Dask then computes again what was lost with a worker, and reports why a call fails.

So everything that is kept of a block must be on one worker. Dask itself would run a task on the
least busy worker, even if a block has to be sent there.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

from dask.sizeof import sizeof
from distributed import Client, Worker, futures_of, get_worker, wait

from polysparse.models.row_store import Function

MOST_BYTES = 2**26  # of all results, which go through the scheduler and are added up here
MOST_FAILURES = 3


class Holders:
    """Workers of a client that hold blocks.

    Parameters
    ----------
    client : Client
        Whose workers they are.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._known: dict[Hashable, set[str]] = {}
        self._failures_left = MOST_FAILURES

    @classmethod
    def of(cls, held: Sequence[Any]) -> Holders | None:
        """Return those of a client that holds results, or None if none does.

        Nor does a task ask: to wait for an answer, it would keep a thread that may have to give it.
        """
        futures = futures_of(list(held))  # which looks into lists, but into no class of them
        if not futures or futures[0].client.asynchronous or _is_in_task():
            return None
        return cls(futures[0].client)

    def persist(self, tasks: Sequence[Any], blocks: Sequence[Any]) -> list[Any]:
        """Persist a task for every block on its worker, or on another one if that is lost."""
        numbers_at = defaultdict(list)
        for i, holders in enumerate(self._find(blocks)):
            numbers_at[min(holders, default=None)].append(i)
        persisted = list(tasks)
        for holder, numbers in numbers_at.items():
            where = {"workers": [holder], "allow_other_workers": True} if holder else {}
            for i, each in zip(
                numbers, self.client.persist([tasks[i] for i in numbers], **where), strict=True
            ):
                persisted[i] = each
        return persisted

    def make(self, function: Function, blocks: Sequence[Sequence[Any]]) -> list[Any] | None:
        """Return function(*arguments) for every block, or None if a graph has to do it.

        Parameters
        ----------
        function : callable
            A pure function.
        blocks : sequence of sequence of Delayed
            The arguments of each block, persisted.
        """
        if self._failures_left == 0:
            return None
        try:
            tasks = self._tasks_of_holders(blocks)
            most = MOST_BYTES // max(len(blocks), 1)
            answers = self.client.run(answer, function, tasks, most, workers=list(tasks))
            results = dict(pair for answered in answers.values() for pair in answered)
            return [results[i] for i in range(len(blocks))]
        except Exception:  # the graph tells what is wrong, or finds a way
            self._failures_left -= 1
            self._known.clear()
            return None

    def _tasks_of_holders(self, blocks: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
        """Return the numbers and keys of the blocks of each worker."""
        self._find([each for block in blocks for each in block])
        tasks = defaultdict(list)
        for i, block in enumerate(blocks):
            of_all = set.intersection(*self._find(block))
            tasks[min(of_all)].append((i, [each.key for each in block]))
        return dict(tasks)

    def _find(self, held: Sequence[Any]) -> list[set[str]]:
        """Return the addresses of those who hold each of several results, once these are there."""
        unknown = [each for each in held if each.key not in self._known]
        if unknown:
            futures = futures_of(unknown)
            with self.client.as_current():
                wait(futures)
            found = self.client.who_has(futures)
            self._known.update({key: set(holders) for key, holders in found.items()})
        return [self._known.get(each.key, set()) for each in held]


def _is_in_task() -> bool:
    try:
        get_worker()
    except ValueError:
        return False
    return True


async def answer(
    function: Function, tasks: dict[str, list[Any]], most: int, dask_worker: Worker
) -> list[tuple[int, Any]]:
    """Return the results of one worker's blocks, without those that are not there or too large."""
    loop, slots = asyncio.get_running_loop(), asyncio.Semaphore(dask_worker.state.nthreads)
    executor = dask_worker.executors["default"]

    async def make(number: int, keys: list[Hashable]) -> list[tuple[int, Any]]:
        async with slots:
            if any(key not in dask_worker.data for key in keys):
                return []
            arguments = [dask_worker.data[key] for key in keys]
            result = await loop.run_in_executor(executor, function, *arguments)
            return [(number, result)] if sizeof(result) <= most else []

    made = await asyncio.gather(*(make(*task) for task in tasks[dask_worker.address]))
    return [pair for pairs in made for pair in pairs]
