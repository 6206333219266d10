"""The columns of a model: read from its parameters, without a bias, and small enough for memory."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.names import as_feature_names
from polysparse.columns.arguments import (
    Default,
    as_column_space,
    groups_or_names,
    parameters_of,
    require_no_contradiction,
    with_names,
)
from polysparse.columns.spaces import AllColumns, ChosenColumns, ColumnSpace, HashedColumns
from polysparse.estimators.observed import ObservedPolynomialFeatures
from polysparse.estimators.tabular import encoded_names, encoder_of, groups_of
from polysparse.machine import format_count, require_memory
from polysparse.models.row_store import RowStore

_DEFAULTS = {"degree": 2, "interaction_only": False}


def make_columns(model: Any, rows: RowStore) -> ColumnSpace:
    """Return the columns of a model; those that occur in rows are counted, if that is needed."""
    parameters = parameters_of(model, _DEFAULTS)
    names = known_names(model, rows.n_features)
    parameters["groups"] = groups_or_names(groups_of(model), model.terms, names)
    parameters["terms"] = model.terms
    columns = _with_groups(model.columns, model)
    if isinstance(columns, ObservedPolynomialFeatures) and not columns.__sklearn_is_fitted__():
        return without_bias(_observe(with_names(columns, names), rows, parameters))
    space = as_column_space(
        columns,
        rows.n_features,
        observe=lambda basis: rows.count_columns(basis).chosen(1, None, model.n_jobs)[0],
        names=names,
        include_bias=Default(False),
        **parameters,
    )
    return without_bias(space)


def known_names(model: Any, n_features: int, feature_names: Any = None) -> Sequence[str] | None:
    """Return the names of features: those that are given, those of the model, or those of X."""
    given = model.feature_names if feature_names is None else feature_names
    names = as_feature_names(given, n_features)
    return encoded_names(model) if names is None else names


def _with_groups(columns: Any, model: Any) -> Any:
    """Return a transformer that was not fitted with the groups of the model's table.

    It is not changed, and neither is anything else that `columns` may be.
    """
    is_own = hasattr(columns, "get_params") and not hasattr(columns, "n_features_in_")
    if not is_own or encoder_of(model) is None or columns.groups is not None:
        return columns
    grouped = copy(columns)
    grouped.groups = groups_of(model)
    return grouped


def _observe(
    transformer: ObservedPolynomialFeatures, rows: RowStore, parameters: dict[str, Any]
) -> ColumnSpace:
    """Return the columns that a transformer would choose. It is not changed."""
    transformer._require_parameters()
    counted = transformer._counted_columns(rows.n_features)
    basis = counted.basis if isinstance(counted, ChosenColumns) else counted
    require_no_contradiction(basis, parameters)
    limits = transformer.min_count, transformer.max_columns
    ranks, _ = rows.count_columns(counted).chosen(*limits, transformer.n_jobs)
    if len(ranks) == 0:
        raise ValueError(
            f"No column occurs in min_count={transformer.min_count} rows: lower min_count, unless "
            "X has no such term."
        )
    return ChosenColumns(basis, ranks)


def without_bias(columns: ColumnSpace) -> ColumnSpace:
    """Return the same columns without the bias, which the intercept replaces."""
    old = columns.basis
    if not old.include_bias:
        return columns
    basis = MonomialBasis(
        old.n_features,
        (old.min_degree, old.max_degree) if old.min_degree else old.max_degree,
        interaction_only=old.interaction_only,
        include_bias=False,
        groups=old.groups,
        terms=old.terms,
    )
    if isinstance(columns, ChosenColumns):
        ranks = columns.ranks
        return ChosenColumns(basis, ranks[ranks > 0] - 1)
    if isinstance(columns, HashedColumns):
        return replace(columns, basis=basis)
    return AllColumns(basis)


def require_memory_for(columns: ColumnSpace, n_scores: int, n_vectors: int) -> None:
    """Raise MemoryError if the solver's vectors of coefficients would not fit into memory."""
    n = columns.n_columns * n_scores
    require_memory(
        8 * n_vectors * n,
        f"{format_count(n)} coefficients, {n_vectors} times for the solver,",
        _WAYS_OUT[columns.kind],
    )
    columns.require_indexable()


_WAYS_OUT = {
    "hashed": "Lower n_columns of the transformer.",
    "chosen": (
        "As columns, pass an ObservedPolynomialFeatures with a higher min_count or with "
        'max_columns, or "hashed"; or lower the degree, or set interaction_only=True.'
    ),
    "all": (
        'Use columns="observed" to keep only the terms that occur in X, or columns="hashed" for '
        "a fixed number of columns; or lower the degree, or set interaction_only=True."
    ),
}
