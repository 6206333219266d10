"""Models with an L1 penalty are scikit-learn's on the built expansion, and their gap is a bound."""

import types
import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, LogisticRegression

import inside
from csr_zoo import random_csr
from model_data import COLUMNS, as_built, classes_for, numbers_for, with_columns
from polysparse import (
    PolynomialElasticNet,
    PolynomialElasticNetCV,
    PolynomialLasso,
    PolynomialLassoCV,
    PolynomialLogisticRegression,
    PolynomialRidge,
    expand,
    load_model,
)
from polysparse.models.slopes import Slopes
from polysparse.models.solution import EPS
from row_stores import LossyBlocks, fit_with

X = random_csr(150, 7, 0.5)
Y = numbers_for(X)
HAS_L1_RATIO = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)


def nasty(name):
    """Rows that are hard for solvers of the lasso, and weights."""
    rng, weights = np.random.default_rng(1), None
    dense = rng.standard_normal((60, 5)) * (rng.random((60, 5)) < 0.7)
    if name == "collinear":
        dense[:, 1] = dense[:, 0] + 1e-3 * dense[:, 1]
    elif name == "duplicated":
        dense[:, 1] = dense[:, 0]
    elif name == "constant":
        dense[:, 2] = 3.0
    elif name == "zero weights":
        weights = np.arange(60) % 3.0
    elif name == "wide":
        dense = dense[:12]
    elif name == "badly scaled":
        dense *= np.array([1e-3, 1.0, 30.0, 1.0, 1.0])
    elif name == "far from zero":
        dense += 3.0
    elif name == "no values":
        dense *= 0
    return sparse.csr_matrix(dense), weights


NASTY = (
    *("collinear", "duplicated", "constant", "zero weights", "wide", "badly scaled"),
    *("far from zero", "no values", "random"),
)


def elastic_net(model, A, y, weights=None):
    """What ElasticNet minimizes, at a model's solution."""
    weights = np.ones(len(y)) if weights is None else weights
    errors = y - A @ model.coef_ - model.intercept_
    squares = weights @ errors**2 / (2 * weights.sum())
    l1, l2 = np.abs(model.coef_).sum(), model.coef_ @ model.coef_ / 2
    return squares + model.alpha * (model.l1_ratio * l1 + (1 - model.l1_ratio) * l2)


def assert_is_elastic_net(model, X, y, weights=None):
    A = as_built(model, X)
    peer = ElasticNet(
        model.alpha,
        l1_ratio=model.l1_ratio,
        fit_intercept=model.fit_intercept,
        tol=1e-13,
        max_iter=100_000,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(A.toarray(), y, weights)
    best, found = (elastic_net(each, A, y, weights) for each in (peer, model))
    assert found <= best * (1 + 1e-6) + 1e-12
    assert model.objective_ == pytest.approx(found, rel=1e-9, abs=1e-12)
    assert model.objective_ - best <= model.gap_
    return peer


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize(("degree", "interaction_only"), [(1, False), (2, False), (4, True)])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_elastic_net_of_scikit_learn(columns, degree, interaction_only, l1_ratio):
    parameters = with_columns(columns, degree=degree, interaction_only=interaction_only)
    model = PolynomialElasticNet(0.1, l1_ratio=l1_ratio, **parameters).fit(X, Y)
    peer = assert_is_elastic_net(model, X, Y)
    if columns != "few hashed":  # whose columns may be the same
        model.set_params(tol=1e-12).fit(X, Y)
        assert model.coef_[np.abs(peer.coef_) > 1e-4].all()
        assert np.abs(model.coef_[peer.coef_ == 0]).max(initial=0) < 1e-4


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("alpha", "l1_ratio"), [(1.0, 1.0), (0.003, 1.0), (0.01, 0.2)])
def test_lasso_of_nasty_rows(name, fit_intercept, alpha, l1_ratio):
    X, weights = nasty(name)
    y = numbers_for(X) if X.nnz else np.arange(60.0)
    model = PolynomialElasticNet(
        alpha, l1_ratio=l1_ratio, degree=3 if name == "wide" else 2, fit_intercept=fit_intercept
    )
    assert_is_elastic_net(model.fit(X, y, weights), X, y, weights)


