"""Poisson, Gamma and Tweedie regression: scikit-learn's objective, offsets, what is refused."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.metrics import mean_tweedie_deviance

from csr_zoo import random_csr
from model_data import COLUMNS, as_built, with_columns
from polysparse import (
    HashedPolynomialFeatures,
    PolynomialGammaRegressor,
    PolynomialPoissonRegressor,
    PolynomialRidge,
    PolynomialTweedieRegressor,
    expand,
    load_model,
)
from row_stores import ArrayRows, LossyBlocks, fit_with

X = random_csr(150, 5, 0.6)
RNG = np.random.default_rng(0)
SCORES = 0.3 * (expand(X, 2, include_bias=False) @ RNG.standard_normal(20))
WEIGHTS = RNG.exponential(size=150) * (RNG.random(150) < 0.8)
OFFSET = RNG.normal(0, 2, 150)
POWERS = [1.0, 1.2, 1.9, 2.0]
every_power = pytest.mark.parametrize("power", POWERS)


def targets(power, scores=SCORES, seed=0):
    rng = np.random.default_rng(seed)
    means = np.exp(scores)
    if power == 1:
        return rng.poisson(means).astype(float)
    y = means * rng.gamma(2, 0.5, len(means))
    return y if power == 2 else np.where(rng.random(len(means)) < 0.3, 0, y)


def ours(power, **parameters):
    if power == 1:
        return PolynomialPoissonRegressor(**parameters)
    if power == 2:
        return PolynomialGammaRegressor(**parameters)
    return PolynomialTweedieRegressor(power=power, **parameters)


def theirs(power, A, y, weights=None, **parameters):
    kind = {1.0: PoissonRegressor, 2.0: GammaRegressor}.get(power)
    parameters |= {"solver": "newton-cholesky", "tol": 1e-10, "max_iter": 10_000}
    model = TweedieRegressor(power=power, **parameters) if kind is None else kind(**parameters)
    return model.fit(A, y, weights)


def objective(model, A, y, weights=None, offset=0.0):
    """What scikit-learn says it minimizes."""
    power, z = model._power, A @ model.coef_ + model.intercept_ + offset
    deviance = mean_tweedie_deviance(y, np.exp(z), sample_weight=weights, power=power)
    return deviance / 2 + model.alpha / 2 * model.coef_ @ model.coef_


@every_power
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_the_objective_is_that_of_scikit_learn(power, alpha, fit_intercept, weights):
    y, how = targets(power), {"alpha": alpha, "fit_intercept": fit_intercept}
    model = ours(power, tol=1e-9, **how).fit(X, y, weights)
    A = as_built(model, X).toarray()
    best = theirs(power, A, y, weights, **how)
    best._power = power
    assert model.objective_ == pytest.approx(objective(model, A, y, weights), rel=1e-12)
    assert model.objective_ == pytest.approx(objective(best, A, y, weights), rel=1e-8)
    assert model.gap_ <= 2e-9 * model.objective_
    np.testing.assert_allclose(model.predict(X), best.predict(A), rtol=1e-3)
    assert model.score(X, y, weights) == pytest.approx(best.score(A, y, weights), abs=1e-5)


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_kind_of_columns(kind):
    y = targets(1.0)
    model = ours(1.0, alpha=0.01, **with_columns(kind, degree=(1, 2))).fit(X, y)
    A = as_built(model, X).toarray()
    best = theirs(1.0, A, y, alpha=0.01)
    best._power = 1.0
    assert model.objective_ == pytest.approx(objective(best, A, y), rel=2e-6)


def test_power_0_is_ridge():
    y = SCORES + RNG.standard_normal(150)
    model = PolynomialTweedieRegressor(power=0, alpha=0.1, tol=1e-10).fit(X, y, WEIGHTS)
    ridge = PolynomialRidge(0.1 * WEIGHTS.sum(), tol=1e-10).fit(X, y, WEIGHTS)
    assert model.objective_ == pytest.approx(ridge.objective_ / WEIGHTS.sum() / 2)
    shifted = PolynomialTweedieRegressor(power=0, alpha=0.1, tol=1e-12)
    shifted.fit(X, y, WEIGHTS, offset=OFFSET)
    ridge = PolynomialRidge(0.1 * WEIGHTS.sum(), tol=1e-12).fit(X, y - OFFSET, WEIGHTS)
    np.testing.assert_allclose(shifted.predict(X, OFFSET), ridge.predict(X) + OFFSET, atol=1e-3)


@every_power
def test_an_offset_is_the_logarithm_of_an_exposure(power):
    """A count per exposure, weighted by a power of the exposure, has the same derivatives."""
    y = targets(power, SCORES + OFFSET)
    model = ours(power, alpha=1e-3, tol=1e-10).fit(X, y, offset=OFFSET)
    A = as_built(model, X).toarray()
    assert model.objective_ == pytest.approx(objective(model, A, y, None, OFFSET), rel=1e-12)
    weights = np.exp((2 - power) * OFFSET)
    rates = ours(power, alpha=1e-3 * 150 / weights.sum(), tol=1e-10)
    rates.fit(X, y * np.exp(-OFFSET), weights)
    np.testing.assert_allclose(model.coef_, rates.coef_, atol=1e-4)
    np.testing.assert_allclose(
        model.predict(X, offset=OFFSET), model.predict(X) * np.exp(OFFSET), rtol=1e-12
    )
    np.testing.assert_allclose(model.predict(X, offset=1.0), model.predict(X) * np.e, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*stopped where rounding errors")
@pytest.mark.parametrize("size", [50.0, 100.0])
@every_power
def test_huge_exposures(power, size):
    offset = size * np.sin(np.arange(150))
    y = np.exp(SCORES + offset) * np.random.default_rng(0).gamma(20, 0.05, 150)
    model = ours(power, alpha=1e-3).fit(X, y, offset=offset)
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.predict(X, offset)).all()
    A = as_built(model, X).toarray()
    own = np.log(y) - offset - A @ model.coef_ - model.intercept_
    largest = np.argmax(offset) if power < 2 else slice(None)  # on which everything depends
    assert np.abs(own[largest]).max() < 1.5


@every_power
@pytest.mark.parametrize("shift", [-1e5, -3e4, 3e4, 1e5, 1e8])
def test_a_constant_offset_only_moves_the_intercept(power, shift):
    """However far: exponentials overflow, and Newton's method does not say how far to go."""
    y = targets(power)
    plain = ours(power, alpha=1e-3).fit(X, y, WEIGHTS)
    far = ours(power, alpha=1e-3).fit(X, y, WEIGHTS, offset=shift)
    assert far.objective_ == pytest.approx(plain.objective_, rel=2e-6)
    assert far.intercept_ + shift == pytest.approx(plain.intercept_, abs=1e-3)
    np.testing.assert_allclose(far.coef_, plain.coef_, atol=1e-3)


