"""PolynomialLogisticRegression is scikit-learn's LogisticRegression on the built expansion."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from csr_zoo import random_csr
from model_data import COLUMNS, as_built, classes_for, with_columns
from polysparse import PolynomialLogisticRegression

X = random_csr(150, 7, 0.5)
HELD_OUT = random_csr(80, 7, 0.5, seed=1)


def objective(A, numbers, weights, coef, intercept, C):
    scores = A @ coef.T + intercept
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    losses = logsumexp(scores, axis=1) - scores[np.arange(len(scores)), numbers]
    return C * np.sum(weights * losses) + np.sum(coef**2) / 2


def assert_is_optimal(model, X, y, weights=None):
    """The objective is within 1e-6 of scikit-learn's, and predictions are the same but for ties."""
    A = as_built(model, X)
    peer = LogisticRegression(
        C=model.C,
        fit_intercept=model.fit_intercept,
        class_weight=model.class_weight,
        solver="newton-cg",
        tol=1e-9,
        max_iter=1000,
    ).fit(A, y, weights)
    np.testing.assert_array_equal(model.classes_, peer.classes_)
    assert model.coef_.shape == peer.coef_.shape
    assert model.intercept_.shape == peer.intercept_.shape
    numbers = np.searchsorted(peer.classes_, y)
    weights = np.ones(len(y)) if weights is None else weights
    if model.class_weight is not None:
        sums = np.bincount(numbers, weights)
        each = sums.sum() / (len(sums) * sums)
        if model.class_weight != "balanced":
            each = np.array([model.class_weight[c] for c in peer.classes_])
        weights = weights * each[numbers]
    best = objective(A, numbers, weights, peer.coef_, peer.intercept_, model.C)
    found = objective(A, numbers, weights, model.coef_, model.intercept_, model.C)
    assert found <= best * (1 + 1e-6)
    assert model.objective_ == pytest.approx(found, rel=1e-9)
    held_out = as_built(model, HELD_OUT)
    probabilities = peer.predict_proba(held_out)
    np.testing.assert_allclose(model.predict_proba(HELD_OUT), probabilities, atol=2e-3)
    top = np.sort(probabilities, axis=1)
    clear = top[:, -1] - top[:, -2] > 1e-2
    assert clear.mean() > 0.8
    np.testing.assert_array_equal(model.predict(HELD_OUT)[clear], peer.predict(held_out)[clear])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize(("degree", "interaction_only"), [(1, False), (2, False), (3, True)])
def test_optimum_of_scikit_learn(degree, interaction_only, columns, n_classes):
    y = classes_for(X, n_classes)
    parameters = with_columns(columns, degree=degree, interaction_only=interaction_only)
    model = PolynomialLogisticRegression(**parameters)
    assert_is_optimal(model.fit(X, y), X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.01, 1, 100])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_every_penalty_with_and_without_intercepts(C, fit_intercept, n_classes):
    y = classes_for(X, n_classes)
    model = PolynomialLogisticRegression(C, fit_intercept=fit_intercept).fit(X, y)
    assert_is_optimal(model, X, y)
    assert fit_intercept or not model.intercept_.any()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.5, 2: 1.0}])
def test_weights_of_rows_and_classes(class_weight, n_classes):
    y = classes_for(X, n_classes)
    if isinstance(class_weight, dict):
        class_weight = {c: class_weight[c] for c in range(n_classes)}
    weights = np.arange(len(y)) % 3.0
    if class_weight == "balanced":
        weights = None  # scikit-learn 1.6 takes no notice of them for balancing
    model = PolynomialLogisticRegression(class_weight=class_weight).fit(X, y, weights)
    assert_is_optimal(model, X, y, weights)


