"""A column of a table in memory: the level of each row, or a number for each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CodedColumn:
    """A categorical column."""

    codes: NDArray[Any]  # integers: the number of each row's level; -1 if it is missing
    levels: Sequence[str]  # distinct; some may not occur
    are_numbers: bool  # whether the levels were numbers, and are ordered as such


@dataclass(frozen=True)
class NumberColumn:
    """A numeric column."""

    values: NDArray[np.float64]  # 0 where it is missing
    missing: NDArray[np.bool_] | None  # None if nothing is missing


def as_coded(codes: NDArray[Any], values: Sequence[Any], where: str) -> CodedColumn:
    """Return a categorical column, given the value of each code; those of code -1 are missing.

    A level is a text: numbers and booleans are written out, whole numbers without a fraction, so
    that 1, 1.0 and "1" are the same level. NaN and None are missing. `where` names the column in
    messages.
    """
    if all(type(value) is str for value in values) and len(set(values)) == len(values):
        return CodedColumn(codes, values, are_numbers=False)
    numbers: dict[str, int] = {}
    renumbered = np.full(len(values) + 1, -1, np.int64)  # the last one is for code -1
    for i, value in enumerate(values):
        text = _as_level(value, where)
        if text is not None:
            renumbered[i] = numbers.setdefault(text, len(numbers))
    are_numbers = not any(isinstance(value, str) for value in values)
    return CodedColumn(renumbered[codes], list(numbers), are_numbers and len(numbers) > 0)


def _as_level(value: Any, where: str) -> str | None:
    """Return the text of a level, or None if it is missing."""
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if isinstance(value, bool | np.bool_ | Integral):
        return str(bool(value) if isinstance(value, bool | np.bool_) else int(value))
    if isinstance(value, Real):
        number = float(value)
        if math.isnan(number):
            return None
        return str(int(number)) if number.is_integer() else repr(number)
    if value != value:  # pandas.NaT and pandas.NA are not equal to themselves
        return None
    raise TypeError(
        f"{where} has the value {value!r} of type {type(value).__name__}, which is not a level: "
        "convert the column to strings, numbers or categories, or drop it."
    )


def sort_levels(levels: Sequence[str], are_numbers: bool) -> list[int]:
    """Return the order of levels: by number if all are numbers, otherwise by text."""
    if not are_numbers:
        return sorted(range(len(levels)), key=levels.__getitem__)
    return sorted(range(len(levels)), key=lambda i: _as_sortable(levels[i]))


def _as_sortable(level: str) -> tuple[float, int]:
    """Return a number to sort by; whole numbers are compared exactly."""
    if level in ("False", "True"):
        return float(level == "True"), 0
    try:
        return float(level), int(level)
    except (ValueError, OverflowError):
        return float(level), 0
