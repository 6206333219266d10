"""The streams that `learn` learns from, and what must be known before their first row."""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.cli.groups import n_features_of
from polysparse.cli.names import read_names
from polysparse.cli.options import Misuse, basis_arguments, errors_as_misuse, make_basis
from polysparse.cli.request import (
    as_whole_numbers,
    open_file,
    open_for,
    open_like,
    print_note,
    read_vocabulary,
    require_labels,
)
from polysparse.cli.tables import given_options
from polysparse.files.arriving import ArrivingText, Ending
from polysparse.files.errors import CannotResume, FileFault
from polysparse.files.field_table import labels_of
from polysparse.files.opening import ENOUGH_FOR_ALL, format_to_read, is_table
from polysparse.files.source import MOST_FEATURES, Source
from polysparse.files.svmlight import SvmlightSource
from polysparse.files.vocabulary import Vocabulary
from polysparse.machine import threads_for
from polysparse.stream.arriving_rows import (
    GROWTH,
    LEAST_GROWTH,
    ArrivingRows,
    Head,
    SourceRows,
    Survey,
    TextRows,
    survey_text,
)
from polysparse.stream.learn import learn_vocabulary
from polysparse.stream.memory import bytes_to_read
from polysparse.stream.online import Checkpoint
from polysparse.stream.resources import MEMORY, Resources
from polysparse.tables.encoding import TableEncoding

BLOCK_BYTES = 2**22  # of text that is read at a time
SQUARED = "--loss squared"  # for labels that are not classes
N_COLUMNS = 2**22  # that are hashed, by default


@dataclass
class OpenedStream:
    """The inputs of a stream, and what is known before the first row."""

    inputs: list[ArrivingRows]
    head: Head
    basis: dict[str, Any]  # arguments of the basis
    n_columns: int  # of all terms; 0 if they are hashed
    names: list[str] | None = None  # of features
    table: TableEncoding | None = None
    vocabulary: Vocabulary | None = None
    sources: tuple[Source, ...] = ()

    def close(self) -> None:
        """Close the inputs."""
        for source in self.sources:
            source.close()


def open_stream(
    options: argparse.Namespace, ending: Ending, earlier: Checkpoint | None
) -> OpenedStream:
    """Open all inputs; what must be known is given, found in a first pass, or known earlier."""
    are_text = [_is_text(path) for path in options.input]
    if all(are_text):
        return _TextOpening(options, ending, earlier).open()
    if any(are_text):
        raise Misuse(
            "STREAM must be text alone (svmlight, libffm), or none of it: "
            f"{options.input[are_text.index(True)]} and {options.input[are_text.index(False)]} are "
            "not alike."
        )
    for flag, is_given in (
        ("--follow", options.follow),
        ("--skip-bad-lines", options.skip_bad_lines),
    ):
        if is_given:
            raise Misuse(f"{flag} only applies to svmlight and libffm text.")
    stream = _open_sources(options)
    if earlier is not None:
        try:
            _require_same_labels(options, earlier.head)
            if stream.head.n_features != earlier.head.n_features:
                before = f"{earlier.head.n_features} features"
                raise _other_run(before, f"{stream.head.n_features}")
        except BaseException:
            stream.close()
            raise
    return stream


def _require_same_labels(options: argparse.Namespace, head: Head) -> None:
    """Raise CannotResume if the loss or the classes given are not those of an earlier run."""
    before = "poisson" if head.is_count else "squared" if head.classes is None else "logistic"
    if options.loss != before:
        raise _other_run(f"{before} loss", f"{options.loss} loss")
    if options.classes is not None and head.classes is not None:
        given = np.array(options.classes).astype(np.int64)
        if not np.array_equal(head.classes, given):
            before, now = (", ".join(map(str, each.tolist())) for each in (head.classes, given))
            raise _other_run(f"the classes {before}", now)


