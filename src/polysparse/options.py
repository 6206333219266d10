"""Options that several commands share: what they are called, and what they mean together."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from polysparse.basis import MonomialBasis
from polysparse.columns import MAX_SELECTED, AllColumns, ChosenColumns, HashedColumns
from polysparse.passes import learn_vocabulary, require_room_for_rows
from polysparse.planning import ExpansionPlan
from polysparse.progress import Progress
from polysparse.sources import Source, open_source
from polysparse.vocabulary_file import Vocabulary


class Misuse(Exception):
    """The command was called wrongly: exit code 2."""


@contextmanager
def errors_as_misuse() -> Iterator[None]:
    """For values that can only have come from the command line."""
    try:
        yield
    except ValueError as error:
        raise Misuse(error) from None


# -------------------------------------------------------------------------------- what there is


def add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help="file to read; - is svmlight on standard input")
    parser.add_argument(
        "--n-features",
        metavar="D",
        type=parse_width,
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


def add_basis(parser: argparse.ArgumentParser, default_degree: str = "2") -> None:
    parser.add_argument(
        "--degree",
        metavar="K",
        type=parse_degree,
        help=f"highest degree, or LOW-HIGH (default: {default_degree})",
    )
    parser.add_argument(
        "--interaction-only", action="store_true", help="only products of distinct columns"
    )
    parser.add_argument("--no-bias", action="store_true", help="no column of ones")


def add_dtype(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dtype",
        choices=["float32", "float64"],
        default="float64",
        help="of the values (default: float64)",
    )


def add_columns(parser: argparse.ArgumentParser) -> None:
    columns = parser.add_argument_group(
        "columns", "Every product has a column of its own, unless one of these is given."
    )
    columns.add_argument(
        "--observed",
        action="store_true",
        help="only columns that occur in IN, which is read twice; their list is OUT.vocabulary",
    )
    columns.add_argument(
        "--min-count", metavar="N", type=parse_count, help="... in at least N rows (default: 1)"
    )
    columns.add_argument(
        "--max-columns", metavar="N", type=parse_count, help="... the N most frequent"
    )
    columns.add_argument(
        "--vocabulary",
        metavar="FILE",
        type=Path,
        help="the columns of an earlier --observed, for a test set",
    )
    columns.add_argument(
        "--hashed",
        metavar="N",
        type=parse_n_columns,
        help="N columns, like 2^22: a hash says which product goes where",
    )
    columns.add_argument(
        "--seed", metavar="S", type=parse_seed, help="... chooses the hash function (default: 0)"
    )
    columns.add_argument(
        "--no-alternate-sign", action="store_true", help="... do not negate every second product"
    )


# ------------------------------------------------------------------------------- how it is read


def parse_width(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of columns: give 1 or more")
    return int(text)


def parse_degree(text: str) -> int | tuple[int, int]:
    match = re.fullmatch(r"(\d+)(?:[-,](\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no degree; write it like 3 or 2-3")
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


def parse_integers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of integers like 3,17") from None


def parse_count(text: str) -> int:
    return _parse_between(text, 1, 2**63 - 1)


def parse_seed(text: str) -> int:
    return _parse_between(text, 0, 2**64 - 1)


def parse_n_columns(text: str) -> int:
    """A number, or a power like 2^22 or 2**22."""
    match = re.fullmatch(r"\s*(\d{1,9})\s*(?:\^|\*\*)\s*(\d{1,2})\s*", text)
    return _parse_between(str(int(match[1]) ** int(match[2])) if match else text, 1, MAX_SELECTED)


def _parse_between(text: str, least: int, most: int) -> int:
    number = int(text) if re.fullmatch(r"\s*\d{1,99}\s*", text) else -1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {least} to {most}")
    return number


# ---------------------------------------------------------------------------- what it means


def require_no_basis(options: argparse.Namespace, owner: Any) -> None:
    """Raise if a basis is given beside something that has one."""
    if options.degree is not None or options.interaction_only or options.no_bias:
        raise Misuse(f"{owner} has a basis: leave out --degree, --interaction-only and --no-bias.")


def require_one_kind_of_columns(options: argparse.Namespace) -> None:
    """Raise for options on columns that cannot be meant together."""
    kinds = {
        "--observed": options.observed,
        "--vocabulary": options.vocabulary is not None,
        "--hashed": options.hashed is not None,
    }
    given = [name for name, is_given in kinds.items() if is_given]
    if len(given) > 1:
        raise Misuse(f"{given[0]} and {given[1]} exclude each other: give one of them.")
    for name, value, needed in (
        ("--min-count", options.min_count, "--observed"),
        ("--max-columns", options.max_columns, "--observed"),
        ("--seed", options.seed, "--hashed"),
        ("--no-alternate-sign", options.no_alternate_sign or None, "--hashed"),
    ):
        if value is not None and not kinds[needed]:
            raise Misuse(f"{name} has a meaning only with {needed}.")
    if options.vocabulary is not None:
        require_no_basis(options, options.vocabulary)


def kind_of_columns(options: argparse.Namespace) -> str:
    """How a plan calls the columns that were asked for."""
    if options.observed:
        return "observed"
    if options.vocabulary is not None:
        return "vocabulary"
    return "all" if options.hashed is None else "hashed"


def make_basis(
    options: argparse.Namespace, n_features: int, *, is_indexed: bool = True
) -> MonomialBasis:
    """The basis that was asked for; its columns can be numbered, if they must be."""
    with errors_as_misuse():
        basis = MonomialBasis(
            n_features,
            2 if options.degree is None else options.degree,
            interaction_only=options.interaction_only,
            include_bias=not options.no_bias,
        )
    if is_indexed:
        try:
            basis.require_indexable()
        except ValueError as error:
            way_out = " Or give --hashed N." if hasattr(options, "hashed") else ""
            raise ValueError(f"{error}{way_out}") from None
    return basis


class Request:
    """What a command is to read, and into which columns it is to expand it.

    Parameters
    ----------
    options : argparse.Namespace
    n_jobs, max_memory : int, optional
        To read and to count with; without `max_memory`, what is available.
    """

    def __init__(
        self, options: argparse.Namespace, n_jobs: int | None = None, max_memory: int | None = None
    ) -> None:
        self.options, self.n_jobs, self.max_memory = options, n_jobs, max_memory
        self.given: Vocabulary | None = None  # by --vocabulary
        if options.vocabulary is not None:
            self.given = Vocabulary.read(options.vocabulary)
            n_features, own = options.n_features, self.given.columns.basis.n_features
            if n_features not in (None, own):
                raise Misuse(
                    f"--n-features={n_features} contradicts {options.vocabulary}, which has "
                    f"{own}: leave it out."
                )
        self.source: Source = self._open()

    def _open(self) -> Source:
        options, given, zero_based, least = self.options, self.given, self.options.zero_based, 0
        if given is not None:
            least = given.columns.basis.n_features
            zero_based = given.zero_based if zero_based is None else zero_based
        return open_source(
            options.input,
            n_features=options.n_features,
            zero_based=zero_based,
            n_jobs=self.n_jobs,
            least_features=least,
        )

    def plan(self, progress: Progress) -> tuple[ExpansionPlan, Vocabulary | None]:
        """The plan, and the vocabulary if one was learnt."""
        options, source, dtype = self.options, self.source, np.dtype(self.options.dtype)
        if self.given is not None:
            self._require_features_of(self.given)
            return source.plan(self.given.columns, dtype), None
        is_hashed = options.hashed is not None
        basis = make_basis(options, source.summary.n_features, is_indexed=not is_hashed)
        if is_hashed:
            sign, seed = not options.no_alternate_sign, options.seed or 0
            return source.plan(HashedColumns(basis, options.hashed, sign, seed), dtype), None
        if options.observed:
            vocabulary = self._learn(basis, dtype, progress)
            planned = source.plan(vocabulary.columns, dtype)
            return vocabulary.plan_own_rows(planned), vocabulary
        return source.plan(AllColumns(basis), dtype), None

    def _learn(self, basis: MonomialBasis, dtype: np.dtype[Any], progress: Progress) -> Vocabulary:
        if self.max_memory is not None:  # what will not fit need not be counted first
            none = ChosenColumns(basis, np.empty(0, dtype=np.int64))
            require_room_for_rows(self.source.plan(none, dtype), self.max_memory, self.n_jobs)
        return learn_vocabulary(
            self.source,
            basis,
            dtype,
            min_count=self.options.min_count or 1,
            max_columns=self.options.max_columns,
            max_memory=self.max_memory,
            n_jobs=self.n_jobs,
            progress=progress,
        )

    def _require_features_of(self, vocabulary: Vocabulary) -> None:
        """Raise unless IN has as many columns as what the vocabulary was learnt from."""
        found, wanted = self.source.summary.n_features, vocabulary.columns.basis.n_features
        if found != wanted:
            way_out = ""
            if found < wanted:
                way_out = f" If those at its end are left out, give --n-features={wanted}."
            raise ValueError(
                f"{self.source.path} has {found:,} columns, but {self.options.vocabulary} was "
                f"learnt from {wanted:,}: they must be as many.{way_out}"
            )
