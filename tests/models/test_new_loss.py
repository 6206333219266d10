"""A new loss is one class: Huber's, which no model of polysparse has."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import RegressorMixin

from csr_zoo import random_csr
from model_data import numbers_for
from polysparse import PolynomialFeatures
from polysparse.models.base import PolynomialModel
from polysparse.models.losses.elementwise import ElementwiseLoss
from row_stores import LossyBlocks, fit_with

X = random_csr(120, 5, 0.6)
Y = numbers_for(X) + 20 * (np.arange(120) % 17 == 0)
WEIGHTS = 1 + np.arange(120) % 2


class Huber(ElementwiseLoss):
    def evaluate(self, targets, scores):
        error = scores - targets
        near = np.abs(error) <= 1
        values = np.where(near, error * error / 2, np.abs(error) - 0.5)
        return values, np.clip(error, -1, 1), near.astype(float)


class HuberRegression(RegressorMixin, PolynomialModel):
    """Half the squared norm of the coefficients plus the weighted losses."""

    def __init__(self, fit_intercept=True, tol=1e-10):
        super().__init__(
            degree=2,
            interaction_only=False,
            groups=None,
            terms=None,
            categorical_features=None,
            columns="all",
            feature_names=None,
            fit_intercept=fit_intercept,
            tol=tol,
            max_iter=1000,
            n_jobs=None,
            verbose=0,
        )

    def fit(self, X, y, sample_weight=None):
        return self._fit(X, y, sample_weight)

    def predict(self, X):
        return self._scores(X)

    def _make_loss(self, rows):
        return Huber()

    def _set_solution(self, solution, loss):
        self.coef_, self.intercept_ = solution.coefficients, solution.intercept


def objective(w, XP, fit_intercept):
    values, gradient, _ = Huber().evaluate(Y, XP @ w[1:] + w[0])
    slopes = np.append(np.sum(WEIGHTS * gradient) * fit_intercept, XP.T @ (WEIGHTS * gradient))
    slopes[1:] += w[1:]
    return np.sum(WEIGHTS * values) + w[1:] @ w[1:] / 2, slopes


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("cuts", [None, "halves"])
def test_huber(cuts, fit_intercept):
    model = HuberRegression(fit_intercept)
    if cuts is None:
        model.fit(X, Y, WEIGHTS)
    else:
        fit_with(lambda rows: LossyBlocks(rows, [60], 0.3), model, X, Y, WEIGHTS)
    XP = PolynomialFeatures(2, include_bias=False).fit_transform(X.toarray())
    best = minimize(
        objective,
        np.zeros(1 + XP.shape[1]),
        (XP, fit_intercept),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10},
    )
    assert model.objective_ == pytest.approx(best.fun, rel=1e-7)
    np.testing.assert_allclose(model.predict(X), XP @ best.x[1:] + best.x[0], atol=1e-2)
