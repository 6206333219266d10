"""Targets for models, and the expansions that they never build."""

import numpy as np
import pytest

import polysparse
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
)

# Where tol is so small that rounding errors may prevent it from being met, which depends on the
# processor. What a fit found is compared in any case.
may_end_by_rounding = pytest.mark.filterwarnings(
    "ignore:.* stopped where rounding errors prevent progress:sklearn.exceptions.ConvergenceWarning"
)

# What is given as `columns`.
COLUMNS = {
    "all": lambda: "all",
    "observed": lambda: "observed",
    "few hashed": lambda: HashedPolynomialFeatures(3, n_columns=30),
    "to be observed": lambda: ObservedPolynomialFeatures(),
    "a basis": lambda: PolynomialFeatures((1, 2), interaction_only=True),
}


def with_columns(kind, **parameters):
    """Parameters of a model: `columns`, whose transformer gets the same degree."""
    columns = COLUMNS[kind]()
    if not isinstance(columns, str):
        columns.set_params(**parameters)
    return {"columns": columns, **parameters}


def as_built(model, X):
    """The features of a model, without the bias."""
    space = model.column_space_
    basis = space.basis
    if space.kind == "hashed":
        columns = HashedPolynomialFeatures(
            (basis.min_degree, basis.max_degree),
            interaction_only=basis.interaction_only,
            include_bias=basis.include_bias,
            n_columns=space.n_columns,
            alternate_sign=space.alternate_sign,
            seed=space.seed,
        )
        return polysparse.expand(X, columns=columns)
    return polysparse.expand(
        X,
        (basis.min_degree, basis.max_degree),
        interaction_only=basis.interaction_only,
        include_bias=basis.include_bias,
        columns=space.ranks if space.kind == "chosen" else None,
    )


def numbers_for(X, seed=0):
    """Numbers that depend on products of features, with noise."""
    rng = np.random.default_rng(seed)
    A = polysparse.expand(X, 2, include_bias=False)
    return A @ rng.standard_normal(A.shape[1]) + rng.standard_normal(X.shape[0]) + 2


def classes_for(X, n_classes, seed=0):
    """Classes of different sizes that depend on products of features, with noise."""
    y = numbers_for(X, seed)
    return np.digitize(y, np.quantile(y, np.cumsum(np.arange(1, n_classes)) / 6))