def test_the_lasso_is_the_elastic_net_without_squares():
    lasso = PolynomialLasso(0.1).fit(X, Y)
    same = PolynomialElasticNet(0.1, l1_ratio=1).fit(X, Y)
    assert lasso.coef_.tobytes() == same.coef_.tobytes()
    assert 0 < np.count_nonzero(lasso.coef_) < len(lasso.coef_)


def test_an_elastic_net_of_squares_is_ridge_regression():
    model = PolynomialElasticNet(0.1, l1_ratio=0.0, tol=1e-10).fit(X, Y)
    ridge = PolynomialRidge(0.1 * len(Y), tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-4)
    assert model.objective_ == pytest.approx(ridge.objective_ / (2 * len(Y)), rel=1e-6)


# ------------------------------------------------------------------------------------- logistic


def log_loss(coef, intercept, A, numbers, C, l1_ratio, weights):
    scores = A @ coef.T + intercept
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    losses = logsumexp(scores, axis=1) - scores[np.arange(len(scores)), numbers]
    l1, l2 = np.abs(coef).sum(), np.sum(coef**2) / 2
    return C * np.sum(weights * losses) + l1_ratio * l1 + (1 - l1_ratio) * l2


def assert_is_logistic(model, X, y, weights=None):
    """The optimality conditions hold on the built expansion; the gap is that of the dual."""
    A = as_built(model, X).toarray()
    numbers = np.searchsorted(model.classes_, y)
    weights = np.ones(len(y)) if weights is None else weights
    l1, l2, C = model._l1_share, 1 - model._l1_share, model.C
    given = A, numbers, C, l1, weights
    value = log_loss(model.coef_, model.intercept_, *given)
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    k = len(model.coef_)
    p = model.predict_proba(X)
    target = np.eye(len(model.classes_))[numbers]
    residuals = (C * weights[:, np.newaxis] * (p - target))[:, -k:]
    if model.fit_intercept:
        assert np.abs(residuals.sum(axis=0)).max() <= 1e-7 * C * weights.sum()
    gradient = residuals.T @ A
    slopes = gradient + l2 * model.coef_
    slack = np.sum(slopes * model.coef_ + l1 * np.abs(model.coef_))
    gap = slack + max(np.abs(slopes).max(initial=0) - l1, 0) * value / l1
    if l2 > 0:
        beyond = np.maximum(np.abs(gradient) - l1, 0)
        gap = min(gap, slack - l2 * np.sum(model.coef_**2) / 2 + np.sum(beyond**2) / (2 * l2))
    assert gap <= 2 * model.tol * value
    return value


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize(("degree", "interaction_only"), [(1, False), (2, False), (3, True)])
def test_logistic_regression_is_optimal(degree, interaction_only, columns, n_classes):
    y = classes_for(X, n_classes)
    parameters = with_columns(columns, degree=degree, interaction_only=interaction_only)
    model = PolynomialLogisticRegression(0.3, penalty="l1", **parameters).fit(X, y)
    assert_is_logistic(model, X, y)
    assert 0 < np.count_nonzero(model.coef_) <= model.coef_.size


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("C", "l1_ratio", "n_classes"), [(1.0, 1.0, 2), (10.0, 0.3, 2), (1, 1, 3)])
def test_logistic_regression_of_nasty_rows(name, fit_intercept, C, l1_ratio, n_classes):
    X, weights = nasty(name)
    y = np.arange(X.shape[0]) % n_classes if name == "no values" else classes_for(X, n_classes)
    model = PolynomialLogisticRegression(C, l1_ratio=l1_ratio, fit_intercept=fit_intercept)
    assert_is_logistic(model.fit(X, y, weights), X, y, weights)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_regression_of_scikit_learn(n_classes, l1_ratio):
    y = classes_for(X, n_classes)
    model = PolynomialLogisticRegression(0.3, l1_ratio=l1_ratio).fit(X, y)
    how = {} if HAS_L1_RATIO else {"penalty": "elasticnet"}
    A = as_built(model, X).toarray()
    peer = LogisticRegression(
        C=0.3, l1_ratio=l1_ratio, solver="saga", tol=1e-7, max_iter=5_000, random_state=0, **how
    )
    peer.fit(A, y)
    given = A, np.searchsorted(model.classes_, y), 0.3, l1_ratio, np.ones(len(y))
    best, found = (log_loss(each.coef_, each.intercept_, *given) for each in (peer, model))
    assert found <= best * (1 + 1e-6)
    assert model.coef_[np.abs(peer.coef_) > 1e-2].all()
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=2e-2)


