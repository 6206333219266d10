"""What the options request: the input, and the columns to expand it into."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.cli.groups import n_features_of
from polysparse.cli.options import Misuse, errors_as_misuse, hash_arguments, make_basis
from polysparse.cli.recipes import recipe_without_pyarrow
from polysparse.cli.tables import encoding_of, given_options, table_reading
from polysparse.cli.wording import with_flags
from polysparse.columns.spaces import AllColumns, HashedColumns
from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.errors import FileFault
from polysparse.files.field_table import FIELDS, earlier_fields, moved_feature
from polysparse.files.model_file import ModelFile
from polysparse.files.narrowed import NarrowedSource
from polysparse.files.online_file import OnlineFile
from polysparse.files.opening import is_table, open_source
from polysparse.files.source import Source
from polysparse.files.table_reading import TableReading
from polysparse.files.vocabulary import Vocabulary
from polysparse.machine import require_memory, require_within
from polysparse.stream.learn import learn_vocabulary, plan_own_rows
from polysparse.stream.memory import bytes_to_read
from polysparse.stream.resources import MEMORY, Resources
from polysparse.stream.rows import plan_file
from polysparse.tables.encoding import TableEncoding


def read_vocabulary(options: argparse.Namespace) -> Vocabulary | None:
    """Read the vocabulary that --vocabulary names, if it is given."""
    if options.vocabulary is None:
        return None
    return Vocabulary.read(options.vocabulary, options.max_memory)


def open_input(options: argparse.Namespace, vocabulary: Vocabulary | None) -> Source:
    """Open IN; with a vocabulary, use its number of columns and its first svmlight index.

    With --groups, IN has as many columns as they have, unless more occur or another number is
    given.
    """
    if vocabulary is None:
        least = n_features_of(options.groups)
        return open_file(options.input, options, least_features=least)
    learned = [flag for flag in given_options(options) if flag != "--target"]
    if learned:
        raise Misuse(
            f"{options.vocabulary} has its own columns and levels: leave out {learned[0]}."
        )
    return open_for(options.input, options, options.vocabulary, vocabulary, "the vocabulary")


def open_for(
    path: str,
    options: argparse.Namespace,
    owner: Path,
    learned: Vocabulary | ModelFile | OnlineFile,
    noun: str,
) -> Source:
    """Open a file for a vocabulary or a model, with its columns and its first svmlight index."""
    basis = learned.columns.basis
    fields = earlier_fields(basis.groups, learned.more.get(FIELDS))
    like = path, options, owner, basis.n_features, learned.zero_based, noun
    return open_like(*like, fields, encoding_of(learned))


def open_like(
    path: str,
    options: argparse.Namespace,
    owner: Path,
    n_features: int,
    was_zero_based: bool | None,
    noun: str,
    fields: list[str | None] | None,
    encoding: TableEncoding | None = None,
    has_classes: bool | None = None,
) -> Source:
    """Open a file that must have as many features as `owner`, in the same fields.

    Further features are dropped; with --strict, FileFault is raised for them. A table is encoded as
    that of `owner` was; `has_classes` is whether that had a target with classes.
    """
    earlier: dict[str, Any] = {"was_zero_based": was_zero_based, "earlier": noun}
    if is_table(path):
        earlier["table"] = _reading_like(options, owner, encoding, has_classes)
    source = open_file(path, options, least_features=n_features, **earlier)
    try:
        _require_fields(source, owner, fields)
        found = source.summary.n_features
        if found == n_features:
            return source
        if found > n_features and not options.strict:
            return NarrowedSource(source, n_features)
        way_out = "leave out --strict to drop features that were not in the training data."
        if found < n_features:
            way_out = f"if its last columns are empty, give --n-features={n_features}."
        raise FileFault(
            f"{source.path} has {found:,} features, but {owner} has {n_features:,}: {way_out}"
        )
    except BaseException:
        source.close()
        raise


def _require_fields(source: Source, owner: Path, fields: list[str | None] | None) -> None:
    """Raise FileFault if a feature of libffm text is in another field than in training."""
    now = source.groups
    feature = None if fields is None or now is None else moved_feature(fields, now)
    if feature is None or fields is None or now is None:
        return
    was, is_ = str(fields[feature])[1:], str(now[feature])[1:]
    raise FileFault(
        f"{source.path}: index {feature + (source.base or 0)} is in field {is_}, but it was in "
        f"field {was} in the training data of {owner}. Number features and fields as there; "
        "svmlight text has no fields to compare."
    )


def _reading_like(
    options: argparse.Namespace,
    owner: Path,
    encoding: TableEncoding | None,
    has_classes: bool | None,
) -> TableReading:
    """Return how to read a table as that of `owner` was read."""
    if encoding is None:
        raise FileFault(
            f"{owner} does not come from a table, but from numbered columns: give a file with "
            "numbered columns, such as svmlight text."
        )
    if options.strict:
        encoding = replace(encoding, is_strict=True)
    target = getattr(options, "target", None)
    return TableReading(target, encoding=encoding, has_classes=has_classes)


def _require_sensible(path: str, options: argparse.Namespace) -> None:
    """Raise Misuse for options that do not apply to a file."""
    if not is_table(path):
        given = given_options(options)
        if given and path == options.input:
            raise Misuse(
                f"{given[0]} only applies to tables, but {path} has numbered columns: leave it "
                "out, or let the name of a table in text end in .csv."
            )
        return
    for flag, value in (
        ("--n-features", options.n_features),
        ("--zero-based and --one-based", options.zero_based),
        ("--groups", getattr(options, "groups", None)),
        ("--feature-names", getattr(options, "feature_names", None)),
    ):
        if value is not None:
            raise Misuse(
                f"{flag} does not apply to tables, whose columns have names: leave it out."
            )


def open_file(path: str, options: argparse.Namespace, **earlier: Any) -> Source:
    """Open a file with the given options, and what is known from the training data."""
    _require_sensible(path, options)
    if is_table(path) and "table" not in earlier:
        with errors_as_misuse():
            earlier["table"] = table_reading(options)
    with recipe_without_pyarrow(path, options):
        source = open_source(
            path,
            n_jobs=options.jobs,
            n_features=options.n_features,
            zero_based=options.zero_based,
            line_bytes=bytes_to_read(options.max_memory or MEMORY),
            max_memory=options.max_memory,
            **earlier,
        )
        if is_table(path):
            _require_reader(source)
    return source


def _require_reader(table: Source) -> None:
    """Raise ImportError if the library that reads a table is not installed."""
    try:
        table.summary  # noqa: B018
    except BaseException:
        table.close()
        raise


def require_labels(source: Source, what_for: str) -> None:
    """Raise FileFault or Misuse if a file has no rows or no labels."""
    if source.summary.n_rows == 0:
        raise FileFault(f"{source.path} has no rows to {what_for}.")
    if not source.summary.has_labels:
        if source.is_table:
            raise Misuse(
                f"{source.path} is a table: give the column with its labels, --target NAME."
            )
        raise FileFault(
            f"{source.path} has no labels to {what_for}: they are the first number of a line of "
            "svmlight text, or the column 'label' of Parquet."
        )


def as_whole_numbers(labels: NDArray[np.float64], path: Any, way_out: str) -> NDArray[np.int64]:
    """Return labels as integers; raise FileFault if they are not, and so are no classes."""
    broken = labels[~(np.abs(labels) < 2**53) | (labels != np.round(labels))]
    if len(broken):
        raise FileFault(
            f"{path} has the label {broken[0]:g}; classes are whole numbers. Give {way_out} if "
            "labels are numbers to be predicted."
        )
    return labels.astype(np.int64)


def require_room(options: argparse.Namespace, needed: int, what: str, way_out: str) -> None:
    """Raise MemoryError if so many bytes are more than --max-memory, or than are available."""
    require_within(options.max_memory, needed, f"{what} would need", way_out)
    if options.max_memory is None:
        require_memory(needed, what, way_out)


def plan_output(
    options: argparse.Namespace, source: Source, vocabulary: Vocabulary | None, resources: Resources
) -> tuple[ExpansionPlan, Vocabulary | None]:
    """Plan the expansion of IN; also return its vocabulary if it was learned just now.

    What the user should know about IN is printed before anything that takes long.
    """
    dtype = np.dtype(options.dtype)
    if vocabulary is not None:
        print_notes(source, options)
        return plan_file(source, vocabulary.columns, dtype), None
    is_hashed = options.hashed is not None
    n_features = source.summary.n_features
    groups = source.groups
    basis = make_basis(options, n_features, groups=groups, is_indexed=not is_hashed)
    print_notes(source, options)
    if is_hashed:
        hashed = HashedColumns(basis, options.hashed, **hash_arguments(options))
        return plan_file(source, hashed, dtype), None
    if not options.observed:
        return plan_file(source, AllColumns(basis), dtype), None
    limits = {"min_count": options.min_count or 1, "max_columns": options.max_columns}
    learned = learn_vocabulary(source, basis, dtype, resources=resources, **limits)
    return plan_own_rows(learned, plan_file(source, learned.columns, dtype)), learned


def print_notes(source: Source, options: argparse.Namespace) -> None:
    """Print on standard error what the user should know about IN."""
    for note in source.notes:
        print_note(note, options)


def print_dropped(source: Source, owner: Path, options: argparse.Namespace) -> None:
    """Print on standard error what was left out of a file, after it was read."""
    if isinstance(source, NarrowedSource) and source.dropped_values:
        print_note(
            f"{source.path}: dropped {source.dropped_values:,} values in {source.dropped_rows:,} "
            f"rows, of features that {owner} does not have (columns "
            f"{source.n_features:,} and above, 0-based).",
            options,
        )


@contextmanager
def warnings_as_notes(options: argparse.Namespace) -> Iterator[None]:
    """Print warnings as notes, at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: print_note(
            " ".join(str(message).split()), options
        )
        yield


def print_note(note: str, options: argparse.Namespace) -> None:
    """Print a line on standard error, with flags in place of arguments, unless --quiet is given."""
    if not getattr(options, "quiet", False):
        print(f"polysparse: note: {with_flags(note)}", file=sys.stderr)
