"""PolynomialLogisticRegression: logistic regression on interactions, without building them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.degrees import Degree
from polysparse.dispatch import dispatch
from polysparse.display.plotting import draw_calibration
from polysparse.estimators.shared import IntegerRange
from polysparse.models.calibration import CalibrationBins, require_targets
from polysparse.models.classifier import PolynomialClassifier
from polysparse.models.docstrings import documented
from polysparse.models.losses.logistic import LogLoss, log_probabilities, probabilities
from polysparse.models.row_store import RowStore
from polysparse.models.sample_weight import as_weights
from polysparse.models.solution import Solution
from polysparse.models.sparse_penalty import SparseInverseMixin


@documented
class PolynomialLogisticRegression(SparseInverseMixin, PolynomialClassifier):
    """Logistic regression on polynomial features, without building them.

    Equivalent to scikit-learn's LogisticRegression on the output of PolynomialFeatures, which is
    never built: matrix-vector products with it are computed from X. A fit needs memory for X and
    seven vectors of coefficients.

    `C` times the weighted sum of the log losses, plus half the sum of squared coefficients, is
    minimized in float64, by quasi-Newton steps and Newton's method. The intercept is not
    regularized; it replaces the bias column. With two classes, there is one vector of coefficients,
    for the second class; with more, one vector for each class (multinomial loss).

    {l1_penalty}

    Parameters
    ----------
    {C_or_none}
    {l1_ratio}
    {features}
    {penalty_factors}
    {fit_intercept}
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the weights of their rows. "balanced": inversely
        proportional to the sums of weights of their rows.
    {tol}
    {max_iter_of_newton}
    warm_start : bool, default=False
        If True, `fit` starts from the last solution if columns and classes are the same.
    {threads}

    Attributes
    ----------
    {fitted_classes}
    {fitted_columns}
    n_iter_ : ndarray of int32 of shape (1,)
        Number of iterations, each of which takes several passes over the data.
    {fitted_features}

    See Also
    --------
    PolynomialRidge : The same for numbers.
    PolynomialOperator : The matrix-vector products that fits consist of.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialLogisticRegression
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> y = ["same", "other", "other", "same"]
    >>> model = PolynomialLogisticRegression(C=100).fit(X, y)
    >>> model.predict(X)
    array(['same', 'other', 'other', 'same'], dtype='<U5')
    >>> model.coef_.shape
    (1, 5)
    """

    n_iter_: NDArray[np.int32]

    _kind = "logistic"
    _link = "logit"

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1_ratio: float = 0.0,
        penalty: str | None = None,
        degree: Degree = 2,
        interaction_only: bool = False,
        groups: Any = None,
        terms: Any = None,
        categorical_features: Any = "from_dtype",
        columns: Any = "all",
        feature_names: Any = None,
        penalty_factors: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def _make_loss(self, rows: RowStore) -> LogLoss:
        found = rows.count_classes()
        return LogLoss(found.classes, self._class_factors(found.classes, found.weights))

    def _set_solution(self, solution: Solution, loss: LogLoss) -> None:
        super()._set_solution(solution, loss)
        self.n_iter_ = np.array([solution.n_iter], dtype=np.int32)

    # ------------------------------------------------------------------------------- predicting

    @dispatch("predict", method="predict_proba")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities of classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. For a dask array, the result is lazy.

        Returns
        -------
        ndarray of float64 of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._response(self._scores(X), "predict_proba")

    @dispatch("predict", method="predict_log_proba")
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict logarithms of probabilities of classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. For a dask array, the result is lazy.

        Returns
        -------
        ndarray of float64 of shape (n_samples, n_classes)
            Logarithms of probabilities, in the order of `classes_`.
        """
        return self._response(self._scores(X), "predict_log_proba")

    def plot_calibration(
        self, X: Any, y: Any, *, n_bins: int = 10, sample_weight: Any = None, ax: Any = None
    ) -> Any:
        """Draw how often a class is the true class against its predicted probability.

        Rows are divided into bins of probabilities, of equal widths. Where the line is on the
        diagonal, predicted probabilities match observed frequencies.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data; preferably rows that the model was not fitted to.
        y : array-like of shape (n_samples,)
            The true classes.
        n_bins : int, default=10
            Number of bins.
        sample_weight : float or array-like of shape (n_samples,), optional
            Non-negative weights of the rows.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with a line for the second class, or for each class if there are more.
        """
        IntegerRange(1).require("n_bins", n_bins)
        probabilities = self.predict_proba(X)
        true = np.asarray(y)
        require_targets(true, len(probabilities), "class")
        weights = as_weights(sample_weight, len(true))
        first = 1 if len(self.classes_) == 2 else 0
        bins = {
            self.classes_[c]: CalibrationBins.of(
                probabilities[:, c], true == self.classes_[c], int(n_bins), weights
            )
            for c in range(first, len(self.classes_))
        }
        return draw_calibration(bins, ax)

    def _response(self, scores: NDArray[np.float64], method: str) -> NDArray[Any]:
        if method not in ("predict_proba", "predict_log_proba"):
            return super()._response(scores, method)
        own = scores[:, 0] if scores.shape[1] == 1 else scores
        if method == "predict_proba":
            return probabilities(own, self.n_jobs)
        return log_probabilities(own)
