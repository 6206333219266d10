"""Models of single features, whose residuals interactions are scored against or tested with."""

from __future__ import annotations

from typing import Any

from polysparse.models.generalized import PolynomialPoissonRegressor
from polysparse.models.logistic import PolynomialLogisticRegression
from polysparse.models.ridge import PolynomialRidge


def model_of_features(kind: str, n_rows: int, C: float = 1.0, n_jobs: int | None = None) -> Any:
    """Return a linear, logistic or Poisson regression; C is the inverse strength of its penalty."""
    if kind == "logistic":
        return PolynomialLogisticRegression(C, degree=1, n_jobs=n_jobs)
    if kind == "poisson":
        return PolynomialPoissonRegressor(1 / (C * max(n_rows, 1)), degree=1, n_jobs=n_jobs)
    return PolynomialRidge(1 / C, degree=1, n_jobs=n_jobs)
