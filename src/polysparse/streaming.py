"""From a file to a file, in bounded memory."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from polysparse.description import describe
from polysparse.passes import (
    count_values,
    expand_rows_of,
    require_room_for_rows,
    require_unchanged,
)
from polysparse.planning import ExpansionPlan, index_dtype_for
from polysparse.progress import Progress
from polysparse.sinks import Sink, is_written, open_sink
from polysparse.sources import Source
from polysparse.targets import remove_asides, require_writable_target
from polysparse.vocabulary_file import Vocabulary, VocabularySink


def stream_expansion(
    source: Source,
    path: Path,
    plan: ExpansionPlan,
    *,
    vocabulary: Vocabulary | None = None,
    max_memory: int,
    n_jobs: int | None,
    force: bool,
    resume: bool,
    progress: Progress,
) -> None:
    """Expand a source into a file or directory; on failure nothing is left of it.

    A vocabulary is written beside it. A run that is to be resumed leaves what it had, aside.
    """
    require_room_for_rows(plan, max_memory, n_jobs)
    if is_wider_than_its_columns(plan):  # maybe not, once its values are counted
        plan = count_values(source, plan, max_memory=max_memory, n_jobs=n_jobs, progress=progress)
    description = describe(
        plan.columns,
        plan.index_dtype,
        plan.dtype,
        has_labels=source.summary.has_labels,
        origin={**source.identity(), "zero_based": source.zero_based},
    )
    is_there = resume and path.exists() and is_written(path, description)
    if resume and path.exists() and not is_there:
        require_writable_target(path, force=force, source=str(source.path))
    beside = VocabularySink(path, vocabulary, force=force) if vocabulary else None
    with beside or nullcontext():
        if not is_there:
            sink = open_sink(path, description, resume=resume)
            try:
                _write(sink, source, plan, max_memory, n_jobs, progress)
                _finish(sink, beside)
            except BaseException:
                if resume:
                    sink.leave()
                else:
                    sink.discard()
                raise
        elif beside:
            beside.put()
    remove_asides(path)


def is_wider_than_its_columns(plan: ExpansionPlan) -> bool:
    """Whether indices are int64 only because there may be so many stored values."""
    columns_alone = index_dtype_for(plan.columns.n_columns)
    return plan.is_upper_bound and plan.index_dtype != columns_alone


def _write(
    sink: Sink,
    source: Source,
    plan: ExpansionPlan,
    max_memory: int,
    n_jobs: int | None,
    progress: Progress,
) -> None:
    """Write all rows, and make the sink ready for its name."""
    progress.start(sink.n_rows)
    if sink.n_rows < plan.n_rows:
        _fill(sink, source, plan, max_memory, n_jobs, progress)
    require_unchanged(source, sink.n_rows)
    sink.seal()


def _fill(
    sink: Sink,
    source: Source,
    plan: ExpansionPlan,
    max_memory: int,
    n_jobs: int | None,
    progress: Progress,
) -> None:
    """Expand what the sink does not have yet."""
    stored = 0
    for block, labels in expand_rows_of(source, plan, sink.n_rows, max_memory, n_jobs):
        stored += block.nnz
        if stored > plan.nnz:  # the index dtype was chosen for no more
            raise ValueError(f"{source.path} changed while it was read.")
        sink.write(block, labels)
        progress.advance(block.shape[0], block.nnz, plan.bytes_per_value)


def _finish(sink: Sink, vocabulary: VocabularySink | None) -> None:
    """Give both their names, or neither."""
    try:
        if vocabulary:
            vocabulary.put()
        sink.finish()
    except BaseException:
        if vocabulary and sink.aside.exists():
            vocabulary.take_back()
        raise
