"""Parse the argument `columns`: None, column numbers, or an estimator that has columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.degrees import Degree, as_degree_range
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.tuples import as_columns
from polysparse.columns.spaces import AllColumns, ChosenColumns, ColumnSpace


def as_column_space(
    columns: Any,
    n_features: int,
    degree: Degree,
    *,
    interaction_only: bool,
    include_bias: bool,
) -> ColumnSpace:
    """Return the columns described by `columns` and the parameters next to it."""
    if isinstance(columns, type) or hasattr(columns, "get_params"):
        if not hasattr(columns, "column_space") or isinstance(columns, type):
            raise TypeError(
                "columns must be an ObservedPolynomialFeatures, a HashedPolynomialFeatures, or "
                f"rising numbers of columns; got {columns!r}."
            )
        space: ColumnSpace = columns.column_space(n_features)
        _require_no_contradiction(space.basis, degree, interaction_only, include_bias)
        return space
    basis = MonomialBasis(
        n_features, degree, interaction_only=interaction_only, include_bias=include_bias
    )
    return AllColumns(basis) if columns is None else ChosenColumns(basis, as_ranks(basis, columns))


def _require_no_contradiction(
    basis: MonomialBasis, degree: Degree, interaction_only: bool, include_bias: bool
) -> None:
    """Raise ValueError if a parameter was given that contradicts the columns.

    A parameter at its default counts as not given.
    """
    given = {
        "degree": (as_degree_range(degree), (0, 2), (basis.min_degree, basis.max_degree)),
        "interaction_only": (interaction_only, False, basis.interaction_only),
        "include_bias": (include_bias, True, basis.include_bias),
    }
    for name, (value, default, own) in given.items():
        if value not in (default, own):
            raise ValueError(
                f"{name}={value} contradicts columns, which has {name}={own}: leave {name} out."
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
