"""Models on a GPU: the optimum and the predictions of the processor; the same bits each time."""

import numpy as np
import pytest

from csr_zoo import random_csr
from gpu_matrices import as_cupy, as_torch
from polysparse import (
    HashedPolynomialFeatures,
    PolynomialGammaRegressor,
    PolynomialLinearSVC,
    PolynomialLinearSVR,
    PolynomialLogisticRegression,
    PolynomialPoissonRegressor,
    PolynomialRidge,
    PolynomialTweedieRegressor,
)
from products import weights

pytestmark = pytest.mark.gpu

COLUMNS = {
    "all": lambda: "all",
    "observed": lambda: "observed",
    "hashed": lambda: "hashed",
    "few buckets": lambda: HashedPolynomialFeatures(2, n_columns=20, seed=1),
    "no signs": lambda: HashedPolynomialFeatures(3, n_columns=64, alternate_sign=False),
}
every_kind = pytest.mark.parametrize("kind", COLUMNS)


def data(n_classes=2):
    X = random_csr(600, 8, 0.5)
    score = X.toarray() @ weights(8, n_classes) + (X[:, [0]].toarray() * X[:, [1]].toarray())
    return X, score.argmax(axis=1), score[:, 0]


@every_kind
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge(kind, fit_intercept):
    X, _, y = data()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y)) if fit_intercept else None
    how = {"columns": COLUMNS[kind](), "fit_intercept": fit_intercept, "tol": 1e-12}
    here = PolynomialRidge(**how).fit(X, y, weight)
    there = PolynomialRidge(**how).fit(as_cupy(X), y, weight)
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-9)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-5)
    np.testing.assert_array_equal(there.column_counts_, here.column_counts_)
    np.testing.assert_allclose(there.predict(X), here.predict(X), atol=1e-5)
    np.testing.assert_allclose(there.predict(as_cupy(X)), there.predict(X), rtol=1e-9, atol=1e-9)
    assert there.n_features_in_ == 8
    again = PolynomialRidge(**how).fit(as_cupy(X), y, weight)
    np.testing.assert_array_equal(again.coef_, there.coef_)


@every_kind
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic(kind, n_classes, fit_intercept):
    X, y, _ = data(n_classes)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y)) if fit_intercept else None
    how = {"columns": COLUMNS[kind](), "fit_intercept": fit_intercept, "tol": 1e-10}
    here = PolynomialLogisticRegression(**how).fit(X, y, weight)
    there = PolynomialLogisticRegression(**how).fit(as_cupy(X), y, weight)
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-9)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4)
    for method in ("decision_function", "predict", "predict_proba", "predict_log_proba"):
        on_gpu, same = (getattr(there, method)(x) for x in (as_cupy(X), X))
        np.testing.assert_allclose(on_gpu, same, rtol=1e-9, atol=1e-9)
    again = PolynomialLogisticRegression(**how).fit(as_cupy(X), y, weight)
    np.testing.assert_array_equal(again.coef_, there.coef_)


@every_kind
def test_sums_that_a_fit_asks_for(kind):
    """Those of the processor's design, with weights of one class and of several."""
    import cupy

    from polysparse.gpu.canonical import as_canonical
    from polysparse.gpu.containers import container_of
    from polysparse.gpu.row_store import DeviceDesign
    from polysparse.matrix.canonical import as_canonical_csr
    from polysparse.models.design import Design

    X, _, y = data()
    columns = PolynomialRidge(columns=COLUMNS[kind]()).fit(X, y).column_space_
    here = Design(columns, as_canonical_csr(X, None), 1)
    there = DeviceDesign(columns, as_canonical(container_of(as_cupy(X))))
    np.testing.assert_array_equal(there.count_rows(), here.count_rows())
    for own in (weights(600, 1)[:, 0] ** 2, weights(600, 3) ** 2):
        on_card, close = cupy.asarray(own), {"rtol": 1e-11, "atol": 1e-11}
        np.testing.assert_allclose(there.sum_squares(on_card), here.sum_squares(own), **close)
        found = there.apply_transposed(on_card)
        np.testing.assert_allclose(found, here.apply_transposed(own), **close)
    directions = weights(columns.n_columns, 11)
    found = there.gram(cupy.asarray(own[:, 0]), cupy.asarray(directions))
    np.testing.assert_allclose(found, here.gram(own[:, 0], directions), rtol=1e-9, atol=1e-9)


def test_degrees_that_are_multiplied_by_tuples():
    X, _, y = data()
    how = {"degree": 9, "interaction_only": True, "columns": "hashed", "tol": 1e-9}
    here, there = (PolynomialRidge(**how).fit(x, y) for x in (X, as_cupy(X)))
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-6)


def test_tensors_and_targets_on_the_card():
    import cupy

    pytest.importorskip("torch")
    X, y, _ = data()
    here = PolynomialLogisticRegression().fit(X, y)
    there = PolynomialLogisticRegression().fit(as_torch(X), cupy.asarray(y))
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-6)


def test_what_models_refuse():
    X, y, _ = data()
    bad = X.copy()
    bad.data[0] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        PolynomialRidge().fit(as_cupy(bad), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PolynomialRidge().fit(as_cupy(X), y[:-1])
    model = PolynomialRidge().fit(X, y)
    with pytest.raises(ValueError, match="9 features"):
        model.predict(as_cupy(random_csr(5, 9)))


AMOUNTS = {
    "poisson": lambda **how: PolynomialPoissonRegressor(0.01, **how),
    "gamma": lambda **how: PolynomialGammaRegressor(0.01, **how),
    "tweedie": lambda **how: PolynomialTweedieRegressor(power=1.5, alpha=0.01, **how),
    "squares": lambda **how: PolynomialTweedieRegressor(power=0, alpha=0.01, **how),
}


@pytest.mark.parametrize("kind", AMOUNTS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_models_of_amounts(kind, fit_intercept):
    X, _, score = data()
    offset = np.cos(np.arange(len(score)))
    y = np.round(np.exp(score / 3 + offset)) + (kind == "gamma")
    how = {"fit_intercept": fit_intercept, "tol": 1e-10}
    here, there = (AMOUNTS[kind](**how).fit(x, y, None, offset) for x in (X, as_cupy(X)))
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-9)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4)
    on_gpu = there.predict(as_cupy(X), offset)
    np.testing.assert_allclose(on_gpu, there.predict(X, offset), rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_support_vector_classification(n_classes):
    X, y, _ = data(n_classes)
    how = {"C": 0.1, "tol": 1e-9, "class_weight": "balanced"}
    here, there = (PolynomialLinearSVC(**how).fit(x, y) for x in (X, as_cupy(X)))
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-8)
    on_gpu, same = (there.decision_function(x) for x in (as_cupy(X), X))
    np.testing.assert_allclose(on_gpu, same, rtol=1e-9, atol=1e-9)


def test_support_vector_regression():
    X, _, y = data()
    here, there = (PolynomialLinearSVR(epsilon=0.1, tol=1e-9).fit(x, y) for x in (X, as_cupy(X)))
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-8)
