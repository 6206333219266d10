"""How a limit of memory is divided between reading, counting and expanding a file."""

from __future__ import annotations

from polysparse.expansion.planning import ExpansionPlan
from polysparse.machine import format_bytes, threads_for
from polysparse.matrix.output import index_dtype_for
from polysparse.stream.means import Means

# Input is read in blocks of a 32nd of the memory: as arrays they take up to six times the text.
READ_PART, FILL_PART, LEAST_READ = 32, 2, 2**16

# While columns are counted, thresholds.TALLY_PART says how much of the memory holds the counts. A
# quarter is for reading, and a quarter for rows on their way, at so many bytes a stored value.
OBSERVE_PART, OBSERVING_BYTES = 4, 64

BYTES_PER_CHOSEN = 36  # of a column in a look-up, its rank and its count

# Each thread makes a row before it chooses or sums: bytes for each of its outputs, and for each
# hashed column if the row may have more than one in eight.
BYTES_IN_SCRATCH, BYTES_PER_BUCKET, FEW_BUCKETS = 50, 9, 8


def memory_for_columns(plan: ExpansionPlan) -> int:
    """Memory that the columns themselves take while rows are expanded in them."""
    return BYTES_PER_CHOSEN * plan.columns.n_columns if plan.columns.kind == "chosen" else 0


def memory_for_rows(plan: ExpansionPlan, n_jobs: int | None = None) -> int:
    """Memory in which the longest row can be expanded."""
    stored = plan.profile.largest_row(plan.basis)
    itemsize = index_dtype_for(max(plan.columns.n_columns, stored)).itemsize
    needed = FILL_PART * (stored * (itemsize + plan.dtype.itemsize) + 2 * itemsize)
    if not plan.columns.is_exact:
        scratch = stored * BYTES_IN_SCRATCH
        if plan.columns.kind == "hashed" and stored * FEW_BUCKETS > plan.shape[1]:
            scratch += plan.shape[1] * BYTES_PER_BUCKET
        needed += threads_for(n_jobs, plan.nnz) * scratch
    return needed


def require_room_for_rows(plan: ExpansionPlan, means: Means) -> None:
    """Raise if the columns and a row alone are larger than the memory allows."""
    columns, max_memory = memory_for_columns(plan), means.memory
    needed = memory_for_rows(plan, means.n_jobs) + columns
    if needed > max_memory:
        which = "the longest row alone needs"
        if columns:
            which = f"{plan.columns.n_columns:,} columns and the longest row need"
        raise MemoryError(
            f"max_memory={max_memory} ({format_bytes(max_memory)}) is too little: {which} "
            f"max_memory={needed} ({format_bytes(needed)})."
        )
