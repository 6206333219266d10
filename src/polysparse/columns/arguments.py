"""Parse the argument `columns`: None, column numbers, or an estimator that has columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.degrees import as_degree_range
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.tuples import as_columns
from polysparse.columns.spaces import AllColumns, ChosenColumns, ColumnSpace


@dataclass(frozen=True, repr=False)
class Default:
    """The default of a parameter, as opposed to the same value given by the user."""

    value: Any

    def __repr__(self) -> str:
        return repr(self.value)


DEGREE: Any = Default(2)
INTERACTION_ONLY: Any = Default(False)
INCLUDE_BIAS: Any = Default(True)


def as_column_space(columns: Any, n_features: int, **parameters: Any) -> ColumnSpace:
    """Return the columns described by `columns` and the parameters of a basis next to it.

    Parameters that the user left out are given as a Default.
    """
    given = {name: v for name, v in parameters.items() if not isinstance(v, Default)}
    if isinstance(columns, type) or hasattr(columns, "get_params"):
        if not hasattr(columns, "column_space") or isinstance(columns, type):
            raise TypeError(
                "columns must be a PolynomialFeatures, ObservedPolynomialFeatures or "
                "HashedPolynomialFeatures of polysparse, or rising numbers of columns; "
                f"got {columns!r}."
            )
        space: ColumnSpace = columns.column_space(n_features)
        _require_no_contradiction(space.basis, given)
        return space
    defaults = {name: v.value for name, v in parameters.items() if name not in given}
    basis = MonomialBasis(n_features, **given, **defaults)
    return AllColumns(basis) if columns is None else ChosenColumns(basis, as_ranks(basis, columns))


def _require_no_contradiction(basis: MonomialBasis, given: dict[str, Any]) -> None:
    """Raise ValueError if a parameter was given that contradicts the columns."""
    own = basis.as_dict()
    for name, value in given.items():
        same = value == own[name]
        if name == "degree":
            low, high = as_degree_range(value)
            same = (max(1, low), high) == (basis.lowest, basis.max_degree)
            own[name] = tuple(own[name]) if basis.min_degree else basis.max_degree
        if not same:
            raise ValueError(
                f"{name}={value} contradicts columns, which has {name}={own[name]}: leave {name} "
                "out."
            )


def as_ranks(basis: MonomialBasis, columns: Any) -> NDArray[np.int64]:
    """Read increasing columns of a basis as a read-only copy."""
    ranks = np.array(as_columns(columns, basis.n_columns))
    require_rising(ranks)
    ranks.flags.writeable = False
    return ranks


def require_rising(ranks: NDArray[np.int64]) -> None:
    """Raise ValueError unless each column is larger than the one before."""
    falling = np.flatnonzero(ranks[1:] <= ranks[:-1])
    if len(falling):
        i = int(falling[0])
        raise ValueError(
            f"columns must rise, but columns[{i + 1}] is {ranks[i + 1]}, after {ranks[i]}: "
            "sort them, with numpy.unique."
        )
