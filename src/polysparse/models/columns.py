"""The columns of a model: read from its parameters, without a bias, and small enough for memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns, ChosenColumns, ColumnSpace, HashedColumns
from polysparse.estimators.hashed import HashedPolynomialFeatures
from polysparse.estimators.observed import ObservedPolynomialFeatures
from polysparse.machine import format_count, require_memory
from polysparse.models.row_store import RowStore

KINDS = ("all", "observed", "hashed")


def require_columns(columns: Any) -> None:
    """Raise ValueError if the parameter `columns` of a model is not valid."""
    is_kind = isinstance(columns, str) and columns in KINDS
    if not (is_kind or (hasattr(columns, "column_space") and not isinstance(columns, type))):
        raise ValueError(
            f'columns must be "all", "observed", "hashed" or a transformer of polysparse; '
            f"got {columns!r}."
        )


def make_columns(model: Any, rows: RowStore) -> ColumnSpace:
    """Return the columns of a model; those that occur in rows are counted, if that is needed."""
    columns, n_features = model.columns, rows.n_features
    if not isinstance(columns, str):
        is_observed = isinstance(columns, ObservedPolynomialFeatures)
        if is_observed and not columns.__sklearn_is_fitted__():
            return without_bias(_observe(columns, rows))
        return without_bias(columns.column_space(n_features))
    parameters: dict[str, Any] = {
        "degree": model.degree,
        "interaction_only": model.interaction_only,
    }
    if columns == "hashed":
        return without_bias(HashedPolynomialFeatures(**parameters).column_space(n_features))
    basis = MonomialBasis(n_features, **parameters, include_bias=False)
    if columns == "observed":
        return ChosenColumns(basis, rows.count_columns(basis).chosen(1, None, model.n_jobs)[0])
    return AllColumns(basis)


def _observe(transformer: ObservedPolynomialFeatures, rows: RowStore) -> ColumnSpace:
    """Return the columns that a transformer would choose. It is not changed."""
    transformer._require_parameters()
    basis = transformer._make_basis(rows.n_features)
    limits = transformer.min_count, transformer.max_columns
    ranks, _ = rows.count_columns(basis).chosen(*limits, transformer.n_jobs)
    if len(ranks) == 0:
        raise ValueError(
            f"No column occurs in min_count={transformer.min_count} rows: lower min_count, unless "
            "X has no such product."
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
        "Give an ObservedPolynomialFeatures with a higher min_count or with max_columns, "
        'use columns="hashed", lower the degree, or set interaction_only=True.'
    ),
    "all": (
        'Use columns="observed", for the products that occur, or columns="hashed", for a fixed '
        "number of columns; or lower the degree, or set interaction_only=True."
    ),
}
