"""Passes over the rows of a file: reading them, expanding them, counting their outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from polysparse.columns.spaces import ColumnSpace
from polysparse.expansion.by_blocks import count_in_blocks, iter_expand_columns
from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.errors import FileFault, faults_of
from polysparse.files.source import Source
from polysparse.matrix.canonical import CanonicalCsr, as_canonical_csr
from polysparse.stream.memory import (
    FILL_SHARE,
    bytes_to_read,
    memory_for_columns,
    memory_for_rows,
    require_room_for_rows,
)
from polysparse.stream.resources import Resources


def plan_file(source: Source, columns: ColumnSpace, dtype: np.dtype[Any]) -> ExpansionPlan:
    """Plan the expansion of a file.

    Sizes are an upper bound if `source.is_upper_bound`, or if there are groups or terms, since the
    summary of a file has the lengths of rows alone.
    """
    return ExpansionPlan(columns, source.summary.profile, dtype)


def read_rows(
    source: Source, skip_rows: int, max_memory: int, dtype: np.dtype[Any], n_jobs: int | None
) -> Iterator[tuple[CanonicalCsr, Any]]:
    """Yield blocks of canonical rows of a dtype, each with its labels or None."""
    for X, labels in source.blocks(skip_rows, bytes_to_read(max_memory)):
        with faults_of(source.path):
            x = as_canonical_csr(X.astype(dtype, copy=False), n_jobs)
        yield x, labels


def expand_rows(
    source: Source, plan: ExpansionPlan, skip_rows: int, resources: Resources
) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of the expansion with labels or None; each is valid until the next one."""
    rest = resources.memory - memory_for_columns(plan) - source.resident_bytes
    rest = max(rest, memory_for_rows(plan))
    for x, labels in read_rows(source, skip_rows, rest, plan.dtype, resources.n_jobs):
        blocks = iter_expand_columns(
            plan.columns, x, n_jobs=resources.n_jobs, max_bytes=rest // FILL_SHARE, reuse=True
        )
        for rows, block in blocks:
            yield block, None if labels is None else labels[rows]


def count_values(source: Source, plan: ExpansionPlan, resources: Resources) -> ExpansionPlan:
    """Return the exact plan, by reading every row once; rows are expanded only if they must be."""
    if plan.columns.is_exact:
        return count_outputs(source, plan, resources)

    def blocks() -> Iterator[Any]:
        n_rows = nnz = 0
        for block, _ in expand_rows(source, plan, 0, resources):
            yield block
            n_rows, nnz = n_rows + block.shape[0], nnz + block.nnz
            resources.progress.advance_to(n_rows, f"{nnz:,} values")
        require_unchanged(source, n_rows)

    resources.progress.start(0, "counting")
    return count_in_blocks(plan, blocks())


def count_outputs(source: Source, plan: ExpansionPlan, resources: Resources) -> ExpansionPlan:
    """Return the plan with the exact number of outputs of all rows, which are not expanded.

    Outputs are counted before any are dropped (chosen columns) or merged (hashed columns).
    """
    profile, n_rows = plan.profile, 0
    memory = max(1, resources.memory - source.resident_bytes)
    resources.progress.start(0, "counting")
    for x, _ in read_rows(source, 0, memory, plan.dtype, resources.n_jobs):
        own = x.profile_for(plan.basis)
        profile = own if n_rows == 0 else profile + own
        n_rows += x.shape[0]
        resources.progress.advance_to(n_rows, f"{profile.outputs(plan.basis):,} values")
    require_unchanged(source, n_rows)
    found = profile.outputs_by_degree(plan.basis) if plan.columns.is_exact else None
    return replace(plan, profile=profile, found=found)


def require_rows_fit(
    source: Source, plan: ExpansionPlan, resources: Resources, n_more: int = 0
) -> ExpansionPlan:
    """Raise MemoryError if the longest row does not fit into the memory limit; return the plan.

    If the sizes of rows are upper bounds, their outputs are counted before anything is refused.
    `n_more` columns will be there besides those of the plan.
    """
    try:
        require_room_for_rows(plan, resources, source.resident_bytes, n_more)
    except MemoryError:
        if plan.profile.is_exact(plan.basis):
            raise
        plan = count_outputs(source, plan, resources)
        require_room_for_rows(plan, resources, source.resident_bytes, n_more)
    return plan


def require_unchanged(source: Source, n_rows: int) -> None:
    """Raise FileFault if a pass found a different number of rows than the file's summary."""
    if n_rows != source.summary.n_rows:
        raise FileFault(f"{source.path} changed while it was read.")