def _other_run(before: str, now: str) -> CannotResume:
    return CannotResume(
        f"the earlier run had {before}, this one has {now}. Give resume=False to start over."
    )


def _is_text(path: str) -> bool:
    return not is_table(path) and issubclass(format_to_read(path).source, SvmlightSource)


def _require_two(classes: NDArray[Any], path: Any) -> NDArray[Any]:
    if len(classes) < 2:
        shown = ", ".join(map(str, classes.tolist()))
        raise FileFault(
            f"{path} has one class alone, {shown}: give all that may occur, like --classes 0,1."
        )
    return classes


# -------------------------------------------------------------------------------------------- text


class _TextOpening:
    """Opens svmlight or libffm text."""

    def __init__(
        self, options: argparse.Namespace, ending: Ending, earlier: Checkpoint | None
    ) -> None:
        self.options, self.earlier = options, earlier
        self.vocabulary = read_vocabulary(options)
        self.names: list[str] | None = None
        self.has_fields = any(
            format_to_read(each).source.has_fields  # type: ignore[attr-defined]
            for each in options.input
            if each != "-"
        )
        self._require_no_table_options()
        n_bytes = bytes_to_read(options.max_memory or MEMORY)
        self.texts = [
            self._text(path, n_bytes, ending, is_last=i == len(options.input) - 1)
            for i, path in enumerate(options.input)
        ]
        self.is_piped = any(text.is_pipe for text in self.texts)

    def _text(self, path: str, n_bytes: int, ending: Ending, *, is_last: bool) -> ArrivingText:
        if path != "-" and not Path(path).exists():
            raise FileNotFoundError(f"{path}: no such file or directory.")
        is_pipe = path == "-" or not Path(path).is_file()
        text = ArrivingText(
            Path("standard input" if path == "-" else path),
            is_standard_input=path == "-",
            is_pipe=is_pipe,
            has_fields=path != "-" and format_to_read(path).source.has_fields,  # type: ignore[attr-defined]
            block_bytes=min(BLOCK_BYTES, n_bytes),
            line_bytes=n_bytes,
            n_threads=threads_for(self.options.jobs, ENOUGH_FOR_ALL),
            skips_bad_lines=self.options.skip_bad_lines,
            follows=self.options.follow and is_last and not is_pipe,
            ending=ending if is_last else Ending(),
        )
        if text.follows and text.is_gzipped:
            raise Misuse(f"--follow needs text that is not gzipped, but {path} is.")
        return text

    def _require_no_table_options(self) -> None:
        given = given_options(self.options)
        if given and self.options.input == ["-"]:
            raise Misuse(
                f"{given[0]} only applies to tables, and standard input is read as svmlight text: "
                "tables are read twice, so give one as a file."
            )
        if given:
            raise Misuse(
                f"{given[0]} only applies to tables, but {self.options.input[0]} has numbered "
                "columns: leave it out."
            )

    def open(self) -> OpenedStream:
        options = self.options
        head = self._head() if self.earlier is None else self._earlier_head(self.earlier.head)
        if options.feature_names is not None:
            self.names = read_names(options.feature_names, head.n_features)
        if options.observed:
            self.vocabulary = self._observe(head)
        basis, n_columns = {}, 0
        if self.vocabulary is None:
            found = make_basis(
                options,
                max(1, head.n_features),
                groups=head.groups,
                names=self.names,
                is_indexed=options.all,
            )
            with errors_as_misuse():
                basis = basis_arguments(options, head.groups, self.names)
            n_columns = found.n_columns - found.include_bias if options.all else 0
        rows: list[ArrivingRows] = [TextRows(text, head) for text in self.texts]
        return OpenedStream(rows, head, basis, n_columns, self.names, vocabulary=self.vocabulary)

    def _earlier_head(self, head: Head) -> Head:
        """Return what an earlier run knew; raise CannotResume if other things are given now."""
        base = self._given_base()
        if base is not None and base != head.base:
            raise _other_run(f"indices from {head.base}", f"indices from {base}")
        given = self._given_features()
        if given is not None and (head.grows or given != head.n_features):
            before = "any number of features" if head.grows else f"{head.n_features} features"
            raise _other_run(before, f"{given}")
        _require_same_labels(self.options, head)
        return head

    def _head(self) -> Head:
        """Return what must be known; it is given, or found in a first pass."""
        options = self.options
        given = self._given_features()
        needs = {
            "--zero-based or --one-based": self._given_base() is None,
            "--classes, all labels that may occur, like --classes 0,1": (
                options.loss == "logistic" and options.classes is None
            ),
            "--n-features D": given is None and self._has_fixed_width,
            "--groups": self.has_fields and options.groups is None and self.vocabulary is None,
        }
        survey = None
        if self.is_piped:
            needs.pop("--zero-based or --one-based")
            missing = [flag for flag, is_needed in needs.items() if is_needed]
            if missing:
                raise Misuse(f"{self._name} cannot be read twice: give {missing[0]}.")
        elif any(needs.values()):
            survey = survey_text(self.texts, keeps_labels=options.classes is None)
            if survey.n_rows == 0 and not options.follow:
                raise FileFault(f"{self._name} has no rows to learn from.")
        base = self._base(survey)
        n_features = given
        if n_features is None:
            n_features = 0 if survey is None else max(0, survey.highest + 1 - base)
        grows = given is None and not self._has_fixed_width and not needs["--groups"]
        most_features = max(LEAST_GROWTH, GROWTH * (options.hashed or N_COLUMNS))
        if grows:  # more are bad lines
            n_features = min(n_features, most_features)
        groups = None
        if survey is not None and survey.fields is not None and options.groups is None:
            groups = labels_of(survey.fields.fields, base, n_features)
        return Head(
            n_features,
            grows=grows,
            base=base,
            classes=self._classes(survey),
            is_count=options.loss == "poisson",
            groups=groups,
            most_features=most_features if grows else MOST_FEATURES,
        )

    @property
    def _name(self) -> str:
        return ", ".join(str(text.path) for text in self.texts)

    @property
    def _has_fixed_width(self) -> bool:
        """Whether columns cannot be described before the number of features is known."""
        options = self.options
        described = options.groups, options.terms, options.feature_names, self.vocabulary
        return options.all or options.observed or any(each is not None for each in described)

    def _given_features(self) -> int | None:
        if self.vocabulary is not None:
            return self.vocabulary.columns.basis.n_features
        if self.options.n_features is not None:
            return int(self.options.n_features)
        return n_features_of(self.options.groups) or None

    def _given_base(self) -> int | None:
        if self.options.zero_based is not None:
            return int(not self.options.zero_based)
        learned = None if self.vocabulary is None else self.vocabulary.zero_based
        return None if learned is None else int(not learned)

    def _base(self, survey: Survey | None) -> int:
        given = self._given_base()
        if given is not None:
            return given
        base, why = 1, "it cannot be read twice"
        if survey is not None:
            base = 0 if survey.lowest == 0 else 1
            why = "index 0 occurs" if base == 0 else "index 0 does not occur"
        print_note(
            f"{self._name}: {why}, so indices are {base}-based; otherwise give "
            f"zero_based={base == 1}.",
            self.options,
        )
        return base

    def _classes(self, survey: Survey | None) -> NDArray[Any] | None:
        if self.options.loss != "logistic":
            return None
        if self.options.classes is not None:
            return np.array(self.options.classes).astype(np.int64)
        assert survey is not None
        assert survey.labels is not None
        return _require_two(as_whole_numbers(survey.labels, self._name, SQUARED), self._name)

    def _observe(self, head: Head) -> Vocabulary:
        """Return the columns that occur in the only file."""
        options = self.options
        if len(self.texts) > 1 or self.is_piped:
            raise Misuse(
                "--observed needs a single file, which is read twice: for others, learn the "
                "columns with polysparse expand --observed, and give them with --vocabulary."
            )
        limits = {"min_count": options.min_count or 1, "max_columns": options.max_columns}
        with closing(open_file(options.input[0], options, least_features=head.n_features)) as file:
            basis = make_basis(options, head.n_features, groups=file.groups)
            resources = Resources(options.max_memory, options.jobs)
            return learn_vocabulary(
                file, basis, np.dtype(np.float64), resources=resources, **limits
            )


