"""The command `expand`, from one file to another in bounded memory."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from polysparse.cli.confirming import add_confirmation, require_confirmation
from polysparse.cli.guesses import require_input_first
from polysparse.cli.options import (
    Misuse,
    add_basis,
    add_columns,
    add_dtype,
    add_input,
    add_jobs,
    add_memory,
    add_strict,
    require_one_kind_of_columns,
)
from polysparse.cli.progress_bar import ProgressBar
from polysparse.cli.request import (
    open_input,
    plan_output,
    print_dropped,
    print_note,
    read_vocabulary,
)
from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.errors import UnwritableTarget
from polysparse.files.opening import (
    format_to_write,
    readable_formats,
    resumable_formats,
    unfinished,
    writable_formats,
)
from polysparse.files.paths import locked, vocabulary_of
from polysparse.files.source import Source
from polysparse.files.table_reading import SHOWN
from polysparse.files.targets import (
    require_not_held,
    require_writable_target,
    require_writable_vocabulary,
)
from polysparse.files.vocabulary import Vocabulary
from polysparse.machine import format_bytes
from polysparse.stream.expand import stream_expansion
from polysparse.stream.resources import MEMORY, Resources


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "expand",
        usage="polysparse expand IN OUT [options]",
        help="expand a file into another, in bounded memory",
        description="Expand a sparse matrix from one file into another, in blocks of rows. "
        f"IN is one of: {readable_formats()}; - is svmlight on standard input. SciPy's archives "
        "and Matrix Market files are read as a whole. Parquet files have list columns 'indices' "
        f"and 'values', and optionally 'label'. OUT is one of: {writable_formats()}. "
        "polysparse.load(OUT) opens a directory memory-mapped. Labels are kept. Written svmlight "
        "text is 1-based, and a missing label becomes 0. With --observed, "
        "ObservedPolynomialFeatures.load reads OUT.vocabulary in Python.",
    )
    add = parser.add_argument
    add_input(parser)
    add("output", metavar="OUT", type=Path, help="file or directory to write")
    add_basis(parser)
    add_columns(parser)
    add_strict(parser, "that --vocabulary does not have")
    add_dtype(parser)
    add_memory(parser, MEMORY)
    add_jobs(parser)
    add(
        "--force",
        action="store_true",
        help="replace OUT, if it exists or an earlier run did not finish it",
    )
    add(
        "--resume",
        action="store_true",
        help="continue an interrupted run of the same command, if there was one (only for "
        f"{resumable_formats()})",
    )
    add_confirmation(parser)
    add("--quiet", action="store_true", help="show neither progress, notes nor a summary")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Expand a file."""
    _require_sensible(options)
    _require_writable(options)
    with locked(options.output):
        _require_writable(options)  # again: another run may have ended in the meantime
        _require_no_unfinished(options)
        vocabulary = read_vocabulary(options)
        with closing(open_input(options, vocabulary)) as source:
            _expand(options, source, vocabulary)


def _require_writable(options: argparse.Namespace) -> None:
    """Raise UnwritableTarget if an output must not be written, before anything is read."""
    output, may_exist = options.output, options.force or options.resume
    require_writable_target(output, force=may_exist, source=options.input)
    if options.vocabulary is not None:
        require_not_held(output, options.vocabulary, "the vocabulary")
    if options.observed:
        require_writable_vocabulary(output, force=may_exist)


def _require_no_unfinished(options: argparse.Namespace) -> None:
    """Raise UnwritableTarget if an earlier run can be resumed, but no option says whether to."""
    found = unfinished(options.output)
    if found and not (options.resume or options.force):
        raise UnwritableTarget(
            f"{options.output}: an earlier run did not finish and left {found}: give --resume to "
            "continue it, or --force to start over."
        )


def _require_sensible(options: argparse.Namespace) -> None:
    """Raise Misuse for options that contradict each other."""
    require_one_kind_of_columns(options)
    require_input_first(options)
    if options.resume and options.input == "-":
        raise Misuse("--resume needs an input that can be read again: - cannot.")
    format = format_to_write(options.output)  # raises for an unknown ending
    if options.resume and not format.is_resumable:
        raise Misuse(f"{options.output} cannot be resumed: only {resumable_formats()} can.")


def _expand(options: argparse.Namespace, source: Source, vocabulary: Vocabulary | None) -> None:
    n_rows = source.summary.n_rows
    _print_other_vocabulary(options)
    with ProgressBar(options.quiet, n_rows) as progress:
        resources = Resources(options.max_memory, options.jobs, progress)
        plan, learned = plan_output(options, source, vocabulary, resources)
    require_confirmation(options, plan)
    with ProgressBar(options.quiet, n_rows) as progress:
        resources = Resources(options.max_memory, options.jobs, progress)
        _print_classes(options, source)
        is_new = stream_expansion(
            source,
            options.output,
            plan,
            resources,
            vocabulary=learned,
            force=options.force,
            resume=options.resume,
        )
    print_dropped(source, options.vocabulary, options)
    if not options.quiet and not progress.is_shown:
        _print_summary(options.output, plan, progress.stored if is_new else None)


def _print_classes(options: argparse.Namespace, source: Source) -> None:
    """Print which numbers stand for the classes of a table, since OUT has numbers as labels."""
    if source.classes is not None:
        shown = [f"{each} is {i}" for i, each in enumerate(source.classes[:SHOWN])]
        more = ", ..." * (len(source.classes) > SHOWN)
        print_note(f"{source.path}: as labels, {', '.join(shown)}{more}.", options)


def _print_summary(output: Path, plan: ExpansionPlan, stored: int | None) -> None:
    """Summarize the output in one line; `stored` is None if it was complete before."""
    n_rows, n_columns = plan.shape
    parts = [f"{n_rows:,} rows", f"{n_columns:,} columns", f"{stored or 0:,} stored values"]
    files = output.iterdir() if output.is_dir() else [output]
    parts.append(format_bytes(sum(file.stat().st_size for file in files)))
    text = ", ".join(parts) if stored is not None else "already complete, nothing to do"
    print(f"polysparse: {output}: {text}.", file=sys.stderr)


def _print_other_vocabulary(options: argparse.Namespace) -> None:
    """Warn about a vocabulary next to OUT that belongs to an earlier output."""
    file = vocabulary_of(options.output)
    is_own = options.observed or options.vocabulary is not None
    if file.exists() and not is_own:
        print_note(f"{file} does not belong to this OUT: left unchanged.", options)
