"""Compute an expansion in blocks of rows, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from polysparse import thresholds
from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import engine_for
from polysparse.expansion.planning import ExpansionPlan, plan_expansion
from polysparse.expansion.row_blocks import RowBlocks
from polysparse.machine import require_memory, threads_for
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.matrix.output import CsrRoom


def iter_expand_columns(
    columns: ColumnSpace, x: CanonicalCsr, *, n_jobs: int | None, max_bytes: int, reuse: bool
) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of the expansion of canonical input; errors are raised before the first."""
    planned, engine = plan_expansion(columns, x), engine_for(x)
    planned.require_countable()
    n_threads = threads_for(n_jobs, planned.nnz)
    wanted_bytes = thresholds.CACHE_PER_THREAD * n_threads if reuse else None
    offsets = engine.count(columns, x)
    blocks = RowBlocks(offsets, columns.n_columns, x.dtype, max_bytes, wanted_bytes)
    require_memory(min(blocks.limit, planned.nbytes), "A block", "Give a lower max_bytes.")

    def room_for(n_rows: int, nnz: int) -> CsrRoom:
        filled = blocks.index_dtype if columns.is_exact else planned.filled_index_dtype
        return CsrRoom(n_rows, nnz, blocks.index_dtype, filled, x.dtype)

    def expanded() -> Iterator[tuple[slice, Any]]:
        shared = room_for(*blocks.largest_size) if reuse else None
        for rows in blocks:
            n_rows, most = blocks.size_of(rows)
            room = shared or room_for(n_rows, most)
            nnz = engine.fill(columns, x, rows, room.rows(n_rows), n_threads)
            shape = n_rows, columns.n_columns
            yield rows, room.wrap(shape, nnz, blocks.index_dtype, is_array=x.is_array)

    return expanded()


def count_stored(planned: ExpansionPlan, x: CanonicalCsr) -> ExpansionPlan:
    """Return the exact plan for columns that are not exact, by expanding every row once."""
    blocks = iter_expand_columns(planned.columns, x, n_jobs=None, max_bytes=2**62, reuse=True)
    return count_in_blocks(planned, (block for _, block in blocks))


def count_in_blocks(planned: ExpansionPlan, blocks: Iterable[Any]) -> ExpansionPlan:
    """Return the exact plan, given all blocks of the expansion."""
    ends = planned.columns.degree_ends
    below, nnz = dict.fromkeys(ends, 0), 0  # below: stored values before the end of each degree
    for block in blocks:
        nnz += block.nnz
        for d, end in ends.items():
            below[d] += int(np.count_nonzero(block.indices < end))
    return planned.with_found(below, nnz)
