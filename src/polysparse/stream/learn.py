"""Learn which columns occur in a file, within a memory limit."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from polysparse import machine, thresholds
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ChosenColumns
from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.description import TABLE
from polysparse.files.field_table import FIELDS, fields_in
from polysparse.files.source import Source
from polysparse.files.vocabulary import BASE, Vocabulary
from polysparse.machine import format_bytes
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.observation.tally import ENTRY_BYTES, ColumnTally, batches_of_rows
from polysparse.stream.memory import OBSERVE_SHARE, OBSERVING_BYTES
from polysparse.stream.resources import Resources
from polysparse.stream.rows import plan_file, read_rows, require_rows_fit, require_unchanged


def learn_vocabulary(
    source: Source,
    basis: MonomialBasis,
    dtype: np.dtype[Any],
    *,
    min_count: int,
    max_columns: int | None,
    resources: Resources,
) -> Vocabulary:
    """Learn which columns occur in a file."""
    if resources.max_memory is not None:  # fail before counting rows that could not be expanded
        none = ChosenColumns(basis, np.empty(0, dtype=np.int64))
        plan = plan_file(source, none, dtype)
        least = _least_columns(plan, min_count, max_columns)
        require_rows_fit(source, plan, resources, least)
    tally, n_rows = ColumnTally(basis), 0
    working = max(1, resources.memory - source.resident_bytes)
    resources.progress.start(0, "counting")
    for x, _ in read_rows(source, 0, working // 2, dtype, resources.n_jobs):
        for rows in batches_of_rows(x.indptr, working // OBSERVE_SHARE // OBSERVING_BYTES):
            try:
                _count(tally, x.rows(rows), resources)
            except MemoryError:
                _refuse(tally, resources, n_rows + rows.stop - rows.start, source.summary.n_rows)
            n_rows += rows.stop - rows.start
            resources.progress.advance_to(n_rows, f"up to {tally.n_entries:,} columns")
    require_unchanged(source, n_rows)
    ranks, counts = tally.chosen(min_count, max_columns)
    if len(ranks) == 0:
        where = f"{min_count:,} rows of {source.path}: lower min_count"
        if min_count == 1:
            where = f"{source.path}: there is nothing to observe"
        raise ValueError(f"No column occurs in {where}.")
    more: dict[str, Any] = {"min_count": min_count, "max_columns": max_columns}
    more |= {"is_all": len(ranks) == tally.n_entries, BASE: source.base}
    if source.table is not None:
        more[TABLE] = source.table.as_dict()
        return Vocabulary(ChosenColumns(basis, ranks), counts, more)
    fields = fields_in(basis.groups, source.groups)
    more |= {FIELDS: fields} if fields else {}
    return Vocabulary(ChosenColumns(basis, ranks), counts, more)


def _least_columns(plan: ExpansionPlan, min_count: int, max_columns: int | None) -> int:
    """Return how many columns will be chosen at the least: all those of the longest row occur."""
    if min_count > 1 or not plan.profile.is_exact(plan.basis):
        return 0
    longest = plan.profile.largest_row(plan.basis)
    return longest if max_columns is None else min(longest, max_columns)


def plan_own_rows(vocabulary: Vocabulary, planned: ExpansionPlan) -> ExpansionPlan:
    """Return the exact plan for the rows that a vocabulary was learned from."""
    counts, ends = vocabulary.counts, vocabulary.columns.degree_ends
    below = {d: int(counts[:end].sum()) for d, end in ends.items()}
    return planned._with_found(below, int(counts.sum()))


def _count(tally: ColumnTally, x: CanonicalCsr, resources: Resources) -> None:
    """Count rows; if their columns do not fit in memory, count each half by itself."""
    try:
        tally.count(x, resources.n_jobs, _room_for(tally, resources)[0])
    except MemoryError:
        n_rows = x.shape[0]
        if n_rows < 2:
            raise
        tally.settle()
        for rows in (slice(0, n_rows // 2), slice(n_rows // 2, n_rows)):
            _count(tally, x.rows(rows), resources)


def _room_for(tally: ColumnTally, resources: Resources) -> tuple[int | None, bool]:
    """Return the byte limit of the tally, and whether it is max_memory that sets it.

    The limit includes what the tally already holds; it is None if nothing limits it.
    """
    share = None if resources.max_memory is None else resources.max_memory // thresholds.TALLY_PART
    available = machine.available_bytes()
    if available is not None:
        available += ENTRY_BYTES * tally.n_entries
        if share is None or available < share:
            return available, False
    return share, True


def _refuse(tally: ColumnTally, resources: Resources, done: int, n_rows: int) -> NoReturn:
    """Raise MemoryError, stating what was found so far and how to proceed."""
    tally.settle()
    what, way_out, limit = "The available memory", "", resources.limit
    if resources.max_memory is not None and _room_for(tally, resources)[1]:
        what, way_out = f"max_memory={limit} ({format_bytes(limit)})", "raise it, "
    raise MemoryError(
        f"{what} is too little to count the columns that occur: more than {tally.n_entries:,} in "
        f"the first {done:,} of {n_rows:,} rows, at {ENTRY_BYTES} bytes each while they are "
        f"counted. Ways out: {way_out}lower the degree, set interaction_only=True, or hash the "
        "columns, which counts nothing."
    ) from None
