"""What the models refuse, and how they fail."""

import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from csr_zoo import random_csr, raw_csr
from inside import before, fail_at, lower, set_available_memory
from model_data import classes_for, numbers_for
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialRidge,
)
from programs import THREADS, run

X = random_csr(60, 5, 0.5)
Y = {PolynomialRidge: numbers_for(X), PolynomialLogisticRegression: classes_for(X, 2)}
every_model = pytest.mark.parametrize("model", Y)


@every_model
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("degree", -1, "degree"),
        ("interaction_only", "yes", "interaction_only must be True or False; got 'yes'"),
        (
            "columns",
            "some",
            'columns must be "all", "observed", "hashed", increasing',
        ),
        ("columns", [2, 1], "columns must increase"),
        ("fit_intercept", 1, "fit_intercept must be True or False; got 1"),
        ("tol", -1e-3, "tol must be a finite number at least 0; got -0.001"),
        ("tol", np.nan, "tol must be a finite number at least 0; got nan"),
        ("tol", True, "tol must be"),
        ("max_iter", 0, r"max_iter must be an int \(at least 1\); got 0"),
        ("max_iter", 2.5, "max_iter must be an int"),
        ("n_jobs", 1.5, "n_jobs must be an int or None; got 1.5"),
        ("n_jobs", 0, "n_jobs=0"),
    ],
)
def test_parameters(model, name, value, message):
    with pytest.raises(ValueError, match=message):
        model(**{name: value}).fit(X, Y[model])


@every_model
def test_columns_that_are_not_a_transformer(model):
    for columns in (HashedPolynomialFeatures, StandardScaler()):
        with pytest.raises(TypeError, match=r"columns must be .*; got"):
            model(columns=columns).fit(X, Y[model])


@every_model
@pytest.mark.parametrize(
    "columns",
    [
        PolynomialFeatures(3),
        ObservedPolynomialFeatures(3),
        ObservedPolynomialFeatures(3).fit(X),
        HashedPolynomialFeatures(3, n_columns=64),
    ],
)
def test_parameters_that_contradict_a_transformer(model, columns):
    model(columns=columns).fit(X, Y[model])
    for given in ({"degree": 4}, {"degree": (2, 3)}, {"interaction_only": True}):
        with pytest.raises(ValueError, match=f"{next(iter(given))}=.* contradicts columns"):
            model(columns=columns, **given).fit(X, Y[model])
    model(columns=columns, degree=3).fit(X, Y[model])


@every_model
def test_columns_by_number(model):
    every = model(interaction_only=True).fit(X, Y[model])
    ranks = np.arange(every.column_space_.n_columns)
    some = model(interaction_only=True, columns=ranks).fit(X, Y[model])
    np.testing.assert_allclose(some.objective_, every.objective_, rtol=1e-6)
    few = model(interaction_only=True, columns=[0, 5]).fit(X, Y[model])
    assert list(few.top_terms()["name"]) in (["x0", "x0 x1"], ["x0 x1", "x0"])


def test_penalties():
    for alpha in (-1, np.inf, "1", None):
        with pytest.raises(ValueError, match="alpha must be a finite number at least 0; got"):
            PolynomialRidge(alpha).fit(X, Y[PolynomialRidge])
    for C in (0, -1, np.nan, -np.inf, "1", None):
        with pytest.raises(ValueError, match="C must be a number above 0, or infinite; got"):
            PolynomialLogisticRegression(C).fit(X, Y[PolynomialLogisticRegression])
    with pytest.raises(ValueError, match="warm_start must be True or False"):
        PolynomialLogisticRegression(warm_start=2).fit(X, Y[PolynomialLogisticRegression])


@every_model
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_values_that_are_not_finite(model, bad, container):
    dense = X.toarray()
    dense[3, 2] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model().fit(container(dense), Y[model])
    fitted = model().fit(X, Y[model])
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        fitted.predict(container(dense))
    y = Y[model].astype(float)
    y[0] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity|Unknown label type"):
        model().fit(X, y)


@every_model
def test_malformed_matrices(model):
    bad = raw_csr([1.0, 2.0], [0, 9], [0, 1, 2], (2, 3))
    with pytest.raises(ValueError, match="column"):
        model().fit(bad, [0, 1])
    fitted = model().fit(X, Y[model])
    wide = raw_csr([1.0, 2.0], [0, 9], [0, 1, 2], (2, 5))
    with pytest.raises(ValueError, match="column"):
        fitted.predict(wide)


@every_model
def test_products_that_overflow(model):
    with pytest.raises(ValueError, match="not finite: scale the"):
        model().fit(X * 1e100, Y[model])


@every_model
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(59), r"sample_weight has shape \(59,\); one weight for each of the 60 rows"),
        (np.ones((60, 1)), "sample_weight has shape"),
        (-np.ones(60), "sample_weight must be finite, not negative, .* from -1.0 to -1.0"),
        (np.zeros(60), "not zero for all rows"),
        (np.full(60, np.nan), "sample_weight contains NaN"),
    ],
)
def test_weights_of_rows(model, weights, message):
    with pytest.raises(ValueError, match=message):
        model().fit(X, Y[model], weights)


def test_weights_of_classes():
    y = Y[PolynomialLogisticRegression]
    with pytest.raises(ValueError, match=r"The class 1 has no weight: .* class_weight is 0"):
        PolynomialLogisticRegression(class_weight={0: 1, 1: 0}).fit(X, y)
    with pytest.raises(ValueError, match=r"The class 0 has no weight: .* sample_weight 0 in sum"):
        PolynomialLogisticRegression(class_weight="balanced").fit(X, y, y)
    with pytest.raises(ValueError, match="class_weight"):
        PolynomialLogisticRegression(class_weight="heavy").fit(X, y)


