"""A column of a table in memory: the level of each row, or a number for each row."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse import thresholds
from polysparse.engine import cpu


@dataclass(frozen=True)
class Where:
    """How messages name a column and its rows."""

    column: str
    first_row: int = 0  # number of the first row
    row_note: str = ""  # how rows are numbered, if that needs to be said

    def __str__(self) -> str:
        return self.column

    def row(self, i: int) -> str:
        """Return how messages name row i of the table."""
        return f"row {self.first_row + i}{self.row_note}"


@dataclass(frozen=True)
class CodedColumn:
    """A categorical column."""

    codes: NDArray[Any]  # integers: the number of each row's level; -1 if it is missing
    levels: Sequence[str]  # distinct; some may not occur
    are_numbers: bool  # whether the levels are ordered as numbers
    by_value: bool = False  # whether they were numbers, so that 1.5 may also be written 1.50


@dataclass(frozen=True)
class NumberColumn:
    """A numeric column."""

    values: NDArray[np.float64]  # 0 where it is missing
    missing: NDArray[np.bool_] | None  # None if nothing is missing

    def require_valid(self, where: Where, *, may_miss: bool) -> None:
        """Raise ValueError if a number is infinite, or missing where it may not be."""
        if self.missing is not None and not may_miss:
            row = int(np.argmax(self.missing))
            raise ValueError(
                f"{where} is NaN or missing in {where.row(row)}: fill in missing numbers, or "
                'use TableEncoder(missing="indicator"), which adds a feature that is 1 '
                "where they are missing."
            )
        infinite = np.isinf(self.values)
        if infinite.any():
            row = int(np.argmax(infinite))
            value = self.values[row]
            raise ValueError(f"{where} is {value} in {where.row(row)}; it must be finite.")


def as_coded(codes: NDArray[Any], values: Sequence[Any], where: Where) -> CodedColumn:
    """Return a categorical column, given the value of each code; those of code -1 are missing.

    A level is a text: numbers and booleans are written out, whole numbers without a fraction. NaN
    and None are missing. `where` names the column in messages.
    """
    if {*map(type, values)} <= {str} and len(set(values)) == len(values):
        return CodedColumn(codes, values, are_numbers=False)
    numbers: dict[str, int] = {}
    renumbered = np.full(len(values) + 1, -1, np.int64)  # the last one is for code -1
    for i, value in enumerate(values):
        text = _as_level(value, where)
        if text is not None:
            renumbered[i] = numbers.setdefault(text, len(numbers))
    are_numbers = len(numbers) > 0 and not any(isinstance(value, str) for value in values)
    return CodedColumn(renumbered[codes], list(numbers), are_numbers, by_value=are_numbers)


def with_whole_numbers(column: CodedColumn) -> CodedColumn:
    """Return a categorical column whose levels have no texts such as "3.0".

    So that 3, 3.0, "3" and "3.0" are the same level, which is "3": a table in text may have any of
    them, because the numbers of a column with missing values are often written as 3.0.
    """
    levels = column.levels
    if not any(level.endswith(".0") or "e+" in level for level in levels):
        return column
    numbers: dict[str, int] = {}
    renumbered = [numbers.setdefault(whole_number(level), len(numbers)) for level in levels]
    codes = np.array([*renumbered, -1], np.int64)[column.codes]  # the last one is for code -1
    return replace(column, codes=codes, levels=list(numbers))


def whole_number(level: str) -> str:
    """Return a level without a fraction, if it is how Python writes a float that is whole."""
    try:
        number = float(level)
    except ValueError:
        return level
    return str(int(number)) if number.is_integer() and repr(number) == level else level


def as_values(array: NDArray[Any]) -> list[Any]:
    """Return the values of an array as objects; float32 and float16 remain what they are."""
    is_short = array.dtype.kind == "f" and array.dtype.itemsize < 8
    return list(array) if is_short else array.tolist()


def code_objects(
    values: NDArray[np.object_],
    where: Where,
    code: Callable[[NDArray[np.object_], Where], CodedColumn] | None = None,
) -> CodedColumn:
    """Return a categorical column of Python objects; 1 and True are different levels.

    Rows often share the objects of their levels: then only the distinct objects are compared as
    levels, by `code`, which is `code_each` by default.
    """
    code = code or code_each
    shared = cpu.number_objects(values, most=len(values) // thresholds.ROWS_PER_OBJECT)
    if shared is None:
        return code(values, where)
    numbers, objects = shared
    column = code(objects, where)
    return replace(column, codes=column.codes.take(numbers))


def code_each(values: Iterable[Any], where: Where) -> CodedColumn:
    """Return the same, comparing the object of each row as a level."""
    numbers: dict[tuple[bool, Any], int] = {}
    codes = []
    for value in values:
        key = isinstance(value, bool | np.bool_), value
        try:
            codes.append(numbers.setdefault(key, len(numbers)))
        except TypeError:  # a list, for example, which is not hashable
            raise _not_a_level(value, where) from None
    return as_coded(np.array(codes, np.int64), [value for _, value in numbers], where)


def as_numbers(values: NDArray[np.float64]) -> NumberColumn:
    """Return numbers of which NaN are missing. The array is not changed."""
    missing = np.isnan(values)
    if not missing.any():
        return NumberColumn(values, None)
    return NumberColumn(np.where(missing, 0.0, values), missing)


def objects_as_numbers(values: Iterable[Any], where: Where) -> NumberColumn:
    """Return a numeric column of Python objects; raise ValueError if one is not a number."""
    return as_numbers(np.array([_as_number(i, v, where) for i, v in enumerate(values)], np.float64))


def _as_number(row: int, value: Any, where: Where) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, Real | Decimal | np.bool_):
        return float(value)
    raise ValueError(
        f"{where} has {value!r} in {where.row(row)}, but numbers are needed: convert it, or fit "
        "with it in categorical_features."
    )


def _as_level(value: Any, where: Where) -> str | None:
    """Return the text of a level, or None if it is missing."""
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Integral) or (isinstance(value, Decimal) and value % 1 == 0):
        return str(int(value))
    if isinstance(value, Real | Decimal):
        number = float(value)
        if number.is_integer():
            return str(int(number))
        is_short = isinstance(value, np.float32 | np.float16)  # float32(0.1) is the level "0.1"
        return repr(float(str(value)) if is_short else number)
    raise _not_a_level(value, where)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or pandas.NaT or pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real | Decimal) and bool(value != value)


def is_number(level: str) -> bool:
    """Return whether a level is the text of a number."""
    try:
        return "_" not in level and not math.isnan(float(level))
    except ValueError:
        return False


def value_of(level: str) -> Decimal | None:
    """Return the number that a level is the text of, or None: "007" is a code."""
    is_code = re.match(r"\s*[+-]?0\d", level) is not None
    return None if is_code or not is_number(level) else Decimal(level)


def require_targets(y: Any) -> None:
    """Raise ValueError if a target is missing."""
    targets = np.asarray(y, dtype=object).reshape(-1)
    row = next((i for i, each in enumerate(targets) if is_missing(each)), None)
    if row is not None:
        raise ValueError(
            f"Input y contains NaN, or a missing value, in row {row}: fill it in, or leave out the "
            "rows without a target."
        )


def _not_a_level(value: Any, where: Where) -> TypeError:
    return TypeError(
        f"{where} has the value {value!r} of type {type(value).__name__}, which is not a level: "
        "convert the column to strings, numbers or categories, or drop it."
    )


def sort_levels(levels: Sequence[str], are_numbers: bool) -> list[int]:
    """Return the order of levels: by number if all are numbers, otherwise by text."""
    if not are_numbers:
        return sorted(range(len(levels)), key=levels.__getitem__)
    return sorted(range(len(levels)), key=lambda i: _as_sortable(levels[i]))


def _as_sortable(level: str) -> tuple[float, int, str]:
    """Return what to sort by: a number, exactly if it is whole, and the text if it is equal."""
    if level in ("False", "True"):
        return float(level == "True"), 0, level
    try:
        return float(level), int(level), level
    except (ValueError, OverflowError):
        return float(level), 0, level
