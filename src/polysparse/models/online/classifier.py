"""PolynomialFTRLClassifier: online logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from polysparse.basis.degrees import Degree
from polysparse.estimators.tabular import require_known_levels
from polysparse.models.classes import find_classes, require_classes
from polysparse.models.losses.logistic import count_scores, log_probabilities, probabilities
from polysparse.models.online.base import PolynomialFTRL
from polysparse.models.online.docstrings import documented
from polysparse.models.online.learner import Rows


@documented
class PolynomialFTRLClassifier(ClassifierMixin, PolynomialFTRL):  # type: ignore[misc]
    """Online logistic regression on polynomial features, without building them.

    The model learns from each row once, by FTRL-proximal with a learning rate for each coefficient
    (McMahan et al. 2013). Call `partial_fit` with the rows of a stream as they arrive, in batches
    of any size. With two classes, there is one vector of coefficients, for the second class; with
    more, one vector for each class (multinomial loss).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    coef_ : ndarray of float64 of shape (1, n_columns) or (n_classes, n_columns)
        Coefficients, in the order of `column_space_`. Coefficients of hashed columns
        apply to X divided by `scale_`, all other coefficients to X itself.
    intercept_ : ndarray of float64 of shape (1,) or (n_classes,)
        The intercepts.
    {attributes}

    See Also
    --------
    PolynomialFTRLRegressor : The same for numbers and counts.
    PolynomialLogisticRegression : The exact optimum, if all rows are available.

    Notes
    -----
    {notes}

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialFTRLClassifier
    >>> rng = np.random.default_rng(0)
    >>> model = PolynomialFTRLClassifier(columns="all")
    >>> for _ in range(10):
    ...     X = rng.integers(0, 2, (500, 4))
    ...     y = X[:, 0] ^ X[:, 1]
    ...     model = model.partial_fit(X, y, classes=[0, 1])
    >>> model.progressive_loss_ < 0.1
    True
    >>> list(model.top_terms(1)["name"])
    ['x0 x1']
    """

    classes_: NDArray[Any]

    _kind = "ftrl_classifier"
    _link = "logit"
    _y_numeric = False
    _loss_label = "log loss"

    def __init__(
        self,
        learning_rate: Any = "auto",
        *,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from rows, `n_passes` times; what was learned before is forgotten.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows, in the order in which the model learns from them.
        y : array-like of shape (n_samples,)
            The classes.
        sample_weight : float or array-like of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        self : object
            Fitted model.
        """
        self._require_parameters()
        self._forget()
        try:
            x, y = self._read_rows(X, y=y, reset=True)
            classes, numbers = find_classes(y)
            self._set_classes(classes)
            weights = self._weights(sample_weight, x.shape[0], is_all=True)
            self._start(x, y, count_scores(len(classes)))
            rows = Rows(x, numbers.astype(np.float64), weights)
            self.learner_.require_learnable(rows)
            self._learn(rows, int(self.n_passes))
        except BaseException:
            self._forget()
            raise
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from the next rows of a stream.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their classes.
        classes : array-like of shape (n_classes,), optional
            All classes that may occur. Required in the first call.
        sample_weight : float or array-like of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        self : object
            The model.
        """
        self._require_parameters()
        is_first = not hasattr(self, "learner_")
        if not is_first:
            self._require_same_parameters()
        try:
            found = np.unique(np.asarray(classes)) if classes is not None else None
            if is_first and found is None:
                raise ValueError(
                    "classes must be passed to the first call of partial_fit: all classes that "
                    "may come."
                )
            if not is_first:
                require_known_levels(self, X)
            x, y = self._read_rows(X, y=y, reset=is_first, ensure_min_samples=0)
            if is_first:
                self._set_classes(found)
            elif found is not None and not np.array_equal(found, self.classes_):
                raise ValueError(
                    f"classes={found.tolist()} are not those of the first call of partial_fit, "
                    f"{self.classes_.tolist()}."
                )
            targets = self._read_targets(y)
            weights = self._weights(sample_weight, x.shape[0], is_all=False)
            if is_first:
                if self._waits_for_rows(x):
                    return self
                self._start(x, y, count_scores(len(self.classes_)))
            rows = Rows(x, targets, weights)
            self.learner_.require_learnable(rows)
        except BaseException:
            if is_first:
                self._forget()
            raise
        self._learn(rows, 0)
        return self

    def _set_classes(self, classes: Any) -> None:
        require_classes(classes)
        if len(classes) < 2:
            raise ValueError(
                f"y has 1 class, {classes.tolist()[0]!r}; a classifier needs at least 2 classes."
            )
        self.classes_ = classes

    def _read_targets(self, y: Any) -> NDArray[np.float64]:
        if len(y) == 0:
            return np.empty(0)
        own, numbers = find_classes(y)
        places = np.searchsorted(self.classes_, own)
        places[places == len(self.classes_)] = 0
        unseen = self.classes_[places].astype(object) != own  # text and numbers differ
        if np.any(unseen):
            raise ValueError(
                f"y has the class {own[unseen].tolist()[0]!r}, which is not one of classes, "
                f"{self.classes_.tolist()}. Pass all classes to the first call of partial_fit."
            )
        return places[numbers].astype(np.float64)

    def _loss_name(self, n_scores: int) -> str:
        return "two_classes" if n_scores == 1 else "classes"

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of rows: their linear predictors.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.

        Returns
        -------
        ndarray of float64 of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the score of the second class, which is predicted if this is above 0.
        """
        return self._response(self._scores(X), "decision_function")  # type: ignore[no-any-return]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.

        Returns
        -------
        ndarray of shape (n_samples,)
            The class of each row with the highest score.
        """
        return self._response(self._scores(X), "predict")  # type: ignore[no-any-return]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities of classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.

        Returns
        -------
        ndarray of float64 of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._response(self._scores(X), "predict_proba")  # type: ignore[no-any-return]

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict logarithms of probabilities of classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.

        Returns
        -------
        ndarray of float64 of shape (n_samples, n_classes)
            Logarithms of probabilities, in the order of `classes_`.
        """
        return self._response(self._scores(X), "predict_log_proba")  # type: ignore[no-any-return]

    def _response(self, scores: NDArray[np.float64], method: str) -> Any:
        own = scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores
        if method == "predict_proba":
            return probabilities(own, self.n_jobs)
        if method == "predict_log_proba":
            return log_probabilities(own)
        if method == "predict":
            which = own > 0 if own.ndim == 1 else own.argmax(axis=1)
            return self.classes_[which.astype(np.intp)]
        return own
