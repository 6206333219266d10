"""PolynomialRidge is scikit-learn's Ridge on the built expansion."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

import polysparse
from csr_zoo import random_csr, random_dense
from model_data import COLUMNS, as_built, may_end_by_rounding, numbers_for, with_columns
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures, PolynomialRidge

X = random_csr(120, 8, 0.4)
Y = numbers_for(X)
HELD_OUT = random_csr(50, 8, 0.4, seed=1)


def objective(A, y, weights, coef, intercept, alpha):
    return np.sum(weights * (y - A @ coef - intercept) ** 2) + alpha * np.sum(coef**2)


def assert_is_optimal(model, X, y, weights=None):
    """The objective is within 1e-6 of scikit-learn's, and predictions are within its root."""
    A = as_built(model, X)
    peer = Ridge(model.alpha, fit_intercept=model.fit_intercept, solver="cholesky")
    peer.fit(A.toarray(), y, weights)
    weights = np.ones(len(y)) if weights is None else weights
    best = objective(A, y, weights, peer.coef_, peer.intercept_, model.alpha)
    found = objective(A, y, weights, model.coef_, model.intercept_, model.alpha)
    assert found <= best * (1 + 1e-6)
    assert model.objective_ == pytest.approx(found, rel=1e-9)
    expected = peer.predict(as_built(model, HELD_OUT).toarray())
    np.testing.assert_allclose(model.predict(HELD_OUT), expected, atol=1e-2 * np.std(y))


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", [1, 2, 3, (2, 3)])
def test_optimum_of_scikit_learn(degree, interaction_only, columns):
    parameters = with_columns(columns, degree=degree, interaction_only=interaction_only)
    model = PolynomialRidge(**parameters)
    assert_is_optimal(model.fit(X, Y), X, Y)


@pytest.mark.parametrize("alpha", [1e-3, 1, 100])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_every_penalty_with_and_without_an_intercept(alpha, fit_intercept):
    model = PolynomialRidge(alpha, fit_intercept=fit_intercept).fit(X, Y)
    assert_is_optimal(model, X, Y)
    assert fit_intercept or model.intercept_ == 0


@may_end_by_rounding
def test_a_low_tol_gives_the_coefficients_of_scikit_learn():
    model = PolynomialRidge(tol=1e-15, degree=3).fit(X, Y)
    peer = Ridge(solver="cholesky").fit(as_built(model, X).toarray(), Y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-6)


def test_no_penalty_gives_least_squares():
    model = PolynomialRidge(0, tol=1e-12).fit(X, Y)
    A = np.column_stack([np.ones(X.shape[0]), as_built(model, X).toarray()])
    np.testing.assert_allclose(
        model.predict(X), A @ np.linalg.lstsq(A, Y, rcond=None)[0], atol=1e-5
    )


def test_weights_of_rows():
    weights = np.arange(X.shape[0]) % 4.0
    assert_is_optimal(PolynomialRidge().fit(X, Y, weights), X, Y, weights)


def test_dense_and_sparse_and_float32_give_the_same():
    wanted = PolynomialRidge().fit(X, Y)
    for same in (X.toarray(), sparse.csc_matrix(X), X.tocoo(), X.tolil()):
        model = PolynomialRidge().fit(same, Y)
        assert model.coef_.tobytes() == wanted.coef_.tobytes()
        assert model.predict(same).tobytes() == wanted.predict(X).tobytes()
    narrow = PolynomialRidge().fit(X.astype(np.float32), Y)
    assert narrow.coef_.dtype == np.float64
    np.testing.assert_allclose(narrow.coef_, wanted.coef_, atol=1e-4)


def test_targets_of_other_types():
    wanted = PolynomialRidge().fit(X, np.round(Y))
    for y in (np.round(Y).astype(int), np.round(Y).astype(np.float32), np.round(Y).tolist()):
        assert PolynomialRidge().fit(X, y).coef_.tobytes() == wanted.coef_.tobytes()


def test_columns_are_counted():
    model = PolynomialRidge(columns="observed").fit(X, Y)
    poly = ObservedPolynomialFeatures(include_bias=False).fit(X)
    np.testing.assert_array_equal(model.column_space_.ranks, poly.columns_)
    np.testing.assert_array_equal(model.column_counts_, poly.counts_)
    counts = PolynomialRidge(degree=3).fit(X, Y).column_counts_
    expanded = polysparse.expand(X, 3, include_bias=False)
    np.testing.assert_array_equal(counts, np.bincount(expanded.indices, minlength=len(counts)))
    assert counts.dtype == np.int64
    assert PolynomialRidge(columns="hashed").fit(X, Y).column_counts_ is None


