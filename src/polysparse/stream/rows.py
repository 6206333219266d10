"""Passes over the rows of a file: reading them, expanding them, counting their outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polysparse.columns.spaces import ColumnSpace
from polysparse.expansion.by_blocks import count_in_blocks, iter_expand_columns
from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.errors import FileFault, faults_of
from polysparse.files.source import Source
from polysparse.matrix.canonical import CanonicalCsr, as_canonical_csr
from polysparse.stream.memory import FILL_SHARE, bytes_to_read, memory_for_columns, memory_for_rows
from polysparse.stream.resources import Resources


def plan_file(source: Source, columns: ColumnSpace, dtype: np.dtype[Any]) -> ExpansionPlan:
    """Plan the expansion of a file; an upper bound if `source.is_upper_bound`."""
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
    """Return the exact plan, by expanding every row once."""

    def blocks() -> Iterator[Any]:
        n_rows = nnz = 0
        for block, _ in expand_rows(source, plan, 0, resources):
            yield block
            n_rows, nnz = n_rows + block.shape[0], nnz + block.nnz
            resources.progress.advance_to(n_rows, f"{nnz:,} values")
        require_unchanged(source, n_rows)

    resources.progress.start(0, "counting")
    return count_in_blocks(plan, blocks())


def require_unchanged(source: Source, n_rows: int) -> None:
    """Raise FileFault if a pass found a different number of rows than the file's summary."""
    if n_rows != source.summary.n_rows:
        raise FileFault(f"{source.path} changed while it was read.")
