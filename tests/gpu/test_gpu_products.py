"""Products and models on a GPU: those of the processor, up to rounding; the same bits each time."""

import numpy as np
import pytest

from column_kinds import X as SMALL
from csr_zoo import FORMATS, ZOO, random_csr, wide_csr
from gpu_matrices import as_cupy, as_torch
from polysparse import (
    HashedPolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialOperator,
    PolynomialRidge,
)
from products import assert_close, built, weights

pytestmark = pytest.mark.gpu

PARAMETERS = [
    {"degree": 1},
    {"degree": 2},
    {"degree": 2, "include_bias": False},
    {"degree": 2, "interaction_only": True},
    {"degree": (2, 3)},
    {"degree": 3, "include_bias": False},
    {"degree": (3, 3), "interaction_only": True},
    {"degree": 4, "interaction_only": True},
]
MATRICES = {
    "small": lambda: random_csr(60, 9),
    "float32": lambda: random_csr(60, 9).astype(np.float32),
    "short and long": lambda: np.repeat([[1], [0]], 30, axis=0) * random_csr(60, 90, 0.8).toarray(),
    "wide": lambda: wide_csr(30, 40, 20),
    "up to 64": lambda: np.tril(random_csr(64, 64, 1.0).toarray()),
    "many rows": lambda: random_csr(5_000, 12),
}


def matrix(name):
    from scipy import sparse

    return sparse.csr_matrix(MATRICES[name]())


def assert_multiplies_alike(X, ks=(1, 3, 4), **parameters):
    import cupy

    A, size = built(X, **parameters)
    on_gpu = PolynomialOperator(as_cupy(X), **parameters)
    assert on_gpu.shape == A.shape
    for k in ks:
        W, R = (weights(n, k, seed=k).astype(X.dtype) for n in A.shape[::-1])
        found = on_gpu.matmat(cupy.asarray(W)), on_gpu.rmatmat(cupy.asarray(R))
        again = on_gpu @ cupy.asarray(W), on_gpu.T @ cupy.asarray(R)
        assert_close(found[0].get(), A @ W.astype(float), size @ np.abs(W), X.dtype)
        assert_close(found[1].get(), A.T @ R.astype(float), size.T @ np.abs(R), X.dtype)
        assert all((a == b).all() for a, b in zip(found, again, strict=True))
    assert_close(
        on_gpu.matvec(cupy.asarray(W[:, 0])).get(),
        A @ W[:, 0].astype(float),
        size @ np.abs(W[:, 0]),
        X.dtype,
    )


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@pytest.mark.parametrize("name", MATRICES)
def test_products(name, parameters):
    if name in ("short and long", "up to 64") and parameters["degree"] == 4:
        pytest.skip("too many outputs")
    assert_multiplies_alike(matrix(name), **parameters)


@pytest.mark.parametrize(
    "build", [b for b in ZOO if b not in FORMATS and b.__name__ not in ("extreme_values",)]
)
def test_zoo(build):
    X, dense = build()
    if 0 in X.shape:
        return
    from scipy import sparse

    A, size = built(sparse.csr_matrix(dense))
    import cupy

    on_gpu = PolynomialOperator(as_cupy(X))
    W, R = (weights(n, 1).astype(dense.dtype) for n in A.shape[::-1])
    assert_close(on_gpu.matmat(cupy.asarray(W)).get(), A @ W, size @ np.abs(W), dense.dtype)
    assert_close(on_gpu.rmatmat(cupy.asarray(R)).get(), A.T @ R, size.T @ np.abs(R), dense.dtype)


def test_chosen_columns():
    assert_multiplies_alike(SMALL, columns=np.arange(0, 36, 3))


def test_long_rows_are_divided(monkeypatch):
    monkeypatch.setattr("polysparse.gpu.products.PART", 64)
    assert_multiplies_alike(matrix("wide"), degree=2)
    assert_multiplies_alike(matrix("short and long"), degree=2, interaction_only=True)


def test_what_is_not_multiplied_is_refused():
    X = as_cupy(SMALL)
    with pytest.raises(NotImplementedError, match=r"hashed columns.*X\.get\(\)"):
        PolynomialOperator(X, columns=HashedPolynomialFeatures(n_columns=9))
    with pytest.raises(NotImplementedError, match="degree 9"):
        PolynomialOperator(as_cupy(wide_csr(3, 9, 3)), 9)


def test_solvers_of_cupy():
    import cupy
    from cupyx.scipy.sparse.linalg import lsmr

    A = PolynomialOperator(as_cupy(random_csr(400, 6)))
    w = cupy.asarray(weights(A.shape[1], 1)[:, 0])
    found = lsmr(A, A @ w, atol=1e-12, btol=1e-12, conlim=0)[0]
    np.testing.assert_allclose(found.get(), w.get(), rtol=1e-6, atol=1e-8)


# ----------------------------------------------------------------------------------------- models


def data(n_classes=2):
    X = random_csr(600, 8, 0.5)
    score = X.toarray() @ weights(8, n_classes) + (X[:, [0]].toarray() * X[:, [1]].toarray())
    return X, score.argmax(axis=1), score[:, 0]


@pytest.mark.parametrize("columns", ["all", "observed"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge(columns, fit_intercept):
    X, _, y = data()
    how = {"columns": columns, "fit_intercept": fit_intercept, "tol": 1e-12}
    here = PolynomialRidge(**how).fit(X, y)
    there = PolynomialRidge(**how).fit(as_cupy(X), y)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-5)
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-9)
    np.testing.assert_array_equal(there.column_counts_, here.column_counts_)
    np.testing.assert_allclose(there.predict(as_cupy(X)), there.predict(X), rtol=1e-9, atol=1e-9)
    assert there.n_features_in_ == 8


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic(n_classes, fit_intercept):
    X, y, _ = data(n_classes)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    how = {"fit_intercept": fit_intercept, "tol": 1e-10}
    here = PolynomialLogisticRegression(**how).fit(X, y, weight)
    there = PolynomialLogisticRegression(**how).fit(as_cupy(X), y, weight)
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-9)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4)
    for method in ("decision_function", "predict", "predict_proba", "predict_log_proba"):
        on_gpu, same = (getattr(there, method)(x) for x in (as_cupy(X), X))
        np.testing.assert_allclose(on_gpu, same, rtol=1e-9, atol=1e-9)
    again = PolynomialLogisticRegression(**how).fit(as_cupy(X), y, weight)
    np.testing.assert_array_equal(again.coef_, there.coef_)


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
    with pytest.raises(NotImplementedError, match="hashed"):
        PolynomialRidge(columns="hashed").fit(as_cupy(X), y)
    model = PolynomialRidge().fit(X, y)
    with pytest.raises(ValueError, match="9 features"):
        model.predict(as_cupy(random_csr(5, 9)))