def test_one_class_and_targets_that_are_no_classes():
    with pytest.raises(ValueError, match="y has 1 class, 'a'; a classifier needs at least 2"):
        PolynomialLogisticRegression().fit(X, ["a"] * 60)
    with pytest.raises(ValueError, match="Unknown label type"):
        PolynomialLogisticRegression().fit(X, Y[PolynomialRidge])


def test_several_targets():
    y = Y[PolynomialLogisticRegression]
    with pytest.raises(ValueError, match=r"1d array|1D array"):
        PolynomialLogisticRegression().fit(X, np.column_stack([y, y]))


@every_model
def test_coefficients_that_do_not_fit_are_refused_before_any_work(model, monkeypatch):
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 500)
    for step in ("apply", "apply transposed"):
        fail_at(monkeypatch, step, AssertionError("work is done"))
    message = r'20 coefficients, \d times.* need .* 500 bytes are available.*"observed".*"hashed"'
    with pytest.raises(MemoryError, match=message):
        model().fit(X, Y[model])
    with pytest.raises(MemoryError, match=r"Lower n_columns of the transformer\."):
        model(columns=HashedPolynomialFeatures(n_columns=1000)).fit(X, Y[model])


@every_model
def test_observed_coefficients_that_do_not_fit(model, monkeypatch):
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 24 * 25)  # for counting, but not for fitting
    with pytest.raises(MemoryError, match=r"ObservedPolynomialFeatures with a higher min_count"):
        model(columns="observed").fit(X, Y[model])


@every_model
def test_more_columns_than_can_be_numbered(model):
    wide = sparse.csr_array((np.ones(2), ([0, 1], [0, 10**9])), shape=(2, 2 * 10**9))
    with pytest.raises((MemoryError, ValueError), match="hash"):
        model(degree=7).fit(wide, [0, 1])
    fitted = model(degree=7, columns=HashedPolynomialFeatures(7, n_columns=50)).fit(wide, [0, 1])
    assert fitted.coef_.shape[-1] == 50


@every_model
def test_other_numbers_of_features(model):
    fitted = model().fit(X, Y[model])
    with pytest.raises(ValueError, match=r"X has 6 features.* expecting 5 .*: X\[:, :5\]\.$"):
        fitted.predict(np.ones((2, 6)))
    with pytest.raises(ValueError, match="X has 4 features, but"):
        fitted.predict(np.ones((2, 4)))


@every_model
def test_too_few_iterations_are_a_warning_that_says_what_to_change(model):
    message = r"max_iter=1 iterations: .* above its minimum. Raise max_iter or tol"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        fitted = model(max_iter=1).fit(X, Y[model])
    assert caught[0].filename == __file__  # it points to the call of fit
    assert fitted.n_iter_ == 1
    assert np.isfinite(fitted.predict(X)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(X, Y[model])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", [1e100, 1e160])
def test_products_that_are_too_large_for_scores(n_classes, size):
    with pytest.raises(ValueError, match=r"sums of their squares are not finite: scale the"):
        PolynomialLogisticRegression().fit(X * size, classes_for(X, n_classes))


@every_model
def test_a_failed_fit_leaves_nothing_mixed(model):
    fitted = model().fit(X, Y[model])
    with pytest.raises(ValueError, match="not finite"):
        fitted.fit(X[:, :3] * 1e200, Y[model])
    assert not [name for name in vars(fitted) if name.endswith("_") and name != "n_features_in_"]


@every_model
@pytest.mark.parametrize("step", ["apply", "apply transposed"])
@pytest.mark.parametrize("n_before", [0, 1, 4])
def test_an_interrupt_at_any_product_leaves_no_model(model, step, n_before, monkeypatch):
    products = iter(range(n_before))

    def interrupt(*_):
        if next(products, None) is None:
            raise KeyboardInterrupt

    before(monkeypatch, step, interrupt)
    fitted = model()
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, Y[model])
    assert not fitted.__sklearn_is_fitted__()
    assert not hasattr(fitted, "column_space_")


@pytest.mark.alone
@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="needs POSIX signals and /proc")
def test_ctrl_c_stops_a_fit():
    done = run(
        THREADS
        + """
    import signal
    from polysparse import PolynomialLogisticRegression, PolynomialRidge
    def handler(*_):
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, handler)
    y = np.arange(n) % 2
    before = n_threads()
    for model in (PolynomialRidge, PolynomialLogisticRegression):
        model = model(columns="observed", tol=0, max_iter=10**6, n_jobs=2)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            model.fit(X, y)
        except KeyboardInterrupt:
            print("stopped", hasattr(model, "coef_"), n_threads_left(before))
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(model.set_params(columns="all", tol=1).fit(X[:20, :9], y[:20]).coef_.shape[-1])
        """
    )
    assert done.stdout.split() == ["stopped", "False", "0", "54"] * 2, done.stderr


@pytest.mark.parametrize(("C", "weight"), [(1e-200, 1e-200), (1e200, 1e200)])
def test_weights_that_underflow_or_overflow(C, weight):
    with pytest.raises(ValueError, match="times sample_weight and class_weight is not above 0, or"):
        PolynomialLogisticRegression(C).fit(X, Y[PolynomialLogisticRegression], weight)
