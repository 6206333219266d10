"""Direct calls of the workers that hold the blocks of a fit.

A fit waits for the result of each pass. Dask takes about 30 ms to schedule a graph, and more with
many blocks; a direct call takes three. If it fails, a graph is computed instead, with the same
result: Dask then computes again what was lost with a worker, and reports why a call fails.

So everything that is kept of a block must be on one worker. Dask runs a task on a worker that holds
something the task depends on, so each worker gets its own copy of what blocks share. Tasks are not
restricted to workers: Dask (2026.8) never runs a restricted task again if all workers were lost at
once, even with `allow_other_workers`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

from dask import delayed
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
        self._copies: dict[Any, list[Any]] = {}  # of shared values
        self._failures_left = MOST_FAILURES

    @classmethod
    def of(cls, held: Sequence[Any]) -> Holders | None:
        """Return the workers that hold these results, or None if there is no cluster.

        Also None within a task: it would occupy a thread that may be needed for the result.
        """
        futures = futures_of(list(held))  # it does not look into subclasses of list
        if not futures or futures[0].client.asynchronous or _is_in_task():
            return None
        return cls(futures[0].client)

    def shared_copies(self, shared: Any, rows: Sequence[Any]) -> list[Any]:
        """Return the copy of a shared value that the worker of each block holds."""
        if shared not in self._copies:
            self._copies[shared] = self.client.persist(self.copies(shared.value, rows))
        return self._copies[shared]

    def copies(self, value: Any, rows: Sequence[Any]) -> list[Any]:
        """Return a delayed copy of a value for each block, the same for blocks of one worker."""
        places = [min(holders, default=None) for holders in self._find(rows)]
        some_row = dict(zip(places, rows, strict=True)) | {None: None}  # None: not computed yet
        task = delayed(partial(copy_beside, value), pure=False)
        copy_at = {place: task(some_row[place]) for place in set(places)}
        return [copy_at[place] for place in places]

    def make(self, function: Function, blocks: Sequence[Sequence[Any]]) -> list[Any] | None:
        """Return function(*arguments) for every block, or None if a graph must compute it.

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
        except Exception:  # the graph raises the error again, or succeeds
            self._failures_left -= 1
            self._known.clear()
            self._copies.clear()
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
        """Wait for results; return the addresses of the workers that hold each of them."""
        unknown = [each for each in held if each.key not in self._known]
        if unknown:
            futures = futures_of(unknown)
            with self.client.as_current():
                wait(futures)
            found = self.client.who_has(futures)
            self._known.update({key: set(holders) for key, holders in found.items()})
        return [self._known.get(each.key, set()) for each in held]


def copy_beside(value: Any, _: Any) -> Any:
    """Return a value, in a task that runs where the other argument is."""
    return value


def _is_in_task() -> bool:
    try:
        get_worker()
    except ValueError:
        return False
    return True


async def answer(
    function: Function, tasks: dict[str, list[Any]], most: int, dask_worker: Worker
) -> list[tuple[int, Any]]:
    """Return the results of one worker's blocks, except missing and too large ones."""
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
