"""Models with an L1 penalty that choose it: the scores of GridSearchCV, and the plain fit."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from csr_zoo import random_csr
from model_data import classes_for, numbers_for
from polysparse import (
    PolynomialElasticNet,
    PolynomialElasticNetCV,
    PolynomialLasso,
    PolynomialLassoCV,
    PolynomialLinearSVC,
    PolynomialLinearSVCCV,
    PolynomialLinearSVR,
    PolynomialLinearSVRCV,
    PolynomialLogisticRegression,
    PolynomialLogisticRegressionCV,
    PolynomialPoissonRegressor,
    PolynomialPoissonRegressorCV,
    load_model,
)

X = random_csr(120, 5, 0.6)
NUMBERS = numbers_for(X)
PENALTIES = [1.0, 0.01, 0.1]  # in no order
CASES = {
    "lasso": (PolynomialLassoCV, PolynomialLasso, {}, NUMBERS),
    "elastic net": (PolynomialElasticNetCV, PolynomialElasticNet, {"l1_ratio": 0.3}, NUMBERS),
    "ridge": (PolynomialElasticNetCV, PolynomialElasticNet, {"l1_ratio": 0.0}, NUMBERS),
    "logistic": (
        PolynomialLogisticRegressionCV,
        PolynomialLogisticRegression,
        {"penalty": "l1"},
        classes_for(X, 2),
    ),
    "svc": (
        PolynomialLinearSVCCV,
        PolynomialLinearSVC,
        {"penalty": "l1", "max_iter": 1000},
        classes_for(X, 3),
    ),
    "svr": (
        PolynomialLinearSVRCV,
        PolynomialLinearSVR,
        {"l1_ratio": 0.5, "epsilon": 0.2, "max_iter": 1000},
        NUMBERS,
    ),
    "poisson": (
        PolynomialPoissonRegressorCV,
        PolynomialPoissonRegressor,
        {"penalty": "l1"},
        np.round(np.exp(NUMBERS / 4)),
    ),
    "softmax": (
        PolynomialLogisticRegressionCV,
        PolynomialLogisticRegression,
        {"l1_ratio": 0.7},
        classes_for(X, 3),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_scores_and_model_are_those_of_fits_to_the_splits(name):
    model, plain, how, y = CASES[name]
    parameter = "C" if "C" in plain().get_params() else "alpha"
    exact, weights = {"tol": 1e-11, **how}, np.random.default_rng(0).uniform(0.5, 2, len(y))
    splits = list(KFold(3).split(X))
    fitted = model(**{f"{parameter}s": PENALTIES}, cv=splits, **exact).fit(X, y, weights)
    models = [plain(**{parameter: value}, **exact) for value in PENALTIES]
    scores = [
        [
            each.fit(X[train], y[train], weights[train]).score(X[test], y[test], weights[test])
            for each in models
        ]
        for train, test in splits
    ]
    np.testing.assert_allclose(fitted.scores_, scores, atol=1e-5)
    chosen = getattr(fitted, f"{parameter}_")
    means = fitted.scores_.mean(axis=0)
    assert means[PENALTIES.index(chosen)] == means.max()
    alone = plain(**{parameter: chosen}, **exact).fit(X, y, weights)
    assert fitted.coef_.tobytes() == alone.coef_.tobytes()
    assert fitted.predict(X).tobytes() == alone.predict(X).tobytes()


@pytest.mark.parametrize("model", [PolynomialLassoCV, PolynomialElasticNetCV])
def test_default_penalties_begin_where_all_coefficients_are_zero(model):
    fitted = model(4, cv=3).fit(X, NUMBERS)
    np.testing.assert_allclose(fitted.alphas_, fitted.alphas_[-1] * 10.0 ** np.arange(-3, 1))
    plain = model._plain
    assert not plain(1.001 * fitted.alphas_[-1]).fit(X, NUMBERS).coef_.any()
    assert plain(0.99 * fitted.alphas_[-1], tol=1e-9).fit(X, NUMBERS).coef_.any()
    path = plain().path(X, NUMBERS, alphas=4)
    np.testing.assert_allclose(fitted.alphas_[::-1], path.values)
    constant = model(4, cv=3).fit(X, np.ones(120))
    assert not constant.coef_.any()
    assert np.isfinite(constant.alphas_).all()


def test_tables_and_files(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.choice([*"abc"], 200) for name in ("one", "two")})
    y = 2.0 * ((table["one"] == "a") & (table["two"] == "b")) + 0.1 * rng.normal(size=200)
    model = PolynomialLassoCV(cv=3, selection="one_standard_error").fit(table, y)
    assert list(model.top_terms(1)["name"]) == ["one=a two=b"]
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert type(loaded) is PolynomialLasso
    assert loaded.predict(table).tobytes() == model.predict(table).tobytes()


def test_bad_penalties():
    with pytest.raises(ValueError, match=r"alphas\[1\] must be a finite number above 0"):
        PolynomialLassoCV([1.0, 0.0]).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="alphas must be at least 1 penalty; got 0"):
        PolynomialElasticNetCV(0).fit(X, NUMBERS)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_penalty_is_one_of_the_penalties(n_classes):
    y, splits = classes_for(X, n_classes), list(KFold(3).split(X))
    how = {"penalty": "l1", "degree": 1, "tol": 1e-9}
    fitted = PolynomialLogisticRegressionCV([np.inf, 0.1], cv=splits, **how).fit(X, y)
    for column, C in enumerate([np.inf, 0.1]):
        plain = PolynomialLogisticRegression(C, **how)
        scores = [plain.fit(X[a], y[a]).score(X[b], y[b]) for a, b in splits]
        np.testing.assert_allclose(fitted.scores_[:, column], scores, atol=1e-9)
