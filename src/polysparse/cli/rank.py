"""The command `rank`, which prints the output column of a term."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from polysparse.cli.options import (
    add_basis,
    errors_as_misuse,
    make_basis,
    parse_integers,
    parse_width,
    require_no_basis,
)
from polysparse.files.vocabulary import Vocabulary


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "rank",
        usage="polysparse rank J,J,... [J,J,...] (--n-features D | --vocabulary FILE) [options]",
        help="find the column of a term",
        description="Print in which column of an expansion a term is. A term is a product of input "
        "columns: 3,17 is column 3 times column 17, and 3,3 is the square of column 3.",
    )
    parser.add_argument(
        "tuples",
        metavar="J,J,...",
        nargs="+",
        type=parse_integers,
        help="terms, as numbers of input columns, 0-based",
    )
    columns = parser.add_mutually_exclusive_group(required=True)
    columns.add_argument(
        "--n-features", metavar="D", type=parse_width, help="number of input columns"
    )
    columns.add_argument(
        "--vocabulary",
        metavar="FILE",
        type=Path,
        help="the columns of --observed; - stands for a term that is not among them",
    )
    add_basis(parser, default_degree="as the longest tuple")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the columns of tuples."""
    columns_of = _in_vocabulary if options.vocabulary else _in_basis
    found = zip(options.tuples, columns_of(options), strict=True)
    rows = [{"tuple": t, "column": column} for t, column in found]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        column = "-" if row["column"] is None else row["column"]
        print(f"{','.join(map(str, row['tuple']))}\t{column}")


def _in_basis(options: argparse.Namespace) -> list[int]:
    """Return the columns of tuples among all columns."""
    if options.degree is None and options.terms is None:
        options.degree = max(2, max(len(t) for t in options.tuples))
    basis = make_basis(options, options.n_features)
    with errors_as_misuse():
        return [basis.rank(t) for t in options.tuples]


def _in_vocabulary(options: argparse.Namespace) -> list[int | None]:
    """Return the columns of tuples among those of a vocabulary, and None for others."""
    require_no_basis(options, options.vocabulary)
    chosen = Vocabulary.read(options.vocabulary).columns
    with errors_as_misuse():
        ranks = [chosen.basis.rank(t) for t in options.tuples]
    places = np.searchsorted(chosen.ranks, ranks)
    return [
        int(place) if place < chosen.n_columns and chosen.ranks[place] == rank else None
        for place, rank in zip(places, ranks, strict=True)
    ]
