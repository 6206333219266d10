"""What is learned about a table: which columns are categorical, and how often each level occurs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.tables.columns import (
    CodedColumn,
    NumberColumn,
    is_number,
    sort_levels,
    with_whole_numbers,
)
from polysparse.tables.reading import CATEGORICAL_KINDS, NUMERIC_KINDS, Table
from polysparse.tables.variables import CategoricalVariable, NumericVariable, Variable

Column = CodedColumn | NumberColumn


@dataclass(frozen=True)
class EncodingOptions:
    """How levels become features; the parameters of TableEncoder of the same names."""

    handle_unknown: str = "ignore"
    min_frequency: Any = None
    max_categories: Any = None
    missing: str = "error"

    def require_valid(self) -> None:
        """Raise ValueError if an option is invalid."""
        for name, allowed in (
            ("handle_unknown", ("ignore", "error")),
            ("missing", ("error", "indicator")),
        ):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                raise ValueError(f"{name} must be {allowed[0]!r} or {allowed[1]!r}; got {value!r}.")
        lowest, most = self.min_frequency, self.max_categories
        is_count = _is_integer(lowest) and lowest >= 1
        is_share = isinstance(lowest, Real) and not _is_integer(lowest) and 0 < float(lowest) < 1
        if lowest is not None and not is_count and not is_share:
            raise ValueError(
                "min_frequency must be an int of at least 1, a float between 0 and 1, or None; got "
                f"{lowest!r}."
            )
        if most is not None and not (_is_integer(most) and most >= 1):
            raise ValueError(f"max_categories must be an int of at least 1, or None; got {most!r}.")


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


@dataclass
class LevelCounts:
    """In how many rows each level of a variable occurs."""

    counts: dict[str, int] = field(default_factory=dict)
    n_missing: int = 0
    are_numbers: bool = True
    by_value: bool = True

    def add(self, column: CodedColumn) -> None:
        """Count the rows of a column."""
        codes = np.asarray(column.codes, np.int64)
        found = np.bincount(codes + 1, minlength=len(column.levels) + 1)
        self.n_missing += int(found[0])
        fresh = {level: n for level, n in zip(column.levels, found[1:].tolist(), strict=True) if n}
        if fresh:
            self.are_numbers = self.are_numbers and column.are_numbers
            self.by_value = self.by_value and column.by_value
        if not self.counts:
            self.counts = fresh
            return
        for level, n in fresh.items():
            self.counts[level] = self.counts.get(level, 0) + n

    @classmethod
    def sum(cls, some: Iterable[LevelCounts]) -> LevelCounts:
        """Return the counts of several parts of a column together."""
        total = cls()
        for each in some:
            total.n_missing += each.n_missing
            total.are_numbers = total.are_numbers and each.are_numbers
            total.by_value = total.by_value and each.by_value
            for level, n in each.counts.items():
                total.counts[level] = total.counts.get(level, 0) + n
        return total

    def variable(self, name: str, n_rows: int, options: EncodingOptions) -> CategoricalVariable:
        """Return the variable, whose rare levels are those that OneHotEncoder finds infrequent."""
        levels = list(self.counts)
        levels = [levels[i] for i in sort_levels(levels, self.are_numbers)]
        counts = [self.counts[level] for level in levels]
        if self.n_missing:
            counts.append(self.n_missing)
        is_rare = _find_rare(np.array(counts, np.int64), n_rows, options)
        missing = None
        if self.n_missing:
            missing = "rare" if is_rare[-1] else "level"
        return CategoricalVariable(
            name,
            tuple(level for level, rare in zip(levels, is_rare, strict=False) if not rare),
            tuple(level for level, rare in zip(levels, is_rare, strict=False) if rare),
            missing,
            by_value=len(levels) > 0 and self.by_value,
        )


def _find_rare(
    counts: NDArray[np.int64], n_rows: int, options: EncodingOptions
) -> NDArray[np.bool_]:
    """Return which levels are rare, by the rules of scikit-learn's OneHotEncoder."""
    is_rare = np.zeros(len(counts), bool)
    lowest, most = options.min_frequency, options.max_categories
    if lowest is not None:
        is_rare = counts < (lowest if _is_integer(lowest) else lowest * n_rows)
    n_features = len(counts) - int(is_rare.sum()) + 1
    if most is not None and most < n_features:
        kept = most - 1
        is_rare[np.argsort(counts, kind="stable")[: len(counts) - kept]] = True
    return is_rare


