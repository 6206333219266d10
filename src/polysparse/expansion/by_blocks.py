"""Compute an expansion in blocks of rows, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse import thresholds
from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import cpu
from polysparse.expansion.budgets import threads_within
from polysparse.expansion.planning import ExpansionPlan, plan_expansion
from polysparse.expansion.row_blocks import RowBlocks
from polysparse.machine import available_if_less, require_memory, threads_for
from polysparse.matrix import output
from polysparse.matrix.canonical import Canonical, CanonicalCsr, CanonicalDense
from polysparse.matrix.output import CsrBuffers


def iter_expand_columns(
    columns: ColumnSpace, x: Canonical, *, n_jobs: int | None, max_bytes: int, reuse: bool
) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of the expansion of canonical input; errors are raised before the first.

    Columns must be exact if the input is dense.
    """
    x = x.sorted_by_group(columns.basis)
    planned = plan_expansion(columns, x)
    planned._require_countable()
    n_threads = threads_for(n_jobs, planned.nnz)
    if isinstance(x, CanonicalDense):
        offsets = columns.n_columns * np.arange(x.shape[0] + 1, dtype=np.int64)
    else:
        offsets = cpu.count(columns, x)
    blocks = RowBlocks(offsets, columns.n_columns, x.dtype, max_bytes, is_sparse=planned.is_sparse)
    n_threads = _threads_beside(blocks, planned, n_threads)
    working = planned._working_bytes(n_threads)
    blocks.leave(working)
    if reuse:
        blocks.keep_small(thresholds.CACHE_PER_THREAD * n_threads)
    needed = min(blocks.limit, planned.nbytes) + working
    require_memory(needed, "A block", "Pass a lower max_bytes.")
    if isinstance(x, CanonicalDense):
        return _dense_blocks(columns, x, blocks, n_threads, reuse)
    return _sparse_blocks(columns, x, blocks, n_threads, reuse)


def _threads_beside(blocks: RowBlocks, planned: ExpansionPlan, n_threads: int) -> int:
    """Return how many threads to use: they may need half of the memory that a block may take."""
    needed = min(blocks.limit, planned.nbytes) + planned._working_bytes(n_threads)
    available = available_if_less(needed)
    limit = blocks.limit if available is None else min(blocks.limit, available)
    return threads_within(planned, limit - max(blocks.least, limit // 2), n_threads)


def _sparse_blocks(
    columns: ColumnSpace, x: CanonicalCsr, blocks: RowBlocks, n_threads: int, reuse: bool
) -> Iterator[tuple[slice, Any]]:
    filled = blocks.index_dtype if columns.is_exact else np.dtype(np.int32)

    def buffers_for(n_rows: int, nnz: int) -> CsrBuffers:
        return CsrBuffers.fresh(n_rows, nnz, blocks.index_dtype, filled, x.dtype)

    shared = buffers_for(*blocks.largest_size) if reuse else None
    with cpu.keeping_threads() as call:
        for rows in blocks:
            n_rows, most = blocks.size_of(rows)
            buffers = shared or buffers_for(n_rows, most)
            nnz = call(cpu.fill, columns, x, rows, buffers.rows(n_rows), n_threads)
            if nnz < 0:
                raise changed_error()
            shape = n_rows, columns.n_columns
            yield rows, buffers.wrap(shape, nnz, blocks.index_dtype, is_array=x.is_array)


def changed_error() -> RuntimeError:
    """Return the error to raise if X turns out to have changed."""
    return RuntimeError(
        "X has changed while it was expanded: its columns are no longer those that were checked. "
        "Let no other thread write to X meanwhile, or pass a copy."
    )


def _dense_blocks(
    columns: ColumnSpace, x: CanonicalDense, blocks: RowBlocks, n_threads: int, reuse: bool
) -> Iterator[tuple[slice, Any]]:
    def buffers_for(n_rows: int) -> NDArray[Any]:
        return output.allocate((n_rows, columns.n_columns), x.dtype)

    shared = buffers_for(blocks.largest_size[0]) if reuse else None
    with cpu.keeping_threads() as call:
        for rows in blocks:
            n_rows, _ = blocks.size_of(rows)
            block = buffers_for(n_rows) if shared is None else shared[:n_rows]
            call(cpu.fill_dense, columns, x.values[rows], block, n_threads)
            yield rows, block


def count_stored(planned: ExpansionPlan, x: CanonicalCsr, n_jobs: int | None) -> ExpansionPlan:
    """Return the exact plan for columns that are not exact, by expanding every row once."""
    blocks = iter_expand_columns(planned.columns, x, n_jobs=n_jobs, max_bytes=2**62, reuse=True)
    return count_in_blocks(planned, (block for _, block in blocks))


def count_in_blocks(planned: ExpansionPlan, blocks: Iterable[Any]) -> ExpansionPlan:
    """Return the exact plan, given all blocks of the expansion."""
    ends = planned.columns.degree_ends
    below, nnz = dict.fromkeys(ends, 0), 0  # below: stored values before the end of each degree
    for block in blocks:
        nnz += block.nnz
        for d, end in ends.items():
            below[d] += int(np.count_nonzero(block.indices < end))
    return planned._with_found(below, nnz)
