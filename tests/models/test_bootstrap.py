"""Bootstrap: replicates are fits with their weights, and intervals are those of the replicates."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import inside
from polysparse import (
    HashedPolynomialFeatures,
    PolynomialGammaRegressor,
    PolynomialLinearSVC,
    PolynomialLinearSVR,
    PolynomialLogisticRegression,
    PolynomialPoissonRegressor,
    PolynomialPoissonRegressorCV,
    PolynomialRidge,
    PolynomialTweedieRegressor,
    load_model,
)
from polysparse.models import bootstrap as module

RNG = np.random.default_rng(0)
N = 300
X = RNG.standard_normal((N, 4))
SCORES = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] - 0.3
NUMBERS = SCORES + RNG.standard_normal(N)
CLASSES = np.where(RNG.random(N) < 1 / (1 + np.exp(-SCORES)), "yes", "no")
THREE = RNG.integers(0, 3, N)
COUNTS = RNG.poisson(np.exp(0.4 * SCORES))
AMOUNTS = np.exp(0.3 * SCORES) * RNG.gamma(2.0, 0.5, N) + 1e-6
WEIGHTS = RNG.random(N) + 0.5
OFFSET = {"offset": np.log(RNG.random(N) + 0.5)}

MODELS = {
    "ridge": (PolynomialRidge(2.0), NUMBERS, {}),
    "ridge, no penalty": (PolynomialRidge(0.0, fit_intercept=False), NUMBERS, {}),
    "ridge, factors": (PolynomialRidge(2.0, penalty_factors={1: 0.0, 2: 3.0}), NUMBERS, {}),
    "ridge, targets": (PolynomialRidge(), np.column_stack([NUMBERS, COUNTS]), {}),
    "ridge, hashed": (
        PolynomialRidge(columns=HashedPolynomialFeatures(n_columns=30)),
        NUMBERS,
        {},
    ),
    "logistic": (PolynomialLogisticRegression(0.5), CLASSES, {}),
    "balanced": (
        PolynomialLogisticRegression(0.5, class_weight="balanced", fit_intercept=False),
        CLASSES,
        {},
    ),
    "three classes": (PolynomialLogisticRegression(0.5), THREE, {}),
    "Poisson": (PolynomialPoissonRegressor(0.01), COUNTS, OFFSET),
    "Gamma": (PolynomialGammaRegressor(0.01), AMOUNTS, OFFSET),
    "Tweedie": (PolynomialTweedieRegressor(power=1.5, alpha=0.01), AMOUNTS, OFFSET),
    "normal": (PolynomialTweedieRegressor(alpha=0.01), NUMBERS, OFFSET),
    "SVC": (PolynomialLinearSVC(0.5), CLASSES, {}),
    "SVR": (PolynomialLinearSVR(0.5), NUMBERS, {}),
}


def found_of(name, n=5, n_jobs=None, **parameters):
    """A fitted model, and a bootstrap of it."""
    model, y, more = MODELS[name]
    model = clone(model).set_params(n_jobs=n_jobs).fit(X, y, sample_weight=WEIGHTS, **more)
    parameters = {"sample_weight": WEIGHTS, "random_state": 0, **more, **parameters}
    return model, model.bootstrap(X, y, n, **parameters)


@pytest.mark.parametrize("method", ["poisson", "multinomial"])
@pytest.mark.parametrize("name", MODELS)
def test_a_replicate_is_a_fit_with_its_weights(name, method):
    model, found = found_of(name, method=method, n_terms=None, tol=1e-8)
    _, y, more = MODELS[name]
    assert len(found) == 5
    assert found.coefficients.shape == (5, np.count_nonzero(model.coef_))
    for replicate in (0, 4):
        drawn = found.row_weights(replicate)
        again = clone(model).set_params(tol=1e-10)
        again.fit(X, y, sample_weight=WEIGHTS * drawn, **more)
        expected = np.atleast_2d(again.coef_)[found.rows, found.columns]
        np.testing.assert_allclose(found.coefficients[replicate], expected, atol=2e-3)
        np.testing.assert_allclose(found.intercepts[replicate], again.intercept_, atol=2e-3)
        moved = np.abs(found.coefficients[replicate] - found.weights).max()
        assert moved > 0.02  # ten times the tolerance: these are no fits with the weights of `fit`


@pytest.mark.parametrize("name", ["ridge", "logistic", "three classes", "Poisson"])
def test_the_same_bits_for_any_threads_and_the_model_is_left_alone(name):
    model, first = found_of(name, n_jobs=1)
    assert first.coefficients.tobytes() == found_of(name, n_jobs=3)[1].coefficients.tobytes()
    assert first.coefficients.tobytes() != found_of(name, random_state=1)[1].coefficients.tobytes()
    _, y, more = MODELS[name]
    untouched = clone(model).fit(X, y, sample_weight=WEIGHTS, **more)
    assert vars(model).keys() == vars(untouched).keys()
    assert model.coef_.tobytes() == untouched.coef_.tobytes()


def test_few_refits_side_by_side(monkeypatch):
    _, expected = found_of("logistic", n=7, tol=1e-8)
    monkeypatch.setattr(module, "TOGETHER", 3)
    _, found = found_of("logistic", n=7, tol=1e-8)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, atol=1e-4)


def test_weights_of_rows():
    _, poisson = found_of("ridge", n=20)
    _, multinomial = found_of("ridge", n=20, method="multinomial")
    for replicate in range(20):
        assert multinomial.row_weights(replicate).sum() == N
    drawn = np.array([poisson.row_weights(replicate) for replicate in range(20)])
    assert len({each.tobytes() for each in drawn}) == 20
    assert abs(drawn.mean() - 1) < 0.05
    assert abs(drawn.var() - 1) < 0.1
    with pytest.raises(ValueError, match=r"replicate must be from 0 to 19; got 20"):
        poisson.row_weights(20)


def test_quantiles_signs_and_tables():
    model, found = found_of("logistic", n=40, n_terms=6)
    assert repr(found) == "Bootstrap(40 replicates of 6 terms)"
    low, high = np.quantile(found.coefficients.astype(float), [0.1, 0.9], axis=0)
    np.testing.assert_array_equal(found.quantiles([0.1, 0.9]), [low, high])
    for share, own, weight in zip(found.signs, found.coefficients.T, found.weights, strict=True):
        assert share == np.mean(own * weight > 0)
    assert found.signs[0] == 1
    table, top = found.table(0.8), model.top_terms(4, bootstrap=found, level=0.8)
    assert list(table) == ["name", "weight", "low", "high", "same_sign"]
    assert list(top) == ["name", "weight", "rows", "features", "low", "high", "same_sign"]
    np.testing.assert_allclose(list(table["low"]), low)
    for name in table:
        assert list(top[name]) == list(table[name])[:4]
    assert list(top["weight"]) == list(model.top_terms(4)["weight"])


def test_terms_of_several_classes():
    model, found = found_of("three classes", n_terms=None)
    table = model.top_terms(5, bootstrap=found)
    assert list(table["class"]) == list(model.top_terms(5)["class"])
    assert list(table["low"]) == list(found.table()["low"])[:5]


def test_whiskers():
    pytest.importorskip("matplotlib").use("Agg")
    model, found = found_of("ridge", n=20)
    ax = model.plot_top_terms(3, bootstrap=found)
    low, high = found.quantiles((0.05, 0.95))[:, :3]
    (segments,) = (each.get_segments() for each in ax.collections)
    drawn = np.array(segments)[:, :, 0]
    np.testing.assert_allclose(drawn, np.transpose([low, high]))


def test_an_interval_covers_what_is_sampled():
    """Of 60 samples, 90 % intervals of one coefficient without a penalty; benchmarks have more."""
    rng, n_covered = np.random.default_rng(0), 0
    for seed in range(60):
        own = rng.standard_normal((200, 2))
        y = own[:, 0] * own[:, 1] + rng.standard_normal(200)
        model = PolynomialRidge(1e-6, interaction_only=True).fit(own, y)
        found = model.bootstrap(own, y, 60, random_state=seed, n_terms=None)
        low, high = found.quantiles((0.05, 0.95))[:, list(found.table()["name"]).index("x0 x1")]
        n_covered += low <= 1 <= high
    assert 46 <= n_covered <= 59


class TestRefusals:
    """Bad input."""

    def test_parameters(self):
        model, _ = found_of("ridge")
        for parameters, message in [
            ({"n": 1}, "n must be"),
            ({"method": "jackknife"}, "method must be 'poisson' or 'multinomial'; got 'jackknife'"),
            ({"tol": 1.0}, "tol must be between 0 and 1; got 1.0"),
            ({"n_terms": 0}, "n_terms must be"),
            ({"sample_weight": np.zeros(N)}, "sample_weight must be finite"),
            ({"sample_weight": np.ones(3)}, r"sample_weight has shape \(3,\)"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.bootstrap(X, NUMBERS, **parameters)

    def test_x(self):
        model, _ = found_of("ridge")
        with pytest.raises(ValueError, match="X has 3 features"):
            model.bootstrap(X[:, :3], NUMBERS)
        with pytest.raises(NotFittedError):
            PolynomialRidge().bootstrap(X, NUMBERS)
        da = pytest.importorskip("dask.array")
        with pytest.raises(TypeError, match=r"X is a Dask array.*X.compute\(\)"):
            model.bootstrap(da.from_array(X), NUMBERS)

    def test_a_replicate_without_weights(self):
        own = sparse.csr_array(np.eye(3))
        model = PolynomialLogisticRegression().fit(own, [0, 0, 1])
        with pytest.raises(ValueError, match=r"Replicate \d+ of the bootstrap cannot be fitted"):
            model.bootstrap(own, [0, 0, 1], 50, random_state=0)

    def test_terms_that_were_not_kept(self):
        model, found = found_of("ridge", n_terms=3)
        with pytest.raises(ValueError, match=r"has the 3 largest terms.* larger n_terms"):
            model.top_terms(4, bootstrap=found)
        with pytest.raises(ValueError, match=r"level must be between 0 and 1; got 1"):
            found.table(1)

    def test_another_model(self):
        model, _ = found_of("ridge")
        _, other = found_of("ridge, factors")
        with pytest.raises(ValueError, match="of another model, or of an earlier fit"):
            model.top_terms(bootstrap=other)

    def test_memory(self, monkeypatch):
        model, _ = found_of("ridge")
        inside.lower(monkeypatch, ALWAYS_GRANTED=0)
        inside.set_available_memory(monkeypatch, 50_000)
        with pytest.raises(MemoryError, match=r"replicates of 14 coefficients .* Lower n_terms"):
            model.bootstrap(X, NUMBERS, 1000)


@pytest.mark.parametrize(
    ("name", "y", "message"),
    [
        ("logistic", np.where(CLASSES == "yes", "5", "9"), "had the classes 'no', 'yes'; this y"),
        ("logistic", THREE, "had the classes 'no', 'yes'; this y has 0, 1, 2"),
        ("three classes", THREE % 2, "had the classes 0, 1, 2; this y has 0, 1"),
        ("three classes", THREE + 5, "this y has 5, 6, 7"),
        ("SVC", THREE, "had the classes 'no', 'yes'"),
        ("ridge, targets", NUMBERS, "which had 2 columns; this y has one dimension"),
        ("ridge", np.column_stack([NUMBERS, COUNTS]), "had one dimension; this y has 2 columns"),
    ],
)
def test_other_targets_than_those_of_the_fit_are_refused(name, y, message):
    model, own, _ = MODELS[name]
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, own).bootstrap(X, y, 3)


@pytest.mark.parametrize(
    "model", [PolynomialPoissonRegressor(0.1), PolynomialPoissonRegressorCV(2)]
)
def test_the_offset_of_the_fit_is_required_and_only_then(model, tmp_path):
    fitted = clone(model).fit(X, COUNTS, **OFFSET)
    with pytest.raises(ValueError, match="fitted with an offset: pass the same offset"):
        fitted.bootstrap(X, COUNTS, 3)
    expected = fitted.bootstrap(X, COUNTS, 3, random_state=0, **OFFSET)
    with pytest.raises(ValueError, match="fitted without an offset: leave offset out"):
        clone(model).fit(X, COUNTS).bootstrap(X, COUNTS, 3, **OFFSET)
    fitted.save(tmp_path / "model.npz")  # a file does not know whether there was an offset
    loaded = load_model(tmp_path / "model.npz")
    found = loaded.bootstrap(X, COUNTS, 3, random_state=0, **OFFSET)
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)


def test_a_generator_is_a_seed():
    first, second = (np.random.default_rng(3) for _ in range(2))
    _, found = found_of("ridge", random_state=first)
    _, same = found_of("ridge", random_state=second)
    _, other = found_of("ridge", random_state=second)
    np.testing.assert_array_equal(found.coefficients, same.coefficients)
    assert (found.coefficients != other.coefficients).any()


def test_refits_of_several_classes_end_by_the_tolerance_of_the_bootstrap():
    _, exact = found_of("three classes", n=10, tol=1e-8, n_terms=None)
    _, coarse = found_of("three classes", n=10, n_terms=None)
    off = (coarse.coefficients - exact.coefficients) / exact.coefficients.std(axis=0)
    assert 0.01 < np.sqrt(np.mean(off**2)) < 0.15
