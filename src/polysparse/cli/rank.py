"""The command `rank`, which tells the output column of a product of input columns."""

from __future__ import annotations

import argparse
import json
from typing import Any

from polysparse.cli.options import (
    add_basis,
    errors_as_misuse,
    make_basis,
    parse_integers,
    parse_width,
)


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "rank",
        help="find the column of a product of input columns",
        description="Say in which column of an expansion a product of input columns stands.",
    )
    parser.add_argument(
        "tuples", metavar="J,J,...", nargs="+", type=parse_integers, help="input columns, from 0"
    )
    parser.add_argument(
        "--n-features", metavar="D", type=parse_width, required=True, help="input columns in all"
    )
    add_basis(parser, default_degree="as the longest tuple")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the columns of tuples."""
    if options.degree is None:
        options.degree = max(2, max(len(t) for t in options.tuples))
    basis = make_basis(options, options.n_features)
    with errors_as_misuse():
        rows = [{"tuple": t, "column": basis.rank(t)} for t in options.tuples]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{','.join(map(str, row['tuple']))}\t{row['column']}")
