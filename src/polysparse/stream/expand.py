"""Expand a file into another, in bounded memory."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.atomic import naming_a_full_disk
from polysparse.files.description import describe
from polysparse.files.errors import FileFault
from polysparse.files.opening import format_to_write, is_written, unfinished
from polysparse.files.paths import (
    free_space,
    remove_asides,
    require_free_space,
    written_asides,
)
from polysparse.files.sink import Sink
from polysparse.files.source import Source
from polysparse.files.targets import require_writable_target
from polysparse.files.vocabulary import Vocabulary, VocabularySink
from polysparse.matrix.output import index_dtype_for
from polysparse.stream.resources import Resources
from polysparse.stream.rows import (
    count_values,
    expand_rows,
    require_rows_fit,
    require_unchanged,
)

# Added to an error after which a run can be resumed.
RESUME_NOTE = "Completed parts are kept; resume=True continues from them"


def stream_expansion(
    source: Source,
    path: Path,
    plan: ExpansionPlan,
    resources: Resources,
    *,
    vocabulary: Vocabulary | None = None,
    force: bool = False,
    resume: bool = False,
) -> bool:
    """Expand a file into another, or into a directory; return False if `resume` finds it done.

    A vocabulary is written next to the output. If the run fails, neither has its name, but what can
    be resumed is kept under a hidden one, unless the input is at fault or cannot be read again.
    """
    plan = require_rows_fit(source, plan, resources)
    if is_wider_than_its_columns(plan):  # counting may show that int32 indices are enough
        plan = count_values(source, plan, resources)
    description = describe(
        plan.columns,
        plan.index_dtype,
        plan.dtype,
        has_labels=source.summary.has_labels,
        origin=source.identity(),
        table=source.table,
    )
    is_there = resume and path.exists() and is_written(path, description)
    if resume and path.exists() and not is_there:
        require_writable_target(path, force=force, source=str(source.path))
    if not is_there:
        _require_room_on_disk(path, source, plan, resources)
    beside = VocabularySink(path, vocabulary, force=force) if vocabulary else None
    with beside or nullcontext():
        if not is_there:
            sink = format_to_write(path).sink(path, description, resume=resume)
            try:
                with naming_a_full_disk(path, written_asides(path)):
                    _write(sink, source, plan, resources)
                    _finish(sink, path, beside)
            except BaseException as error:
                if source.can_be_read_again and not isinstance(error, FileFault):
                    sink.leave()
                else:
                    sink.discard()
                if unfinished(path):
                    error.add_note(RESUME_NOTE)
                raise
        elif beside:
            beside.put()
    remove_asides(path)
    return not is_there


def is_wider_than_its_columns(plan: ExpansionPlan) -> bool:
    """Return whether indices are int64 only because there may be that many stored values."""
    columns_alone = index_dtype_for(plan.columns.n_columns)
    return plan.is_upper_bound and plan.index_dtype != columns_alone


def _require_room_on_disk(
    path: Path, source: Source, plan: ExpansionPlan, resources: Resources
) -> None:
    """Raise OSError if an output cannot fit on its disk.

    A plan that may be too large is made exact by a pass over the file before anything is refused.
    """
    least_bytes, has_labels = format_to_write(path).least_bytes, source.summary.has_labels
    if least_bytes(plan, has_labels=has_labels) <= free_space(path):
        return
    if plan.is_upper_bound or source.is_upper_bound:
        plan = count_values(source, plan, resources)
    require_free_space(path, least_bytes(plan, has_labels=has_labels))


def _write(sink: Sink, source: Source, plan: ExpansionPlan, resources: Resources) -> None:
    """Write all rows and seal the sink."""
    resources.progress.start(sink.n_rows, stored=sink.nnz)
    if sink.n_rows < plan.n_rows:
        _fill(sink, source, plan, resources)
    require_unchanged(source, sink.n_rows)
    sink.seal()


def _fill(sink: Sink, source: Source, plan: ExpansionPlan, resources: Resources) -> None:
    """Expand the rows that the sink does not have yet."""
    stored = 0
    for block, labels in expand_rows(source, plan, sink.n_rows, resources):
        stored += block.nnz
        if stored > plan.nnz:  # the index dtype was chosen for at most plan.nnz
            raise FileFault(f"{source.path} changed while it was read.")
        sink.write(block, labels)
        resources.progress.advance(block.shape[0], block.nnz, plan.bytes_per_value)


def _finish(sink: Sink, path: Path, vocabulary: VocabularySink | None) -> None:
    """Give output and vocabulary their final names, or neither."""
    output = sink.aside.stat()
    try:
        if vocabulary:
            vocabulary.put()
        sink.finish()
    except BaseException:
        if vocabulary and not (path.exists() and os.path.samestat(path.stat(), output)):
            vocabulary.take_back()
        raise
