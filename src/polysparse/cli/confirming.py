"""Large outputs are confirmed before they are written: by --yes, or by an answer on a terminal."""

from __future__ import annotations

import argparse
import sys

from polysparse.cli.options import Misuse
from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.opening import unfinished
from polysparse.files.paths import free_space
from polysparse.machine import format_bytes

LARGE = 10**9  # bytes


def add_confirmation(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--yes", action="store_true", help="write OUT without asking, even if it is over 1 GB"
    )


def require_confirmation(options: argparse.Namespace, plan: ExpansionPlan) -> None:
    """Raise Misuse if an output is large and nobody confirms that it should be written.

    A run that is resumed was confirmed before. What does not fit on the disk is refused later.
    """
    is_confirmed = options.yes or (
        options.resume and (options.output.exists() or unfinished(options.output))
    )
    if is_confirmed or not LARGE < plan.nbytes <= free_space(options.output):
        return
    n_rows, n_columns = plan.shape
    at_most = "at most " if plan.is_upper_bound else ""
    text = (
        f"{options.output} will have {n_rows:,} rows, {n_columns:,} columns and {at_most}"
        f"{plan.nnz:,} stored values, {at_most}{format_bytes(plan.nbytes)}"
    )
    if not _can_answer(options):
        raise Misuse(f"{text}. Pass --yes to write it, or select fewer columns or rows.")
    if not _answer(f"polysparse: {text}. Write it? [y/N] "):
        raise Misuse(f"{options.output} was not written.")


def _can_answer(options: argparse.Namespace) -> bool:
    streams = sys.stdin, sys.stderr
    return options.input != "-" and all(each is not None and each.isatty() for each in streams)


def _answer(question: str) -> bool:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