class TableCounts:
    """The columns of a table, and the counts of their levels over any number of tables.

    Parameters
    ----------
    table : Table
        The first table, which decides what is categorical, unless a column has no values: then the
        first table with values does. Its rows are not counted.
    categorical_features : Any
        As in TableEncoder.
    """

    def __init__(self, table: Table, categorical_features: Any) -> None:
        self.names = table.names
        self.n_rows = 0
        is_categorical = find_categorical(table, categorical_features)
        self.levels = [LevelCounts() if each else None for each in is_categorical]
        self.have_missing = [False] * table.n_columns
        by_dtype = isinstance(categorical_features, str)
        self.may_change = [by_dtype and table.kind(j) == "object" for j in range(table.n_columns)]

    def add(self, table: Table, where: Sequence[int], options: EncodingOptions) -> list[Column]:
        """Count the rows of a table, and return its columns as they were read.

        `where` has the number of each column in the table. Nothing is counted if a column is not
        valid.
        """
        may_miss = options.missing == "indicator"
        columns: list[Column] = []
        for number, (counts, j) in enumerate(zip(self.levels, where, strict=True)):
            is_categorical = counts is not None and not self._turns_numeric(number, table.kind(j))
            column = read_column(table, j, is_categorical=is_categorical)
            if isinstance(column, NumberColumn):
                column.require_valid(table.where(j), may_miss=may_miss)
                if counts is not None and counts.n_missing and not may_miss:
                    raise ValueError(
                        f"{table.where(j)} has numbers, but is missing in the {counts.n_missing:,} "
                        'rows before: leave these rows out, or use TableEncoder(missing="indicator'
                        '"), which adds a feature that is 1 where they are missing.'
                    )
            columns.append(column)
        for number, column in enumerate(columns):
            counts = self.levels[number]
            if isinstance(column, NumberColumn):
                earlier = 0 if counts is None else counts.n_missing
                self.levels[number] = None
                self.have_missing[number] |= column.missing is not None or earlier > 0
            elif counts is not None:
                counts.add(column)
        self.n_rows += table.n_rows
        return columns

    def _turns_numeric(self, number: int, kind: str) -> bool:
        """Return whether a column that had no values, and no type, now has numbers."""
        counts = self.levels[number]
        has_values = counts is not None and len(counts.counts) > 0
        return self.may_change[number] and not has_values and kind == "number"

    @classmethod
    def sum(cls, some: Sequence[TableCounts]) -> TableCounts:
        """Return the counts of several parts of a table together; at least one."""
        total = copy(some[0])
        total.n_rows = sum(each.n_rows for each in some)
        total.have_missing = [any(each) for each in _by_column(t.have_missing for t in some)]
        total.levels = [
            None if None in each else LevelCounts.sum(each)
            for each in _by_column(counts.levels for counts in some)
        ]
        return total

    def variables(self, options: EncodingOptions) -> tuple[Variable, ...]:
        """Return the variables, given all rows so far."""
        found: list[Variable] = []
        for j, counts in enumerate(self.levels):
            name = f"x{j}" if self.names is None else self.names[j]
            if counts is not None:
                found.append(counts.variable(name, self.n_rows, options))
            else:
                has_indicator = options.missing == "indicator" and self.have_missing[j]
                found.append(NumericVariable(name, has_indicator))
        return tuple(found)


