"""Small data, and models fitted on them, for tests of what models write and say."""

import numpy as np
from scipy import sparse

from csr_zoo import random_dense
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialRidge,
)

X = sparse.csr_array(np.abs(random_dense(60, 5, 0.5)))
SCORE = X[:, [0]].toarray().ravel() * X[:, [1]].toarray().ravel() - X[:, [2]].toarray().ravel()
TARGETS = {
    "ridge": SCORE,
    "binary": np.where(SCORE > 0, 1, -1),
    "texts": np.where(SCORE > 0, "yes", "no").astype(object),
    "three": np.digitize(SCORE, [-0.3, 0.1]) * 10,
}
COLUMNS = {
    "all": lambda: "all",
    "observed": lambda: "observed",
    "hashed": lambda: HashedPolynomialFeatures(n_columns=2**14),  # hardly any column is shared
    "transformer": lambda: PolynomialFeatures((2, 3), interaction_only=True, include_bias=False),
    "vocabulary": lambda: ObservedPolynomialFeatures(3, min_count=4).fit(X),
    "buckets": lambda: HashedPolynomialFeatures(3, n_columns=50, seed=7, alternate_sign=False),
}
NAMED = [name for name in COLUMNS if name not in ("hashed", "buckets")]


def fitted(target, columns="all", data=X, **parameters):
    """A model that was fitted to a target."""
    make = PolynomialRidge if target == "ridge" else PolynomialLogisticRegression
    parameters["columns"] = COLUMNS[columns]() if isinstance(columns, str) else columns
    return make(**parameters).fit(data, TARGETS[target])


def outputs(model, data=X):
    """Everything that a model predicts, to be compared."""
    probabilities = getattr(model, "predict_proba", lambda _: np.empty(0))
    return model.predict(data).tolist(), probabilities(data).tobytes()


def named_weights(model, data=None):
    """All weights by their names."""
    table = model.top_terms(10**6, data)
    return dict(zip(table["name"], table["weight"], strict=True))