# -------------------------------------------------------------------------------- other formats


def _open_sources(options: argparse.Namespace) -> OpenedStream:
    """Open tables or matrices, which are looked through before they are learned from."""
    if options.observed:
        raise Misuse(
            "--observed only applies to svmlight and libffm text: learn the columns with "
            "polysparse expand --observed, and give them with --vocabulary."
        )
    vocabulary = read_vocabulary(options)
    sources: list[Source] = []
    try:
        for path in options.input:
            if vocabulary is not None:
                noun = "the vocabulary"
                source = open_for(path, options, options.vocabulary, vocabulary, noun)
            elif sources and sources[0].is_table:
                first = sources[0]
                width, has_classes = first.summary.n_features, first.classes is not None
                like = (width, None, str(first.path), None, first.table, has_classes)
                source = open_like(path, options, first.path, *like)
            else:
                source = open_file(path, options)
            sources.append(source)
            require_labels(source, "learn from")
            for note in source.notes:
                print_note(note, options)
        return _of_sources(options, sources, vocabulary)
    except BaseException:
        for source in sources:
            source.close()
        raise


def _of_sources(
    options: argparse.Namespace, sources: list[Source], vocabulary: Vocabulary | None
) -> OpenedStream:
    table, groups = sources[0].table, sources[0].groups
    width = max(source.summary.n_features for source in sources)
    width = max(width, n_features_of(options.groups))
    names = table.feature_names if table is not None else None
    if options.feature_names is not None:
        names = read_names(options.feature_names, width)
    basis: dict[str, Any] = {}
    n_columns = 0
    if vocabulary is None:
        found = make_basis(options, width, groups=groups, names=names, is_indexed=options.all)
        basis = basis_arguments(options, groups, names)
        n_columns = found.n_columns - found.include_bias if options.all else 0
    head = Head(width, classes=_classes_of(options, sources), is_count=options.loss == "poisson")
    max_memory = options.max_memory or MEMORY
    rows: list[ArrivingRows] = [SourceRows(source, head, max_memory) for source in sources]
    own_names = None if table is not None else names
    return OpenedStream(rows, head, basis, n_columns, own_names, table, vocabulary, tuple(sources))


def _classes_of(options: argparse.Namespace, sources: list[Source]) -> NDArray[Any] | None:
    """Return the classes of labels, which takes a pass over them unless they are known."""
    if options.loss != "logistic":
        for source in sources:
            if source.classes is not None:
                raise FileFault(
                    f"{source.path}: column {options.target!r} has classes such as "
                    f"{source.classes[0]!r}, but --loss {options.loss} predicts numbers."
                )
        return None
    if options.classes is not None:
        for source in sources:
            if source.classes is not None:
                raise Misuse(
                    f"--classes are whole numbers, but {source.path} has classes such as "
                    f"{source.classes[0]!r}, which are found in it: leave out --classes."
                )
        return np.array(options.classes).astype(np.int64)
    found: list[NDArray[Any]] = []
    for source in sources:
        if source.classes is not None:
            found.append(source.classes)
            continue
        n_bytes = bytes_to_read(options.max_memory or MEMORY)
        own = [np.unique(labels) for _, labels in source.blocks(0, n_bytes)]
        found.append(as_whole_numbers(np.unique(np.concatenate(own)), source.path, SQUARED))
    return _require_two(np.unique(np.concatenate(found)), sources[0].path)
