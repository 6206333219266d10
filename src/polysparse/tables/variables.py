"""Variables: what was learned about a column of a table, and the features that it becomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.tables.columns import CodedColumn, NumberColumn, Where, value_of

# How tables spell booleans, which may be numbers.
BOOLEANS = ("False", "false", "FALSE", "0"), ("True", "true", "TRUE", "1")

MISSING, RARE = "(missing)", "(other)"  # names of the levels for what is missing, and for the rare


@dataclass(frozen=True)
class Placed:
    """A stored value for each row, or none: what a variable adds to a matrix."""

    features: NDArray[Any]  # integers: the feature of each row, -1 if nothing is stored
    values: NDArray[np.float64] | None  # of each row; None if all are 1
    is_full: bool  # whether every row stores something


@dataclass
class UnknownLevels:
    """Rows with levels that did not occur in fit, by the name of their variable.

    Attributes
    ----------
    n_rows : dict of int
        Number of rows with such a level, or with a missing value if none was missing in fit.
    examples : dict of (str or None)
        One of these levels; None if they are all missing values.
    """

    n_rows: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str | None] = field(default_factory=dict)

    def add(self, name: str, column: CodedColumn, is_unknown: NDArray[np.bool_]) -> None:
        """Count the unknown rows of a column."""
        self.n_rows[name] = self.n_rows.get(name, 0) + int(np.count_nonzero(is_unknown))
        if self.examples.get(name) is None:
            codes = column.codes[is_unknown]
            i = int(np.argmax(codes >= 0))  # 0 if all are missing
            self.examples[name] = None if codes[i] < 0 else column.levels[codes[i]]


@dataclass(frozen=True)
class CategoricalVariable:
    """A variable with an indicator for each level.

    Attributes
    ----------
    name : str
        Name of the variable.
    levels : tuple of str
        The levels with a feature of their own, in order.
    rare : tuple of str
        The levels that share the last feature.
    missing : {"level", "rare", None}
        Whether missing values have a feature of their own, after those of `levels`, or count among
        the rare levels. None if none were missing: then they are unknown.
    by_value : bool
        Whether the levels were numbers, so that 1.5 and "1.50" are the same level. If they were
        texts, "1.5" and "1.50" are different levels, but both are found by the number 1.5.
    """

    name: str
    levels: tuple[str, ...]
    rare: tuple[str, ...] = ()
    missing: str | None = None
    by_value: bool = False

    @property
    def has_rare(self) -> bool:
        """Whether the last feature is that of rare levels."""
        return bool(self.rare) or self.missing == "rare"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.levels) + (self.missing == "level") + self.has_rare

    @cached_property
    def level_names(self) -> list[str]:
        """The level of each feature, including those for missing values and rare levels."""
        names = list(self.levels)
        if self.missing == "level":
            names.append(distinct(MISSING, names))
        if self.has_rare:
            names.append(distinct(RARE, names))
        return names

    @property
    def feature_names(self) -> list[str]:
        """The name of each feature, such as "color=red"."""
        return [f"{self.name}={level}" for level in self.level_names]

    @property
    def groups(self) -> list[str]:
        """The label of the group of each feature: the variable."""
        return [self.name] * self.n_features

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return self.features_by_level()

    @cached_property
    def _values(self) -> dict[Decimal, int]:
        """The feature of each level that is the only one with its value."""
        found: dict[Decimal, int] = {}
        for level in (*self.levels, *self.rare):
            value = value_of(level)
            if value is not None:
                found[value] = -1 if value in found else self._numbers[level]
        return found

    def features_by_level(self) -> dict[str, int]:
        """Return the feature of each level, counted from the first one of this variable.

        If the levels are booleans, their other spellings have the same features.
        """
        numbers = {level: i for i, level in enumerate(self.levels)}
        numbers.update(dict.fromkeys(self.rare, self.n_features - 1))
        if numbers.keys() <= {text for spellings in BOOLEANS for text in spellings}:
            for spellings in BOOLEANS:
                known = [text for text in spellings if text in numbers]
                if len(known) == 1:
                    numbers |= dict.fromkeys(spellings, numbers[known[0]])
        return numbers

    @property
    def missing_feature(self) -> int:
        """The feature of missing values, counted likewise; -1 if they are unknown."""
        if self.missing is None:
            return -1
        return len(self.levels) if self.missing == "level" else self.n_features - 1

    def place(
        self,
        column: CodedColumn,
        first: int,
        where: Where,
        is_strict: bool,
        unknown: UnknownLevels | None = None,
    ) -> list[Placed]:
        """Return the features of rows, counted from `first`.

        Unknown levels store nothing, and are counted in `unknown`; if `is_strict`, ValueError is
        raised for them.
        """
        of_code = np.full(len(column.levels) + 1, -1, np.int64)  # the last one is for code -1
        of_code[:-1] = self._features_of(column)
        of_code[-1] = self.missing_feature
        of_code[of_code >= 0] += first
        if first + self.n_features < 2**31:
            of_code = of_code.astype(np.int32)
        is_full = not np.any(of_code < 0)
        features = of_code.take(column.codes)
        if not is_full:
            is_unknown = features < 0
            is_full = not is_unknown.any()
            if is_strict and not is_full:
                self._refuse(column, int(np.argmax(is_unknown)), where)
            if unknown is not None and not is_full:
                unknown.add(self.name, column, is_unknown)
        return [Placed(features, None, is_full)]

    def _features_of(self, column: CodedColumn) -> list[int]:
        """Return the feature of each level of a column, counted likewise; -1 if it is unknown."""
        get = self._numbers.get
        found = [get(level, -1) for level in column.levels]
        if (self.by_value or column.by_value) and -1 in found:
            for i, level in enumerate(column.levels):
                value = value_of(level) if found[i] < 0 else None
                if value is not None:
                    found[i] = self._values.get(value, -1)
        return found

    def _refuse(self, column: CodedColumn, row: int, where: Where) -> None:
        code = int(column.codes[row])
        what = "a missing value" if code < 0 else f"the level {column.levels[code]!r}"
        raise ValueError(
            f"{where} has {what} in {where.row(row)}, which did not occur in fit; "
            'handle_unknown="ignore" would store nothing for it.'
        )

    def value_of(self, feature: int, value: float) -> Any:
        """Return the level of a feature: a str, or None if that is missing."""
        if self.missing == "level" and feature == len(self.levels):
            return None
        return self.level_names[feature]

    @property
    def absent(self) -> Any:
        """What a row without a stored value has."""
        return None

    def as_dict(self) -> dict[str, Any]:
        """Return a description for JSON, which `variable_in` reads."""
        return {
            "kind": "categorical",
            "name": self.name,
            "levels": list(self.levels),
            "rare": list(self.rare),
            "missing": self.missing,
            "by_value": self.by_value,
        }


@dataclass(frozen=True)
class NumericVariable:
    """A variable whose values are features as they are.

    Attributes
    ----------
    name : str
        Name of the variable.
    has_indicator : bool
        Whether a second feature tells where it is missing.
    """

    name: str
    has_indicator: bool = False

    @property
    def n_features(self) -> int:
        """Number of features."""
        return 1 + self.has_indicator

    @property
    def feature_names(self) -> list[str]:
        """The name of each feature."""
        return [self.name, f"{self.name}={MISSING}"][: self.n_features]

    @property
    def groups(self) -> list[str]:
        """The label of the group of each feature. The indicator is on its own.

        So that the number has powers, which only groups of one feature have.
        """
        return self.feature_names

    def place(
        self,
        column: NumberColumn,
        first: int,
        where: Where,
        is_strict: bool,
        unknown: UnknownLevels | None = None,
    ) -> list[Placed]:
        """Return the features of rows, counted from `first`; zeros are not stored."""
        column.require_valid(where, may_miss=self.has_indicator)
        stored = column.values != 0
        placed = [_placed(stored, first, column.values)]
        if self.has_indicator:
            missing = column.missing
            placed.append(
                _placed(np.zeros(len(stored), bool) if missing is None else missing, first + 1)
            )
        return placed

    def value_of(self, feature: int, value: float) -> Any:
        """Return the number that is stored; None if it is missing."""
        return None if feature == 1 else value

    @property
    def absent(self) -> Any:
        """What a row without a stored value has."""
        return 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return a description for JSON, which `variable_in` reads."""
        return {"kind": "numeric", "name": self.name, "has_indicator": self.has_indicator}