@pytest.mark.parametrize("model", [PolynomialLasso, PolynomialLogisticRegression])
def test_no_column_has_a_coefficient_above_the_largest_penalty(model):
    A = expand(X, 2, include_bias=False).toarray()
    if model is PolynomialLasso:
        y = Y
        largest = np.abs(A.T @ (y - y.mean())).max() / len(y)
        models = [PolynomialLasso(c * largest) for c in (1.001, 0.999)]
    else:
        y = classes_for(X, 2)
        largest = np.abs(A.T @ (y - y.mean())).max()
        models = [model(1 / (c * largest), penalty="l1") for c in (1.001, 0.999)]
    counts = [np.count_nonzero(each.fit(X, y).coef_) for each in models]
    assert counts[0] == 0 < counts[1] <= 2


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-4])
def test_the_gap_is_a_bound(tol, n_classes):
    y = classes_for(X, n_classes)
    best = PolynomialLogisticRegression(2.0, penalty="l1", tol=1e-9, max_iter=1000).fit(X, y)
    loose = PolynomialLogisticRegression(2.0, penalty="l1", tol=tol).fit(X, y)
    assert 0 <= loose.objective_ - best.objective_ <= loose.gap_ <= 1.01 * tol * loose.objective_
    y = numbers_for(X)
    best, loose = (PolynomialLasso(0.02, tol=t).fit(X, y) for t in (1e-10, tol))
    assert -1e-12 <= loose.objective_ - best.objective_ <= loose.gap_
    assert loose.gap_ <= 1.01 * tol * loose.objective_


def test_the_gap_is_a_bound_when_iterations_run_out():
    y = classes_for(X, 2)
    best = PolynomialLogisticRegression(10.0, penalty="l1").fit(X, y)
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=2 iterations"):
        short = PolynomialLogisticRegression(10.0, penalty="l1", max_iter=2).fit(X, y)
    assert 1e-5 < short.objective_ - best.objective_ <= short.gap_
    assert best.n_iter_[0] > 2


@pytest.mark.parametrize("y", [np.zeros(150), np.full(150, 0.1), np.full(150, 1e9)])
def test_constant_targets(y):
    model = PolynomialLasso(0.01).fit(X, y)
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(y[0])


def test_warm_starts_reach_the_same_optimum_sooner():
    y = classes_for(X, 2)
    cold = PolynomialLogisticRegression(2.0, penalty="l1").fit(X, y)
    model = PolynomialLogisticRegression(1.5, penalty="l1", warm_start=True).fit(X, y)
    model.set_params(C=2.0).fit(X, y)
    assert model.objective_ == pytest.approx(cold.objective_, rel=2e-6)
    assert model.n_iter_[0] < cold.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] == 0


@pytest.mark.parametrize("model", [PolynomialLasso(0.1), PolynomialLogisticRegression(l1_ratio=1)])
def test_a_warm_start_with_a_column_that_is_constant_now(model):
    model, constant = clone(model).set_params(warm_start=True, degree=1), X.toarray()
    y = constant[:, 0] > 0 if hasattr(model, "C") else constant[:, 0].copy()
    constant[:, 0] = 3.0
    assert model.fit(X, y).coef_.ravel()[0]
    assert not model.fit(constant, y).coef_.ravel()[0]
    assert model.gap_ <= 1e-6 * model.objective_


