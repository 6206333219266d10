"""Division of a memory limit among reading, counting and expanding a file."""

from __future__ import annotations

from dataclasses import replace

from polysparse.expansion.planning import ExpansionPlan
from polysparse.machine import require_within
from polysparse.matrix.output import index_dtype_for
from polysparse.stream.resources import Resources

# Input is read in blocks of 1/32 of the memory, but at least 2**16 bytes: as arrays, text takes up
# to six times its size. A block of the expansion may take half of the memory.
READ_SHARE, FILL_SHARE, LEAST_READ = 32, 2, 2**16

# While columns are counted, thresholds.TALLY_PART sets the share of the memory that holds the
# counts. A quarter is for reading, and a quarter for the rows being counted, at 64 bytes per stored
# value.
OBSERVE_SHARE, OBSERVING_BYTES = 4, 64

BYTES_PER_CHOSEN = 36  # of a column: its entry in a look-up, its rank and its count


def bytes_to_read(max_memory: int) -> int:
    """Return how much text or how many bytes of arrays to read at a time; no line is longer."""
    return max(max_memory // READ_SHARE, LEAST_READ)


def memory_for_columns(plan: ExpansionPlan) -> int:
    """Return the memory that the columns themselves take while rows are expanded."""
    return BYTES_PER_CHOSEN * plan.columns.n_columns if plan.columns.kind == "chosen" else 0


def memory_for_rows(plan: ExpansionPlan, n_more: int = 0) -> int:
    """Return the memory needed to expand the longest row, by one thread.

    `n_more` columns will be there besides those of the plan.
    """
    alone = replace(plan, profile=plan.profile.longest, found=None)
    n_columns = plan.columns.n_columns + n_more
    stored = min(plan.profile.largest_row(plan.basis), n_columns)
    itemsize = index_dtype_for(n_columns).itemsize
    needed = stored * (itemsize + plan.dtype.itemsize) + 2 * itemsize
    return FILL_SHARE * (needed + max(alone._filling_bytes(1), plan._working_bytes(1)))


def require_room_for_rows(
    plan: ExpansionPlan, resources: Resources, resident: int, n_more: int = 0
) -> None:
    """Raise MemoryError if the longest row does not fit into the memory limit.

    The columns take their share of it, and so do the `resident` bytes of an input read whole.
    """
    columns = memory_for_columns(plan)
    besides = [f"{plan.columns.n_columns:,} columns"] * bool(columns)
    besides += ["the input, which is read whole,"] * bool(resident)
    what = "the longest row alone needs"
    if besides:
        what = f"{' and '.join([*besides, 'the longest row'])} need"
    require_within(resources.limit, memory_for_rows(plan, n_more) + columns + resident, what)
