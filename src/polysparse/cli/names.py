"""The command `names`, which prints the terms in the columns of an expansion."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.names import as_printable
from polysparse.cli.options import (
    Misuse,
    add_basis,
    errors_as_misuse,
    make_basis,
    parse_integers,
    parse_width,
    require_no_basis,
)
from polysparse.files.archive import damage_to, encoding_in
from polysparse.files.description import columns_in
from polysparse.files.opening import read_description
from polysparse.files.paths import vocabulary_of
from polysparse.files.vocabulary import Vocabulary

AT_A_TIME = 2**12  # columns that are named and printed together


@dataclass(frozen=True)
class Named:
    """Columns that have names: all those of a basis, or those of a vocabulary."""

    basis: MonomialBasis
    vocabulary: Vocabulary | None = None
    base: int | None = None  # number of the first input column in the svmlight file
    features: list[str] | None = None  # names of input columns, if they are known

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.vocabulary.columns.n_columns if self.vocabulary else self.basis.n_columns

    def rows(self, columns: Iterable[int], features: list[str] | None) -> Iterator[dict[str, Any]]:
        """Yield a row of the table for each of the columns."""
        columns = list(columns)
        ranks: Any = columns
        if self.vocabulary is not None:
            for column in columns:
                if not 0 <= column < self.n_columns:
                    raise ValueError(
                        f"column {column} is not in [0, {self.n_columns:,}), the range of columns."
                    )
            ranks = self.vocabulary.columns.ranks[np.array(columns, dtype=np.int64)]
        tuples = [[j for j in row if j >= 0] for row in self.basis.unrank(ranks).tolist()]
        names, _ = self.basis._names_that_may_clash(ranks, features)
        for column, inputs, name in zip(columns, tuples, names, strict=True):
            row = {"column": column, "tuple": inputs, "name": name}
            yield row if not self.base else {**row, "svmlight": [j + self.base for j in inputs]}


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "names",
        help="name columns of an expansion",
        description="Print which term (product of input columns) is in a column of an expansion. "
        "Input columns are 0-based; if OUT was made from 1-based svmlight text, the "
        "indices in that text are printed, too.",
    )
    add = parser.add_argument
    add("output", metavar="OUT", nargs="?", help="directory, .npz or .parquet of polysparse expand")
    add(
        "--n-features",
        metavar="D",
        type=parse_width,
        help="number of input columns, instead of OUT",
    )
    add(
        "--vocabulary",
        metavar="FILE",
        type=Path,
        help="vocabulary of observed columns (default: OUT.vocabulary); OUT may then be left out",
    )
    add_basis(parser)
    add(
        "--columns",
        metavar="C,C,...",
        type=parse_integers,
        help="output columns (default: all of them, under a heading)",
    )
    add("--feature-names", metavar="FILE", type=Path, help="names of input columns, one per line")
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the names of columns."""
    is_given = options.output is not None, options.n_features is not None
    if all(is_given) or not (any(is_given) or options.vocabulary):
        raise Misuse("give OUT, --n-features or --vocabulary.")
    if options.n_features is not None and options.vocabulary:
        raise Misuse("--n-features and --vocabulary cannot be combined: give one of them.")
    if options.n_features is not None:
        features = _names_in(options, options.n_features)
        named = Named(make_basis(options, options.n_features, names=features))
    else:
        require_no_basis(options, "OUT" if options.output else options.vocabulary)
        named = _columns_to_name(options)
        features = _names_in(options, named.basis.n_features)
    rows = _rows(named, options.columns, named.features if features is None else features)
    (_print_json if options.json else _print_table)(rows, options.columns is None, named.base)


def _rows(
    named: Named, columns: tuple[int, ...] | None, features: list[str] | None
) -> Iterator[dict[str, Any]]:
    if columns is not None:
        with errors_as_misuse():
            yield from named.rows(columns, features)
        return
    for first in range(0, named.n_columns, AT_A_TIME):
        yield from named.rows(range(first, min(first + AT_A_TIME, named.n_columns)), features)


def _print_table(rows: Iterator[dict[str, Any]], has_heading: bool, base: int | None) -> None:
    first = next(rows, None)
    if has_heading:
        print("\t".join(["column", "tuple", "name", *(["svmlight"] if base else [])]))
    for row in [] if first is None else chain([first], rows):
        cells = [value if isinstance(value, str) else _joined(value) for value in row.values()]
        print("\t".join(map(as_printable, cells)))


def _print_json(rows: Iterator[dict[str, Any]], *_: Any) -> None:
    """Print a list, an element at a time."""
    before = "["
    for row in rows:
        print(before, json.dumps(row), sep="", end="")
        before = ", "
    print("[]" if before == "[" else "]")


def _joined(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _names_in(options: argparse.Namespace, n_features: int) -> list[str] | None:
    """Return the names that --feature-names gives to input columns, if it is given."""
    if options.feature_names is None:
        return None
    return read_names(options.feature_names, n_features)


def read_names(path: Path, n_features: int) -> list[str]:
    try:
        names = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}.") from None
    if len(names) != n_features:
        raise ValueError(
            f"{path} has {len(names):,} lines, but there are {n_features:,} input columns: give "
            "one name per line, in order."
        )
    return names


def _columns_to_name(options: argparse.Namespace) -> Named:
    """Return the columns of OUT, or of a vocabulary alone."""
    if options.output is None:
        vocabulary = Vocabulary.read(options.vocabulary)
        base = _base(vocabulary.zero_based)
        return Named(vocabulary.columns.basis, vocabulary, base, vocabulary.feature_names)
    description = read_description(options.output)
    columns, basis = columns_in(description), MonomialBasis(**description["basis"])
    origin = description.get("origin")
    base = _base(origin.get("zero_based") if isinstance(origin, dict) else None)
    if columns["kind"] == "hashed":
        raise ValueError(
            f"{options.output} has hashed columns: terms share them, so none has a name."
        )
    if columns["kind"] == "all":
        if options.vocabulary is not None:
            raise Misuse(f"{options.output} has all columns: leave out --vocabulary.")
        with damage_to(options.output):
            table = encoding_in(description, basis)
        features = None if table is None else table.feature_names
        return Named(basis, base=base, features=features)
    file = options.vocabulary or vocabulary_of(Path(options.output).resolve())
    if options.vocabulary is None and not file.exists():
        raise FileNotFoundError(
            f"{file}: no such vocabulary. Give the one that {options.output} was "
            "written with: --vocabulary FILE."
        )
    vocabulary = Vocabulary.read(file)
    if basis != vocabulary.columns.basis or vocabulary.columns.describe() != columns:
        raise ValueError(f"{file} is not the vocabulary that {options.output} was written with.")
    return Named(basis, vocabulary, base, vocabulary.feature_names)


def _base(zero_based: Any) -> int | None:
    """Return the first index of the svmlight file, if there was one."""
    return int(not zero_based) if isinstance(zero_based, bool) else None
