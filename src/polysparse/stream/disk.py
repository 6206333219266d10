"""Whether an output fits on its disk, before anything is written."""

from __future__ import annotations

from pathlib import Path

from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.formats import format_to_write
from polysparse.files.paths import free_space, require_free_space
from polysparse.files.source import Source
from polysparse.stream.resources import Resources
from polysparse.stream.rows import count_values


def require_room_on_disk(
    path: Path, source: Source, plan: ExpansionPlan, resources: Resources
) -> None:
    """Raise OSError if an output cannot fit on its disk.

    A plan that may be too large is made exact by a pass over the file before anything is refused.
    """
    if least_bytes(path, source, plan) <= free_space(path):
        return
    if plan.is_upper_bound or source.is_upper_bound:
        plan = count_values(source, plan, resources)
    require_free_space(path, least_bytes(path, source, plan))


def least_bytes(path: Path, source: Source, plan: ExpansionPlan) -> int:
    """Return the bytes that an output takes at least, if the plan is exact."""
    return format_to_write(path).least_bytes(plan, has_labels=source.summary.has_labels)
