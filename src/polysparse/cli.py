"""The command line: plan, expand, names, rank, paper."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import polysparse
from polysparse.machine import available_bytes, format_bytes
from polysparse.progress import Progress
from polysparse.streaming import stream_expansion

MISUSE, FAILURE, INTERRUPTED = 2, 1, 130


class Misuse(Exception):
    """The command was called wrongly: exit code 2."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; failures are one line on standard error."""
    options = make_parser().parse_args(arguments)
    try:
        options.run(options)
    except Misuse as error:
        return _complain(error, MISUSE)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
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


def make_parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = argparse.ArgumentParser(
        prog="polysparse",
        description="Polynomial and interaction features of sparse matrices in files.",
        epilog="Example: polysparse expand clicks.svmlight clicks.parquet --degree 2 --no-bias",
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
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_plan)


def run_plan(options: argparse.Namespace) -> None:
    """Print the plan of a file's expansion."""
    source = _open_source(options)
    try:
        basis = _basis(options, source.summary.n_features)
        plan = source.plan(basis, np.dtype(options.dtype))
    finally:
        source.close()
    available = available_bytes()
    longest = max((n for n, _ in plan.row_lengths or ()), default=0)
    row = sum(basis.count(longest, d) for d in plan.nnz_by_degree) * plan.bytes_per_value
    fits = {
        "whole": available is None or plan.nbytes <= available,
        "in blocks": available is None or row <= available // 2,
    }
    if options.json:
        content = {
            "shape": plan.shape,
            "nnz": plan.nnz,
            "nnz_by_degree": plan.nnz_by_degree,
            "dtype": str(plan.dtype),
            "index_dtype": str(plan.index_dtype),
            "bytes": plan.nbytes,
            "bytes_available": available,
            "fits": fits,
        }
        print(json.dumps(content))
        return
    print(plan)
    print(f"on disk: about {format_bytes(plan.nbytes)} as a directory or .npz")
    if available is not None:
        print(f"available memory: {format_bytes(available)}")
    ways = {"whole": "polysparse.expand", "in blocks": "polysparse expand, polysparse.iter_expand"}
    for name, way in ways.items():
        print(f"{name:<10} {'fits' if fits[name] else 'does not fit'} ({way})")


# ------------------------------------------------------------------------------------- expand


def _add_expand(commands: Any) -> None:
    parser = commands.add_parser(
        "expand",
        help="expand a file into another, in bounded memory",
        description="Expand a sparse matrix from one file into another, block by block. "
        "IN: svmlight/libsvm text (.svmlight, .svm, .libsvm, .txt or no ending; .gz; - is standard "
        "input), SciPy .npz, Matrix Market .mtx(.gz), or Parquet with list columns 'indices' and "
        "'values' and maybe 'label'. OUT: .npz, .parquet, svmlight text, or, without an ending, a "
        "directory that polysparse.load(OUT) opens memory-mapped.",
    )
    _add_input(parser)
    parser.add_argument("output", metavar="OUT", type=Path, help="file or directory to write")
    _add_basis(parser)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument(
        "--max-memory",
        metavar="SIZE",
        type=_parse_size,
        default=2**30,
        help="memory to work in, e.g. 256MiB (default: 1GiB)",
    )
    parser.add_argument("--jobs", metavar="N", type=int, help="threads (default: every core)")
    parser.add_argument("--force", action="store_true", help="overwrite OUT")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on where an interrupted run of the same command was (directory and .npz)",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run_expand)


def run_expand(options: argparse.Namespace) -> None:
    """Expand a file."""
    if options.output.exists() and not options.force:
        raise Misuse(f"{options.output} exists already: give --force to overwrite it.")
    if options.jobs == 0:
        raise Misuse("--jobs=0 has no meaning: leave it out for every core.")
    if not options.output.parent.exists():
        raise Misuse(f"{options.output.parent}: there is no such folder.")
    try:
        polysparse.sinks.sink_kind(options.output)
    except polysparse.sources.UnknownExtension as error:
        raise Misuse(error) from None
    source = _open_source(options)
    try:
        basis = _basis(options, source.summary.n_features)
        with Progress(options.quiet, source.summary.n_rows) as progress:
            stream_expansion(
                source,
                options.output,
                basis,
                dtype=np.dtype(options.dtype),
                max_memory=options.max_memory,
                n_jobs=options.jobs,
                resume=options.resume,
                progress=progress,
            )
    finally:
        source.close()


def _parse_size(text: str) -> int:
    """Bytes from '256MiB', '1GB', '1.5 G' or '4096'."""
    match = re.fullmatch(r"([\d.]+)\s*(?:([kKMGT])(i?)[bB]?)?", text.strip())
    try:
        number = float(match[1]) if match else -1.0
    except ValueError:
        number = -1.0
    if match is None or number <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it like 256MiB or 1GB")
    base = 1024 if match[3] else 1000
    return int(number * base ** (" kMGT".index(match[2].replace("K", "k")) if match[2] else 0))


# -------------------------------------------------------------------------------- names, rank


def _add_names(commands: Any) -> None:
    parser = commands.add_parser(
        "names",
        help="name columns of an expansion",
        description="Say which product of input columns stands in a column of an expansion.",
    )
    parser.add_argument("directory", metavar="DIR", nargs="?", help="written by polysparse expand")
    parser.add_argument("--n-features", type=int, help="of a basis, instead of DIR")
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
        manifest = polysparse.store.read_manifest(options.directory)
        basis = polysparse.MonomialBasis(**manifest["basis"])
    else:
        basis = _basis(options, options.n_features)
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
    parser.add_argument("tuples", metavar="J,J,...", nargs="+", type=_parse_integers)
    parser.add_argument("--n-features", type=int, required=True)
    _add_basis(parser, default_degree="as the longest tuple")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_rank)


def run_rank(options: argparse.Namespace) -> None:
    """Print columns of tuples."""
    if options.degree is None:
        options.degree = max(2, max(len(t) for t in options.tuples))
    basis = _basis(options, options.n_features)
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
    parser.add_argument("--n-features", type=int, help="columns of IN (default: those that occur)")
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
    default = 2 if default_degree == "2" else None
    parser.add_argument(
        "--degree",
        metavar="K",
        type=_parse_degree,
        default=default,
        help=f"highest degree, or LOW-HIGH (default: {default_degree})",
    )
    parser.add_argument(
        "--interaction-only", action="store_true", help="only products of distinct columns"
    )
    parser.add_argument("--no-bias", action="store_true", help="no column of ones")


def _parse_degree(text: str) -> int | tuple[int, int]:
    match = re.fullmatch(r"(\d+)(?:[-,](\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no degree; write it like 3 or 2-3")
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


def _basis(options: argparse.Namespace, n_features: int) -> polysparse.MonomialBasis:
    try:
        basis = polysparse.MonomialBasis(
            n_features,
            options.degree,
            interaction_only=options.interaction_only,
            include_bias=not options.no_bias,
        )
    except ValueError as error:
        raise Misuse(error) from None
    basis.require_indexable()
    return basis


def _open_source(options: argparse.Namespace) -> Any:
    try:
        return polysparse.sources.open_source(
            options.input,
            n_features=options.n_features,
            zero_based=options.zero_based,
            n_jobs=getattr(options, "jobs", None),
        )
    except polysparse.sources.UnknownExtension as error:
        raise Misuse(error) from None


if __name__ == "__main__":
    sys.exit(main())