def test_a_constant_offset_beyond_rounding_is_warned_about():
    y = targets(1.0)
    with pytest.warns(ConvergenceWarning, match="rounding errors"):
        PolynomialPoissonRegressor(1e-3).fit(X, y, offset=1e12)


@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("kind", ["uniform", "two", "one"])
def test_offsets_far_apart(power, alpha, kind):
    """The gradient is that of the objective, and the bound of the gap is that of the gradient."""
    rng, y = np.random.default_rng(1), targets(power)
    offset = rng.uniform(-1e4, 1e4, 150)
    if kind != "uniform":
        offset = np.where(np.arange(150) % 2 if kind == "two" else np.arange(150) == 3, 1e5, -1e5)
    model = ours(power, alpha=alpha, max_iter=1_000).fit(X, y, offset=offset)
    A = as_built(model, X).toarray().astype(np.longdouble)
    own = A @ model.coef_ + np.longdouble(model.intercept_) + offset
    gradient = (np.exp(own) - y if power == 1 else 1 - y * np.exp(-own)) / len(y)
    assert abs(gradient.sum()) <= 1e-9
    of_coefficients = A.T @ gradient + alpha * model.coef_
    bound = float(of_coefficients @ of_coefficients) / (2 * alpha)
    assert bound <= 1e-6 * model.objective_
    assert bound <= model.gap_ <= 2 * bound + 1e-9 * model.objective_


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_offsets_that_no_intercept_makes_finite_are_refused(fit_intercept):
    offset = np.where(np.arange(150) % 2, 1e4, -1e4)
    model = PolynomialTweedieRegressor(power=1.5, fit_intercept=fit_intercept)
    with pytest.raises(ValueError, match=r"not finite\. Bring offsets"):
        model.fit(X, targets(1.5), offset=offset)


@pytest.mark.parametrize("largest", [1e6, 1e9, 1e12])
def test_exposures_of_many_sizes_without_a_penalty(largest):
    """The curvature is that of the largest exposures, and so was the tiny penalty."""
    rng = np.random.default_rng(0)
    own = rng.standard_normal((500, 4))
    exposures = largest ** rng.uniform(0, 1, 500)
    y = rng.poisson(exposures * np.exp(0.3 * own[:, 0] - 1))
    model = PolynomialPoissonRegressor(0).fit(own, y, offset=np.log(exposures))
    assert model.gap_ <= 1e-6 * model.objective_
    A = as_built(model, csr_array(own)).toarray()
    means = np.exp(A @ model.coef_ + model.intercept_ + np.log(exposures))
    B = np.column_stack([A, np.ones(len(A))])
    gradient = B.T @ (means - y) / len(y)
    step = np.linalg.solve(B.T @ (means[:, np.newaxis] * B) / len(y), gradient)
    assert gradient @ step / 2 <= 1e-9 * model.objective_


