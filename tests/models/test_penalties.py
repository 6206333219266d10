"""No penalty, penalties by degree and by group, and several targets of ridge."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import mean_poisson_deviance

from csr_zoo import random_csr
from model_data import as_built, numbers_for
from polysparse import (
    PolynomialGammaRegressor,
    PolynomialLinearSVC,
    PolynomialLinearSVR,
    PolynomialLogisticRegression,
    PolynomialPoissonRegressor,
    PolynomialRidge,
    PolynomialTweedieRegressor,
    expand,
    load_model,
)
from polysparse.basis.names import names_of_tuples
from polysparse.models.factors import factors_of
from row_stores import LossyBlocks, fit_with

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 4))
NUMBERS = X[:, 0] * X[:, 1] - X[:, 2] + RNG.standard_normal(300)
CLASSES = np.digitize(NUMBERS, [-0.5, 0.5])
COUNTS = RNG.poisson(np.exp(NUMBERS / 3)).astype(float)
SEPARATED = (X[:, 0] > 0).astype(int)
RARE = X.copy()
RARE[:, 3] = np.arange(300) < 5  # a feature of few rows

unbounded = pytest.warns(ConvergenceWarning, match="has no finite optimum without a penalty")


def log_loss_of(model, A, y):
    return -np.log(model.predict_proba(A)[np.arange(len(y)), y]).sum()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_regression_without_a_penalty(n_classes):
    y = np.minimum(CLASSES, n_classes - 1)
    model = PolynomialLogisticRegression(np.inf).fit(X, y)
    A = as_built(model, csr_array(X)).toarray()
    best = LogisticRegression(C=np.inf, solver="newton-cg", tol=1e-9, max_iter=10_000).fit(A, y)
    assert model.objective_ == pytest.approx(log_loss_of(best, A, y), rel=2e-6)
    assert model.objective_ == pytest.approx(log_loss_of(model, X, y), rel=1e-9)
    assert model.gap_ <= 2e-6 * model.objective_


def test_poisson_regression_without_a_penalty():
    model = PolynomialPoissonRegressor(0).fit(X, COUNTS)
    A = as_built(model, csr_array(X)).toarray()
    best = PoissonRegressor(alpha=0, solver="newton-cholesky", tol=1e-10).fit(A, COUNTS)
    expected = mean_poisson_deviance(COUNTS, best.predict(A)) / 2
    assert model.objective_ == pytest.approx(expected, rel=2e-6)


def test_columns_that_depend_on_each_other():
    twice = np.column_stack([X, X[:, 0], np.zeros(300)])
    y = np.minimum(CLASSES, 1)
    one, other = (PolynomialLogisticRegression(np.inf).fit(x, y) for x in (X, twice))
    assert other.objective_ == pytest.approx(one.objective_, rel=2e-6)
    np.testing.assert_allclose(other.predict_proba(twice), one.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize(
    ("model", "data", "y"),
    [
        (PolynomialLogisticRegression(np.inf), X, SEPARATED),
        (PolynomialLogisticRegression(np.inf), X, np.digitize(X[:, 0], [-0.5, 0.5])),
        (
            PolynomialLogisticRegression(np.inf, degree=1),
            RARE,
            np.where(RARE[:, 3] > 0, 1, CLASSES > 0).astype(int),
        ),
        (PolynomialPoissonRegressor(0, degree=1), RARE, np.where(RARE[:, 3] > 0, 0, COUNTS)),
        (
            PolynomialTweedieRegressor(power=1.5, alpha=0, degree=1),
            RARE,
            np.where(RARE[:, 3] > 0, 0, COUNTS),
        ),
        (PolynomialLogisticRegression(penalty_factors={1: 0.0}), X, SEPARATED),
    ],
    ids=["separated", "three", "quasi", "poisson", "tweedie", "main effects"],
)
def test_an_optimum_that_is_not_finite(model, data, y):
    with unbounded:
        model.fit(data, y)
    assert np.isfinite(model.coef_).all()
    assert np.max(model.n_iter_) < 60


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (PolynomialLinearSVC(np.inf), SEPARATED),
        (PolynomialLinearSVC(np.inf), CLASSES),
        (PolynomialLinearSVR(np.inf, epsilon=0.1), NUMBERS),
        (PolynomialLinearSVR(np.inf, epsilon=0.1), X[:, 0] * X[:, 1]),
        (PolynomialGammaRegressor(0), COUNTS + 1),
        (PolynomialTweedieRegressor(power=0, alpha=0), NUMBERS),
        (PolynomialRidge(0), NUMBERS),
    ],
    ids=lambda each: type(each).__name__,
)
def test_losses_that_always_have_an_optimum(model, y):
    model.fit(X, y)
    assert model.gap_ <= max(2e-6 * model.objective_, 1e-8)


def weighted_objective(w, A, y, factors):
    z = A @ w[1:] + w[0]
    p = 1 / (1 + np.exp(-z))
    value = np.sum(np.logaddexp(0, z) - y * z) + np.sum(factors * w[1:] ** 2) / 2
    slopes = np.append(np.sum(p - y), A.T @ (p - y) + factors * w[1:])
    return value, slopes


@pytest.mark.parametrize(
    ("given", "groups", "factors"),
    [
        ({1: 0.0, 2: 3.0}, None, [0.0] * 4 + [3.0] * 10),
        ({2: 5}, None, [1.0] * 4 + [5.0] * 10),
        ({"x0": 0.0, ("x1", "x0"): 9.0}, None, [0, 1, 1, 1, 1, 9, *[1] * 8]),
        ({1: 4.0, "a": 0.0, "a:b": 2.0}, {"a": 2, "b": 2}, [0, 0, 4, 4, 2, 2, 2, 2]),
    ],
    ids=str,
)
def test_factors_by_degree_and_by_group(given, groups, factors):
    y = (CLASSES > 0).astype(int)
    how = {"penalty_factors": given, "groups": groups, "tol": 1e-9}
    model = PolynomialLogisticRegression(**how).fit(X, y)
    A = _built(X, groups)
    best = minimize(
        weighted_objective,
        np.zeros(1 + A.shape[1]),
        (A, y, np.array(factors, float)),
        jac=True,
        options={"gtol": 1e-9, "maxiter": 10_000},
    )
    assert model.objective_ == pytest.approx(best.fun, rel=1e-8)
    np.testing.assert_allclose(model.coef_[0], best.x[1:], atol=1e-4)
    other = PolynomialLogisticRegression(**how)
    fit_with(lambda rows: LossyBlocks(rows, [100], 0.3), other, X, y)
    assert other.objective_ == pytest.approx(best.fun, rel=1e-8)
    ridge = PolynomialRidge(2.0, penalty_factors=given, groups=groups, tol=1e-12).fit(X, NUMBERS)
    C, t = A - A.mean(axis=0), NUMBERS - NUMBERS.mean()
    expected = np.linalg.solve(C.T @ C + 2 * np.diag(np.array(factors, float)), C.T @ t)
    np.testing.assert_allclose(ridge.coef_, expected, atol=1e-6)
    error = np.sum((ridge.predict(X) - NUMBERS) ** 2) + 2 * np.sum(factors * expected**2)
    assert ridge.objective_ == pytest.approx(error)


def _built(X, groups):
    return expand(csr_array(X), 2, include_bias=False, groups=groups).toarray()


def test_factors_of_terms_and_of_chosen_columns():
    how = {"penalty_factors": {1: 0.0}, "tol": 1e-10}
    terms = PolynomialRidge(terms=["x0:x1", "x2"], **how).fit(X, NUMBERS)
    chosen = PolynomialRidge(columns=[2, 5], **how).fit(X, NUMBERS)
    found = {n: w for m in (terms, chosen) for n, w in zip(*_named(m), strict=True)}
    assert found["x0 x1"] == pytest.approx(dict(zip(*_named(terms), strict=True))["x0 x1"])
    assert terms.objective_ == pytest.approx(chosen.objective_)


def _named(model):
    table = model.top_terms(100)
    return table["name"], table["weight"]


def test_threads_do_not_matter(small_tasks):
    one, many = (
        PolynomialLogisticRegression(penalty_factors={1: 0.0}, n_jobs=n).fit(X, CLASSES)
        for n in (1, 3)
    )
    assert one.coef_.tobytes() == many.coef_.tobytes()


def test_they_are_saved(tmp_path):
    model = PolynomialRidge(penalty_factors={1: 0.0, "x0:x1": 2.0}).fit(X, NUMBERS)
    model.save(tmp_path / "model.npz")
    assert load_model(tmp_path / "model.npz").penalty_factors == {1: 0.0, "x0:x1": 2.0}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], "penalty_factors must map degrees, groups or terms to numbers"),
        ({1: -1.0}, r"penalty_factors\[1\] must be a finite number at least 0; got -1.0"),
        ({1: np.inf}, "must be a finite number at least 0; got inf"),
        ({3: 1.0}, "penalty_factors has degree 3, but the columns have degrees 1, 2"),
        ({"age": 1.0}, "penalty_factors has 'age', which is not a group"),
        ({("x0", "x9"): 1.0}, r"has \('x0', 'x9'\), which is not a group"),
        ({"x0^3": 1.0}, "has 'x0\\^3', which is not a group"),
        ({1.0: 0}, r"has the key 1\.0\. Keys must be degrees \(int\)"),
        ({True: 0}, "has the key True"),
        ({(): 0}, r"has the key \(\)"),
        ({("x0", 1): 0}, r"has the key \('x0', 1\)"),
    ],
)
def test_factors_that_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        PolynomialRidge(penalty_factors=given).fit(X, NUMBERS)


def factors(given, **how):
    """The factor of each column, by its name."""
    model = PolynomialRidge(penalty_factors=given, **how).fit(X, NUMBERS)
    names = names_of_tuples(_tuples(model), model.feature_names)
    return dict(zip(names, factors_of(model, model.column_space_).tolist(), strict=True))


def _tuples(model):
    space = model.column_space_
    return space.basis.unrank(getattr(space, "ranks", np.arange(space.n_columns)))


GROUPED = {"groups": {"a": 2, "b": 2}}
SPACED = {"feature_names": ["a", "b c", "a b", "c"]}


@pytest.mark.parametrize(
    ("given", "how", "expected"),
    [
        ({"x0 x1": 0}, {}, {"x0 x1": 0}),
        ({"x1 x0": 0}, {}, {"x0 x1": 0}),
        ({"x0^2": 0, "x1:x1": 5}, {}, {"x0^2": 0, "x1^2": 5}),
        ({"x3": 2, 1: 0}, {}, {"x0": 0, "x1": 0, "x2": 0, "x3": 2}),
        ({"x0 x2": 3, "a": 0, 2: 4}, GROUPED,
         {"x0": 0, "x1": 0, "x0 x2": 3, "x0 x3": 4, "x1 x2": 4, "x1 x3": 4}),
        ({("x2", "x0"): 3}, GROUPED, {"x0 x2": 3}),
        ({("b", "a"): 3, "x0 x2": 0}, GROUPED | {"columns": [0, 4, 5]}, {"x0 x2": 0, "x0 x3": 3}),
        ({"x2": 7}, {"terms": ["x0:x1", "x2"]}, {"x2": 7}),
        ({"b c a": 3, "b c^2": 5}, {"feature_names": ["a", "b c", "a b", "d"]},
         {"a b c": 3, "b c^2": 5}),
        ({("a b", "c"): 3}, SPACED, {"a b c": 3}),
    ],
    ids=str,
)  # fmt: skip
def test_factors_of_single_terms(given, how, expected):
    found = factors(given, **how)
    assert {name: factor for name, factor in found.items() if factor != 1} == expected


def test_names_of_several_terms_are_refused():
    with pytest.raises(ValueError, match="'a b c', which is the name of 2 terms"):
        factors({"a b c": 0}, **SPACED)


def test_factors_of_the_terms_of_a_table():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"color": list("rgb") * 100, "size": X[:, 0]})
    how = {"penalty_factors": {"color=r size": 0.0, "color": 3.0, "size": 2.0}}
    model = PolynomialRidge(interaction_only=True, **how).fit(table, NUMBERS)
    found = factors_of(model, model.column_space_)
    names = model.top_terms(100)
    assert sorted(found) == [0, 1, 1, 2, 3, 3, 3]
    assert "color=r size" in list(names["name"])


def test_hashed_columns_have_no_factors():
    with pytest.raises(ValueError, match="hashed columns have none"):
        PolynomialRidge(columns="hashed", penalty_factors={1: 0.0}).fit(X, NUMBERS)


# ---------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_several_targets_are_scikit_learns(fit_intercept):
    sparse = random_csr(120, 6, 0.5)
    Y = np.column_stack([numbers_for(sparse, seed) for seed in range(3)])
    weights = np.arange(120) % 3.0
    how = {"alpha": 2.0, "fit_intercept": fit_intercept}
    model = PolynomialRidge(tol=1e-12, **how).fit(sparse, Y, weights)
    A = as_built(model, sparse).toarray()
    best = Ridge(**how).fit(A, Y, weights)
    np.testing.assert_allclose(model.coef_, best.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_ + np.zeros(3), best.intercept_, atol=1e-5)
    np.testing.assert_allclose(model.predict(sparse), best.predict(A), atol=1e-5)
    assert model.score(sparse, Y) == pytest.approx(best.score(A, Y), abs=1e-6)
    alone = [PolynomialRidge(tol=1e-12, **how).fit(sparse, y, weights) for y in Y.T]
    assert model.objective_ == pytest.approx(sum(each.objective_ for each in alone))
    assert set(model.top_terms(5)["target"]) <= {0, 1, 2}


def test_several_targets_are_saved_and_shown(tmp_path):
    pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    Y = np.column_stack([NUMBERS, COUNTS])
    model = PolynomialRidge(groups={"a": 2, "b": 2}).fit(X, Y)
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    assert len(again.importance()["name"]) == 3
    model.to_onnx(tmp_path / "model.onnx", dtype=np.float64)
    (found,) = ReferenceEvaluator(str(tmp_path / "model.onnx")).run(None, {"X": X})
    np.testing.assert_allclose(found, model.predict(X), atol=1e-12)


def test_other_models_have_one_target():
    Y = np.column_stack([COUNTS, COUNTS])
    with pytest.raises(ValueError, match="y should be a 1d array"):
        PolynomialPoissonRegressor().fit(X, Y)
