"""Statistics and p-values are those of dense linear algebra."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import erfc

from looping import loop_over
from polysparse import (
    PolynomialLogisticRegression,
    PolynomialPoissonRegressor,
    expand,
    interaction_test,
)
from polysparse.significance import projection
from search_checks import random_rows
from significance_checks import generators, scaled, statistics, step_down_by_definition

EVERY = 10**6  # interactions
KINDS = "binary", "positive", "signed"
MODELS = "linear", "logistic", "poisson"
GROUPS = ["a", None, "b", "a", "b", None, "c"]


def some_rows(rng, n_rows, n_features, kind):
    """As `random_rows`, but signed values are not far from each other."""
    signs = rng.choice([-1, 1], (n_rows, n_features)) if kind == "signed" else 1
    return signs * random_rows(rng, n_rows, n_features, kind.replace("signed", "positive"), 0.5)


def a_target(rng, X, model):
    """A target with strong main effects."""
    scores = X[:, 0] - X[:, 1] + 0.5 * X[:, 2]
    if model == "linear":
        return scores + rng.normal(size=len(X))
    if model == "logistic":
        return rng.random(len(X)) < 1 / (1 + np.exp(-scores))
    return rng.poisson(np.exp(np.clip(scores, -3, 2)))


def by_main_effects(X, y, model, n_null, random_state):
    """Residuals of the target and of simulated ones; their variances; the least information."""
    random = list(generators(random_state, n_null))
    if model == "linear":
        drawn = [each.standard_normal(len(y)) for each in random]
        return np.column_stack([y - y.mean(), *drawn]), np.ones(len(y)), 0
    if model == "logistic":
        fitted = PolynomialLogisticRegression(10, degree=1).fit(scaled(X), y)
        p = fitted.predict_proba(scaled(X))[:, 1]
        drawn = [(each.random(len(y)) < p) - p for each in random]
        return np.column_stack([y - p, *drawn]), p * (1 - p), 3
    fitted = PolynomialPoissonRegressor(0.1 / len(y), degree=1).fit(scaled(X), y)
    mean = fitted.predict(scaled(X))
    drawn = [each.poisson(mean) - mean for each in random]
    return np.column_stack([y - mean, *drawn]), mean, 3


def require_same(X, y, model, tested, min_count, **of_basis):
    """Check a test of all interactions against dense linear algebra."""
    n_null = len(tested.null_maxima)
    residuals, weights, least = by_main_effects(X, y, model, n_null, 0)
    expected = statistics(
        X, residuals, weights, min_count=min_count, least=least, is_linear=least == 0, **of_basis
    )
    own = [tuple(j for j in row if j >= 0) for row in tested.tuples.tolist()]
    assert sorted(own) == sorted(expected)
    assert tested.n_tested == len(expected) > 1
    found = np.array([expected[members] for members in own])
    np.testing.assert_allclose(tested.scores, found[:, 0], rtol=1e-7, atol=1e-7)
    assert (np.diff(np.abs(tested.scores)) <= 1e-8).all()
    np.testing.assert_allclose(tested.null_maxima, np.abs(found[:, 1:]).max(axis=0), rtol=1e-7)
    p = step_down_by_definition(found[:, 0], found[:, 1:])
    np.testing.assert_allclose(tested.p_values, p)
    single = np.minimum(1, len(expected) * erfc(np.abs(found[:, 0]) / np.sqrt(2)))
    np.testing.assert_allclose(tested.bonferroni, single, rtol=1e-5)


@loop_over("kind", KINDS)
@loop_over("model", MODELS)
def test_it_is_what_dense_linear_algebra_gives(kind, model):
    rng = np.random.default_rng(len(kind) + len(model))
    X = 3 * some_rows(rng, 500, 5, kind)
    y = a_target(rng, X / 3, model)
    for degree, interaction_only in ((2, True), ((3, 3), True), ((2, 4), False)):
        given = {"degree": degree, "interaction_only": interaction_only, "min_count": 6}
        tested = interaction_test(
            sparse.csr_array(X), y, EVERY, n_null=9, model=model, random_state=0, **given
        )
        degrees = degree if isinstance(degree, tuple) else (2, degree)
        require_same(X, y, model, tested, **given | {"degree": degrees})
        few = interaction_test(X, y, 1, n_null=9, model=model, random_state=0, **given)
        np.testing.assert_allclose(few.null_maxima, tested.null_maxima, rtol=1e-7)
        assert few.n_tested == tested.n_tested
        np.testing.assert_array_equal(few.p_values, tested.p_values[:1])


@loop_over("kind", ("binary", "signed"))
def test_groups(kind):
    rng = np.random.default_rng(3)
    X = random_rows(rng, 200, 7, kind, 0.5)
    y = a_target(rng, X, "linear")
    for groups in (GROUPS, sorted(GROUPS, key=str)):
        of_basis = {"degree": (2, 3), "groups": groups, "interaction_only": True}
        tested = interaction_test(X, y, EVERY, n_null=5, random_state=0, min_count=5, **of_basis)
        require_same(X, y, "linear", tested, min_count=5, **of_basis)


def test_more_draws_than_are_walked_at_once():
    rng = np.random.default_rng(4)
    X = random_rows(rng, 500, 4, "binary", 0.5)
    y = a_target(rng, X, "logistic")
    tested = interaction_test(X, y, EVERY, n_null=150, random_state=0)
    require_same(X, y, "logistic", tested, 10, degree=(2, 2), interaction_only=True)


@loop_over("model", MODELS)
@loop_over("kind", ("binary", "signed"))
def test_results_do_not_depend_on_threads(model, kind, small_tasks):
    rng = np.random.default_rng(5)
    X = random_rows(rng, 600, 9, kind, 0.4)
    y = a_target(rng, X, model)
    one, *others = (
        interaction_test(X, y, 5, degree=3, n_null=20, model=model, random_state=1, n_jobs=n)
        for n in (1, 2, 5)
    )
    for other in others:
        np.testing.assert_array_equal(one.columns, other.columns)
        for name in ("scores", "p_values", "bonferroni", "null_maxima"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


def test_p_values_do_not_depend_on_how_many_are_returned():
    rng = np.random.default_rng(6)
    X = random_rows(rng, 150, 10, "positive", 0.5)
    y = a_target(rng, X, "linear") + X[:, 3] * X[:, 4]
    few = interaction_test(X, y, 3, n_null=30, random_state=2)
    many = interaction_test(X, y, 30, n_null=30, random_state=2)
    np.testing.assert_array_equal(few.columns, many.columns[:3])
    np.testing.assert_array_equal(few.p_values, many.p_values[:3])
    np.testing.assert_allclose(few.null_maxima, many.null_maxima, rtol=1e-9)


def test_scales_of_features_and_of_a_linear_target_do_not_matter():
    rng = np.random.default_rng(7)
    X = random_rows(rng, 150, 8, "signed", 0.5)
    y = a_target(rng, X, "linear")
    one = interaction_test(X, y, 5, n_null=20, random_state=0)
    other = interaction_test(X * 10.0 ** np.arange(-3, 5), 1e200 * y, 5, n_null=20, random_state=0)
    np.testing.assert_array_equal(one.columns, other.columns)
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-7)
    np.testing.assert_array_equal(one.p_values, other.p_values)


def test_equal_columns_tie_by_number():
    rng = np.random.default_rng(8)
    X = random_rows(rng, 200, 5, "positive", 0.6)
    X = np.column_stack([X[:, [3]], X, X[:, [3, 1]]])  # features 0, 4 and 6; 2 and 7
    y = X[:, 2] * X[:, 4] + rng.normal(size=200)
    tested = interaction_test(X, y, 6, n_null=20, random_state=0)
    assert sorted(tested.names) == sorted(["x0 x2", "x2 x4", "x2 x6", "x0 x7", "x4 x7", "x6 x7"])
    assert tested.columns.tolist() == sorted(tested.columns.tolist())
    assert len(set(tested.p_values)) == 1
    first = interaction_test(X, y, 2, n_null=20, random_state=0)
    np.testing.assert_array_equal(first.columns, tested.columns[:2])


def test_features_that_depend_on_others_are_no_obstacle():
    """The levels of each variable add up to 1."""
    rng = np.random.default_rng(9)
    codes = rng.integers(0, 3, (300, 4))
    X = np.eye(3)[codes].reshape(300, 12)
    y = X[:, 0] - X[:, 4] + 2 * X[:, 1] * X[:, 5] + rng.normal(size=300)
    tested = interaction_test(X, y, EVERY, n_null=19, groups=[3] * 4, random_state=0)
    require_same(X, y, "linear", tested, 10, degree=(2, 2), groups=list("aaabbbcccddd"))
    assert tested.names[0] == "x1 x5"
    assert tested.p_values[0] == tested.resolution


@loop_over("model", MODELS)
def test_conjugate_gradients_project_as_a_factor_does(model, monkeypatch):
    rng = np.random.default_rng(10)
    codes = rng.integers(0, 3, (600, 4))
    X = np.hstack([np.eye(3)[codes].reshape(600, 12), random_rows(rng, 600, 3, "signed")])
    y = a_target(rng, X, model)
    exact = interaction_test(X, y, 8, n_null=9, model=model, random_state=0)
    monkeypatch.setattr(projection, "MOST_FACTORED", 0)
    other = interaction_test(X, y, 8, n_null=9, model=model, random_state=0)
    np.testing.assert_array_equal(exact.columns, other.columns)
    scale = exact.scores[0] / other.scores[0]
    assert abs(scale - 1) < (0.02 if model == "linear" else 1e-5)  # the rank is estimated
    np.testing.assert_allclose(exact.scores, scale * other.scores, rtol=1e-5)


@loop_over("model", MODELS)
def test_a_planted_interaction_is_found(model):
    rng = np.random.default_rng(11)
    X = (rng.random((1500, 40)) < 0.4).astype(float)
    scores = X[:, 0] - X[:, 1] + 1.5 * X[:, 7] * X[:, 30] - 0.5
    y = {
        "linear": scores + rng.normal(size=1500),
        "logistic": rng.random(1500) < 1 / (1 + np.exp(-scores)),
        "poisson": rng.poisson(np.exp(scores)),
    }[model]
    tested = interaction_test(X, y, 3, n_null=39, model=model, random_state=0)
    assert tested.names[0] == "x7 x30"
    assert tested.p_values[0] == tested.resolution == 1 / 40
    assert tested.bonferroni[0] < 0.05
    assert tested.significant(0.05).names == ["x7 x30"]
    assert tested.scores[0] > 0


@loop_over("model", ("linear", "logistic"))
def test_p_values_are_about_uniform_by_chance(model):
    """Strong main effects, no interaction: 30 sets; p <= 0.2 in more than 14 has chance 1e-4."""
    rng = np.random.default_rng(12)
    n_small = 0
    for seed in range(30):
        X = random_rows(rng, 600, 6, "binary", 0.5)
        y = a_target(rng, 2 * X, model)
        tested = interaction_test(X, y, 1, n_null=19, model=model, random_state=seed)
        n_small += tested.p_values[0] <= 0.2
    assert 1 <= n_small <= 14


def test_a_model_of_two_classes_is_chosen_for_two_values():
    rng = np.random.default_rng(13)
    X = random_rows(rng, 400, 6, "binary", 0.5)
    y = a_target(rng, X, "logistic")
    assert interaction_test(X, y, 1, n_null=2).model == "logistic"
    assert interaction_test(X, y + 3.5, 1, n_null=2).model == "logistic"
    names = interaction_test(X, np.where(y, "yes", "no"), 1, n_null=2, random_state=0)
    numbers = interaction_test(X, y.astype(int), 1, n_null=2, random_state=0)
    np.testing.assert_array_equal(names.scores, numbers.scores)
    assert interaction_test(X, np.arange(400), 1, n_null=2).model == "linear"


def test_separated_classes_are_warned_of():
    rng = np.random.default_rng(14)
    X = random_rows(rng, 400, 6, "binary", 0.5)
    with (
        pytest.warns(UserWarning, match="features tell the classes apart completely"),
        pytest.raises(ValueError, match="There is no interaction to test"),
    ):
        interaction_test(X, X[:, 0], 1, n_null=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interaction_test(X, a_target(rng, X, "logistic"), 1, n_null=2)


def test_far_more_features_than_are_stored():
    rng = np.random.default_rng(15)
    X = random_rows(rng, 100, 5, "positive", 0.7)
    y = a_target(rng, X, "linear")
    wide = sparse.csr_array(X)
    wide = sparse.csr_array((wide.data, wide.indices * 10**6, wide.indptr), shape=(100, 10**8))
    near, far = (interaction_test(each, y, 4, n_null=5, random_state=0) for each in (X, wide))
    np.testing.assert_allclose(near.scores, far.scores, rtol=1e-12)
    assert far.tuples.tolist() == (near.tuples * 10**6).tolist()


def test_the_input_is_not_changed():
    rng = np.random.default_rng(16)
    X = sparse.csr_array(random_rows(rng, 100, 5, "positive", 0.7))
    y = a_target(rng, X.toarray(), "linear")
    before = X.copy(), y.copy()
    interaction_test(X, y, 4, n_null=5)
    assert (before[0] != X).nnz == 0
    np.testing.assert_array_equal(y, before[1])


def test_it_is_taken_as_columns():
    rng = np.random.default_rng(17)
    X = random_rows(rng, 100, 5, "positive", 0.7)
    tested = interaction_test(X, a_target(rng, X, "linear"), 4, n_null=5)
    assert expand(X, columns=tested).shape == (100, 4)
    assert expand(X, columns=tested.significant(0.5)).shape[0] == 100


def test_a_constant_added_to_features_changes_nothing_for_pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = X[:, 0] + 0.4 * X[:, 1] * X[:, 2] + rng.normal(size=400)
    how = {"n_null": 19, "random_state": 0, "interaction_only": False}
    shifts = np.array([1000, -300, 2000, 0, 5000])
    for model, target in (("linear", y), ("logistic", y > 0)):
        near = interaction_test(X, target, model=model, **how)
        far = interaction_test(X + shifts, target, model=model, **how)
        assert near.names[0] == far.names[0] == "x1 x2"
        if model == "linear":
            assert near.names == far.names
            np.testing.assert_allclose(near.scores, far.scores, rtol=1e-5)
        else:  # the penalty of main effects is another one
            np.testing.assert_allclose(near.scores[0], far.scores[0], rtol=0.05)


def test_large_targets_are_scaled():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 4)), rng.normal(size=100)
    expected = interaction_test(X, y, n_null=9, random_state=0)
    for size in (1e307, 2.0**-1030):
        tested = interaction_test(X, size * y, n_null=9, random_state=0)
        np.testing.assert_allclose(tested.scores, expected.scores, rtol=1e-6)
