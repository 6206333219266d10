"""Parse the argument `columns`: the name of a kind, column numbers, or a transformer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.degrees import as_degree_range
from polysparse.basis.groups import as_groups, shown
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.tuples import as_columns
from polysparse.columns.spaces import (
    HASHED_COLUMNS,
    AllColumns,
    ChosenColumns,
    ColumnSpace,
    HashedColumns,
)

_ALLOWED = (
    '"all", "observed", "hashed", increasing column numbers, or a PolynomialFeatures, '
    "ObservedPolynomialFeatures or HashedPolynomialFeatures of polysparse"
)


@dataclass(frozen=True, repr=False)
class Default:
    """The default of a parameter, as opposed to the same value given by the user."""

    value: Any

    def __repr__(self) -> str:
        return repr(self.value)


DEGREE: Any = Default(2)
INTERACTION_ONLY: Any = Default(False)
INCLUDE_BIAS: Any = Default(True)


def parameters_of(estimator: Any, defaults: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a basis; one that has its default is a Default."""
    given = {name: getattr(estimator, name) for name in defaults}
    return {
        name: Default(value)
        if type(value) is type(defaults[name]) and value == defaults[name]
        else value
        for name, value in given.items()
    }


def as_column_space(
    columns: Any,
    n_features: int,
    *,
    observe: Callable[[MonomialBasis], NDArray[np.int64]],
    names: Any = None,
    **parameters: Any,
) -> ColumnSpace:
    """Return the columns described by `columns` and the parameters of a basis next to it.

    `columns` is None or the name of a kind, increasing columns of the basis, or a transformer.
    Parameters that the user left out are given as a Default, or None for groups and terms.
    `observe` returns the columns of a basis that occur in the data, in increasing order. `names`
    are those of the features, which the terms of a transformer may use.
    """
    require_columns(columns)
    if hasattr(columns, "column_space"):
        space: ColumnSpace = with_names(columns, names).column_space(n_features)
        require_no_contradiction(space.basis, parameters)
        return space
    own = {name: v.value if isinstance(v, Default) else v for name, v in parameters.items()}
    basis = MonomialBasis(n_features, **own)
    if columns is None or isinstance(columns, str):
        return _columns_of_kind(columns or "all", basis, observe)
    return ChosenColumns(basis, as_ranks(basis, columns))


def require_columns(columns: Any) -> None:
    """Raise TypeError or ValueError if `columns` cannot be valid, whatever X is."""
    is_estimator = isinstance(columns, type) or hasattr(columns, "get_params")
    if is_estimator and (isinstance(columns, type) or not hasattr(columns, "column_space")):
        raise TypeError(f"columns must be {_ALLOWED}; got {columns!r}.")
    if isinstance(columns, str) and columns not in ("all", "observed", "hashed"):
        raise ValueError(f"columns must be {_ALLOWED}; got {columns!r}.")


def _columns_of_kind(
    kind: str,
    basis: MonomialBasis,
    observe: Callable[[MonomialBasis], NDArray[np.int64]],
) -> ColumnSpace:
    """Return all columns of a basis, those that occur in the data, or hashed ones."""
    if kind == "all":
        return AllColumns(basis)
    if kind == "hashed":
        return HashedColumns(basis, HASHED_COLUMNS, alternate_sign=True, seed=0)
    basis.require_indexable()
    return ChosenColumns(basis, observe(basis))


def require_no_contradiction(basis: MonomialBasis, parameters: dict[str, Any]) -> None:
    """Raise ValueError if a parameter was given that contradicts the columns."""
    own = basis.as_dict()
    for name, value in parameters.items():
        if isinstance(value, Default) or (name in ("groups", "terms") and value is None):
            continue
        if name in ("groups", "terms"):
            _require_same(name, value, basis)
            continue
        same = value == own[name]
        if name == "degree":
            low, high = as_degree_range(value)
            is_maximum = basis.terms is not None and isinstance(value, Integral)
            same = high == basis.max_degree and (is_maximum or max(1, low) == basis.lowest)
            own[name] = tuple(own[name]) if basis.min_degree else basis.max_degree
        if not same:
            raise ValueError(
                f"{name}={value} contradicts columns, which has {name}={own[name]}: leave {name} "
                "out, or set it in columns."
            )


def _require_same(name: str, value: Any, basis: MonomialBasis) -> None:
    """Raise ValueError unless groups or terms are those of a basis."""
    if name == "groups":
        same = as_groups(value, basis.n_features) == basis.groups
    else:
        other = MonomialBasis(basis.n_features, groups=basis.groups, terms=value)
        same = other.terms == basis.terms
    if not same:
        own = shown(basis.as_dict().get(name))
        raise ValueError(
            f"{name}={shown(value)} contradicts columns, which has {name}={own}: leave {name} out."
        )


def with_names(transformer: Any, names: Any) -> Any:
    """Return a transformer whose terms may use the names of features. It is not changed.

    A fitted one has names of its own.
    """
    terms = getattr(transformer, "terms", None)
    if terms is None or names is None or hasattr(transformer, "n_features_in_"):
        return transformer
    named = copy(transformer)
    named.groups = groups_or_names(transformer.groups, terms, names)
    return named


def groups_or_names(groups: Any, terms: Any, names: Any) -> Any:
    """Return `groups`, with the names of features that terms may use as labels.

    They are the labels of features that are not in a group; of all features, if there are no
    groups. ValueError is raised if two of them have the same name.
    """
    if terms is None or names is None or not all(isinstance(name, str) for name in names):
        return groups
    if isinstance(groups, Mapping | str | bytes | Iterator):
        return groups
    if groups is not None and not isinstance(groups, Iterable):
        return groups
    labels = [None] * len(names) if groups is None else list(groups)
    if len(labels) != len(names) or any(not isinstance(x, str | None) for x in labels):
        return groups
    taken: set[str] = {label for label in labels if label is not None}
    found: set[str] = set()
    for j, name in enumerate(names):
        if labels[j] is not None or name in taken:
            continue
        if name in found:
            raise ValueError(
                f"two features are named {name!r}, so terms cannot tell them apart: rename one, or "
                "pass groups with a label for each."
            )
        found.add(name)
        labels[j] = name
    return labels


def as_ranks(basis: MonomialBasis, columns: Any) -> NDArray[np.int64]:
    """Read increasing columns of a basis as a read-only copy."""
    ranks = np.array(as_columns(columns, basis.n_columns))
    require_increasing(ranks)
    ranks.flags.writeable = False
    return ranks


def require_increasing(ranks: NDArray[np.int64]) -> None:
    """Raise ValueError unless each column is larger than the one before."""
    decreasing = np.flatnonzero(ranks[1:] <= ranks[:-1])
    if len(decreasing):
        i = int(decreasing[0])
        raise ValueError(
            f"columns must increase, but columns[{i + 1}] is {ranks[i + 1]}, after {ranks[i]}: "
            "sort them, with numpy.unique."
        )
