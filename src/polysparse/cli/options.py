"""Options that several commands share: their flags, parsing and consistency checks."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.cli.groups import Groups, add_groups
from polysparse.cli.tables import add_table
from polysparse.columns.arguments import groups_or_names
from polysparse.columns.spaces import MAX_COMPACT_COLUMNS

MOST_JOBS = 10_000


class Misuse(Exception):
    """The command was called incorrectly; the exit code is 2."""


@contextmanager
def errors_as_misuse() -> Iterator[None]:
    """Re-raise ValueError as Misuse, for values that can only come from the command line."""
    try:
        yield
    except ValueError as error:
        raise Misuse(error) from None


# ----------------------------------------------------------------------------------- parsers


def add_input(
    parser: argparse.ArgumentParser, *, has_tables: bool = True, is_stream: bool = False
) -> None:
    """Add IN and the options on how to read it; a model knows how to read its tables."""
    name = "STREAM" if is_stream else "IN"
    how: dict[str, Any] = {"metavar": name, **({"nargs": "+"} if is_stream else {})}
    parser.add_argument("input", help="file to read; - is svmlight on standard input", **how)
    parser.add_argument(
        "--n-features",
        metavar="D",
        type=parse_width,
        help=f"number of columns of {name} (default: as many as occur)",
    )
    base = parser.add_mutually_exclusive_group()
    base.add_argument(
        "--zero-based",
        dest="zero_based",
        action="store_true",
        default=None,
        help="svmlight indices start at 0 (default: if index 0 occurs; the choice is printed)",
    )
    base.add_argument("--one-based", dest="zero_based", action="store_false", help="... or at 1")
    if has_tables:
        add_table(parser)


def add_memory(parser: argparse.ArgumentParser, default: int | None, what: str = "1GiB") -> None:
    """Add the option for the working memory."""
    parser.add_argument(
        "--max-memory",
        metavar="SIZE",
        type=parse_size,
        default=default,
        help=f"working memory, e.g. 256MiB (default: {what})",
    )


def add_basis(
    parser: argparse.ArgumentParser, default_degree: str = "2", *, has_bias: bool = True
) -> None:
    """Add the options that define the monomials; models have no bias, but an intercept."""
    parser.add_argument(
        "--degree",
        metavar="K",
        type=parse_degree,
        help=f"highest degree, or LOW-HIGH (default: {default_degree})",
    )
    parser.add_argument(
        "--interaction-only", action="store_true", help="no squares and other powers"
    )
    if has_bias:
        parser.add_argument("--no-bias", action="store_true", help="no column of ones")
    else:
        parser.set_defaults(no_bias=False)
    add_groups(parser)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the option for the number of threads."""
    parser.add_argument(
        "--jobs", metavar="N", type=parse_jobs, help="number of threads (default: every core)"
    )


def add_strict(parser: argparse.ArgumentParser, unseen: str) -> None:
    """Add the options for features that were not in the training data."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--drop-unseen",
        action="store_true",
        help=f"drop features (levels, in tables) {unseen} (default)",
    )
    group.add_argument("--strict", action="store_true", help="... fail if there are such features")


def add_dtype(parser: argparse.ArgumentParser) -> None:
    """Add the option for the dtype of the values."""
    parser.add_argument(
        "--dtype",
        choices=["float32", "float64"],
        default="float64",
        help="dtype of the values (default: float64)",
    )


def add_columns(
    parser: argparse.ArgumentParser,
    note: str = ", which is read twice; their list is OUT.vocabulary",
    *,
    are_hashed: bool = False,
) -> None:
    """Add the options on which columns of the expansion to keep, with a note on observed ones.

    `are_hashed` is whether they are by default.
    """
    default = "Every term has a column of its own"
    if are_hashed:
        default = "Terms are hashed to 2^22 columns"
    group = parser.add_argument_group("columns", f"{default}, unless one of these is passed.")
    add = group.add_argument
    if are_hashed:
        add("--all", action="store_true", help="every term has a column of its own")
    add("--observed", action="store_true", help=f"only terms that occur in the data{note}")
    add("--min-count", metavar="N", type=parse_count, help="... in at least N rows (default: 1)")
    add("--max-columns", metavar="N", type=parse_count, help="... the N most frequent")
    add("--vocabulary", metavar="FILE", type=Path, help="the columns of an earlier --observed")
    add(
        "--hashed",
        metavar="N",
        type=parse_n_columns,
        help="N columns, like 2^22, to which terms are assigned by a hash function",
    )
    add("--seed", metavar="S", type=parse_seed, help="... of the hash function (default: 0)")
    add("--no-alternate-sign", action="store_true", help="... do not negate half of the terms")


# ------------------------------------------------------------------------------------ values


def parse_width(text: str) -> int:
    """Parse a number of columns, at least 1."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of columns; it must be at least 1"
        )
    return int(text)


def parse_degree(text: str) -> int | tuple[int, int]:
    """Parse a degree, or LOW-HIGH."""
    match = re.fullmatch(r"(\d+)(?:[-,](\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a degree; write it like 3 or 2-3")
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


