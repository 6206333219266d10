"""Passes over a source, within a limit of memory: counting its columns, expanding its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from polysparse.basis import MonomialBasis
from polysparse.canonical import CanonicalCsr, as_canonical_csr
from polysparse.columns import ChosenColumns, HashedColumns
from polysparse.counting import ENTRY_BYTES, ColumnTally, batches_of_rows
from polysparse.expansion import count_in_blocks, iter_expand_in
from polysparse.machine import available_bytes, format_bytes, threads_for
from polysparse.planning import ExpansionPlan, index_dtype_for
from polysparse.progress import Progress
from polysparse.sources import Source
from polysparse.vocabulary_file import BASE, Vocabulary

# Input is read in blocks of a 32nd of the memory: as arrays they take up to six times the text.
READ_PART, FILL_PART, LEAST_READ = 32, 2, 2**16

# While columns are counted, a half of the memory is for them, a quarter for reading; the last one
# is for rows on their way, at so many bytes for each stored value.
TALLY_PART, OBSERVE_PART, OBSERVING_BYTES = 2, 4, 64

BYTES_PER_CHOSEN = 36  # of a column in a lookup, its rank and its count

# Of each thread, which makes a row before it is cut or summed up: for each of its outputs, and for
# each hashed column if the row may have more than one in eight.
BYTES_IN_SCRATCH, BYTES_PER_BUCKET, FEW_BUCKETS = 50, 9, 8


def read_rows(
    source: Source, skip_rows: int, max_memory: int, dtype: np.dtype[Any], n_jobs: int | None
) -> Iterator[tuple[CanonicalCsr, Any]]:
    """Blocks of canonical rows, as they are expanded, and their labels, or None."""
    for X, labels in source.blocks(skip_rows, max(max_memory // READ_PART, LEAST_READ)):
        yield as_canonical_csr(X.astype(dtype, copy=False), n_jobs), labels


def expand_rows_of(
    source: Source, plan: ExpansionPlan, skip_rows: int, max_memory: int, n_jobs: int | None
) -> Iterator[tuple[Any, Any]]:
    """Blocks of the expansion, each valid until the next, and their labels, or None."""
    rest = max_memory - memory_for_columns(plan)
    for x, labels in read_rows(source, skip_rows, rest, plan.dtype, n_jobs):
        blocks = iter_expand_in(
            plan.columns, x, n_jobs=n_jobs, max_bytes=rest // FILL_PART, reuse=True
        )
        for rows, block in blocks:
            yield block, None if labels is None else labels[rows]


def count_values(
    source: Source,
    plan: ExpansionPlan,
    *,
    max_memory: int,
    n_jobs: int | None,
    progress: Progress,
) -> ExpansionPlan:
    """The exact plan, by making every row once."""

    def blocks() -> Iterator[Any]:
        n_rows = nnz = 0
        for block, _ in expand_rows_of(source, plan, 0, max_memory, n_jobs):
            yield block
            n_rows, nnz = n_rows + block.shape[0], nnz + block.nnz
            progress.advance_to(n_rows, f"{nnz:,} values")
        require_unchanged(source, n_rows)

    progress.start(0, "counting")
    return count_in_blocks(plan, blocks())


def learn_vocabulary(
    source: Source,
    basis: MonomialBasis,
    dtype: np.dtype[Any],
    *,
    min_count: int,
    max_columns: int | None,
    max_memory: int | None,
    n_jobs: int | None,
    progress: Progress,
) -> Vocabulary:
    """Which columns occur in a source. Without max_memory, in the memory that is available."""
    tally, n_rows = ColumnTally(basis), 0
    working = 2**30 if max_memory is None else max_memory
    progress.start(0, "counting")
    for x, _ in read_rows(source, 0, working // 2, dtype, n_jobs):
        for rows in batches_of_rows(x.indptr, working // OBSERVE_PART // OBSERVING_BYTES):
            try:
                _count(tally, _rows_of(x, rows), n_jobs, max_memory)
            except MemoryError:
                _refuse(tally, max_memory, n_rows + rows.stop - rows.start, source.summary.n_rows)
            n_rows += rows.stop - rows.start
            progress.advance_to(n_rows, f"up to {tally.n_entries:,} columns")
    require_unchanged(source, n_rows)
    ranks, counts = tally.chosen(min_count, max_columns)
    if len(ranks) == 0:
        where = f"{min_count:,} rows of {source.path}: lower --min-count"
        if min_count == 1:
            where = f"{source.path}: there is nothing to observe"
        raise ValueError(f"No column occurs in {where}.")
    more = {"min_count": min_count, "max_columns": max_columns}
    more |= {"is_all": len(ranks) == tally.n_entries, BASE: source.base}
    return Vocabulary(ChosenColumns(basis, ranks), counts, more)


def _count(tally: ColumnTally, x: CanonicalCsr, n_jobs: int | None, max_memory: int | None) -> None:
    """Count rows, fewer at a time where there is no room for what so many have."""
    try:
        tally.count(x, n_jobs, _room_for(tally, max_memory)[0])
    except MemoryError:
        n_rows = x.shape[0]
        if n_rows < 2:
            raise
        tally.settle()
        for rows in (slice(0, n_rows // 2), slice(n_rows // 2, n_rows)):
            _count(tally, _rows_of(x, rows), n_jobs, max_memory)


def _room_for(tally: ColumnTally, max_memory: int | None) -> tuple[int | None, bool]:
    """Bytes for the tally with what it has, and whether it is max_memory that allows no more."""
    share = None if max_memory is None else max_memory // TALLY_PART
    available = available_bytes()
    if available is not None:
        available += ENTRY_BYTES * tally.n_entries
        if share is None or available < share:
            return available, False
    return share, True


def _rows_of(x: CanonicalCsr, rows: slice) -> CanonicalCsr:
    offsets = x.indptr[rows.start : rows.stop + 1]
    stored = slice(int(offsets[0]), int(offsets[-1]))
    return replace(
        x,
        shape=(rows.stop - rows.start, x.shape[1]),
        indptr=offsets - offsets[0],
        indices=x.indices[stored],
        data=x.data[stored],
    )


def _refuse(tally: ColumnTally, max_memory: int | None, done: int, n_rows: int) -> NoReturn:
    """Raise, with what was found so far and the ways out."""
    tally.settle()
    what, way_out = "The available memory", ""
    if max_memory is not None and _room_for(tally, max_memory)[1]:
        what, way_out = f"--max-memory={max_memory} ({format_bytes(max_memory)})", "give more, "
    raise MemoryError(
        f"{what} is too little to count the columns that occur: more than {tally.n_entries:,} in "
        f"the first {done:,} of {n_rows:,} rows, at {ENTRY_BYTES} bytes each while they are "
        f"counted. Ways out: {way_out}lower the degree, --interaction-only, or --hashed, which "
        "counts nothing."
    ) from None


def require_unchanged(source: Source, n_rows: int) -> None:
    """Raise if a pass found another number of rows than the first look at the file."""
    if n_rows != source.summary.n_rows:
        raise ValueError(f"{source.path} changed while it was read.")


def memory_for_columns(plan: ExpansionPlan) -> int:
    """Memory that the columns themselves take while rows are expanded in them."""
    is_chosen = isinstance(plan.columns, ChosenColumns)
    return BYTES_PER_CHOSEN * plan.columns.n_columns if is_chosen else 0


def memory_for_rows(plan: ExpansionPlan, n_jobs: int | None = None) -> int:
    """Memory in which the longest row can be expanded."""
    longest = max((n for n, _ in plan.row_lengths or ()), default=0)
    stored = int(plan.basis.include_bias) + sum(
        plan.basis.count(longest, d) for d in range(plan.basis.lowest, plan.basis.highest + 1)
    )
    itemsize = index_dtype_for(max(plan.columns.n_columns, stored)).itemsize
    needed = FILL_PART * (stored * (itemsize + plan.dtype.itemsize) + 2 * itemsize)
    if not plan.columns.is_exact:
        scratch = stored * BYTES_IN_SCRATCH
        if isinstance(plan.columns, HashedColumns) and stored * FEW_BUCKETS > plan.shape[1]:
            scratch += plan.shape[1] * BYTES_PER_BUCKET
        needed += threads_for(n_jobs, plan.nnz) * scratch
    return needed


def require_room_for_rows(plan: ExpansionPlan, max_memory: int, n_jobs: int | None) -> None:
    """Raise if the columns and a row alone are larger than the memory allows."""
    columns = memory_for_columns(plan)
    needed = memory_for_rows(plan, n_jobs) + columns
    if needed > max_memory:
        which = "the longest row alone needs"
        if columns:
            which = f"{plan.columns.n_columns:,} columns and the longest row need"
        raise MemoryError(
            f"--max-memory={max_memory} ({format_bytes(max_memory)}) is too little: {which} "
            f"--max-memory={needed} ({format_bytes(needed)})."
        )
