"""Fits on hard numbers: close to the optimum, or a warning; never above the start."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from model_data import may_end_by_rounding
from polysparse import PolynomialLogisticRegression, PolynomialRidge
from polysparse.models.intercepts import SoftmaxIntercepts
from polysparse.models.losses.logistic import LogRowLosses
from polysparse.models.radau import RadauBound
from solver_fuzz import GOOD, Problem, judge, problem

SIX = np.arange(6.0)[:, np.newaxis], [0, 0, 1, 0, 1, 1]


def normal(seed, n_rows, n_features):
    return np.random.default_rng(seed).standard_normal((n_rows, n_features))


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_random_fits_are_true(first):
    """`make soak` runs more of them."""
    found = {seed: judge(problem(seed)) for seed in range(first, first + 20)}
    assert {seed: each for seed, each in found.items() if each not in GOOD} == {}


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(8708, id="a gap from pivots that almost cancel"),
        pytest.param(934, id="three classes of huge weights, whose probabilities are almost 1"),
        pytest.param(1489, id="free columns, collinear up to rounding errors"),
        pytest.param(2886, id="free columns, collinear up to those of float32"),
        pytest.param(5380, id="free columns of different sizes"),
    ],
)
def test_random_fits_that_once_were_wrong(seed):
    assert judge(problem(seed)) in GOOD


@pytest.mark.parametrize("seed", range(20, 24))
def test_ridge_without_a_penalty_whose_minimum_is_0(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((2, 3)), rng.standard_normal(2) + 1000
    assert judge(Problem(PolynomialRidge(0, degree=1), X, y, None)) in GOOD
    X, y = rng.standard_normal((5, 9)), rng.standard_normal(5)
    assert judge(Problem(PolynomialRidge(0), X, y, None)) in GOOD


def test_ridge_with_hardly_any_penalty_in_float32():
    X = (normal(0, 40, 4) + 30).astype(np.float32)
    model = PolynomialRidge(1e-12)
    assert judge(Problem(model, X, X[:, 0] * 1.0, None)) in GOOD
    assert np.abs(model.coef_).max() < 1e3


@pytest.mark.parametrize("scale", [1e-160, 1e-150, 1e150])
def test_ridge_with_tiny_and_huge_targets(scale):
    X, y = SIX
    with warnings.catch_warnings(action="ignore"):  # that rounding prevents it
        model = PolynomialRidge(degree=1).fit(X, scale * np.array(y))
    wanted = PolynomialRidge(degree=1).fit(X, y)
    np.testing.assert_allclose(model.coef_ / scale, wanted.coef_, rtol=1e-3)


@pytest.mark.parametrize("seed", range(13, 33))
def test_logistic_regression_on_huge_columns_is_not_above_its_start(seed):
    model = PolynomialLogisticRegression(degree=3)
    with warnings.catch_warnings(action="ignore"):  # that rounding prevents more
        model.fit(normal(seed, 3, 6) + 1000, np.arange(3))
    assert model.objective_ <= 3 * np.log(3)
    assert np.abs(model.coef_).max() < 1


@pytest.mark.parametrize("C", [1e15, 1e18])
def test_separable_classes_without_a_penalty_to_speak_of(C):
    X = normal(0, 20, 3)
    y = (X[:, 0] > 0).astype(int)
    assert judge(Problem(PolynomialLogisticRegression(C, degree=3), X, y, None)) in GOOD


def test_few_columns():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((rng.integers(6, 40), rng.integers(1, 4)))
        y = (X[:, 0] + rng.logistic(size=len(X)) > 0).astype(int)
        if y.min() < y.max():
            C = 10.0 ** rng.uniform(-2, 2)
            model = PolynomialLogisticRegression(C, degree=1)
            assert judge(Problem(model, X, y, None)) == "true"


@may_end_by_rounding
def test_tol_of_0_is_as_close_as_rounding_allows():
    model = PolynomialLogisticRegression(0.1, degree=1, tol=0.0).fit(*SIX)
    assert model.gap_ <= 1e-13 * model.objective_


@pytest.mark.parametrize(("C", "weight"), [(1e-308, 1), (1e-300, 1), (1, 1e-200)])
def test_weights_that_are_almost_0(C, weight):
    model = PolynomialLogisticRegression(C, degree=1).fit(*SIX, np.full(6, weight))
    assert model.objective_ == pytest.approx(6 * C * weight * np.log(2))
    assert np.abs(model.coef_).max() < 1e-100


def test_the_warning_says_how_close_the_fit_is_and_what_to_do():
    X = normal(0, 30, 3) + 1e6
    with pytest.warns(ConvergenceWarning, match="rounding errors .* above its minimum.*Scale the"):
        PolynomialRidge(0, degree=3).fit(X, X[:, 0] + normal(1, 30, 1)[:, 0])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("distance", [0, 300])
def test_intercepts_are_found_from_far_away(seed, distance):
    rng = np.random.default_rng(seed)
    scores, numbers, weights = 30 * rng.standard_normal((50, 4)), np.arange(50) % 4, np.ones(50)
    rows = LogRowLosses(numbers, weights, 4)
    search = SoftmaxIntercepts(np.bincount(numbers, weights))
    _, sums = search.best(lambda b: rows.sums(scores, b), distance * np.array([1.0, -1.0, 0, 2]))
    assert np.abs(sums.intercept_gradient).max() < 1e-10


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("factor", [1.0, 0.01, 50.0])
def test_radau_bound(seed, factor):
    """It is above the error of conjugate gradients, even if the least eigenvalue was too large."""
    rng = np.random.default_rng(seed)
    values = np.geomspace(1, 1e4, 30)
    basis = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    matrix, r = basis * values @ basis.T, rng.standard_normal(30)
    solution, x, p, norm = np.linalg.solve(matrix, r), np.zeros(30), r.copy(), r @ r
    bound = RadauBound(factor * values[0])
    for _ in range(20):
        error = (solution - x) @ matrix @ (solution - x)
        assert bound.error(norm) >= error * (1 - 1e-9) or factor > 1
        step = norm / (p @ matrix @ p)
        x, r, before = x + step * p, r - step * (matrix @ p), norm
        norm = r @ r
        p = r + norm / before * p
        bound.advance(step, norm / before)
        assert bound.factor > 0
    assert bound.is_reliable
    assert bound.least <= factor * values[0]
    assert RadauBound(0.0).error(1.0) == np.inf


def test_steps_that_are_almost_0_are_not_reliable():
    bound = RadauBound(1.0)
    for _ in range(3):
        bound.advance(1e-310, 1.0)
    assert not bound.is_reliable
