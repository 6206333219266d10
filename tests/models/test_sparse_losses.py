"""L1 penalties of every loss: optimal by proximal gradients on the built expansion."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import LinearSVC

from csr_zoo import random_csr
from model_data import as_built, classes_for, numbers_for
from polysparse import (
    PolynomialGammaRegressor,
    PolynomialLinearSVC,
    PolynomialLinearSVR,
    PolynomialPoissonRegressor,
    PolynomialPoissonRegressorCV,
    PolynomialTweedieRegressor,
    load_model,
)

X = random_csr(80, 5, 0.5)
WEIGHTS = np.random.default_rng(1).integers(0, 4, 80) / 2.0
NUMBERS = numbers_for(X)


def hinge(y, weights, C):
    """Losses of two classes, and their derivatives, as functions of scores."""
    signs = np.where(y == y.max(), 1.0, -1.0)

    def at(scores):
        lack = np.maximum(1 - signs * scores, 0)
        return C * weights @ lack**2, -2 * C * weights * signs * lack

    return at


def tube(y, weights, C, epsilon):
    def at(scores):
        beyond = np.maximum(np.abs(scores - y) - epsilon, 0)
        return C * weights @ beyond**2, 2 * C * weights * np.copysign(beyond, scores - y)

    return at


def deviance(y, weights, alpha, power, offset=0.0):
    """Half the mean deviance, times 1, of a log link."""
    own = weights / weights.sum()
    saturated = _halves(y, np.log(np.where(y > 0, y, 1)), power)
    saturated[y == 0] = 0.0

    def at(scores):
        scores = np.clip(scores + offset, -300.0, 300.0)
        gradient = np.exp((2 - power) * scores) - y * np.exp((1 - power) * scores)
        return own @ (_halves(y, scores, power) - saturated), own * gradient

    return at


def _halves(y, scores, power):
    """What half the deviance is, up to a constant."""
    if power == 1:
        return np.exp(scores) - y * scores
    if power == 2:
        return scores + y * np.exp(-scores)
    rising, falling = 2 - power, power - 1
    return np.exp(rising * scores) / rising + y * np.exp(-falling * scores) / falling


def glm(power, alpha, **how):
    """A case of a model with a log link."""
    model = PolynomialTweedieRegressor(power=power, alpha=alpha, **how)
    y = np.exp(NUMBERS / 4)
    y = {1: np.round(y), 2: y}.get(power, y * (np.arange(80) % 3 > 0))
    return model, y, lambda y, w: deviance(y, w, alpha, power)


CASES = {
    "poisson": glm(1, 0.02),
    "poisson, weak penalty": glm(1, 1e-4, degree=1),
    "tweedie": glm(1.5, 0.02),
    "gamma": glm(2, 0.02),
    "normal": (
        PolynomialTweedieRegressor(alpha=0.1),
        NUMBERS,
        lambda y, w: tube(y, w / (2 * w.sum()), 1.0, 0.0),
    ),
    "svc": (PolynomialLinearSVC(0.3), classes_for(X, 2), lambda y, w: hinge(y, w, 0.3)),
    "svc, strong penalty": (
        PolynomialLinearSVC(0.05, degree=1),
        classes_for(X, 2),
        lambda y, w: hinge(y, w, 0.05),
    ),
    "svc, separable": (
        PolynomialLinearSVC(50.0, degree=3),
        np.sign(NUMBERS).astype(int),
        lambda y, w: hinge(y, w, 50.0),
    ),
    "svr": (PolynomialLinearSVR(0.2), NUMBERS, lambda y, w: tube(y, w, 0.2, 0.0)),
    "svr, tube": (
        PolynomialLinearSVR(20.0, epsilon=0.5, degree=3),
        NUMBERS,
        lambda y, w: tube(y, w, 20.0, 0.5),
    ),
}


def proximal_gradient(A, losses, l1, l2, has_intercept, n_steps=30_000):
    """The least objective, by accelerated proximal gradients with restarts."""
    A = np.column_stack([A, np.full(len(A), float(has_intercept))])
    l1, l2 = (np.append(np.full(A.shape[1] - 1, each), 0.0) for each in (l1, l2))
    w = z = np.zeros(A.shape[1])
    momentum, steepness, best = 1.0, 1e-3, np.inf
    since = 0
    for _ in range(n_steps):
        value, rows = losses(A @ z)
        gradient = A.T @ rows
        while True:
            new = z - gradient / steepness
            new = np.sign(new) * np.maximum(np.abs(new) - l1 / steepness, 0) / (1 + l2 / steepness)
            step = new - z
            after = losses(A @ new)[0]
            if after <= value + gradient @ step + steepness * step @ step / 2 + 1e-14 * value:
                break
            steepness *= 2
        objective = after + l1 @ np.abs(new) + l2 @ new**2 / 2
        since = 0 if objective < best * (1 - 1e-12) else since + 1
        best = min(best, objective)
        if since > 200:
            break
        next_one = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        if (z - new) @ (new - w) > 0:
            next_one = 1.0
        z, w = new + (momentum - 1) / next_one * (new - w), new
        momentum, steepness = next_one, 0.95 * steepness
    return best


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("l1_ratio", "fit_intercept"), [(1.0, True), (0.6, True), (1.0, False)])
def test_it_is_optimal(name, l1_ratio, fit_intercept):
    model, y, losses = CASES[name]
    model = clone(model).set_params(l1_ratio=l1_ratio, fit_intercept=fit_intercept, max_iter=1000)
    model.fit(X, y, WEIGHTS)
    A, at = as_built(model, X).toarray(), losses(y, WEIGHTS)
    alpha = getattr(model, "alpha", 1.0)
    coef = model.coef_.ravel()
    penalty = l1_ratio * np.abs(coef).sum() + (1 - l1_ratio) * coef @ coef / 2
    value = at(A @ coef + model.intercept_)[0] + alpha * penalty
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    best = proximal_gradient(A, at, alpha * l1_ratio, alpha * (1 - l1_ratio), fit_intercept)
    assert model.objective_ <= best * (1 + 2e-6)
    assert best * (1 + 1e-9) >= model.objective_ - model.gap_
    assert model.gap_ <= 1.01 * model.tol * model.objective_


@pytest.mark.parametrize("name", CASES)
def test_the_gap_is_a_bound(name):
    model, y, _ = CASES[name]
    how = {"penalty": "l1", "max_iter": 1000}
    best = clone(model).set_params(tol=1e-9, **how).fit(X, y, WEIGHTS)
    loose = clone(model).set_params(tol=1e-2, **how).fit(X, y, WEIGHTS)
    excess = loose.objective_ - best.objective_
    assert -best.gap_ <= excess <= loose.gap_ <= 1.01e-2 * loose.objective_


@pytest.mark.parametrize("name", CASES)
def test_a_path_is_one_fit_after_another(name):
    model, y, _ = CASES[name]
    model = clone(model).set_params(penalty="l1", tol=1e-9, max_iter=1000)
    parameter = "C" if hasattr(model, "C") else "alpha"
    path = model.path(X, y, WEIGHTS, **{f"{parameter}s": 4}, eps=0.05)
    assert path.coefs[[0]].nnz == 0 < path.coefs[[-1]].nnz
    for i, value in enumerate(path.values.tolist()):
        alone = clone(model).set_params(**{parameter: value}).fit(X, y, WEIGHTS)
        assert path.objectives[i] == pytest.approx(alone.objective_, rel=1e-8)


def test_linear_svc_of_scikit_learn():
    y = classes_for(X, 2)
    model = PolynomialLinearSVC(0.3, penalty="l1", fit_intercept=False, tol=1e-9).fit(X, y)
    A = as_built(model, X)
    peer = LinearSVC(C=0.3, penalty="l1", dual=False, fit_intercept=False, tol=1e-8).fit(A, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)


def test_offsets():
    y, offset = np.round(np.exp(NUMBERS / 4)), np.log(np.arange(1.0, 81.0))
    model = PolynomialPoissonRegressor(0.5, penalty="l1").fit(X, y, WEIGHTS, offset)
    at = deviance(y, WEIGHTS, 0.5, 1, offset)
    best = proximal_gradient(as_built(model, X).toarray(), at, 0.5, 0.0, True)
    assert abs(model.objective_ - best) <= model.gap_ + 1e-9 * best
    path = model.path(X, y, WEIGHTS, offset, alphas=[2.0, 0.5])
    assert path.objectives[1] == pytest.approx(model.objective_, rel=2e-6)
    same = PolynomialPoissonRegressorCV([0.5], penalty="l1", cv=3).fit(X, y, WEIGHTS, offset)
    assert same.coef_.tobytes() == model.coef_.tobytes()


def test_the_kinds_of_counts_and_amounts_are_those_of_powers():
    y = np.round(np.exp(NUMBERS / 4)) + 1
    kinds = {1: PolynomialPoissonRegressor, 2: PolynomialGammaRegressor}
    for power, kind in kinds.items():
        model = kind(0.02, l1_ratio=0.5).fit(X, y)
        same = PolynomialTweedieRegressor(power=power, alpha=0.02, l1_ratio=0.5).fit(X, y)
        assert model.coef_.tobytes() == same.coef_.tobytes()


def test_several_classes_are_fitted_one_against_the_others():
    y = classes_for(X, 3)
    model = PolynomialLinearSVC(0.3, penalty="l1", class_weight="balanced", tol=1e-8)
    model.fit(X, y, WEIGHTS)
    sums = np.array([WEIGHTS[y == each].sum() for each in model.classes_])
    own = sums.sum() / (3 * sums)
    total = 0.0
    for k, each in enumerate(model.classes_):
        weights = WEIGHTS * np.where(y == each, own[k], 1.0)
        alone = PolynomialLinearSVC(0.3, penalty="l1", tol=1e-8).fit(X, y == each, weights)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], atol=1e-4)
        total += alone.objective_
    assert model.objective_ == pytest.approx(total, rel=1e-7)


def test_one_column_is_shared_by_rows_beyond_the_margin():
    """Its coefficient must shrink although the loss is flat there."""
    rng = np.random.default_rng(0)
    rows = sparse.csr_array(rng.normal(size=(60, 6)) * (rng.random((60, 6)) < 0.5))
    y = (rows.toarray()[:, 0] * rows.toarray()[:, 1] > 0).astype(int)
    model = PolynomialLinearSVC(100.0, penalty="l1", degree=3, max_iter=500).fit(rows, y)
    assert model.gap_ <= 1e-6 * model.objective_


def test_the_intercept_is_free(tmp_path):
    model = PolynomialLinearSVR(0.1, penalty="l1").fit(X, NUMBERS + 1e3)
    assert model.intercept_ > 500
    with pytest.raises(ValueError, match=r"intercept_scaling=2\.0 does not apply to an L1 penalty"):
        model.set_params(intercept_scaling=2.0).fit(X, NUMBERS)
    model.set_params(intercept_scaling=np.inf).fit(X, NUMBERS).save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert (loaded.predict(X) == model.predict(X)).all()
    assert loaded.get_params()["penalty"] == "l1"
