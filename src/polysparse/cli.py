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

import numpy as np

import polysparse
from polysparse.columns import AllColumns
from polysparse.machine import available_bytes, format_bytes
from polysparse.progress import Progress
from polysparse.sinks import UnwritableTarget, can_resume, locked, require_writable_target
from polysparse.sources import UnknownExtension
from polysparse.streaming import memory_for_rows, stream_expansion

MISUSE, FAILURE, SIGNALLED = 2, 1, 128
MOST_JOBS = 10_000
NPY_HEADER = 128  # bytes


EXAMPLES = """\
examples:
  polysparse plan clicks.svmlight --degree 3
      how large it will be
  polysparse expand clicks.svmlight clicks.parquet --degree 2 --no-bias
      from one file to another
  polysparse expand clicks.svmlight clicks --degree 3 --max-memory 4GiB --resume
      into a directory; X = polysparse.load("clicks") opens it in Python, without reading it
  polysparse names clicks --columns 17,4711
      which products stand in two of its columns
"""


class Misuse(Exception):
    """The command was called wrongly: exit code 2."""


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


@contextmanager
def _errors_as_misuse() -> Iterator[None]:
    """For values that can only have come from the command line."""
    try:
        yield
    except ValueError as error:
        raise Misuse(error) from None


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
    _add_names(commands)
    _add_rank(commands)
    _add_paper(commands)
    return parser


# --------------------------------------------------------------------------------------- plan


def _add_plan(commands: Any) -> None:
    parser = commands.add_parser(
        "plan",
        help="say what an expansion will be, without making it",
        description="Say what the expansion of a file will be: shape, stored values, bytes, and "
        "which ways to make it fit in this machine's memory.",
    )
    _add_input(parser)
    _add_basis(parser)
    _add_dtype(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_plan)


def run_plan(options: argparse.Namespace) -> None:
    """Print the plan of a file's expansion."""
    source = _open_source(options)
    try:
        basis = _basis(options, source.summary.n_features)
        plan = source.plan(AllColumns(basis), np.dtype(options.dtype))
        has_labels, is_upper_bound = source.summary.has_labels, _is_upper_bound(source)
        _print_notes(source)
    finally:
        source.close()
    available = available_bytes()
    content = {
        "shape": plan.shape,
        "nnz": plan.nnz,
        "nnz_by_degree": plan.nnz_by_degree,
        "is_upper_bound": is_upper_bound,
        "dtype": str(plan.dtype),
        "index_dtype": str(plan.index_dtype),
        "bytes": plan.nbytes,
        "bytes_by_degree": {d: n * plan.bytes_per_value for d, n in plan.nnz_by_degree.items()},
        "bytes_on_disk": plan.nbytes + 8 * plan.n_rows * has_labels + NPY_HEADER * (3 + has_labels),
        "bytes_available": available,
        "fits": {
            "whole": available is None or plan.nbytes <= available,
            "in blocks": available is None or memory_for_rows(plan) <= available,
        },
    }
    if options.json:
        print(json.dumps(content))
    else:
        _print_plan(plan, content)


def _print_plan(plan: Any, content: dict[str, Any]) -> None:
    """The plan, what it takes on disk, and which ways there are to make it."""
    print(plan)
    if content["is_upper_bound"]:
        print("stored values and bytes are at most these: zeros and duplicates in IN are counted")
    print(f"on disk: about {format_bytes(content['bytes_on_disk'])} as a directory or .npz")
    if content["bytes_available"] is not None:
        print(f"available memory: {format_bytes(content['bytes_available'])}")
    ways = {"whole": "polysparse.expand", "in blocks": "polysparse expand, polysparse.iter_expand"}
    for name, way in ways.items():
        print(f"{name:<10} {'fits' if content['fits'][name] else 'does not fit'} ({way})")


def _is_upper_bound(source: Any) -> bool:
    return bool(getattr(source, "is_upper_bound", False))


