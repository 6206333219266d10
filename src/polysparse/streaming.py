"""From a file to a file, in bounded memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from polysparse.basis import MonomialBasis
from polysparse.canonical import as_canonical_csr
from polysparse.columns import AllColumns
from polysparse.expansion import iter_expand_in
from polysparse.machine import format_bytes
from polysparse.planning import ExpansionPlan, index_dtype_for
from polysparse.progress import Progress
from polysparse.sinks import Sink, is_written, open_sink, remove_asides, require_writable_target
from polysparse.sources import Source
from polysparse.store import describe

# Input is read in blocks of a 32nd of the memory: as arrays they take up to six times the text.
READ_PART, FILL_PART = 32, 2


def stream_expansion(
    source: Source,
    path: Path,
    basis: MonomialBasis,
    *,
    dtype: np.dtype[Any],
    max_memory: int,
    n_jobs: int | None,
    force: bool,
    resume: bool,
    progress: Progress,
) -> None:
    """Expand a source into a file or directory; on failure nothing is left of it.

    A run that is to be resumed leaves what it had, aside.
    """
    plan = source.plan(AllColumns(basis), dtype)
    require_room_for_rows(plan, max_memory)
    description = describe(
        basis,
        plan.index_dtype,
        dtype,
        has_labels=source.summary.has_labels,
        origin={**source.identity(), "zero_based": source.zero_based},
    )
    if resume and path.exists():
        if is_written(path, description):
            remove_asides(path)
            return
        require_writable_target(path, force=force, source=str(source.path))
    sink = open_sink(path, description, resume=resume)
    try:
        progress.start(sink.n_rows)
        if sink.n_rows < plan.n_rows:
            _fill(sink, source, plan, max_memory, n_jobs, progress)
        if sink.n_rows != plan.n_rows:
            raise ValueError(f"{source.path} changed while it was read.")
        sink.finish()
    except BaseException:
        if resume:
            sink.leave()
        else:
            sink.discard()
        raise


def _fill(
    sink: Sink,
    source: Source,
    plan: ExpansionPlan,
    max_memory: int,
    n_jobs: int | None,
    progress: Progress,
) -> None:
    """Expand what the sink does not have yet."""
    for X, labels in source.blocks(sink.n_rows, max(max_memory // READ_PART, 2**16)):
        x = as_canonical_csr(X.astype(plan.dtype, copy=False), n_jobs)
        blocks = iter_expand_in(
            plan.columns, x, n_jobs=n_jobs, max_bytes=max_memory // FILL_PART, reuse=True
        )
        for rows, block in blocks:
            sink.write(block, None if labels is None else labels[rows])
            progress.advance(rows.stop - rows.start, block.nnz, plan.bytes_per_value)


def memory_for_rows(plan: ExpansionPlan) -> int:
    """Memory in which the longest row can be expanded."""
    longest = max((n for n, _ in plan.row_lengths or ()), default=0)
    stored = sum(plan.basis.count(longest, d) for d in plan.nnz_by_degree)
    itemsize = index_dtype_for(max(plan.basis.n_columns, stored)).itemsize
    return FILL_PART * (stored * (itemsize + plan.dtype.itemsize) + 2 * itemsize)


def require_room_for_rows(plan: ExpansionPlan, max_memory: int) -> None:
    """Raise if a row alone is larger than the memory allows."""
    needed = memory_for_rows(plan)
    if needed > max_memory:
        raise MemoryError(
            f"--max-memory={max_memory} ({format_bytes(max_memory)}) is too little: the longest "
            f"row alone needs --max-memory={needed} ({format_bytes(needed)})."
        )