@every_power
def test_nasty_columns(power):
    """Empty, equal and constant columns, and a feature that only rows with the least y have."""
    dense = X.toarray()
    dense[:, 1], dense[:, 2], dense[:, 3] = 0.0, dense[:, 0], 3.0
    y = targets(power)
    dense[:, 4] = y <= np.quantile(y, 0.3)
    model = ours(power, alpha=1e-4).fit(dense, y, WEIGHTS)
    A = as_built(model, csr_array(dense)).toarray()
    best = theirs(power, A, y, WEIGHTS, alpha=1e-4)
    best._power = power
    assert model.objective_ <= objective(best, A, y, WEIGHTS) * (1 + 1e-6)


@every_power
def test_rows_anywhere(power):
    y = targets(power, SCORES + OFFSET)
    here = ours(power, alpha=1e-2, tol=1e-9).fit(X, y, WEIGHTS, OFFSET)
    lossy = ours(power, alpha=1e-2, tol=1e-9)
    store = fit_with(
        lambda rows: LossyBlocks(rows, [40, 100], 0.3), lossy, X, y, WEIGHTS, offset=OFFSET
    )
    assert store.n_lost > 0
    on_gpu = ours(power, alpha=1e-2, tol=1e-9)

    def as_arrays(rows):
        return ArrayRows(rows.x, rows.y, rows.weights, 1, rows.offset)

    fit_with(as_arrays, on_gpu, X, y, WEIGHTS, offset=OFFSET)
    for other in (lossy, on_gpu):
        assert other.objective_ == pytest.approx(here.objective_, rel=1e-9)
        np.testing.assert_allclose(other.coef_, here.coef_, atol=1e-5)


def test_warm_start():
    y = targets(1.0)
    model = ours(1.0, alpha=1e-3, warm_start=True).fit(X, y)
    assert model.n_iter_ > 0
    assert model.fit(X, y).n_iter_ == 0
    objective_ = model.objective_
    assert model.set_params(alpha=1.0).fit(X, y).n_iter_ > 0
    assert model.set_params(alpha=1e-3).fit(X, y).objective_ == pytest.approx(objective_, rel=2e-6)
    assert model.set_params(degree=1).fit(X, y).coef_.shape == (5,)


@pytest.mark.parametrize("columns", ["all", HashedPolynomialFeatures(n_columns=64)])
@every_power
def test_saved_models(power, columns, tmp_path):
    model = ours(power, columns=columns).fit(X, targets(power))
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert type(again) is type(model)
    assert again.predict(X, OFFSET).tobytes() == model.predict(X, OFFSET).tobytes()
    assert str(again) == str(model)


@every_power
def test_onnx(power, tmp_path):
    pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    model = ours(power).fit(X, targets(power))
    model.to_onnx(tmp_path / "model.onnx", dtype=np.float64)
    (found,) = ReferenceEvaluator(str(tmp_path / "model.onnx")).run(None, {"X": X.toarray()})
    np.testing.assert_allclose(found[:, 0], model.predict(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("power", "y", "message"),
    [
        (1.0, -1.0, "y has the value -1; a model with power=1 needs numbers that are 0 or above"),
        (1.5, -0.5, "y has the value -0.5; a model with power=1.5"),
        (2.0, -2.0, "y has the value -2; a model with power=2"),
        (2.0, 0.0, r"y has the value 0; a model with power=2 \(Gamma\) needs numbers above 0"),
        (1.0, np.nan, "NaN"),
        (1.0, np.inf, "infinity"),
    ],
)
def test_targets_that_are_refused(power, y, message):
    given = np.ones(150)
    given[7] = y
    with pytest.raises(ValueError, match=message):
        ours(power).fit(X, given)


def test_what_else_is_refused():
    y = targets(1.0)
    model = ours(1.0)
    with pytest.raises(ValueError, match="y is 0 in all rows that have a weight"):
        model.fit(X, np.zeros(150))
    with pytest.raises(ValueError, match="y is 0 in all rows that have a weight"):
        model.fit(X, y, (y == 0).astype(float))
    with pytest.raises(ValueError, match=r"offset has shape \(3,\); one number for each"):
        model.fit(X, y, offset=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="offset contains NaN"):
        model.fit(X, y, offset=np.full(150, np.nan))
    with pytest.raises(ValueError, match="offset must be finite; got inf"):
        model.fit(X, y, offset=np.inf)
    model.fit(X, y)
    with pytest.raises(ValueError, match="offset has shape"):
        model.predict(X, offset=[1.0])
    with pytest.raises(ValueError, match="alpha must be"):
        ours(1.0, alpha=-1).fit(X, y)
    for power in (3.0, 0.5, -1, True, "1"):
        with pytest.raises(ValueError, match="power must be 0, or from 1 to 2; got"):
            PolynomialTweedieRegressor(power=power).fit(X, y)
    with pytest.raises(ValueError, match="link must be 'auto' or 'log' if power"):
        PolynomialTweedieRegressor(power=1.5, link="identity").fit(X, y)
    with pytest.raises(ValueError, match="link must be 'auto' or 'identity' if power=0"):
        PolynomialTweedieRegressor(power=0, link="log").fit(X, y)
