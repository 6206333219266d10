"""Where the blocks of a stream of rows end, all of whose rows are scored with the same weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LARGEST = 64  # rows in a block
GROWTH = 64  # a block has one row for so many that were seen
MOST_OUTPUTS = 2**20  # of a block, unless it has one row


def block_size(n_seen: int) -> int:
    """Return how many rows the block has that begins after `n_seen` rows."""
    return min(LARGEST, max(1, n_seen // GROWTH))


def block_ends(n_seen: int, n_outputs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the blocks end that can be completed with some rows.

    Parameters
    ----------
    n_seen : int
        Number of rows in earlier blocks.
    n_outputs : ndarray of int64
        Number of outputs of each of the rows that follow.

    Returns
    -------
    ndarray of int64
        One past the last row of each block. Rows after the last end are left for later.
    """
    n = len(n_outputs)
    if int(n_outputs.max(initial=0)) * LARGEST <= MOST_OUTPUTS:
        return _ends_by_rows(n_seen, n)
    before = np.concatenate([[0], np.cumsum(n_outputs)])
    ends: list[int] = []
    begin = 0
    while begin < n:
        end = begin + block_size(n_seen + begin)
        fitting = int(np.searchsorted(before, before[begin] + MOST_OUTPUTS, side="right")) - 1
        if fitting < min(end, n):
            end = max(begin + 1, fitting)
        if end > n:
            break
        ends.append(end)
        begin = end
    return np.array(ends, np.int64)


def _ends_by_rows(n_seen: int, n: int) -> NDArray[np.int64]:
    """Return where blocks of n rows end, if no block has too many outputs."""
    ends: list[int] = []
    end = block_size(n_seen)
    while end <= n and n_seen + end < LARGEST * GROWTH:
        ends.append(end)
        end += max(1, (n_seen + end) // GROWTH)  # block_size, which is below the largest
    return np.concatenate([np.array(ends, np.int64), np.arange(end, n + 1, LARGEST)])
