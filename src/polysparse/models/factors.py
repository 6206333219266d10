"""The parameter `penalty_factors` of models: degrees, groups and terms, and a factor for each."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.names import features_of_name, features_of_names
from polysparse.columns.spaces import ChosenColumns, ColumnSpace
from polysparse.models.columns import known_names
from polysparse.models.importance import GroupTuples


def factors_of(model: Any, columns: ColumnSpace) -> NDArray[np.float64] | None:
    """Return the factor of each column; None if all are 1. ValueError if they are not valid.

    `penalty_factors` maps degrees, groups and terms to factors. A group overrides a degree, and a
    term overrides both.
    """
    given = model.penalty_factors
    if given is None:
        return None if model._has_penalty else np.zeros(columns.n_columns)
    require_factors(given)
    if columns.kind == "hashed":
        raise ValueError(
            "penalty_factors needs columns with a degree; hashed columns have none. Use "
            'columns="all" or columns="observed".'
        )
    found = _Columns(model, columns)
    by_degree = {int(key): v for key, v in given.items() if isinstance(key, Integral)}
    by_name = {key: v for key, v in given.items() if not isinstance(key, Integral)}
    groups = {key: found.of_groups(key) for key in by_name}
    factors = np.ones(columns.n_columns)
    for degree, factor in by_degree.items():
        factors[found.of_degree(degree)] = float(factor)
    for key, own in groups.items():
        if own is not None:
            factors[own] = float(by_name[key])
    for key, own in groups.items():
        if own is None:
            factors[found.of_term(key)] = float(by_name[key])
    return factors if model._has_penalty else np.zeros_like(factors)


def require_factors(given: Any) -> None:
    """Raise ValueError if `penalty_factors` is not a mapping to numbers that are 0 or above."""
    if not isinstance(given, Mapping):
        raise ValueError(
            f"penalty_factors must map degrees, groups or terms to numbers; got {given!r}."
        )
    for key, value in given.items():
        is_degree = isinstance(key, Integral) and not isinstance(key, bool | np.bool_)
        is_tuple = isinstance(key, tuple) and key and all(isinstance(each, str) for each in key)
        if not (is_degree or is_tuple or isinstance(key, str)):
            raise ValueError(
                f"penalty_factors has the key {key!r}. Keys must be degrees (int), names of groups "
                "or terms (str), or tuples of the names of groups or features."
            )
        is_real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        if not is_real or not 0 <= float(value) < np.inf:
            raise ValueError(
                f"penalty_factors[{key!r}] must be a finite number at least 0; got {value!r}."
            )


class _Columns:
    """The columns of a model by degree, group and term."""

    def __init__(self, model: Any, columns: ColumnSpace) -> None:
        self.columns, self.basis = columns, columns.basis
        self.names = known_names(model, columns.basis.n_features)
        self._known_tuples: GroupTuples | None = None

    @property
    def _tuples(self) -> GroupTuples:
        """The tuple of groups of each column, which takes a pass over the columns."""
        if self._known_tuples is None:
            self._known_tuples = GroupTuples.of(self.columns)
        return self._known_tuples

    def of_degree(self, degree: int) -> Any:
        """Return the columns of a degree."""
        degrees = self._by_degree()
        if degree not in degrees:
            raise ValueError(
                f"penalty_factors has degree {degree}, but the columns have degrees "
                f"{', '.join(map(str, sorted(degrees)))}."
            )
        return degrees[degree]

    def _by_degree(self) -> dict[int, Any]:
        if self.basis.terms is not None:
            lengths = np.array([len(each) for each in self._tuples.tuples])
            lengths = lengths[self._tuples.number_of]
            return {int(d): np.flatnonzero(lengths == d) for d in np.unique(lengths)}
        found, start = {}, 0
        for degree, end in sorted(self.columns.degree_ends.items()):
            found[degree] = slice(start, end)
            start = end
        return found

    def of_groups(self, key: Any) -> Any:
        """Return the columns of a group or an interaction of groups; None if it is not one.

        Without groups, each column is a term of its own.
        """
        if self.basis.groups is None:
            return None
        numbers = self._tuples.numbers(key, self.names)
        if len(numbers) > 1:
            either = " or ".join(repr(self._tuples.names(self.names)[i]) for i in numbers)
            raise ValueError(f"penalty_factors has {key!r}, which is ambiguous: pass {either}.")
        return self._tuples.number_of == numbers[0] if numbers else None

    def of_term(self, key: Any) -> int:
        """Return the column of a term, given its name or the names of its features."""
        names, n_features = self.names, self.basis.n_features
        if isinstance(key, tuple):
            found = features_of_names(key, names, n_features)
        else:
            found = features_of_name(key, names, n_features) or features_of_name(
                key, names, n_features, sep=":"
            )
        columns = {self._column(features) for features in found} - {None}
        if len(columns) == 1:
            return int(columns.pop())  # type: ignore[arg-type]
        if columns:
            raise ValueError(
                f"penalty_factors has {key!r}, which is the name of {len(columns)} terms. Pass a "
                "tuple of the names of features, or give features distinct feature_names."
            )
        raise ValueError(
            f"penalty_factors has {key!r}, which is not a group, an interaction of groups or a "
            "term of the model. importance() and top_terms() show their names, such as 'x0:x1' "
            "and 'x0 x1'."
        )

    def _column(self, features: tuple[int, ...]) -> int | None:
        """Return the column of a product of features; None if there is none."""
        try:
            rank = self.basis.rank(features)
        except ValueError:
            return None
        if not isinstance(self.columns, ChosenColumns):
            return rank
        place = int(np.searchsorted(self.columns.ranks, rank))
        is_chosen = place < self.columns.n_columns and self.columns.ranks[place] == rank
        return place if is_chosen else None
