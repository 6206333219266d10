"""Arrays that are not aligned are copied before the engine reads them, at every entry point."""

import numpy as np
import pytest
from scipy import sparse

from csr_zoo import random_dense
from inside import forbid_unaligned
from polysparse import (
    HashedPolynomialFeatures,
    MonomialBasis,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialOperator,
    PolynomialRidge,
    expand,
)

dense = random_dense(40, 5, 0.6)
X = sparse.csr_array(dense)
rng = np.random.default_rng(0)
y, weights, classes = rng.normal(size=40), rng.random(40), rng.integers(0, 3, 40)
hashed = HashedPolynomialFeatures(n_columns=16)
basis = MonomialBasis(5, 2)
OPERATORS = {
    "all": lambda: PolynomialOperator(X),
    "chosen": lambda: PolynomialOperator(X, columns=range(0, 21, 2)),
    "hashed": lambda: PolynomialOperator(X, columns=hashed),
    "float32": lambda: PolynomialOperator(X.astype(np.float32)),
}


def shifted(array):
    """The same numbers, one byte after where they should be."""
    raw = np.frombuffer(b"0" + array.tobytes(), np.uint8)[1:]
    return raw.view(array.dtype).reshape(array.shape)


def in_a_packed_record(array):
    records = np.zeros(array.shape, [("before", "u1"), ("own", array.dtype)])
    records["own"] = array
    return records["own"]


def coefficients_of(model):
    return np.append(model.coef_, model.intercept_)


def with_coefficients(model, change):
    model.coef_ = change(model.coef_)
    return model


ENTRY_POINTS = {
    "expand": lambda change: expand(change(dense)),
    "columns": lambda change: expand(X, columns=change(np.arange(7))).toarray(),
    "rank": lambda change: basis.rank(change(np.array([[0, 1], [2, 2]]))),
    "unrank": lambda change: basis.unrank(change(np.arange(7))),
    "names": lambda change: basis.names(columns=change(np.arange(7))),
    "transform": lambda change: PolynomialFeatures().fit_transform(change(dense)),
    "norms": lambda change: OPERATORS["all"]().column_norms(change(weights)),
    "targets": lambda change: coefficients_of(PolynomialRidge().fit(X, change(y))),
    "classes": lambda change: coefficients_of(
        PolynomialLogisticRegression().fit(X, change(classes))
    ),
    "weights": lambda change: coefficients_of(PolynomialRidge().fit(X, y, change(weights))),
    "weights of hashed": lambda change: coefficients_of(
        PolynomialRidge(columns=hashed).fit(X, y, change(weights))
    ),
    "weights with classes": lambda change: coefficients_of(
        PolynomialLogisticRegression().fit(X, classes, change(weights))
    ),
    "coefficients": lambda change: with_coefficients(PolynomialRidge().fit(X, y), change).predict(
        X
    ),
    "coefficients of classes": lambda change: with_coefficients(
        PolynomialLogisticRegression().fit(X, classes), change
    ).predict_proba(X),
}


@pytest.mark.parametrize("change", [shifted, in_a_packed_record])
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_arrays_are_aligned_at_every_entry_point(entry_point, change, monkeypatch):
    expected = ENTRY_POINTS[entry_point](np.asarray)
    forbid_unaligned(monkeypatch)
    np.testing.assert_array_equal(ENTRY_POINTS[entry_point](change), expected)


@pytest.mark.parametrize("change", [shifted, in_a_packed_record])
@pytest.mark.parametrize("columns", OPERATORS)
def test_vectors_are_aligned(columns, change, monkeypatch):
    operator = OPERATORS[columns]()
    forbid_unaligned(monkeypatch)
    for given, multiply in ((operator, operator.__matmul__), (operator.T, operator.rmatmat)):
        table = rng.normal(size=(given.shape[1], 3)).astype(operator.dtype)
        assert multiply(change(table)).tobytes() == (given @ table).tobytes()
        one = given @ change(table[:, 0])
        assert one.tobytes() == (given @ table[:, 0]).tobytes()