def test_factors_of_the_penalty():
    factors = {1: 0.2, 2: 3.0}
    model = PolynomialLasso(0.1, penalty_factors=factors).fit(X, Y)
    scale = np.repeat([0.2, 3.0], [7, 28])
    A = as_built(model, X) / scale
    peer = ElasticNet(0.1, l1_ratio=1.0, tol=1e-12, max_iter=100_000).fit(A, Y)
    np.testing.assert_allclose(model.coef_ * scale, peer.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="factor of 0, which an L1 penalty cannot have"):
        PolynomialLasso(penalty_factors={1: 0.0}).fit(X, Y)


def test_groups_and_terms():
    codes = np.random.default_rng(0).integers(0, 3, (200, 3))
    one_hot = np.hstack([np.eye(3)[column] for column in codes.T])
    y = 2.0 * (codes[:, 0] == 1) * (codes[:, 2] == 2)
    groups = {"a": 3, "b": 3, "c": 3}
    model = PolynomialLasso(0.01, groups=groups).fit(one_hot, y)
    assert model.top_terms(1)["features"][0] == ("x1", "x8")
    assert model.importance()["name"][0] == "a:c"
    labels = ["a", "b", "c"] * 3  # not contiguous
    mixed = one_hot.reshape(200, 3, 3).transpose(0, 2, 1).reshape(200, 9)
    again = PolynomialLasso(0.01, groups=labels).fit(mixed, y)
    np.testing.assert_allclose(again.predict(mixed), model.predict(one_hot), atol=1e-3)
    chosen = PolynomialLasso(0.01, groups=groups, terms=["a:c"]).fit(one_hot, y)
    assert chosen.top_terms(1)["features"][0] == ("x1", "x8")
    assert len(chosen.coef_) == 9