def parse_integers(text: str) -> tuple[int, ...]:
    """Parse integers separated by commas."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of integers like 3,17") from None


def parse_count(text: str) -> int:
    """Parse a count, at least 1."""
    return _parse_between(text, 1, 2**63 - 1)


def parse_positive(text: str) -> float:
    """Parse a number above 0, or "inf", which the model accepts or refuses."""
    if text.strip().lower() in ("inf", "infinity"):
        return math.inf
    return _parse_number(text, lambda number: number > 0, "above 0")


def parse_weight(text: str) -> float:
    """Parse a number, at least 0."""
    return _parse_number(text, lambda number: number >= 0, "of at least 0")


def parse_jobs(text: str) -> int:
    """Parse a number of threads; a negative one counts from the number of cores, as in joblib."""
    if not re.fullmatch(r"\s*[+-]?\d{1,99}\s*", text) or not 1 <= abs(int(text)) <= MOST_JOBS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of threads; it must be nonzero and between "
            f"-{MOST_JOBS:,} and {MOST_JOBS:,}. Leave it out to use every core"
        )
    return int(text)


def parse_seed(text: str) -> int:
    """Parse a seed of the hash function."""
    return _parse_between(text, 0, 2**64 - 1)


def parse_n_columns(text: str) -> int:
    """Parse a number, or a power such as 2^22 or 2**22."""
    match = re.fullmatch(r"\s*(\d{1,9})\s*(?:\^|\*\*)\s*(\d{1,2})\s*", text)
    return _parse_between(
        str(int(match[1]) ** int(match[2])) if match else text, 1, MAX_COMPACT_COLUMNS
    )


def parse_size(text: str) -> int:
    """Parse a number of bytes such as '256MiB', '1gb', '1.5 G', '100B' or '4096'."""
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(?:([kmgt])(i?))?b?", text.strip().lower())
    size = 0
    if match:
        base = 1024 if match[3] else 1000
        size = int(Fraction(match[1]) * base ** " kmgt".index(match[2] or " "))
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it like 256MiB or 1GB")
    return size


def _parse_number(text: str, is_valid: Callable[[float], bool], which: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or not is_valid(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number {which}")
    return number


def _parse_between(text: str, least: int, most: int) -> int:
    number = int(text) if re.fullmatch(r"\s*\d{1,99}\s*", text) else -1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")
    return number


# ------------------------------------------------------------------------------ combinations


def require_no_basis(options: argparse.Namespace, owner: Any) -> None:
    """Raise Misuse if a basis is given in addition to something that has one."""
    given = options.degree, options.groups, options.terms
    if given != (None, None, None) or options.interaction_only or options.no_bias:
        raise Misuse(
            f"{owner} has a basis: leave out --degree, --interaction-only, --no-bias, --groups and "
            "--terms."
        )


def require_one_kind_of_columns(options: argparse.Namespace) -> None:
    """Raise Misuse for options on columns that contradict each other."""
    kinds = {
        "--observed": options.observed,
        "--vocabulary": options.vocabulary is not None,
        "--hashed": options.hashed is not None,
        "--all": getattr(options, "all", False),
    }
    given = [name for name, is_given in kinds.items() if is_given]
    if len(given) > 1:
        raise Misuse(f"{given[0]} and {given[1]} cannot be combined: give one of them.")
    for name, value, needed in (
        ("--min-count", options.min_count, "--observed"),
        ("--max-columns", options.max_columns, "--observed"),
        ("--seed", options.seed, "--hashed"),
        ("--no-alternate-sign", options.no_alternate_sign or None, "--hashed"),
    ):
        is_default = needed == "--hashed" and hasattr(options, "all") and not any(kinds.values())
        if value is not None and not (kinds[needed] or is_default):
            raise Misuse(f"{name} only applies with {needed}.")
    if options.strict and options.vocabulary is None and getattr(options, "test", None) is None:
        raise Misuse("--strict only applies with --vocabulary, or with --test of fit.")
    if options.vocabulary is not None:
        require_no_basis(options, options.vocabulary)


def kind_of_columns(options: argparse.Namespace) -> str:
    """Return what a plan calls the requested columns."""
    if options.observed:
        return "observed"
    if options.vocabulary is not None:
        return "vocabulary"
    return "all" if options.hashed is None else "hashed"


def hash_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of the hash function, as HashedColumns and transformers take them."""
    return {"alternate_sign": not options.no_alternate_sign, "seed": options.seed or 0}


def basis_arguments(
    options: argparse.Namespace, groups: Groups | None = None, names: list[str] | None = None
) -> dict[str, Any]:
    """Return the arguments of a basis other than `include_bias`, as transformers take them, too.

    `groups` are those of the input, which --groups replaces. `names` are those of its columns,
    which terms may use.
    """
    own = groups if options.groups is None else options.groups
    return {
        "degree": 2 if options.degree is None else options.degree,
        "interaction_only": options.interaction_only,
        "groups": groups_or_names(own, options.terms, names),
        "terms": options.terms,
    }


def make_basis(
    options: argparse.Namespace,
    n_features: int,
    *,
    groups: Groups | None = None,
    names: list[str] | None = None,
    is_indexed: bool = True,
) -> MonomialBasis:
    """Return the requested basis; raise if its columns must be numbered but cannot be.

    `groups` and `names` are as in `basis_arguments`.
    """
    with errors_as_misuse():
        arguments = basis_arguments(options, groups, names)
        basis = MonomialBasis(n_features, include_bias=not options.no_bias, **arguments)
    if is_indexed:
        try:
            basis.require_indexable()
        except ValueError as error:
            way_out = " Or give --hashed N." if hasattr(options, "hashed") else ""
            raise ValueError(f"{error}{way_out}") from None
    return basis