Variable = CategoricalVariable | NumericVariable


def _placed(
    stored: NDArray[np.bool_], feature: int, values: NDArray[np.float64] | None = None
) -> Placed:
    dtype = np.int32 if feature < 2**31 else np.int64
    features = np.where(stored, dtype(feature), dtype(-1))
    return Placed(features, values, bool(stored.all()))


def distinct(name: str, others: Iterable[str]) -> str:
    """Return a name that is not among others."""
    taken = set(others)
    while name in taken:
        name = f"({name})"
    return name


def variable_in(description: Any) -> Variable:
    """Return the variable that `as_dict` has described; raise ValueError if it is damaged."""
    given = dict(description)
    kind = given.pop("kind")
    if kind == "numeric":
        if type(given["has_indicator"]) is not bool or type(given["name"]) is not str:
            raise ValueError("a numeric variable is damaged")
        return NumericVariable(**given)
    if kind != "categorical":
        raise ValueError(f"the kind of a variable is {kind!r}")
    if type(given["levels"]) is not list or type(given["rare"]) is not list:
        raise ValueError("the levels of a variable are not a list")
    levels, rare = tuple(given["levels"]), tuple(given["rare"])
    are_texts = all(type(text) is str for text in (given["name"], *levels, *rare))
    by_value = given.get("by_value", False)  # older files do not have it
    is_damaged = type(by_value) is not bool or given["missing"] not in (None, "level", "rare")
    if is_damaged or not are_texts:
        raise ValueError("a categorical variable is damaged")
    if len({*levels, *rare}) != len(levels) + len(rare):
        raise ValueError(f"variable {given['name']!r} has a level twice")
    return CategoricalVariable(given["name"], levels, rare, given["missing"], by_value)
