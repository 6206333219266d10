"""What the options request: the input, and the columns to expand it into."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from polysparse.cli.options import Misuse, make_basis
from polysparse.columns.spaces import AllColumns, HashedColumns
from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.opening import open_source
from polysparse.files.source import Source
from polysparse.files.vocabulary import Vocabulary
from polysparse.stream.learn import learn_vocabulary, plan_own_rows
from polysparse.stream.means import Means
from polysparse.stream.rows import plan_file


def read_vocabulary(options: argparse.Namespace) -> Vocabulary | None:
    """Read the vocabulary that --vocabulary names, if it is given."""
    if options.vocabulary is None:
        return None
    vocabulary = Vocabulary.read(options.vocabulary, getattr(options, "max_memory", None))
    n_features, own = options.n_features, vocabulary.columns.basis.n_features
    if n_features not in (None, own):
        raise Misuse(
            f"--n-features={n_features} contradicts {options.vocabulary}, which has {own}: leave "
            "it out."
        )
    return vocabulary


def open_input(
    options: argparse.Namespace, vocabulary: Vocabulary | None, n_jobs: int | None = None
) -> Source:
    """Open the file IN; a vocabulary gives the first index and the minimum number of columns."""
    zero_based, least = options.zero_based, 0
    if vocabulary is not None:
        least = vocabulary.columns.basis.n_features
        zero_based = vocabulary.zero_based if zero_based is None else zero_based
    return open_source(
        options.input,
        n_features=options.n_features,
        zero_based=zero_based,
        n_jobs=n_jobs,
        least_features=least,
    )


def plan_output(
    options: argparse.Namespace, source: Source, vocabulary: Vocabulary | None, means: Means
) -> tuple[ExpansionPlan, Vocabulary | None]:
    """Plan the expansion of IN; also return its vocabulary if it was learnt just now."""
    dtype = np.dtype(options.dtype)
    if vocabulary is not None:
        _require_features_of(vocabulary, source, options)
        return plan_file(source, vocabulary.columns, dtype), None
    is_hashed = options.hashed is not None
    basis = make_basis(options, source.summary.n_features, is_indexed=not is_hashed)
    if is_hashed:
        sign, seed = not options.no_alternate_sign, options.seed or 0
        return plan_file(source, HashedColumns(basis, options.hashed, sign, seed), dtype), None
    if not options.observed:
        return plan_file(source, AllColumns(basis), dtype), None
    limits = {"min_count": options.min_count or 1, "max_columns": options.max_columns}
    learnt = learn_vocabulary(source, basis, dtype, means=means, **limits)
    return plan_own_rows(learnt, plan_file(source, learnt.columns, dtype)), learnt


def _require_features_of(
    vocabulary: Vocabulary, source: Source, options: argparse.Namespace
) -> None:
    """Raise ValueError unless IN has as many columns as the data of the vocabulary had."""
    found, wanted = source.summary.n_features, vocabulary.columns.basis.n_features
    if found != wanted:
        way_out = ""
        if found < wanted:
            way_out = f" If those at its end are left out, give --n-features={wanted}."
        raise ValueError(
            f"{source.path} has {found:,} columns, but {options.vocabulary} was "
            f"learnt from {wanted:,}: they must be as many.{way_out}"
        )


def print_notes(source: Source) -> None:
    """Print on standard error what the user should know about IN."""
    for note in source.notes:
        print(f"polysparse: note: {note}", file=sys.stderr)
