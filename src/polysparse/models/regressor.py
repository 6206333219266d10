"""PolynomialRegressor: what the models of numbers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from polysparse.dispatch import dispatch
from polysparse.models.base import PolynomialModel
from polysparse.models.solution import Solution


class PolynomialRegressor(RegressorMixin, PolynomialModel):  # type: ignore[misc]
    """Predictions that are scores."""

    n_iter_: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. The blocks of a dask array are computed once, and fitted to where they are.
        y : array-like or dask array of shape (n_samples,)
            The targets.
        sample_weight : float, array-like or dask array of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        self : object
            Fitted model.
        """
        return self._fit(X, y, sample_weight)

    def _set_solution(self, solution: Solution, loss: Any) -> None:
        self.coef_ = np.ascontiguousarray(solution.coefficients.T)
        self.intercept_ = solution.intercept
        self.n_iter_ = solution.n_iter

    @dispatch("predict", method="predict")
    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict targets.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. For a dask array, the result is a lazy one.

        Returns
        -------
        ndarray of float64 of shape (n_samples,) or (n_samples, n_targets)
            Predicted targets.
        """
        return self._response(self._scores(X), "predict")

    def _response(self, scores: NDArray[np.float64], method: str) -> NDArray[np.float64]:
        return scores
