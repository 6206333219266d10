"""Compute an expansion in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse import machine, thresholds
from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import cpu
from polysparse.expansion import budgets
from polysparse.expansion.budgets import MemoryLimit
from polysparse.expansion.by_blocks import changed_error, count_stored, iter_expand_columns
from polysparse.expansion.planning import ExpansionPlan, plan_expansion
from polysparse.machine import threads_for
from polysparse.matrix import output
from polysparse.matrix.canonical import Canonical, CanonicalCsr, CanonicalDense
from polysparse.matrix.out_argument import as_csr_out, as_dense_out
from polysparse.matrix.output import CsrBuffers, index_dtype_for, largest_index


def expand_columns(
    columns: ColumnSpace,
    x: Canonical,
    *,
    n_jobs: int | None,
    max_bytes: int | str | None,
    order: str = "C",
    ways_out: Sequence[str] = (),
    out: Any = None,
) -> Any:
    """Expand canonical input into given columns, which must be exact if the input is dense.

    `ways_out` says what else the caller can do if the result is too large. If `out` is given,
    nothing is allocated and no limit holds.
    """
    x = x.sorted_by_group(columns.basis)
    planned = plan_expansion(columns, x)
    n_threads = threads_for(n_jobs, planned.nnz)
    if out is not None:
        return _expand_into(out, planned, x, n_threads)
    is_costly = planned.is_upper_bound and planned.nbytes > thresholds.MOST_SET_ASIDE
    if is_costly and isinstance(x, CanonicalCsr):
        planned = count_stored(planned, x, n_jobs)
    limit = budgets.limit_of(planned, max_bytes, ways_out, n_threads)
    if isinstance(x, CanonicalDense):
        budgets.values_within(planned, limit)
        out = output.allocate(planned.shape, planned.dtype, order)
        cpu.fill_dense(columns, x.values, out, n_threads)
        return out
    if limit.n_bytes is not None:  # a result of unknown size is left at least half of it
        least = max(limit.n_bytes // 2, 8 * (planned.n_rows + 1))
        for_result = min(planned.nbytes, least) if planned.is_upper_bound else planned.nbytes
        n_threads = budgets.threads_within(planned, limit.n_bytes - for_result, n_threads)
    buffers, nnz = _fill_within(limit, planned, x, n_threads)
    buffers.trim(nnz)
    index_dtype = index_dtype_for(max(columns.n_columns, nnz))
    return buffers.wrap(planned.shape, nnz, index_dtype, is_array=x.is_array)


def _fill_within(
    limit: MemoryLimit, planned: ExpansionPlan, x: CanonicalCsr, n_threads: int
) -> tuple[CsrBuffers, int]:
    """Return new memory with the expansion, and how many values that stores.

    The size of a result in chosen or hashed columns is known only once it is computed. Unless it
    was counted, buffers are for the largest result that is possible or allowed: only pages that are
    written take memory.
    """
    most, rows = budgets.values_within(planned, limit, n_threads), slice(0, planned.n_rows)
    buffers = CsrBuffers.fresh(
        planned.n_rows, most, planned.index_dtype, filled_index_dtype(planned), planned.dtype
    )
    nnz = cpu.fill(planned.columns, x, rows, buffers.rows(planned.n_rows), n_threads)
    if nnz >= 0:
        return buffers, nnz
    if most == planned.nnz:
        raise changed_error()
    working, least = planned._working_bytes(n_threads), planned._working_bytes(1)
    needed = buffers.nbytes + buffers.indices.itemsize + buffers.data.itemsize
    if working == least:
        budgets.refuse(planned, limit, "at least ", needed, working)
    del buffers  # one thread leaves more of the limit to the result
    return _fill_within(limit, planned, x, 1)


def filled_index_dtype(planned: ExpansionPlan) -> np.dtype[Any]:
    """Return the dtype in which indices are written: int32 for chosen and hashed columns."""
    return planned.index_dtype if planned.columns.is_exact else np.dtype(np.int32)


def _expand_into(out: Any, planned: ExpansionPlan, x: Canonical, n_threads: int) -> Any:
    """Expand into memory that the caller gives."""
    planned._require_countable()
    columns = planned.columns
    if isinstance(x, CanonicalDense):
        dense = as_dense_out(out, planned.shape, planned.dtype)
        cpu.fill_dense(columns, x.values, dense, n_threads)
        return dense
    index_dtype = filled_index_dtype(planned)
    needed = planned.nnz if columns.is_exact else 0
    buffers = as_csr_out(out, planned.n_rows, needed, index_dtype, planned.dtype)
    most = min(len(buffers.indices), len(buffers.data), largest_index(index_dtype))
    indptr, indices, data = buffers.rows(planned.n_rows)
    arrays = indptr, indices[:most], data[:most]
    nnz = cpu.fill(columns, x, slice(0, planned.n_rows), arrays, n_threads)
    if nnz < 0:
        raise ValueError(
            f"out has room for {most:,} stored values, and the result has more: at most "
            f"{planned.nnz:,}. Pass longer arrays, or no out."
        )
    return buffers.wrap(planned.shape, nnz, index_dtype, is_array=x.is_array)


def expand_densely(
    columns: ColumnSpace, x: CanonicalCsr, *, n_jobs: int | None, way_out: str
) -> NDArray[Any]:
    """Expand into given columns as a dense array, zeros included, in the available memory."""
    columns.require_indexable()
    n_rows, n_columns = x.shape[0], columns.n_columns
    machine.require_memory(
        n_rows * n_columns * x.dtype.itemsize,
        f"A dense result of shape {n_rows:,} x {n_columns:,}",
        way_out,
    )
    out = output.allocate((n_rows, n_columns), x.dtype)
    blocks = iter_expand_columns(columns, x, n_jobs=n_jobs, max_bytes=2**62, reuse=True)
    for rows, block in blocks:
        if block.nnz and not 0 <= block.indices.min() <= block.indices.max() < n_columns:
            raise changed_error()  # SciPy would write anywhere
        block.toarray(out=out[rows])
    return out