def _by_column(of_tables: Iterable[Sequence[Any]]) -> Iterable[tuple[Any, ...]]:
    """Return what several tables have for each column."""
    return zip(*of_tables, strict=True)


def read_column(table: Table, j: int, *, is_categorical: bool) -> Column:
    """Read a column; raise ValueError if its values are not what they should be."""
    kind = table.kind(j)
    _require_kind(table, j, kind)
    if is_categorical:
        return with_whole_numbers(table.coded(j))
    if kind not in NUMERIC_KINDS:
        raise ValueError(
            f"{table.where(j)} is {kind}{_example(table, j)}, but numbers are needed: convert it, "
            "or fit with it in categorical_features."
        )
    return table.numbers(j)


def require_kinds(table: Table) -> None:
    """Raise ValueError if a column, such as one of dates, is neither a number nor a category."""
    for j in range(table.n_columns):
        _require_kind(table, j, table.kind(j))


def _require_kind(table: Table, j: int, kind: str) -> None:
    if kind not in (*NUMERIC_KINDS, *CATEGORICAL_KINDS):
        raise ValueError(
            f"{table.where(j)} is {kind}, which is neither a number nor a category: convert it, "
            "for example a date to its year or to a string, or drop it."
        )


def require_numbers(table: Table) -> None:
    """Raise ValueError if a number is missing or infinite in a column of numbers."""
    for j in range(table.n_columns):
        if table.kind(j) in ("number", "object"):
            table.numbers(j).require_valid(table.where(j), may_miss=False)


def _example(table: Table, j: int) -> str:
    """Return the first value of a categorical column that is not a number, for messages."""
    column = table.coded(j)
    are_words = np.array([*(not is_number(level) for level in column.levels), False])
    rows = np.flatnonzero(are_words[column.codes])
    if len(rows) == 0:
        return ""
    return f", such as {column.levels[column.codes[rows[0]]]!r} in {table.where(j).row(rows[0])}"


def find_categorical(table: Table, categorical_features: Any) -> list[bool]:
    """Return which columns are categorical: by their dtype, a mask, numbers or names."""
    n, given = table.n_columns, categorical_features
    if given is None:
        return [False] * n
    if isinstance(given, str):
        require_from_dtype(given)
        return [table.kind(j) in CATEGORICAL_KINDS for j in range(n)]
    listed = np.asarray(given)
    if listed.ndim != 1:
        raise ValueError(
            f"categorical_features must be one-dimensional; got an array of shape {listed.shape}."
        )
    if listed.dtype == bool:
        if len(listed) != n:
            raise ValueError(
                f"categorical_features is a mask of length {len(listed)}, but X has {n} columns."
            )
        return [bool(each) for each in listed]
    return _at(_as_numbers(listed.tolist(), table), n)


def require_from_dtype(categorical_features: str) -> None:
    """Raise ValueError unless a string for `categorical_features` is valid."""
    if categorical_features != "from_dtype":
        raise ValueError(
            'categorical_features must be "from_dtype", a mask, column numbers, column names, '
            f"a TableEncoder or None; got {categorical_features!r}."
        )


def _as_numbers(listed: list[Any], table: Table) -> list[int]:
    """Return the numbers of columns given by name or number."""
    numbers = []
    for each in listed:
        if isinstance(each, str):
            if table.names is None or each not in table.names:
                known = "no names" if table.names is None else ", ".join(table.names[:20])
                raise ValueError(
                    f"categorical_features has {each!r}, which is not a column of X; X has {known}."
                )
            numbers.append(table.names.index(each))
        elif _is_integer(each) and -table.n_columns <= each < table.n_columns:
            numbers.append(int(each) % table.n_columns)
        else:
            raise ValueError(
                f"categorical_features has {each!r}, which is neither a name nor a number below "
                f"{table.n_columns}, the number of columns of X."
            )
    return numbers


def _at(numbers: Sequence[int], n: int) -> list[bool]:
    mask = [False] * n
    for number in numbers:
        mask[number] = True
    return mask