def test_a_perfect_fit_is_found():
    y = 1 + X[:, [0]].toarray().ravel() * X[:, [1]].toarray().ravel()
    model = PolynomialRidge(1e-9, tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-5)
    names = model.column_space_.basis.names()
    assert names[np.argmax(np.abs(model.coef_))] == "x0 x1"


def test_columns_of_very_different_scales():
    scaled = sparse.csr_array(X * np.logspace(-3, 3, 8))
    model = PolynomialRidge(tol=1e-10).fit(scaled, Y)
    A = as_built(model, scaled)
    peer = Ridge(solver="svd").fit(A.toarray(), Y)
    best = objective(A, Y, 1, peer.coef_, peer.intercept_, 1)
    assert objective(A, Y, 1, model.coef_, model.intercept_, 1) <= best * (1 + 1e-5)


@pytest.mark.parametrize("columns", COLUMNS)
def test_nothing_to_learn_from(columns):
    empty = sparse.csr_array((3, 4))
    model = PolynomialRidge(columns=COLUMNS[columns]()).fit(empty, [1.0, 2.0, 6.0])
    assert model.intercept_ == pytest.approx(3)
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict(empty), 3)


def test_one_row():
    model = PolynomialRidge().fit([[2.0, 3.0]], [5.0])
    np.testing.assert_allclose(model.predict([[7.0, 0.0]]), 5)


def test_constant_columns_are_left_to_the_intercept():
    dense = np.column_stack([random_dense(60, 3, 0.8), np.full(60, 2.0)])
    model = PolynomialRidge(degree=1).fit(dense, dense[:, 0] + 3)
    assert model.coef_[3] == pytest.approx(0, abs=1e-12)


def test_a_line_for_each_iteration(capsys):
    model = PolynomialRidge(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert all("objective" in line and "passes" in line for line in lines)
    PolynomialRidge().fit(X, Y)
    assert capsys.readouterr().out == ""


def test_hashed_columns_are_those_of_the_transformer():
    poly = HashedPolynomialFeatures(n_columns=100, seed=3, include_bias=True)
    model = PolynomialRidge(columns=poly).fit(X, Y)
    assert model.column_space_.seed == 3
    assert not model.column_space_.basis.include_bias
    assert model.coef_.shape == (100,)


@pytest.mark.parametrize("offset", [30, 100, 300])
def test_columns_that_are_nearly_dependent(offset):
    """Steps gain little for a while, when features are far from 0, before they gain more."""
    dense = np.random.default_rng(0).standard_normal((80, 5)) + offset
    y = numbers_for(sparse.csr_array(dense - offset))
    model = PolynomialRidge().fit(dense, y)
    A = as_built(model, sparse.csr_array(dense)).toarray()
    peer = Ridge(solver="svd").fit(A, y)
    best = objective(A, y, 1, peer.coef_, peer.intercept_, 1)
    assert objective(A, y, 1, model.coef_, model.intercept_, 1) <= best * (1 + 1e-6)


@pytest.mark.parametrize("alpha", [1e200, 1e250, 1e300])
def test_a_penalty_whose_steps_have_squares_below_every_float(alpha):
    model = PolynomialRidge(alpha).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), np.mean(Y))


@pytest.mark.parametrize(("y", "weight"), [(Y * 1e160, None), (Y, 1e300)])
def test_sums_of_squares_that_overflow(y, weight):
    with pytest.raises(ValueError, match="y, or sample_weight, is so large"):
        PolynomialRidge().fit(X, y, weight)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weights_that_are_not_side_by_side(dtype):
    weights = np.random.default_rng(0).random((120, 2)).astype(dtype)
    expected = PolynomialRidge().fit(X, Y, weights[:, 0].copy())
    for given in (weights[:, 0], weights[::-1, 0].copy()[::-1]):
        np.testing.assert_array_equal(PolynomialRidge().fit(X, Y, given).coef_, expected.coef_)
    same = PolynomialRidge().fit(X, Y, np.broadcast_to(dtype(2), 120))
    np.testing.assert_array_equal(same.coef_, PolynomialRidge().fit(X, Y, 2).coef_)
