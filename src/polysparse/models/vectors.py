"""Sums and updates of long vectors, a block at a time.

A block stays in cache from one step to the next, no temporary is as long as a vector, and blocks
are added in their order. BLAS is not used: its sums depend on how many threads it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.machine import threads_for

Vector = NDArray[np.float64]

BLOCK = 2**15

# Threads share longer blocks, and only a few threads do: Python runs one at a time between calls of
# NumPy. The losses of a million rows take 16.6 ms on one thread and 11.4 ms on two, with blocks of
# 2**15 14.1 ms; 16 threads with those were slower than one.
SHARED_BLOCK = 2**16
MOST_THREADS = 4
COST = 16  # of what is done for a place, in outputs of an expansion


def blocks_of(*vectors: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield views of the same places of flat vectors, from the first to the last."""
    step = block_length(vectors[0], BLOCK)
    for start in range(0, len(vectors[0]), step):
        yield tuple(v[start : start + step] for v in vectors)


def block_length(vector: NDArray[Any], length: int) -> int:
    """Return how many elements a block has: all, if they are on a GPU."""
    return length if isinstance(vector, np.ndarray) else max(len(vector), 1)


def map_blocks(
    function: Callable[[slice], Any], vector: NDArray[Any], n_jobs: int | None
) -> list[Any]:
    """Return function(places) for each block of a vector, at least one, in their order.

    Threads share the blocks: the function should take its time in NumPy, which lets others run.
    """
    n, step = len(vector), block_length(vector, SHARED_BLOCK)
    blocks = [slice(i, min(i + step, n)) for i in range(0, max(n, 1), step)]
    n_threads = min(threads_for(n_jobs, COST * n), len(blocks), MOST_THREADS)
    if n_threads == 1:
        return [function(block) for block in blocks]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, blocks))


def dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return the sum of products of two contiguous arrays of the same shape."""
    return sum(float(np.einsum("i,i->", *each)) for each in blocks_of(a.ravel(), b.ravel()))


def add_scaled(x: Vector, scale: float, y: Vector) -> None:
    """Add scale * y to x."""
    for x_part, y_part in blocks_of(x, y):
        x_part += scale * y_part
