"""Support vector machines with squared losses: scikit-learn's objective, intercepts, classes."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.svm import LinearSVC, LinearSVR

from csr_zoo import random_csr
from model_data import as_built, classes_for, numbers_for
from polysparse import PolynomialLinearSVC, PolynomialLinearSVR, load_model
from row_stores import ArrayRows, LossyBlocks, fit_with

X = random_csr(150, 5, 0.6)
WEIGHTS = np.random.default_rng(0).exponential(size=150) * (np.arange(150) % 7 > 0)
NUMBERS = numbers_for(X)
CLASSES = {n: classes_for(X, n) for n in (2, 3)}


def penalty(model):
    """Half the squared norm, with the intercept as LIBLINEAR has it."""
    scaled = model.intercept_ / model.intercept_scaling if model.fit_intercept else 0
    return (np.sum(model.coef_**2) + np.sum(np.square(scaled))) / 2


def hinge_objective(model, A, y, weights, class_weight=None):
    z = A @ model.coef_.T + model.intercept_
    classes = np.unique(y)
    own = class_weight or dict.fromkeys(classes, 1.0)
    total = penalty(model)
    positives = [classes[1]] if len(classes) == 2 else classes
    for column, c in zip(z.T, positives, strict=True):
        t = np.where(y == c, 1, -1)
        factor = np.where(y == c, own[c], own[classes[0]] if len(classes) == 2 else 1.0)
        total += model.C * np.sum(weights * factor * np.maximum(0, 1 - t * column) ** 2)
    return total


def tube_objective(model, A, y, weights):
    beyond = np.maximum(0, np.abs(A @ model.coef_ + model.intercept_ - y) - model.epsilon)
    return penalty(model) + model.C * np.sum(weights * beyond**2)


def liblinear(kind, A, y, weights, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(dual=False, tol=1e-12, max_iter=100_000, **parameters).fit(A, y, weights)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("class_weight", [None, {0: 2.0, 1: 0.5, 2: 3.0}])
@pytest.mark.parametrize("intercept", [0.0, 1.0, 50.0])
def test_svc_reaches_liblinears_optimum(n_classes, C, class_weight, intercept):
    y = CLASSES[n_classes]
    how = {"C": C, "fit_intercept": intercept > 0, "intercept_scaling": intercept or 1.0}
    if class_weight is not None:
        how["class_weight"] = {c: class_weight[c] for c in np.unique(y)}
    model = PolynomialLinearSVC(tol=1e-9, **how).fit(X, y, WEIGHTS)
    A = as_built(model, X).toarray()
    best = liblinear(LinearSVC, A, y, WEIGHTS, **how)
    own = how.get("class_weight")
    assert model.objective_ == pytest.approx(hinge_objective(model, A, y, WEIGHTS, own), rel=1e-12)
    assert model.objective_ <= hinge_objective(best, A, y, WEIGHTS, own) * (1 + 1e-8)
    assert model.objective_ == pytest.approx(hinge_objective(best, A, y, WEIGHTS, own), rel=1e-6)
    assert model.coef_.shape == best.coef_.shape
    assert model.intercept_.shape == (len(model.coef_),)
    assert np.mean(model.predict(X) == best.predict(A)) > 0.98
    np.testing.assert_allclose(model.decision_function(X), best.decision_function(A), atol=0.02)


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("intercept", [0.0, 1.0, 50.0])
def test_svr_reaches_liblinears_optimum(epsilon, intercept):
    how = {"C": 0.3, "epsilon": epsilon, "fit_intercept": intercept > 0}
    how["intercept_scaling"] = intercept or 1.0
    model = PolynomialLinearSVR(tol=1e-9, **how).fit(X, NUMBERS, WEIGHTS)
    A = as_built(model, X).toarray()
    loss = "squared_epsilon_insensitive"
    best = liblinear(LinearSVR, A, NUMBERS, WEIGHTS, loss=loss, **how)
    best.intercept_ = np.squeeze(best.intercept_)
    assert model.objective_ == pytest.approx(tube_objective(model, A, NUMBERS, WEIGHTS), rel=1e-12)
    assert model.objective_ == pytest.approx(tube_objective(best, A, NUMBERS, WEIGHTS), rel=1e-6)
    np.testing.assert_allclose(model.predict(X), best.predict(A), atol=0.02)


def test_nasty_columns():
    """Empty, equal and constant columns, and one that tells the classes apart."""
    dense = X.toarray()
    dense[:, 1], dense[:, 2], dense[:, 3] = 0.0, dense[:, 0], 3.0
    dense[:, 4] = CLASSES[2]
    model = PolynomialLinearSVC().fit(dense, CLASSES[2], WEIGHTS)
    A = as_built(model, csr_array(dense)).toarray()
    best = liblinear(LinearSVC, A, CLASSES[2], WEIGHTS)
    least = hinge_objective(best, A, CLASSES[2], WEIGHTS)
    assert model.objective_ == pytest.approx(least, rel=1e-6)
    model = PolynomialLinearSVR(epsilon=0.1).fit(dense, NUMBERS, WEIGHTS)
    how = {"loss": "squared_epsilon_insensitive", "epsilon": 0.1}
    best = liblinear(LinearSVR, A, NUMBERS, WEIGHTS, **how)
    assert model.objective_ == pytest.approx(tube_objective(best, A, NUMBERS, WEIGHTS), rel=1e-6)


def test_an_intercept_without_a_penalty():
    """Adding a number to all targets changes the intercept alone."""
    free = {"intercept_scaling": np.inf, "tol": 1e-12}
    one = PolynomialLinearSVR(**free).fit(X, NUMBERS)
    other = PolynomialLinearSVR(**free).fit(X, NUMBERS + 100)
    np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-6)
    assert other.intercept_ == pytest.approx(one.intercept_ + 100)
    y = CLASSES[2]
    model = PolynomialLinearSVC(intercept_scaling=np.inf, tol=1e-10).fit(X, y)
    lack = np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(X))
    assert np.sum(np.where(y == 1, lack, -lack)) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_anywhere(n_classes):
    y = CLASSES[n_classes]
    how = {"C": 0.5, "tol": 1e-9, "class_weight": "balanced"}
    here = PolynomialLinearSVC(**how).fit(X, y, WEIGHTS)
    for make in (
        lambda rows: LossyBlocks(rows, [40, 100], 0.3),
        lambda rows: ArrayRows(rows.x, rows.y, rows.weights, 1),
    ):
        there = PolynomialLinearSVC(**how)
        fit_with(make, there, X, y, WEIGHTS)
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-8)
        np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-3)


def test_svr_of_rows_anywhere():
    here = PolynomialLinearSVR(epsilon=0.2, tol=1e-9).fit(X, NUMBERS, WEIGHTS)
    for make in (
        lambda rows: LossyBlocks(rows, [40, 100], 0.3),
        lambda rows: ArrayRows(rows.x, rows.y, rows.weights, 1),
    ):
        there = PolynomialLinearSVR(epsilon=0.2, tol=1e-9)
        fit_with(make, there, X, NUMBERS, WEIGHTS)
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-8)


def test_separable_classes_have_an_optimum():
    y = (X[:, [0]].toarray().ravel() > 0).astype(int)
    model = PolynomialLinearSVC(1e6).fit(X, y)
    assert model.score(X, y) == 1
    assert model.gap_ <= 2e-6 * model.objective_


def test_warm_start():
    model = PolynomialLinearSVC(warm_start=True).fit(X, CLASSES[3])
    assert model.n_iter_ > 0
    assert model.fit(X, CLASSES[3]).n_iter_ == 0
    assert model.fit(X, CLASSES[2]).coef_.shape == (1, 20)
    model = PolynomialLinearSVR(warm_start=True).fit(X, NUMBERS)
    assert model.fit(X, NUMBERS).n_iter_ == 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_saved_models_and_onnx(n_classes, tmp_path):
    model = PolynomialLinearSVC(intercept_scaling=np.inf).fit(X, CLASSES[n_classes])
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert again.intercept_scaling == np.inf
    pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    model.to_onnx(tmp_path / "model.onnx", dtype=np.float64)
    graph = ReferenceEvaluator(str(tmp_path / "model.onnx"))
    labels, scores = graph.run(["label", "scores"], {"X": X.toarray()})
    assert labels.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(np.squeeze(scores), model.decision_function(X), atol=1e-12)


def test_what_is_refused():
    with pytest.raises(ValueError, match="intercept_scaling must be a number above 0, or infinite"):
        PolynomialLinearSVC(intercept_scaling=0).fit(X, CLASSES[2])
    with pytest.raises(ValueError, match="epsilon must be a finite number at least 0"):
        PolynomialLinearSVR(epsilon=-1).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="needs at least 2 classes"):
        PolynomialLinearSVC().fit(X, np.ones(150))
