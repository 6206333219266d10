"""The command `names`, which tells the product of input columns in an output column."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.cli.options import (
    Misuse,
    add_basis,
    errors_as_misuse,
    make_basis,
    parse_integers,
    parse_width,
    require_no_basis,
)
from polysparse.files.description import columns_in
from polysparse.files.paths import vocabulary_of
from polysparse.files.store import read_manifest
from polysparse.files.vocabulary import Vocabulary


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "names",
        help="name columns of an expansion",
        description="Say which product of input columns stands in a column of an expansion.",
    )
    parser.add_argument("directory", metavar="DIR", nargs="?", help="written by polysparse expand")
    parser.add_argument(
        "--n-features", metavar="D", type=parse_width, help="of a basis, instead of DIR"
    )
    parser.add_argument(
        "--vocabulary",
        metavar="FILE",
        type=Path,
        help="of observed columns (default: DIR.vocabulary); DIR may then be left out",
    )
    add_basis(parser)
    parser.add_argument(
        "--columns", metavar="C,C,...", required=True, type=parse_integers, help="output columns"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the names of columns."""
    is_given = options.directory is not None, options.n_features is not None
    if all(is_given) or not (any(is_given) or options.vocabulary):
        raise Misuse("give either DIR or --n-features or --vocabulary.")
    if options.n_features is not None and options.vocabulary:
        raise Misuse("--n-features and --vocabulary exclude each other: give one of them.")
    if options.n_features is not None:
        basis, vocabulary = make_basis(options, options.n_features), None
    else:
        require_no_basis(options, "DIR" if options.directory else options.vocabulary)
        basis, vocabulary = _columns_to_name(options)
    with errors_as_misuse():
        rows = [_name_of(column, basis, vocabulary) for column in options.columns]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['column']}\t{','.join(map(str, row['tuple']))}\t{row['name']}")


def _columns_to_name(
    options: argparse.Namespace,
) -> tuple[MonomialBasis, Vocabulary | None]:
    """Return the basis, and the vocabulary unless the directory has all columns."""
    if options.directory is None:
        vocabulary = Vocabulary.read(options.vocabulary)
        return vocabulary.columns.basis, vocabulary
    manifest = read_manifest(options.directory)
    columns = columns_in(manifest)
    if columns["kind"] == "hashed":
        raise ValueError(
            f"{options.directory} has hashed columns: products share them, so none has a name."
        )
    if columns["kind"] == "all":
        if options.vocabulary is not None:
            raise Misuse(f"{options.directory} has all columns: leave out --vocabulary.")
        return MonomialBasis(**manifest["basis"]), None
    file = options.vocabulary or vocabulary_of(Path(options.directory).resolve())
    if options.vocabulary is None and not file.exists():
        raise FileNotFoundError(
            f"{file}: there is no such vocabulary. Give the one that {options.directory} was "
            "written with: --vocabulary FILE."
        )
    vocabulary = Vocabulary.read(file)
    basis = vocabulary.columns.basis
    if basis != MonomialBasis(**manifest["basis"]) or vocabulary.columns.describe() != columns:
        raise ValueError(f"{file} is not the vocabulary that {options.directory} was written with.")
    return basis, vocabulary


def _name_of(column: int, basis: MonomialBasis, vocabulary: Vocabulary | None) -> dict[str, Any]:
    rank, names = column, None
    if vocabulary is not None:
        n_columns = vocabulary.columns.n_columns
        if not 0 <= column < n_columns:
            raise ValueError(
                f"column {column} is not in [0, {n_columns:,}), the columns there are."
            )
        rank, names = int(vocabulary.columns.ranks[column]), vocabulary.feature_names
    return {
        "column": column,
        "tuple": basis.unrank(rank),
        "name": str(basis.names([rank], names)[0]),
    }