def test_balanced_classes_have_the_same_weight():
    y, weights = classes_for(X, 3), np.arange(150) % 5.0
    sums = np.bincount(y, weights)
    balanced = PolynomialLogisticRegression(class_weight="balanced").fit(X, y, weights)
    by_hand = PolynomialLogisticRegression().fit(X, y, weights * (sums.sum() / (3 * sums))[y])
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("classes", [["no", "yes"], [-1, 1], ["a", "b", "c"], [3.0, 5.0, 9.0]])
def test_names_of_classes(classes):
    y = np.array(classes)[classes_for(X, len(classes))]
    model = PolynomialLogisticRegression().fit(X, y)
    np.testing.assert_array_equal(model.classes_, classes)
    assert set(model.predict(HELD_OUT)) <= set(classes)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_sum_to_1_and_agree_with_their_logarithms(n_classes):
    model = PolynomialLogisticRegression().fit(X, classes_for(X, n_classes))
    probabilities = model.predict_proba(HELD_OUT)
    assert probabilities.shape == (80, n_classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(probabilities), model.predict_log_proba(HELD_OUT))
    scores = model.decision_function(HELD_OUT)
    assert scores.shape == ((80,) if n_classes == 2 else (80, 3))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_huge_scores_do_not_overflow(n_classes):
    model = PolynomialLogisticRegression().fit(X, classes_for(X, n_classes))
    far = 1e100 * X[:5].toarray()
    logarithms = model.predict_log_proba(far)
    assert np.isfinite(logarithms).all()
    np.testing.assert_allclose(np.exp(logarithms).sum(axis=1), 1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_separable_classes_and_almost_no_penalty(n_classes):
    dense = np.repeat(np.arange(n_classes, dtype=float), 20)[:, None] * [[1.0, 2.0]]
    y = np.repeat(np.arange(n_classes), 20)
    model = PolynomialLogisticRegression(1e8).fit(dense, y)
    assert model.score(dense, y) == 1
    assert np.isfinite(model.coef_).all()
    assert model.predict_proba(dense).max(axis=1).min() > 0.999


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rare_classes_far_from_the_rest(n_classes):
    """The best intercept is far from where its search begins."""
    dense = np.zeros((400, 1))
    dense[:n_classes, 0] = 1e3 * np.arange(1, n_classes + 1)
    y = np.zeros(400, dtype=int)
    y[:n_classes] = np.arange(n_classes)
    model = PolynomialLogisticRegression(10, degree=1).fit(dense, y)
    residuals = model.predict_proba(dense)
    residuals[np.arange(400), y] -= 1
    np.testing.assert_allclose(residuals.sum(axis=0), 0, atol=1e-6)


def test_columns_of_very_different_scales():
    scaled = sparse.csr_array(X * np.logspace(-3, 3, 7))
    y = classes_for(X, 2)
    model = PolynomialLogisticRegression(tol=1e-9, max_iter=500).fit(scaled, y)
    A = as_built(model, scaled)
    gradient = model.coef_[0] + A.T @ (model.predict_proba(scaled)[:, 1] - y)
    assert np.abs(gradient).max() < 1e-3 * np.abs(A.T @ (y - y.mean())).max()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("columns", COLUMNS)
def test_nothing_to_learn_from(columns, n_classes):
    y = [0, 0, 0, 1, 1, n_classes - 1]
    model = PolynomialLogisticRegression(columns=COLUMNS[columns]())
    model.fit(sparse.csr_array((6, 4)), y)
    expected = np.bincount(y) / 6
    np.testing.assert_allclose(model.predict_proba(sparse.csr_array((1, 4)))[0], expected)
    assert not model.coef_.any()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_warm_start_begins_with_the_last_solution(n_classes):
    y = classes_for(X, n_classes)
    cold = PolynomialLogisticRegression().fit(X, y)
    model = PolynomialLogisticRegression(warm_start=True).fit(X, y)
    assert model.coef_.tobytes() == cold.coef_.tobytes()
    model.fit(X, y)
    assert model.n_iter_[0] < cold.n_iter_[0]
    assert model.objective_ <= cold.objective_
    assert_is_optimal(model.set_params(C=2.0).fit(X, y), X, y)


def test_warm_start_begins_anew_with_other_columns_or_classes():
    y = classes_for(X, 2)
    model = PolynomialLogisticRegression(warm_start=True).fit(X, y)
    for other, z in ((X[:, :5], y), (X, classes_for(X, 3)), (X, y)):
        cold = PolynomialLogisticRegression().fit(other, z)
        assert model.fit(other, z).coef_.tobytes() == cold.coef_.tobytes()


def test_a_line_for_each_iteration(capsys):
    model = PolynomialLogisticRegression(verbose=1).fit(X, classes_for(X, 2))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_[0]
    assert all("objective" in line and "passes" in line for line in lines)


@pytest.mark.parametrize(("offset", "C"), [(100, 100), (1_000, 1)])
def test_columns_that_are_nearly_dependent(offset, C):
    """Steps gain little for a while, when features are far from 0, before they gain more."""
    rng = np.random.default_rng(0)
    dense, y = rng.standard_normal((80, 5)) + offset, rng.integers(0, 2, 80)
    with warnings.catch_warnings(action="ignore"):  # that rounding prevents it
        best = PolynomialLogisticRegression(C, tol=1e-12, max_iter=300).fit(dense, y)
    found = PolynomialLogisticRegression(C).fit(dense, y)
    assert found.objective_ <= best.objective_ * (1 + 1e-6)