def test_saving_and_text(tmp_path):
    y = classes_for(X, 3)
    for model, targets in (
        (PolynomialLogisticRegression(penalty="elasticnet", l1_ratio=0.5), y),
        (PolynomialLasso(0.1), Y),
        (PolynomialElasticNet(0.1), Y),
    ):
        model.fit(X, targets).save(tmp_path / "model.npz")
        again = load_model(tmp_path / "model.npz")
        assert type(again) is type(model)
        assert again.predict(X).tobytes() == model.predict(X).tobytes()
        assert (again.objective_, again.gap_) == (model.objective_, model.gap_)
        model.to_text(tmp_path / "model.txt")
        n_lines = len((tmp_path / "model.txt").read_text().splitlines())
        assert n_lines == np.count_nonzero(model.coef_) + np.size(model.intercept_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l3"}, 'penalty must be "l1", "l2", "elasticnet" or None; got \'l3\''),
        ({"penalty": ["l1"]}, "penalty must be"),
        ({"l1_ratio": 1.5}, "l1_ratio must be a number from 0 to 1; got 1.5"),
        ({"l1_ratio": None}, "l1_ratio must be a number from 0 to 1; got None"),
        ({"l1_ratio": np.nan}, "l1_ratio must be a number from 0 to 1; got nan"),
        ({"penalty": "l1", "l1_ratio": 0.5}, "penalty='l1' is l1_ratio=1, and l1_ratio is 0.5"),
        ({"penalty": "l2", "l1_ratio": 1.0}, "penalty='l2' is l1_ratio=0, and l1_ratio is 1.0"),
        ({"C": 0.0}, "C must be a number above 0"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        PolynomialLogisticRegression(**parameters).fit(X, classes_for(X, 2))


def test_a_lasso_needs_a_penalty():
    for alpha in (0.0, -1.0, np.inf, "1"):
        with pytest.raises(ValueError, match="alpha must be a finite number above 0"):
            PolynomialLasso(alpha).fit(X, Y)
    with pytest.raises(ValueError, match="alpha=1e-308 times the sum of sample_weight"):
        PolynomialLasso(1e-308).fit(X, Y, 1e-10)


def test_values_that_overflow_are_refused():
    with pytest.raises(ValueError, match="so large that sums of their squares are not finite"):
        PolynomialLasso(0.1).fit([[1e100, 1.0], [2e100, 0.0]], [1.0, 2.0])


def test_a_column_space_that_does_not_fit_is_refused():
    wide = sparse.csr_matrix(([1.0, 1.0], ([0, 1], [0, 9_999_999])), shape=(2, 10_000_000))
    with pytest.raises(MemoryError, match='Use columns="observed"'):
        PolynomialLasso(0.1).fit(wide, [0.0, 1.0])
    model = PolynomialLasso(0.1, columns="observed").fit(wide, [0.0, 1.0])
    assert np.count_nonzero(model.coef_) >= 1


@pytest.mark.parametrize(
    ("model", "n_vectors"),
    [
        (PolynomialLasso(10.0), 4),
        (PolynomialLogisticRegression(1e-3, penalty="l1"), 4),
        (PolynomialLassoCV([10.0], cv=2), 7),
        (PolynomialElasticNet(10.0, l1_ratio=0), 7),
        (PolynomialLogisticRegression(1e-3), 7),
    ],
    ids=repr,
)
def test_the_memory_of_the_solver_is_required(model, n_vectors, monkeypatch):
    X, y = random_csr(20, 1000, 0.005), np.arange(20) % 2
    size = 8 * 501_500
    inside.lower(monkeypatch, ALWAYS_GRANTED=0)
    inside.set_available_memory(monkeypatch, int((n_vectors - 0.5) * size))
    with pytest.raises(
        MemoryError, match=f"501,500 coefficients, {n_vectors} times for the solver"
    ):
        model.fit(X, y)
    inside.set_available_memory(monkeypatch, int((n_vectors + 0.5) * size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)


@pytest.mark.parametrize("factors", [None, np.array([2.0, 1.0, 1.0, 1.0, 0.5, 1.0])])
@pytest.mark.parametrize("k", [1, 2])
def test_the_steepest_columns(k, factors):
    slopes = np.array([1.0, -3.0, 2.0, 2.0, 0.5, -2.0])
    rows = slopes if k == 1 else np.stack([slopes, slopes / 2], axis=1)
    design = types.SimpleNamespace(apply_transposed=np.copy)
    found = Slopes(design, rows, factors, np.array([1]))
    own = np.abs(slopes) / (1 if factors is None else factors)
    own[1] = 0
    assert found.steepest == own.max()
    for threshold in (0.0, 0.7, 1.0, 1.5, 2.0):
        for n in range(1, 7):
            best = np.argsort(-own, kind="stable")[:n]
            assert found.beyond(threshold, n).tolist() == sorted(best[own[best] > threshold])
    weights = 1 if factors is None else factors
    expected = np.sum(np.maximum(own - 0.7, 0) ** 2 * weights)
    expected += (k - 1) * np.sum(np.maximum(own / 2 - 0.7, 0) ** 2 * weights)
    assert found.excess(0.7) == pytest.approx(expected)


# ----------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (PolynomialLasso(), {"alphas": 6}),
        (PolynomialElasticNet(l1_ratio=0.3), {"alphas": [0.01, 1.0, 0.1]}),
        (PolynomialLogisticRegression(penalty="l1"), {"Cs": 5}),
        (PolynomialLogisticRegression(l1_ratio=0.5), {"Cs": [0.1, 1.0]}),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_path_is_one_fit_after_another(model, given, n_classes):
    is_classifier = isinstance(model, PolynomialLogisticRegression)
    y = classes_for(X, n_classes) if is_classifier else Y
    path = model.path(X, y, **given, eps=0.01)
    assert not hasattr(model, "coef_")
    name = "C" if is_classifier else "alpha"
    table = path.table()
    assert list(table) == [name, "terms", "objective", "gap", "iterations"]
    strengths = 1 / path.values if is_classifier else path.values
    assert (np.diff(strengths) < 0).all()
    k = path.intercepts.shape[1]
    assert k == (n_classes if is_classifier and n_classes > 2 else 1)
    for i, value in enumerate(path.values):
        alone = type(model)(**(model.get_params() | {name: value})).fit(X, y)
        assert path.objectives[i] == pytest.approx(alone.objective_, rel=2e-6)
        assert abs(path.objectives[i] - alone.objective_) <= max(path.gaps[i], alone.gap_)
        assert table["terms"][i] == path.coefs[i * k : (i + 1) * k].count_nonzero()
    if isinstance(next(iter(given.values())), int):
        assert path.table()["terms"][0] == 0 < path.table()["terms"][1]
        assert strengths[-1] == pytest.approx(strengths[0] / 100)


@pytest.mark.parametrize("given", [7.3, 49.0, 0.1, 1e-5])
def test_given_values_are_kept(given):
    y = classes_for(X, 2)
    path = PolynomialLogisticRegression(penalty="l1").path(X, y, Cs=[given, 2 * given])
    assert path.values.tolist() == [given, 2 * given]
    assert PolynomialLasso().path(X, Y, alphas=[given]).values.tolist() == [given]


def test_terms_in_the_order_in_which_they_enter():
    y = 3.0 * X.toarray()[:, 0] * X.toarray()[:, 1] + X.toarray()[:, 2]
    path = PolynomialLasso(feature_names=list("abcdefg")).path(X, y, alphas=8, eps=1e-2)
    entries = path.entries(2)
    assert entries["name"][0] == "a b"
    assert entries["alpha"][0] == path.values[1]
    column = path.terms.names(np.arange(35)).index("a b")
    assert entries["weight"][0] == path.coefs[[7], [column]][0]
    assert "objective" in repr(path)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_plot_of_a_path(n_classes):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    model = PolynomialLogisticRegression(l1_ratio=1)
    path = model.path(X, classes_for(X, n_classes), Cs=4, eps=0.05)
    ax = path.plot_path(3)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == 3
    assert path.entries(1)["name"][0] in labels[0]
    assert ("→" in labels[0]) == (n_classes > 2)
    line = next(each for each in ax.lines if each.get_label() == labels[0])
    assert line.get_xdata().tolist() == path.values.tolist()
    assert line.get_ydata()[0] == 0 != line.get_ydata()[-1]
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alphas": 0}, "alphas must be at least 1 penalty; got 0"),
        ({"alphas": [1.0, -1.0]}, r"alphas\[1\] must be a finite number above 0; got -1.0"),
        ({"alphas": []}, "alphas must be a number of penalties"),
        ({"alphas": True}, "alphas must be a number of penalties"),
        ({"eps": 0.0}, "eps must be above 0 and below 1; got 0.0"),
    ],
)
def test_bad_paths(given, message):
    with pytest.raises(ValueError, match=message):
        PolynomialLasso().path(X, Y, **given)


def test_a_path_needs_an_l1_penalty():
    with pytest.raises(ValueError, match=r"path needs an L1 penalty, and l1_ratio is 0\.0"):
        PolynomialLogisticRegression().path(X, classes_for(X, 2))


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_bits_do_not_depend_on_threads(n_jobs, small_tasks):
    for model, y in (
        (PolynomialLogisticRegression(2.0, penalty="l1"), classes_for(X, 2)),
        (PolynomialLogisticRegression(2.0, penalty="l1"), classes_for(X, 3)),
        (PolynomialLasso(0.01, degree=3), Y),
    ):
        one, many = (model.set_params(n_jobs=n).fit(X, y).coef_ for n in (1, n_jobs))
        assert np.count_nonzero(one) > 20
        assert one.tobytes() == many.tobytes()


def test_rows_that_are_elsewhere_are_refused():
    for model, y in (
        (PolynomialLasso(), Y),
        (PolynomialLogisticRegression(penalty="l1"), classes_for(X, 2)),
    ):
        with pytest.raises(TypeError, match="needs X in the memory of this process"):
            fit_with(lambda rows: LossyBlocks(rows, [75], 0.0), model, X, y)
        assert not hasattr(model, "coef_")
    squares = PolynomialElasticNet(l1_ratio=0.0)
    fit_with(lambda rows: LossyBlocks(rows, [75], 0.0), squares, X, Y)
    assert squares.coef_.all()


@pytest.mark.parametrize(
    "model", [PolynomialLasso(0.1), PolynomialLogisticRegression(l1_ratio=0.5)], ids=repr
)
def test_bootstrap_is_refused(model):
    y = np.arange(150) % 2
    with pytest.raises(ValueError, match=r"needs an L2 penalty, and Polynomial.* has an L1"):
        model.fit(X, y).bootstrap(X, y, n=2)


@pytest.mark.parametrize(
    ("model", "n_classes"),
    [
        (PolynomialElasticNet(0.01), None),
        (PolynomialLasso(0.01), None),
        (PolynomialElasticNetCV([0.1, 0.01], cv=2), None),
        (PolynomialLogisticRegression(l1_ratio=0.5), 2),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_tolerance_of_zero_is_as_close_as_rounding_allows(model, n_classes):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 6)).astype(float)
    y = X[:, 0] * X[:, 1] + rng.standard_normal(200)
    if n_classes:
        y = y > 0
    fitted = clone(model).set_params(tol=0, max_iter=1000).fit(X, y)
    assert fitted.gap_ < 1e-12 * fitted.objective_
    assert np.max(fitted.n_iter_) < 200


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weights", [None, np.arange(60) % 3.0])
@pytest.mark.filterwarnings("error")
def test_targets_far_from_zero(seed, weights):
    rng = np.random.default_rng(seed)
    X = 30 + rng.normal(size=(60, 6))
    y = 200 + 1e-5 * rng.normal(size=60)
    model = PolynomialLasso(1e-8).fit(X, y, weights)
    centered = PolynomialLasso(1e-8).fit(X, y - 200, weights)
    assert model.n_iter_ < 100
    assert model.gap_ <= 1.01e-6 * model.objective_
    assert abs(model.objective_ - centered.objective_) <= max(model.gap_, centered.gap_)
    assert model.intercept_ == pytest.approx(centered.intercept_ + 200, rel=1e-6)
    again = PolynomialLasso(1e-8, warm_start=True).fit(X, y, weights).fit(X, y, weights)
    assert again.n_iter_ == 0


def almost_dependent(offset, difference):
    """Eleven rows whose expansion has almost dependent columns, and targets."""
    rng = np.random.default_rng(0)
    X = offset + rng.standard_normal((11, 4))
    X[:, 1] = X[:, 0] + difference * rng.standard_normal(11)
    return sparse.csr_matrix(X), rng.standard_normal(11)


@pytest.mark.parametrize("alpha", [1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("difference", [1e-9, 1e-6, 1e-4])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.99999])
@pytest.mark.filterwarnings("error")
def test_almost_dependent_columns(alpha, difference, l1_ratio):
    X, y = almost_dependent(0.0, difference)
    model = PolynomialElasticNet(alpha, l1_ratio=l1_ratio).fit(X, y)
    assert_is_elastic_net(model, X, y)
    assert model.n_iter_ < 20


@pytest.mark.parametrize("tol", [1e-6, 0.0])
def test_fits_end_where_rounding_prevents_progress(tol):
    X, y = almost_dependent(100.0, 0.0)
    with pytest.warns(ConvergenceWarning, match="where rounding errors prevent progress"):
        model = PolynomialLasso(1e-6, tol=tol).fit(X, y)
    assert model.n_iter_ < 500
    with pytest.warns(ConvergenceWarning, match="where rounding errors prevent progress"):
        path = PolynomialLasso(tol=tol).path(X, y, alphas=[1e-3, 1e-4, 1e-5, 1e-6])
    assert model.objective_ - model.gap_ <= path.objectives[-1] <= model.objective_ + path.gaps[-1]
    assert model.gap_ < 0.01 * model.objective_


def test_the_gap_includes_the_rounding_of_the_gradient():
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(1e4 + rng.standard_normal((200, 3)))
    y = rng.standard_normal(200)
    model = PolynomialLasso(1e-2, degree=1, tol=1e-9).fit(X, y)
    squares = (X.toarray() ** 2).sum(axis=0).max() / 200
    error = EPS * np.sqrt(squares * 2 * model.objective_) * model.objective_ / 1e-2
    assert error < model.gap_ <= 1.01e-9 * model.objective_