def _print_notes(source: Any) -> None:
    for note in getattr(source, "notes", []):
        print(f"polysparse: note: {note}", file=sys.stderr)


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
        "Labels are kept. svmlight text counts columns from 1, and has 0 for a missing label.",
    )
    _add_input(parser)
    parser.add_argument("output", metavar="OUT", type=Path, help="file or directory to write")
    _add_basis(parser)
    _add_dtype(parser)
    parser.add_argument(
        "--max-memory",
        metavar="SIZE",
        type=_parse_size,
        default=2**30,
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
    output, may_exist = options.output, options.force or options.resume
    require_writable_target(output, force=may_exist, source=options.input)
    with locked(output):
        # Another run may have ended in between.
        require_writable_target(output, force=may_exist, source=options.input)
        source = _open_source(options)
        try:
            _expand_source(source, options)
        finally:
            source.close()


def _require_sensible(options: argparse.Namespace) -> None:
    """Raise for options that cannot be meant."""
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


def _expand_source(source: Any, options: argparse.Namespace) -> None:
    basis = _basis(options, source.summary.n_features)
    if not options.quiet:
        _print_notes(source)
    with Progress(options.quiet, source.summary.n_rows) as progress:
        stream_expansion(
            source,
            options.output,
            basis,
            dtype=np.dtype(options.dtype),
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


# -------------------------------------------------------------------------------- names, rank


def _add_names(commands: Any) -> None:
    parser = commands.add_parser(
        "names",
        help="name columns of an expansion",
        description="Say which product of input columns stands in a column of an expansion.",
    )
    parser.add_argument("directory", metavar="DIR", nargs="?", help="written by polysparse expand")
    parser.add_argument(
        "--n-features", metavar="D", type=_parse_width, help="of a basis, instead of DIR"
    )
    _add_basis(parser)
    parser.add_argument(
        "--columns", metavar="C,C,...", required=True, type=_parse_integers, help="output columns"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_names)


def run_names(options: argparse.Namespace) -> None:
    """Print names of columns."""
    if (options.directory is None) == (options.n_features is None):
        raise Misuse("give either DIR or --n-features.")
    if options.directory is not None:
        if options.degree is not None or options.interaction_only or options.no_bias:
            raise Misuse("DIR has a basis: leave out --degree, --interaction-only and --no-bias.")
        manifest = polysparse.store.read_manifest(options.directory)
        basis = polysparse.MonomialBasis(**manifest["basis"])
    else:
        basis = _basis(options, options.n_features)
    with _errors_as_misuse():
        rows = [
            {"column": column, "tuple": basis.unrank(column), "name": str(basis.names([column])[0])}
            for column in options.columns
        ]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['column']}\t{','.join(map(str, row['tuple']))}\t{row['name']}")


def _add_rank(commands: Any) -> None:
    parser = commands.add_parser(
        "rank",
        help="find the column of a product of input columns",
        description="Say in which column of an expansion a product of input columns stands.",
    )
    parser.add_argument(
        "tuples", metavar="J,J,...", nargs="+", type=_parse_integers, help="input columns, from 0"
    )
    parser.add_argument(
        "--n-features", metavar="D", type=_parse_width, required=True, help="input columns in all"
    )
    _add_basis(parser, default_degree="as the longest tuple")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_rank)


def run_rank(options: argparse.Namespace) -> None:
    """Print columns of tuples."""
    if options.degree is None:
        options.degree = max(2, max(len(t) for t in options.tuples))
    basis = _basis(options, options.n_features)
    with _errors_as_misuse():
        rows = [{"tuple": t, "column": basis.rank(t)} for t in options.tuples]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{','.join(map(str, row['tuple']))}\t{row['column']}")


def _parse_integers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of integers like 3,17") from None


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


# -------------------------------------------------------------------------------- shared parts


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help="file to read; - is svmlight on standard input")
    parser.add_argument(
        "--n-features",
        metavar="D",
        type=_parse_width,
        help="columns of IN (default: those that occur)",
    )
    base = parser.add_mutually_exclusive_group()
    base.add_argument(
        "--zero-based",
        dest="zero_based",
        action="store_true",
        default=None,
        help="svmlight indices begin at 0 (default: if a 0 occurs)",
    )
    base.add_argument("--one-based", dest="zero_based", action="store_false", help="... or at 1")


def _add_basis(parser: argparse.ArgumentParser, default_degree: str = "2") -> None:
    parser.add_argument(
        "--degree",
        metavar="K",
        type=_parse_degree,
        help=f"highest degree, or LOW-HIGH (default: {default_degree})",
    )
    parser.add_argument(
        "--interaction-only", action="store_true", help="only products of distinct columns"
    )
    parser.add_argument("--no-bias", action="store_true", help="no column of ones")


def _add_dtype(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dtype",
        choices=["float32", "float64"],
        default="float64",
        help="of the values (default: float64)",
    )


def _parse_width(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of columns: give 1 or more")
    return int(text)


def _parse_degree(text: str) -> int | tuple[int, int]:
    match = re.fullmatch(r"(\d+)(?:[-,](\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no degree; write it like 3 or 2-3")
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


def _basis(options: argparse.Namespace, n_features: int) -> polysparse.MonomialBasis:
    with _errors_as_misuse():
        basis = polysparse.MonomialBasis(
            n_features,
            2 if options.degree is None else options.degree,
            interaction_only=options.interaction_only,
            include_bias=not options.no_bias,
        )
    basis.require_indexable()
    return basis


def _open_source(options: argparse.Namespace) -> Any:
    return polysparse.sources.open_source(
        options.input,
        n_features=options.n_features,
        zero_based=options.zero_based,
        n_jobs=getattr(options, "jobs", None),
    )


if __name__ == "__main__":
    sys.exit(main())
