"""The command line: plan, expand, names, rank, paper."""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import polysparse
from polysparse import naming
from polysparse.machine import available_bytes, format_bytes, format_count
from polysparse.options import (
    Misuse,
    Request,
    add_basis,
    add_columns,
    add_dtype,
    add_input,
    kind_of_columns,
    require_one_kind_of_columns,
)
from polysparse.passes import count_values, memory_for_columns, memory_for_rows
from polysparse.planning import ExpansionPlan
from polysparse.progress import Progress
from polysparse.sources import Source, UnknownExtension
from polysparse.streaming import stream_expansion
from polysparse.targets import (
    UnwritableTarget,
    can_resume,
    locked,
    require_not_held,
    require_writable_target,
    require_writable_vocabulary,
    vocabulary_of,
)

MISUSE, FAILURE, SIGNALLED = 2, 1, 128
MOST_JOBS = 10_000
NPY_HEADER = 128  # bytes
MEMORY = 2**30  # to work in, unless another limit is given


EXAMPLES = """\
examples:
  polysparse plan clicks.svmlight --degree 3
      how large it will be
  polysparse expand clicks.svmlight clicks.parquet --degree 2 --no-bias
      from one file to another
  polysparse expand clicks.svmlight clicks --degree 3 --max-memory 4GiB --resume
      into a directory; X = polysparse.load("clicks") opens it in Python, without reading it
  polysparse expand train.svmlight train --observed --min-count 5
      only products that occur in 5 rows or more; which they are is in train.vocabulary
  polysparse expand test.svmlight test --vocabulary train.vocabulary
      a test set, in the same columns
  polysparse expand clicks.svmlight hashed --degree 3 --hashed 2^22
      any number of products in 4,194,304 columns, with nothing to learn
  polysparse names train --columns 17,4711
      which products stand in two of its columns
"""


class Stopped(KeyboardInterrupt):
    """Another signal than that of Ctrl-C asks the program to end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; failures are one line on standard error."""
    options = make_parser().parse_args(arguments)
    try:
        with _stopping_cleanly():
            options.run(options)
    except (Misuse, UnwritableTarget, UnknownExtension) as error:
        return _complain(error, MISUSE)
    except Stopped as stopped:
        return _complain("stopped", SIGNALLED + stopped.args[0])
    except KeyboardInterrupt:
        return _complain("interrupted", SIGNALLED + signal.SIGINT)
    except BrokenPipeError:  # the reader of our output has gone
        sys.stderr.close()
        return FAILURE
    except (OSError, ValueError, MemoryError, ImportError) as error:
        return _complain(error, FAILURE)
    return 0


def _complain(error: object, code: int) -> int:
    text = " ".join(str(error).split()) or type(error).__name__
    print(f"polysparse: {text}", file=sys.stderr)
    return code


@contextmanager
def _stopping_cleanly() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does, so that it can tidy up."""

    def stop(number: int, frame: Any) -> None:
        signal.signal(number, signal.SIG_IGN)  # tidying up is not to be stopped
        raise Stopped(number)

    changed = []
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
        changed = [n for n in numbers if n and signal.getsignal(n) is signal.SIG_DFL]
    try:
        for number in changed:
            signal.signal(number, stop)
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def make_parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = argparse.ArgumentParser(
        prog="polysparse",
        description="Polynomial and interaction features of sparse matrices in files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=polysparse.__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_plan(commands)
    _add_expand(commands)
    naming.add_names(commands)
    naming.add_rank(commands)
    _add_paper(commands)
    return parser


# --------------------------------------------------------------------------------------- plan


def _add_plan(commands: Any) -> None:
    parser = commands.add_parser(
        "plan",
        help="say what an expansion will be, without making it",
        description="Say what the expansion of a file will be: shape, stored values, bytes, and "
        "which ways to make it fit in this machine's memory. --observed counts the columns, and "
        "--vocabulary the stored values, to be exact; --hashed tells at most how many there are.",
    )
    add_input(parser)
    add_basis(parser)
    add_columns(parser)
    add_dtype(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_plan)


def run_plan(options: argparse.Namespace) -> None:
    """Print the plan of a file's expansion."""
    require_one_kind_of_columns(options)
    request = Request(options)
    source = request.source
    try:
        is_counted = options.observed or options.vocabulary is not None
        with Progress(not is_counted, source.summary.n_rows) as progress:
            plan, _ = request.plan(progress)
            if options.vocabulary is not None:
                room = memory_for_rows(plan) + memory_for_columns(plan) + MEMORY
                plan = count_values(source, plan, max_memory=room, n_jobs=None, progress=progress)
        has_labels = source.summary.has_labels
        is_upper_bound = plan.found is None and (source.is_upper_bound or plan.is_upper_bound)
        _print_notes(source)
    finally:
        source.close()
    content = _plan_content(plan, has_labels) | {
        "columns": kind_of_columns(options),
        "is_upper_bound": is_upper_bound,
    }
    if options.json:
        print(json.dumps(content))
    else:
        _print_plan(plan, content)


def _plan_content(plan: ExpansionPlan, has_labels: bool) -> dict[str, Any]:
    """What a plan says, in numbers."""
    available = available_bytes()
    in_blocks = memory_for_rows(plan) + memory_for_columns(plan)
    return {
        "shape": plan.shape,
        "nnz": plan.nnz,
        "nnz_by_degree": plan.nnz_by_degree,
        "dtype": str(plan.dtype),
        "index_dtype": str(plan.index_dtype),
        "bytes": plan.nbytes,
        "bytes_by_degree": {d: n * plan.bytes_per_value for d, n in plan.nnz_by_degree.items()},
        "bytes_on_disk": plan.nbytes + 8 * plan.n_rows * has_labels + NPY_HEADER * (3 + has_labels),
        "bytes_available": available,
        "fits": {
            "whole": available is None or plan.nbytes <= available,
            "in blocks": available is None or in_blocks <= available,
        },
    }


def _print_plan(plan: ExpansionPlan, content: dict[str, Any]) -> None:
    """The plan, what it takes on disk, and which ways there are to make it."""
    print(plan)
    if content["columns"] != "all":
        print(f"columns: {content['columns']}; all would be {format_count(plan.basis.n_columns)}")
    if content["is_upper_bound"]:
        also = "zeros and duplicates in IN"
        if content["columns"] == "hashed":
            also = "products of a row that fall into one column, zeros and duplicates in IN"
        print(f"stored values and bytes are at most these: {also} are counted")
    print(f"on disk: about {format_bytes(content['bytes_on_disk'])} as a directory or .npz")
    if content["bytes_available"] is not None:
        print(f"available memory: {format_bytes(content['bytes_available'])}")
    ways = {"whole": "polysparse.expand", "in blocks": "polysparse expand, polysparse.iter_expand"}
    for name, way in ways.items():
        print(f"{name:<10} {'fits' if content['fits'][name] else 'does not fit'} ({way})")


def _print_notes(source: Source) -> None:
    for note in source.notes:
        print(f"polysparse: note: {note}", file=sys.stderr)


def _print_stranger(options: argparse.Namespace) -> None:
    """Warn of a vocabulary beside OUT that belongs to what was there before."""
    file = vocabulary_of(options.output)
    is_own = options.observed or options.vocabulary is not None
    if file.exists() and not is_own:
        print(f"polysparse: note: {file} is not of this OUT, but it is kept.", file=sys.stderr)


# ------------------------------------------------------------------------------------- expand


def _add_expand(commands: Any) -> None:
    parser = commands.add_parser(
        "expand",
        help="expand a file into another, in bounded memory",
        description="Expand a sparse matrix from one file into another, block by block. "
        "IN: svmlight/libsvm text (.svmlight, .svm, .libsvm, .txt or no ending; .gz; - is standard "
        "input), SciPy .npz, Matrix Market .mtx(.gz), or Parquet with list columns 'indices' and "
        "'values' and maybe 'label'; .npz and .mtx are read whole. OUT: .npz, .parquet, svmlight "
        "text, or, without an ending, a directory that polysparse.load(OUT) opens memory-mapped. "
        "Labels are kept. svmlight text counts columns from 1, and has 0 for a missing label. "
        "With --observed, ObservedPolynomialFeatures.load reads OUT.vocabulary in Python.",
    )
    add_input(parser)
    parser.add_argument("output", metavar="OUT", type=Path, help="file or directory to write")
    add_basis(parser)
    add_columns(parser)
    add_dtype(parser)
    parser.add_argument(
        "--max-memory",
        metavar="SIZE",
        type=_parse_size,
        default=MEMORY,
        help="memory to work in, e.g. 256MiB (default: 1GiB)",
    )
    parser.add_argument("--jobs", metavar="N", type=int, help="threads (default: every core)")
    parser.add_argument("--force", action="store_true", help="replace OUT, if it exists")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on where an interrupted run of the same command was, if there was one; give it "
        "from the first run on, or after a kill (OUT: directory or .npz)",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run_expand)


def run_expand(options: argparse.Namespace) -> None:
    """Expand a file."""
    _require_sensible(options)
    _require_writable(options)
    with locked(options.output):
        _require_writable(options)  # another run may have ended in between
        request = Request(options, options.jobs, options.max_memory)
        try:
            _expand(request, options)
        finally:
            request.source.close()


def _require_writable(options: argparse.Namespace) -> None:
    """Raise if what is to be written must not be, before anything is read."""
    output, may_exist = options.output, options.force or options.resume
    require_writable_target(output, force=may_exist, source=options.input)
    if options.vocabulary is not None:
        require_not_held(output, options.vocabulary, "the vocabulary")
    if options.observed:
        require_writable_vocabulary(output, force=may_exist)


def _require_sensible(options: argparse.Namespace) -> None:
    """Raise for options that cannot be meant."""
    require_one_kind_of_columns(options)
    if options.jobs is not None and not 1 <= abs(options.jobs) <= MOST_JOBS:
        raise Misuse(
            f"--jobs={options.jobs} has no meaning: leave it out for every core, or give up to "
            f"{MOST_JOBS:,}."
        )
    if options.resume and options.input == "-":
        raise Misuse("--resume needs an input that can be read again: - cannot.")
    is_resumable = can_resume(options.output)  # raises for an unknown ending
    if options.resume and not is_resumable:
        raise Misuse(f"{options.output} cannot be resumed: only a directory or .npz can.")


def _expand(request: Request, options: argparse.Namespace) -> None:
    source = request.source
    n_rows = source.summary.n_rows
    if not options.quiet:
        _print_notes(source)
        _print_stranger(options)
    with Progress(options.quiet, n_rows) as progress:
        plan, vocabulary = request.plan(progress)
        stream_expansion(
            source,
            options.output,
            plan,
            vocabulary=vocabulary,
            max_memory=options.max_memory,
            n_jobs=options.jobs,
            force=options.force,
            resume=options.resume,
            progress=progress,
        )


def _parse_size(text: str) -> int:
    """Bytes from '256MiB', '1gb', '1.5 G', '100B' or '4096'."""
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(?:([kmgt])(i?))?b?", text.strip().lower())
    size = 0
    if match:
        base = 1024 if match[3] else 1000
        size = int(Fraction(match[1]) * base ** " kmgt".index(match[2] or " "))
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it like 256MiB or 1GB")
    return size


# -------------------------------------------------------------------------------------- paper


def _add_paper(commands: Any) -> None:
    parser = commands.add_parser(
        "paper",
        help="repeat the experiments of the paper",
        description="Measure and draw both figures of Nystrom and Hughes' paper.",
    )
    parser.add_argument("--quick", action="store_true", help="less of it, within a minute")
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("docs"))
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run_paper)


def run_paper(options: argparse.Namespace) -> None:
    """Repeat the experiments."""
    from polysparse import paper

    with Progress(options.quiet, 1000, unit="") as progress:
        page = paper.run(options.out, quick=options.quick, progress=progress.set_fraction)
    print(page)


if __name__ == "__main__":
    sys.exit(main())
