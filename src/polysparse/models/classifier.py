"""PolynomialClassifier: what the models of classes share."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight

from polysparse.dispatch import dispatch
from polysparse.estimators.shared import IntegerRange, RealRange
from polysparse.models.base import PolynomialModel
from polysparse.models.solution import Solution


class PolynomialClassifier(ClassifierMixin, PolynomialModel):  # type: ignore[misc]
    """The weights of classes, and predictions by the highest score.

    A subclass stores the parameters `C` and `class_weight`. Its loss has the attribute `classes`.
    """

    classes_: NDArray[Any]
    C: float
    class_weight: Any
    warm_start: bool

    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        **PolynomialModel._ranges,
        "C": RealRange(may_be_zero=False, may_be_infinite=True),
    }
    _bool_parameters = ("fit_intercept", "warm_start")
    _y_numeric = False
    _link = "sign"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. The blocks of a dask array are computed once, and stay on their workers.
        y : array-like or dask array of shape (n_samples,)
            The classes.
        sample_weight : float, array-like or dask array of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        self : object
            Fitted model.
        """
        return self._fit(X, y, sample_weight)

    def _class_factors(
        self, classes: NDArray[Any], sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what sample_weight is multiplied by for each class: C times its weight.

        `sums` are the sums of sample_weight of each class. ValueError is raised if a class would
        have no weight.
        """
        if len(classes) < 2:
            raise ValueError(
                f"y has 1 class, {classes.tolist()[0]!r}; a classifier needs at least 2 classes."
            )
        with np.errstate(over="ignore"):
            strength = self.C if self._has_penalty else 1.0
            factors: NDArray[np.float64] = strength * self._class_weights(classes, sums)
            weighted = sums * factors
        if not (weighted.min() > 0 and np.isfinite(weighted.sum())):
            raise ValueError(
                f"C={self.C} times sample_weight and class_weight is not above 0, or not finite: "
                f"for the classes it is {weighted.tolist()} in sum. Bring C and weights closer to "
                "1."
            )
        return factors

    def _class_weights(
        self, classes: NDArray[Any], sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the weight of each class; raise ValueError if a class has none at all."""
        found = np.ones(len(classes))
        if self.class_weight == "balanced":
            found = sums.sum() / (len(classes) * np.where(sums > 0, sums, 1))
        elif self.class_weight is not None:
            found = compute_class_weight(self.class_weight, classes=classes, y=classes)
        valid = np.isfinite(found) & (found > 0) & (sums > 0)
        if not valid.all():
            which = int(np.argmin(valid))
            raise ValueError(
                f"The class {classes.tolist()[which]!r} has no weight: its rows have sample_weight "
                f"{sums[which]:g} in sum, and its class_weight is {found[which]:g}. Both must be "
                "positive and finite; or leave its rows out."
            )
        return found

    @property
    def _has_penalty(self) -> bool:
        return bool(np.isfinite(self.C))

    def _set_solution(self, solution: Solution, loss: Any) -> None:
        self.classes_ = loss.classes
        self.coef_ = np.atleast_2d(np.ascontiguousarray(solution.coefficients.T))
        self.intercept_ = np.atleast_1d(np.asarray(solution.intercept, dtype=np.float64))

    # ------------------------------------------------------------------------------- predicting

    @dispatch("predict", method="decision_function")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of rows: their linear predictors.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. For a dask array, the result is lazy.

        Returns
        -------
        ndarray of float64 of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the score of the second class, which is predicted if this is above 0.
        """
        return self._response(self._scores(X), "decision_function")

    @dispatch("predict", method="predict")
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. For a dask array, the result is lazy.

        Returns
        -------
        ndarray of shape (n_samples,)
            The class of each row with the highest score.
        """
        return self._response(self._scores(X), "predict")

    def _response(self, scores: NDArray[np.float64], method: str) -> NDArray[Any]:
        if scores.shape[1] == 1:
            scores = scores[:, 0]
        if method == "predict":
            which = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
            return self.classes_[which.astype(np.intp)]
        return scores
