"""PolynomialFTRLRegressor: online regression of numbers and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from polysparse.basis.degrees import Degree
from polysparse.estimators.tabular import require_known_levels
from polysparse.models.losses.log_link import exponentials
from polysparse.models.online.base import PolynomialFTRL
from polysparse.models.online.docstrings import documented
from polysparse.models.online.learner import Rows


@documented
class PolynomialFTRLRegressor(RegressorMixin, PolynomialFTRL):  # type: ignore[misc]
    """Online regression on polynomial features, without building them.

    The model learns from each row once, by FTRL-proximal with a learning rate for each coefficient
    (McMahan et al. 2013). Call `partial_fit` with the rows of a stream as they arrive, in batches
    of any size.

    Parameters
    ----------
    {parameters}
    loss : {"squared", "poisson"}, default="squared"
        Squared errors, or the Poisson deviance of counts, whose mean is ``exp(score)``.

    Attributes
    ----------
    coef_ : ndarray of float64 of shape (n_columns,)
        Coefficients, in the order of `column_space_`. Coefficients of hashed columns
        apply to X divided by `scale_`, all other coefficients to X itself.
    intercept_ : float
        The intercept.
    {attributes}

    See Also
    --------
    PolynomialFTRLClassifier : The same for classes.
    PolynomialRidge : The exact optimum, if all rows are available.

    Notes
    -----
    {notes}

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialFTRLRegressor
    >>> rng = np.random.default_rng(0)
    >>> model = PolynomialFTRLRegressor(columns="all")
    >>> for _ in range(10):
    ...     X = rng.integers(0, 2, (500, 4))
    ...     model = model.partial_fit(X, 3 * X[:, 0] * X[:, 1])
    >>> model.predict([[1, 1, 0, 0]]).round(1)
    array([3.])
    """

    loss: str

    _kind = "ftrl_regressor"

    def __init__(
        self,
        learning_rate: Any = "auto",
        *,
        loss: str = "squared",
        beta: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        degree: Degree = 2,
        interaction_only: bool = False,
        groups: Any = None,
        terms: Any = None,
        categorical_features: Any = "from_dtype",
        columns: Any = "hashed",
        n_columns: int = 2**22,
        feature_names: Any = None,
        fit_intercept: bool = True,
        n_passes: int = 1,
        keep_sample: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    @property
    def _link(self) -> str:
        return "log" if self.loss == "poisson" else "identity"

    @property
    def _loss_label(self) -> str:
        return "Poisson deviance" if self.loss == "poisson" else "squared error"

    def _require_parameters(self) -> None:
        super()._require_parameters()
        if self.loss not in ("squared", "poisson"):
            raise ValueError(f'loss must be "squared" or "poisson"; got {self.loss!r}.')

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from rows, `n_passes` times; what was learned before is forgotten.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows, in the order in which the model learns from them.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : float or array-like of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        self : object
            Fitted model.
        """
        self._require_parameters()
        self._forget()
        return self._learn_from(X, y, sample_weight, int(self.n_passes))

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from the next rows of a stream.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : float or array-like of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        self : object
            The model.
        """
        self._require_parameters()
        if hasattr(self, "learner_"):
            require_known_levels(self, X)
        return self._learn_from(X, y, sample_weight, 0)

    def _learn_from(self, X: Any, y: Any, sample_weight: Any, n_passes: int) -> Any:
        is_first = not hasattr(self, "learner_")
        if not is_first:
            self._require_same_parameters()
        how = {} if n_passes else {"ensure_min_samples": 0}
        try:
            x, y = self._read_rows(X, y=y, reset=is_first, y_numeric=True, **how)
            targets = self._read_targets(y)
            weights = self._weights(sample_weight, x.shape[0], is_all=n_passes > 0)
            if is_first:
                if not n_passes and self._waits_for_rows(x):
                    return self
                self._start(x, y, 1)
            rows = Rows(x, targets, weights)
            self.learner_.require_learnable(rows)
            if n_passes:
                self._learn(rows, n_passes)
        except BaseException:
            if is_first:
                self._forget()
            raise
        if not n_passes:
            self._learn(rows, 0)
        return self

    def _read_targets(self, y: Any) -> NDArray[np.float64]:
        targets = np.ascontiguousarray(y, dtype=np.float64)
        if self.loss == "poisson" and np.any(targets < 0):
            raise ValueError(
                f'y has {targets.min()}; loss="poisson" needs counts, which are at least 0.'
            )
        return targets

    def _loss_name(self, n_scores: int) -> str:
        return self.loss

    def _shaped(self, coefficients: Any, intercept: Any) -> tuple[Any, Any]:
        return coefficients[0], float(intercept[0])

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict means.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.

        Returns
        -------
        ndarray of float64 of shape (n_samples,)
            Predicted means.
        """
        return self._response(self._scores(X), "predict")

    def _response(self, scores: NDArray[np.float64], method: str) -> NDArray[np.float64]:
        own = np.ascontiguousarray(scores[:, 0] if scores.ndim == 2 else scores)
        return exponentials(own) if self.loss == "poisson" else own

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2, or D^2 for counts: the share of the deviance that the model explains.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        float
            1 less the deviance of the predictions, divided by that of the mean of y.
        """
        if self.loss == "squared":
            return float(super().score(X, y, sample_weight))
        predicted, y = self.predict(X), np.asarray(y, dtype=np.float64)
        if len(y) and np.all(y == y[0]):  # as R^2: 1 if there is nothing to explain, or 0
            return float(np.all(predicted == y))
        return float(d2_tweedie_score(y, predicted, sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags
