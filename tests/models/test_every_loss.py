"""What holds for the models of every loss: weights, offsets, warm starts, threads."""

from functools import partial

import numpy as np
import pytest

from csr_zoo import random_csr
from inside import lower
from model_data import classes_for, numbers_for
from polysparse import (
    PolynomialGammaRegressor,
    PolynomialLinearSVC,
    PolynomialLinearSVR,
    PolynomialLogisticRegression,
    PolynomialPoissonRegressor,
    PolynomialTweedieRegressor,
)
from row_stores import ArrayRows, LossyBlocks, fit_with

X = random_csr(150, 5, 0.6)
NUMBERS = numbers_for(X)
AMOUNTS = np.exp(NUMBERS / 4)
WEIGHTS = np.random.default_rng(0).exponential(size=150) * (np.arange(150) % 5 > 0)
OFFSET = np.sin(np.arange(150.0))
MODELS = {
    "logistic": (PolynomialLogisticRegression, classes_for(X, 2)),
    "classes": (PolynomialLogisticRegression, classes_for(X, 3)),
    "poisson": (partial(PolynomialPoissonRegressor, 0.01), np.round(AMOUNTS)),
    "gamma": (partial(PolynomialGammaRegressor, 0.01), AMOUNTS),
    "tweedie": (partial(PolynomialTweedieRegressor, power=1.5, alpha=0.01), np.floor(AMOUNTS)),
    "svc": (PolynomialLinearSVC, classes_for(X, 3)),
    "svr": (partial(PolynomialLinearSVR, epsilon=0.1), NUMBERS),
}
every_loss = pytest.mark.parametrize("name", MODELS)
STORES = {
    "blocks": lambda rows: LossyBlocks(rows, [40, 100], 0.3),
    "arrays": lambda rows: ArrayRows(rows.x, rows.y, rows.weights, 1, rows.offset),
}


def offset_of(name):
    return {"offset": OFFSET} if name in ("poisson", "gamma", "tweedie") else {}


@every_loss
@pytest.mark.parametrize("store", STORES)
def test_weights_offsets_and_warm_starts_anywhere(name, store):
    """The second fit starts from the solution with another penalty."""
    make, y = MODELS[name]
    model, given = make(warm_start=True, tol=1e-9), offset_of(name)
    penalty = "C" if "C" in model.get_params() else "alpha"
    value = model.get_params()[penalty]
    fit_with(STORES[store], model, X, y, WEIGHTS, **given)
    cold = model.n_iter_
    fit_with(STORES[store], model, X, y, WEIGHTS, **given)
    assert np.max(model.n_iter_) == 0 < np.max(cold)
    model.set_params(**{penalty: 2 * value})
    fit_with(STORES[store], model, X, y, WEIGHTS, **given)
    here = make(tol=1e-9).set_params(**{penalty: 2 * value}).fit(X, y, WEIGHTS, **given)
    assert model.objective_ == pytest.approx(here.objective_, rel=1e-8)


@every_loss
@pytest.mark.usefixtures("small_tasks")
def test_threads_change_no_bit(name, monkeypatch):
    lower(monkeypatch, OUTPUTS_PER_THREAD=1)
    make, y = MODELS[name]
    one, many = (make(n_jobs=n).fit(X, y, WEIGHTS, **offset_of(name)) for n in (1, 3))
    assert one.coef_.tobytes() == many.coef_.tobytes()
    assert one.objective_ == many.objective_
