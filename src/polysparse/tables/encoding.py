"""TableEncoding: how the columns of a table become features. A description that travels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.matrix.output import as_csr
from polysparse.tables.learning import Column, EncodingOptions, TableCounts, read_column
from polysparse.tables.reading import Table
from polysparse.tables.variables import (
    CategoricalVariable,
    Placed,
    UnknownLevels,
    Variable,
    distinct,
    variable_in,
)

_ROWS = 2**14  # that are assembled at a time, so that they stay in a cache

Csr = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]  # indptr, indices, data


@dataclass(frozen=True)
class TableEncoding:
    """The variables of a table, and the features that they become.

    Attributes
    ----------
    variables : tuple of Variable
        The variables, in the order of their features.
    are_named : bool
        Whether columns are found by their names, in any order; otherwise by their numbers.
    is_strict : bool
        Whether unknown levels are refused.
    """

    variables: tuple[Variable, ...]
    are_named: bool
    is_strict: bool = False

    @classmethod
    def learn(
        cls, table: Table, categorical_features: Any, options: EncodingOptions
    ) -> tuple[TableEncoding, TableCounts, list[Column]]:
        """Learn from a single table; also return what was counted, and the columns as read."""
        counts = TableCounts(table, categorical_features)
        columns = counts.add(table, range(table.n_columns), options)
        return cls.of(counts, options), counts, columns

    @classmethod
    def of(cls, counts: TableCounts, options: EncodingOptions) -> TableEncoding:
        """Return the encoding of all rows that were counted."""
        is_strict = options.handle_unknown == "error"
        return cls(counts.variables(options), counts.names is not None, is_strict)

    @cached_property
    def first_features(self) -> NDArray[np.int64]:
        """The first feature of each variable, and the number of features."""
        sizes = [variable.n_features for variable in self.variables]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    @property
    def categorical(self) -> list[int]:
        """The numbers of the columns that are categorical."""
        variables = enumerate(self.variables)
        return [j for j, each in variables if isinstance(each, CategoricalVariable)]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.first_features[-1])

    @property
    def feature_names(self) -> list[str]:
        """The name of each feature; of two that would be the same, the second is in parentheses."""
        names = [name for variable in self.variables for name in variable.feature_names]
        taken = set(names)
        if len(taken) == len(names):
            return names
        seen: set[str] = set()
        for i, name in enumerate(names):
            if name in seen:
                names[i] = distinct(name, taken)
                taken.add(names[i])
            seen.add(names[i])
        return names

    @property
    def groups(self) -> list[str]:
        """The label of each feature's group, which is its variable.

        An indicator of missing numbers is a group of its own, whatever other variables are called.
        """
        names = {variable.name for variable in self.variables}
        labels = []
        for variable in self.variables:
            for label in variable.groups:
                is_own = label == variable.name or label not in names
                labels.append(label if is_own else distinct(label, names))
        return labels

    def renamed(self, names: Sequence[str]) -> TableEncoding:
        """Return the same encoding with other names of variables."""
        named = zip(self.variables, names, strict=True)
        return replace(self, variables=tuple(replace(each, name=name) for each, name in named))

    # ---------------------------------------------------------------------------------- encoding

    def find_columns(self, table: Table) -> list[int]:
        """Return the column of each variable; raise ValueError if columns are missing."""
        if not self.are_named or table.names is None:
            if table.n_columns != len(self.variables):
                raise ValueError(
                    f"X has {table.n_columns} features, but TableEncoder is expecting "
                    f"{len(self.variables)} features as input."
                )
            self._warn_about_names(table)
            return list(range(table.n_columns))
        numbers = {name: j for j, name in enumerate(table.names)}
        missing = [each.name for each in self.variables if each.name not in numbers]
        if missing:
            raise ValueError(
                f"X lacks columns of fit: {_shown(missing, 10)}. X has {_shown(table.names, 20)}."
            )
        return [numbers[each.name] for each in self.variables]

    def _warn_about_names(self, table: Table) -> None:
        """Warn, as scikit-learn does, if columns have names either in fit or now."""
        if self.are_named:
            message = "X does not have valid feature names, but TableEncoder was fitted with them"
        elif table.names is not None:
            message = "X has feature names, but TableEncoder was fitted without feature names"
        else:
            return
        warnings.warn(message, UserWarning, stacklevel=2)

    def encode(self, table: Table, unknown: UnknownLevels | None = None) -> Csr:
        """Return the rows of a table as CSR. Unknown levels are counted in `unknown`."""
        where = self.find_columns(table)
        columns = (
            read_column(table, j, is_categorical=isinstance(variable, CategoricalVariable))
            for variable, j in zip(self.variables, where, strict=True)
        )
        return self.assemble(columns, table, where, unknown)

    def assemble(
        self,
        columns: Iterable[Column],
        table: Table,
        where: Sequence[int],
        unknown: UnknownLevels | None = None,
    ) -> Csr:
        """Return columns that were read as CSR, whose indices increase within rows."""
        placed: list[Placed] = []
        firsts = self.first_features[:-1].tolist()
        for variable, column, first, j in zip(self.variables, columns, firsts, where, strict=True):
            place: Any = variable.place
            placed += place(column, first, table.where(j), self.is_strict, unknown)
        return _assemble(placed, table.n_rows, self.n_features)

    def transform(self, table: Table, columns: Iterable[Column] | None = None) -> Any:
        """Return the rows of a table as a csr_array; `columns` are those that `learn` has read."""
        if columns is None:
            arrays = self.encode(table)
        else:
            arrays = self.assemble(columns, table, range(table.n_columns))
        return as_csr((table.n_rows, self.n_features), *arrays, is_array=True)

    def decode(self, indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any]) -> Any:
        """Return an object array with the value of each variable in rows of CSR."""
        out = np.empty((len(indptr) - 1, len(self.variables)), dtype=object)
        out[:] = [variable.absent for variable in self.variables]
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        owners = np.searchsorted(self.first_features, indices, side="right") - 1
        stored = (rows.tolist(), owners.tolist(), indices.tolist(), data.tolist())
        for row, v, feature, value in zip(*stored, strict=True):
            if value:
                first = int(self.first_features[v])
                out[row, v] = self.variables[v].value_of(feature - first, value)
        return out

    # --------------------------------------------------------------------------------- describing

    def as_dict(self) -> dict[str, Any]:
        """Return a description for JSON, which `from_dict` reads."""
        return {
            "variables": [variable.as_dict() for variable in self.variables],
            "are_named": self.are_named,
            "is_strict": self.is_strict,
        }

    @classmethod
    def from_dict(cls, description: Any) -> TableEncoding:
        """Return the encoding that `as_dict` has described; raise ValueError if it is damaged."""
        flags = description["are_named"], description["is_strict"]
        if not all(type(flag) is bool for flag in flags):
            raise ValueError("the encoding of a table is damaged")
        variables = tuple(map(variable_in, description["variables"]))
        if len({variable.name for variable in variables}) != len(variables):
            raise ValueError("two variables have the same name")
        return cls(variables, *flags)


def _shown(names: Sequence[str], most: int) -> str:
    return ", ".join(map(repr, names[:most])) + ", ..." * (len(names) > most)


def _assemble(placed: Sequence[Placed], n_rows: int, n_features: int) -> Csr:
    """Return CSR with what variables place in rows, in their order."""
    is_full = all(each.is_full for each in placed)
    if is_full:
        lengths = None
        n_stored = n_rows * len(placed)
    else:
        lengths = np.zeros(n_rows, np.int64)
        for each in placed:
            lengths += each.features >= 0
        n_stored = int(lengths.sum())
    dtype = np.int32 if max(n_stored, n_features) < 2**31 else np.int64
    indptr = np.zeros(n_rows + 1, dtype)
    if lengths is None:
        indptr[:] = np.arange(n_rows + 1, dtype=np.int64) * len(placed)
    else:
        np.cumsum(lengths, out=indptr[1:])
    indices, data = np.empty(n_stored, dtype), np.ones(n_stored)
    have_values = any(each.values is not None for each in placed)
    features = np.empty((min(_ROWS, n_rows), len(placed)), dtype)
    values = np.ones(features.shape) if have_values else None
    for start in range(0, n_rows, _ROWS):
        stop = min(start + _ROWS, n_rows)
        block = features[: stop - start]
        for k, each in enumerate(placed):
            block[:, k] = each.features[start:stop]
            if values is not None and each.values is not None:
                values[: stop - start, k] = each.values[start:stop]
        stored = slice(indptr[start], indptr[stop])
        keep = slice(None) if is_full else (block >= 0).reshape(-1)
        indices[stored] = block.reshape(-1)[keep]
        if values is not None:
            data[stored] = values[: stop - start].reshape(-1)[keep]
    return indptr, indices, data
