"""Whether an output fits on its disk, before anything is written."""

from __future__ import annotations

from pathlib import Path

from polysparse import thresholds
from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.paths import NPZ, PARQUET, SVMLIGHT, free_space, kind_of, require_free_space
from polysparse.files.source import Source
from polysparse.stream.resources import Resources
from polysparse.stream.rows import count_values

LEAST_TEXT = 4  # bytes of a value and its index in svmlight text, as in " 1:1"


def require_room_on_disk(
    path: Path, source: Source, plan: ExpansionPlan, resources: Resources
) -> None:
    """Raise OSError if an output cannot fit on its disk.

    A plan that may be too large is made exact by a pass over the file before anything is refused. A
    Parquet file is compressed, to a size that nobody knows: it is not refused in advance.
    """
    if least_bytes(path, source, plan) <= free_space(path):
        return
    if plan.is_upper_bound or source.is_upper_bound:
        plan = count_values(source, plan, resources)
    require_free_space(path, least_bytes(path, source, plan))


def least_bytes(path: Path, source: Source, plan: ExpansionPlan) -> int:
    """Return the bytes that an output takes at least, if the plan is exact."""
    kind = kind_of(path)
    if kind == PARQUET:
        return 0
    if kind == SVMLIGHT:
        return plan.nnz * LEAST_TEXT
    n_bytes = plan.nbytes + 8 * plan.n_rows * source.summary.has_labels
    return n_bytes + (min(n_bytes, thresholds.MOVED_BYTES) if kind == NPZ else 0)
