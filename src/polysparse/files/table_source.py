"""Tables in files: their columns are learned in a first pass, and encoded in later ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.files.errors import FileFault, faults_of
from polysparse.files.source import Source, Summary
from polysparse.files.table_reading import (
    TableReading,
    columns_are,
    columns_of,
    described,
    doubts,
    ignored,
    no_column,
    require_distinct,
)
from polysparse.machine import require_within
from polysparse.matrix.row_profile import RowProfile
from polysparse.tables.columns import CodedColumn, NumberColumn
from polysparse.tables.encoding import TableEncoding
from polysparse.tables.learning import Column, LevelCounts, TableCounts
from polysparse.tables.reading import CATEGORICAL_KINDS, ArrowTable, Table, arrow_kind
from polysparse.tables.variables import UnknownLevels

LEVEL_BYTES = 256  # of a level while it is counted, and of a feature: texts and their numbers
NO_ROWS = "has a heading, but no rows to learn from."

# Maps a function over a sequence, perhaps in parallel.
Run = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]

# Bytes of a cell, at most, while a block is read: as Arrow has it, decoded, placed and assembled.
CELL_BYTES = 64


class TableSource(Source):
    """A table in a file. Each subclass reads one format."""

    is_table = True
    part: Any = None  # which rows are read, in the terms of the format; None for all of them
    n_before: int | None = 0  # rows of the file before those; None if that is not known
    given_types: Mapping[str, Any] = MappingProxyType({})  # of columns, by other files
    table_of: type[ArrowTable] = ArrowTable  # how a record batch is read
    _unknown: UnknownLevels  # of the first pass, if the encoding is that of other data

    # ------------------------------------------------------------------ what each format reads

    @cached_property
    def names(self) -> list[str]:
        """Names of all columns, as they are in the file."""
        raise NotImplementedError

    def types(self, wanted: dict[str, bool | None]) -> dict[str, Any]:
        """Return the Arrow type with which each column is read; null if it has no values.

        `wanted` has the columns: True for those that are categorical, False for numbers, and None
        if that depends on their types.
        """
        raise NotImplementedError

    def batches(self, types: dict[str, Any], block_bytes: int) -> Iterator[Any]:
        """Yield record batches with the columns of `types`, in their order."""
        raise NotImplementedError

    def parts(self, block_bytes: int, run: Run) -> list[tuple[Any, int | None]]:
        """Return parts of about `block_bytes`, in order, each with its number of rows if known.

        `run` maps a function over what must be read for that, if the format does not state it.
        """
        return [(None, None)]

    @property
    def first_row(self) -> int:
        """Number of the first row that is read, in messages."""
        return self.n_before or 0

    @property
    def row_note(self) -> str:
        """How messages explain the numbers of rows, if that is needed."""
        return ""

    @property
    def hint_on_names(self) -> str:
        """What messages add if a column is missing: why names may not be those of columns."""
        return ""

    # ------------------------------------------------------------------------------- columns

    @property
    def how(self) -> TableReading:
        """How to read the table."""
        return self.reading.table or TableReading()

    def _with(self, **changes: Any) -> Self:
        """Return the same source with other options of TableReading; what it has found stays."""
        other = copy(self)
        other.reading = replace(self.reading, table=replace(self.how, **changes))
        return other

    @cached_property
    def _features(self) -> dict[str, bool | None]:
        """The columns that become features, and whether they are categorical, if that is known."""
        names, how = self.names, self.how
        require_distinct(names)
        encoding = how.encoding
        for name in how.listed:
            if name not in names and (encoding is None or name == how.target):
                raise ValueError(no_column(name, names) + self.hint_on_names)
        if encoding is not None:
            return columns_of(encoding, [name for name in names if name != how.target])
        left = [name for name in names if name not in (how.target, *how.drop)]
        if "" in left:
            raise ValueError(
                f"column {names.index('') + 1} has no name, like the index that pandas writes: "
                'name it, or leave it out with drop="".'
            )
        if not left:
            raise ValueError(f"there is no column to learn from. {columns_are(names)}")
        listed = dict.fromkeys(how.categorical, True) | dict.fromkeys(how.numeric, False)
        return {name: listed.get(name) for name in left}

    @property
    def wanted(self) -> dict[str, bool | None]:
        """The columns that are read, and whether they are categorical; the target is the last."""
        target = self.how.target
        return self._features | ({} if target is None else {target: self.how.has_classes})

    @cached_property
    def _types(self) -> dict[str, Any]:
        """The type of each column that is read."""
        return self.types(self.wanted)

    @cached_property
    def _mask(self) -> list[bool]:
        """Which features are categorical."""
        mask = []
        for name, is_categorical in self._features.items():
            if is_categorical is None:
                kind = arrow_kind(self._types[name])
                if kind not in (*CATEGORICAL_KINDS, "number"):
                    raise ValueError(
                        f"column {name!r} is {kind}, which is neither a number nor a category: "
                        f'read it as text with categorical="{name}", or leave it out with '
                        f'drop="{name}".'
                    )
                is_categorical = kind != "number"
            mask.append(is_categorical)
        return mask

    def _tables(self, block_bytes: int) -> Iterator[tuple[Table, Table | None]]:
        """Yield the features and the target, if there is one, of some rows at a time."""
        n_rows, features, target = 0, list(self._features), self.how.target
        for batch in self.batches(self._types, block_bytes):
            table = self._numbered(batch.select(features), n_rows)
            labels = None if target is None else self._numbered(batch.select([target]), n_rows)
            yield table, labels
            n_rows += batch.num_rows

    def _numbered(self, batch: Any, n_rows: int) -> Table:
        """Return a table whose rows follow `n_rows` that were read, for messages."""
        table = self.table_of(batch)
        table.first_row, table.row_note = self.first_row + n_rows, self.row_note
        return table

    def numbers(self, name: str, block_bytes: int) -> Iterator[NDArray[np.float64]]:
        """Yield the numbers of a column, some rows at a time; only that column is read."""
        with faults_of(self.path):
            if name not in self.names:
                raise ValueError(no_column(name, self.names) + self.hint_on_names)
            n_rows = 0
            for batch in self.batches(self.types({name: False}), block_bytes):
                table = self._numbered(batch.select([name]), n_rows)
                column = table.numbers(0)
                if column.missing is not None and column.missing.any():
                    where = table.where(0)
                    row = where.row(int(np.argmax(column.missing)))
                    raise ValueError(f"{where} is missing in {row}: fill it in.")
                yield column.values
                n_rows += batch.num_rows

    # ----------------------------------------------------------------------------- first pass

    @cached_property
    def _learned(self) -> tuple[TableEncoding, RowProfile, NDArray[Any] | None]:
        """The encoding, the lengths of encoded rows, and the classes of the target."""
        with faults_of(self.path):
            return self._learn()

    def _learn(self) -> tuple[TableEncoding, RowProfile, NDArray[Any] | None]:
        counts, classes, profile = self.count()
        encoding, how = self.how.encoding, self.how
        if encoding is None:
            if profile.n_rows == 0:
                raise ValueError(NO_ROWS)
            encoding = TableEncoding.of(counts, how.options)
        return encoding, profile, self._as_classes(classes) if self.has_classes else None

    def count(self) -> tuple[TableCounts, LevelCounts, RowProfile]:
        """Count the levels of columns, the classes of the target and the values of rows.

        If there is an encoding already, only levels that it does not have are counted.
        """
        encoding, how = self.how.encoding, self.how
        mask, profile, classes = self._mask, RowProfile(), LevelCounts()
        self._unknown = unknown = UnknownLevels()
        has_classes = self.has_classes
        counts = TableCounts(Table(list(self._features), 0, len(mask)), mask)
        every = range(len(mask))
        for table, labels in self._tables(self.reading.line_bytes):
            if encoding is None:
                profile += _profile_of(counts.add(table, every, how.options), table.n_rows)
            else:
                indptr = encoding.encode(table, unknown)[0]
                profile += RowProfile(cpu.count_row_lengths(indptr))
            if labels is not None:
                self._count_labels(labels, classes if has_classes else None)
            self._require_room(counts, classes)
        return counts, classes, profile

    @property
    def has_classes(self) -> bool:
        """Whether the labels are classes, rather than numbers."""
        target = self.how.target
        if target is None:
            return False
        kind = arrow_kind(self._types[target])
        if kind not in (*CATEGORICAL_KINDS, "number"):
            raise ValueError(
                f"column {target!r}, the target, is {kind}: it must be text or numbers. Convert it."
            )
        return kind != "number"

    def _as_classes(self, found: LevelCounts) -> NDArray[Any]:
        assert self.how.target is not None
        if arrow_kind(self._types[self.how.target]) == "boolean":
            return np.array(sorted(level == "True" for level in found.counts))
        return np.array(sorted(found.counts), dtype=object)

    def _count_labels(self, labels: Table, classes: LevelCounts | None) -> None:
        """Count the classes of labels; raise ValueError if a label is missing."""
        column = self._read_labels(labels)
        if isinstance(column, CodedColumn) and classes is not None:
            classes.add(column)

    @property
    def no_labels(self) -> NDArray[Any]:
        """An empty array of the dtype of labels."""
        target = self.how.target
        is_boolean = target is not None and arrow_kind(self._types[target]) == "boolean"
        return np.empty(0, bool if is_boolean else object if self.has_classes else np.float64)

    def labels_in(self, labels: Table) -> NDArray[Any]:
        """Return labels as they are: numbers, booleans, or texts as objects."""
        column = self._read_labels(labels)
        if isinstance(column, NumberColumn):
            return column.values
        classes = np.array(column.levels, dtype=object)
        is_boolean = labels.kind(0) == "boolean"
        found: NDArray[Any] = (classes == "True" if is_boolean else classes)[column.codes]
        return found

    def _read_labels(self, labels: Table) -> Column:
        """Read the column of the target; raise ValueError if a label is missing."""
        column: Column = labels.coded(0) if self.has_classes else labels.numbers(0)
        if isinstance(column, NumberColumn):
            missing = column.missing
        else:
            missing = np.asarray(column.codes) < 0
        if missing is not None and missing.any():
            where = labels.where(0)
            raise ValueError(
                f"{where}, the target, is missing in {where.row(int(np.argmax(missing)))}: fill it "
                "in, or leave the row out."
            )
        return column

    def _require_room(self, counts: TableCounts, classes: LevelCounts) -> None:
        """Raise MemoryError if the levels take more than half of the memory that is allowed."""
        sizes = [0 if each is None else len(each.counts) for each in counts.levels]
        needed = 2 * LEVEL_BYTES * (sum(sizes) + len(classes.counts))
        if not sizes or needed < 2**20:
            return
        largest = (counts.names or [])[int(np.argmax(sizes))]
        require_within(
            self.reading.max_memory,
            needed,
            f"the {sum(sizes):,} levels of {self.path} so far, of which column {largest!r} has "
            f"{max(sizes):,}, need",
            f'Leave that column out with drop="{largest}".',
        )

    # ------------------------------------------------------------------------------- results

    @property
    def table(self) -> TableEncoding:
        """How the table is encoded."""
        return self._learned[0]

    @property
    def classes(self) -> NDArray[Any] | None:
        """The classes that labels number, if the target has classes; None if it has numbers."""
        return self._learned[2]

    @property
    def groups(self) -> list[str | None] | None:
        return list(self.table.groups)

    @property
    def resident_bytes(self) -> int:  # type: ignore[override]
        needed = LEVEL_BYTES * self.table.n_features
        return needed if needed > 2**20 else 0

    @cached_property
    def summary(self) -> Summary:
        encoding, profile, _ = self._learned
        return Summary(encoding.n_features, profile, has_labels=self.how.target is not None)

    @property
    def notes(self) -> list[str]:
        notes = list(super().notes)
        if self.how.encoding is None:
            found = doubts(self.table, self.how, self._learned[1].n_rows)
            sentences = [f"{described(self.table)}.", *found]
        else:
            sentences = list(ignored(self._unknown, self.reading.earlier))
        return notes + [f"{self.path}: {each}" for each in sentences]

    def identity(self) -> dict[str, Any]:
        classes = [] if self.classes is None else list(map(str, self.classes))
        text = json.dumps([self.table.as_dict(), classes])
        digest = hashlib.sha256(text.encode()).hexdigest()
        return super().identity() | {"target": self.how.target, "encoding": digest}

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        encoding, _, classes = self._learned
        with faults_of(self.path):
            for table, labels in self._tables(block_bytes):
                n_rows = table.n_rows
                if skip_rows >= n_rows:
                    skip_rows -= n_rows
                    continue
                block = encoding.transform(table)
                y = None if labels is None else _as_labels(labels, classes, self.path)
                if skip_rows:
                    block, y = block[skip_rows:], None if y is None else y[skip_rows:]
                    skip_rows = 0
                yield block, y

    def encode(self, encoding: TableEncoding) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """Yield CSR blocks by an encoding, each with its labels as they are, in a single pass."""
        for table, labels in self._tables(self.reading.line_bytes):
            block = encoding.transform(table)
            yield block, None if labels is None else self.labels_in(labels)


def _profile_of(columns: Sequence[Column], n_rows: int) -> RowProfile:
    """Return how many values rows will store, of columns whose levels are all known."""
    lengths = np.zeros(n_rows, np.int64)
    for column in columns:
        if isinstance(column, NumberColumn):
            lengths += column.values != 0
            if column.missing is not None:
                lengths += column.missing
        else:
            lengths += 1
    counts = np.bincount(lengths)
    return RowProfile(tuple((n, int(counts[n])) for n in np.flatnonzero(counts).tolist()))


def _as_labels(labels: Table, classes: NDArray[Any] | None, path: Any) -> NDArray[np.float64]:
    """Return labels as numbers, which number the classes if there are any."""
    if classes is None:
        return labels.numbers(0).values
    column = labels.coded(0)
    numbers = {str(each): i for i, each in enumerate(classes)}
    found = [numbers.get(level, -1) for level in column.levels]
    out: NDArray[np.float64] = np.array([*found, -1], dtype=np.float64)[column.codes]
    if np.any(out < 0):
        raise FileFault(f"{path} changed while it was read.")
    return out
