"""The options on tables: which column is the target, and what the others are."""

from __future__ import annotations

import argparse
from typing import Any

from polysparse.files.model_file import ModelFile
from polysparse.files.online_file import OnlineFile
from polysparse.files.table_reading import TableReading
from polysparse.files.vocabulary import Vocabulary
from polysparse.tables.encoding import TableEncoding
from polysparse.tables.learning import EncodingOptions
from polysparse.tables.variables import NumericVariable

# Options on how columns are encoded, by their names in argparse.
ENCODING = "categorical", "numeric", "drop", "min_frequency", "max_categories", "missing"


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add the options on tables."""
    add = parser.add_argument_group(
        "tables",
        "A table (CSV, Parquet or Arrow) has a column for each variable. Text and booleans are "
        "categorical: each level is a feature. Names must not contain commas.",
    ).add_argument
    add("--target", metavar="NAME", help="column with the labels: classes or numbers")
    add(
        "--categorical",
        metavar="A,B",
        type=parse_names,
        help="columns that are categorical, even if they have numbers",
    )
    add("--numeric", metavar="A,B", type=parse_names, help="columns that must be numbers")
    add("--drop", metavar="A,B", type=parse_names, help="columns to leave out")
    add(
        "--min-frequency",
        metavar="N",
        type=parse_frequency,
        help="merge the levels that occur in fewer than N rows, or in a smaller share of the rows, "
        "such as 0.01",
    )
    add(
        "--max-categories",
        metavar="N",
        type=int,
        help="at most N features for each variable: the rarest levels are merged",
    )
    add(
        "--missing",
        choices=["error", "indicator"],
        help="what to do with missing numbers: fail (default), or add a feature that marks them. "
        "A missing category is a level of its own",
    )


def parse_names(text: str) -> tuple[str, ...]:
    """Parse names separated by commas."""
    return tuple(name.strip() for name in text.split(","))


def parse_frequency(text: str) -> int | float:
    """Parse a number of rows, or a share of them."""
    try:
        return int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number of rows nor a share of them"
        ) from None


def given_options(options: argparse.Namespace) -> list[str]:
    """Return the flags of options on tables that are given."""
    names = [name for name in ("target", *ENCODING) if getattr(options, name, None) is not None]
    return [f"--{name.replace('_', '-')}" for name in names]


def table_reading(options: argparse.Namespace) -> TableReading:
    """Return how to read a table; raise ValueError if options are invalid."""
    given = {name: getattr(options, name, None) for name in ("target", *ENCODING)}
    exposure = getattr(options, "exposure", None)
    how = TableReading(
        given["target"],
        given["categorical"] or (),
        given["numeric"] or (),
        (*(given["drop"] or ()), *(() if exposure is None else (exposure,))),
        EncodingOptions(
            min_frequency=given["min_frequency"],
            max_categories=given["max_categories"],
            missing=given["missing"] or "error",
        ),
    )
    how.require_consistent()
    return how


def encoding_of(learned: Vocabulary | ModelFile | OnlineFile) -> TableEncoding | None:
    """Return the encoding in a file; None if its training data had no names of columns.

    A table of numbers alone that was fitted in Python has names and needs no encoding.
    """
    if learned.table is not None:
        return learned.table
    names: Any = learned.more.get("feature_names_in")
    if names is None:
        return None
    return TableEncoding(tuple(map(NumericVariable, names)), are_named=True)
