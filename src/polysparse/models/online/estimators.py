"""PolynomialFTRLClassifier, PolynomialFTRLRegressor: models that learn from rows as they arrive."""

from __future__ import annotations

from dataclasses import asdict, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.validation import check_is_fitted

from polysparse.basis.degrees import Degree
from polysparse.columns.arguments import require_columns
from polysparse.columns.spaces import MAX_COMPACT_COLUMNS, ColumnSpace, HashedColumns
from polysparse.display.plotting import draw_progress
from polysparse.display.tables import as_table
from polysparse.estimators.hashed_products import countable_rows
from polysparse.estimators.observed import ObservedPolynomialFeatures
from polysparse.estimators.shared import IntegerRange, read_sparse
from polysparse.estimators.tabular import require_known_levels
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.base import RealRange
from polysparse.models.classes import find_classes, require_classes
from polysparse.models.columns import make_columns
from polysparse.models.local_rows import LocalRows
from polysparse.models.losses.log_link import exponentials
from polysparse.models.losses.logistic import count_scores, log_probabilities, probabilities
from polysparse.models.online.docstrings import documented
from polysparse.models.online.learner import Learner, Rows, Settings
from polysparse.models.online.reporting import Reporter
from polysparse.models.online.saving import as_online_file
from polysparse.models.readable import ReadableMixin
from polysparse.models.sample_weight import as_weights


class PolynomialFTRL(ReadableMixin, BaseEstimator):  # type: ignore[misc]
    """The parameters and attributes that both models have.

    A subclass has a loss, reads targets, and turns scores into predictions.
    """

    n_features_in_: int
    column_space_: ColumnSpace
    learner_: Learner

    _kind: ClassVar[str]  # the name of the model in files
    _link: Any = "identity"
    _y_numeric: ClassVar[bool] = True
    _group_variances_ = None
    column_counts_ = None  # rows are not counted
    _known_coef: tuple[Any, Any] | None = None  # until the model learns more
    _is_first_pass = True  # of those that `partial_fit` makes over a stream
    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        "beta": RealRange(may_be_zero=True),
        "l1": RealRange(may_be_zero=True),
        "l2": RealRange(may_be_zero=True),
        "n_columns": IntegerRange(1, MAX_COMPACT_COLUMNS - 1),
        "n_passes": IntegerRange(1),
    }

    def __init__(
        self,
        learning_rate: Any,
        beta: float,
        l1: float,
        l2: float,
        degree: Degree,
        interaction_only: bool,
        groups: Any,
        terms: Any,
        categorical_features: Any,
        columns: Any,
        n_columns: int,
        feature_names: Any,
        fit_intercept: bool,
        n_passes: int,
        keep_sample: bool,
        n_jobs: int | None,
        verbose: int,
    ) -> None:
        self.learning_rate = learning_rate
        self.beta = beta
        self.l1 = l1
        self.l2 = l2
        self.degree = degree
        self.interaction_only = interaction_only
        self.groups = groups
        self.terms = terms
        self.categorical_features = categorical_features
        self.columns = columns
        self.n_columns = n_columns
        self.feature_names = feature_names
        self.fit_intercept = fit_intercept
        self.n_passes = n_passes
        self.keep_sample = keep_sample
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _require_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid. The basis checks its own parameters."""
        for name, allowed in self._ranges.items():
            allowed.require(name, getattr(self, name))
        rate: Any = self.learning_rate
        is_rate = isinstance(rate, Real) and not isinstance(rate, bool | np.bool_)
        if not (is_rate and 0 < rate < np.inf) and rate != "auto":
            raise ValueError(
                f'learning_rate must be "auto" or a finite number above 0; got {rate!r}.'
            )
        for name in ("fit_intercept", "keep_sample"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False; got {getattr(self, name)!r}.")
        n_jobs: Any = self.n_jobs
        if n_jobs is not None and not isinstance(n_jobs, Integral):
            raise ValueError(f"n_jobs must be an int or None; got {n_jobs!r}.")
        require_columns(self.columns)

    # ---------------------------------------------------------------------------------- learning

    def _start(self, x: CanonicalCsr, y: Any, n_scores: int) -> None:
        """Begin to learn: the first rows decide about columns that are observed."""
        rows = LocalRows(x, y, np.ones(x.shape[0]), self.n_jobs)
        columns = make_columns(self, rows)
        if isinstance(self.columns, str) and isinstance(columns, HashedColumns):
            columns = columns.with_n_columns(int(self.n_columns))
        self.learner_ = Learner(columns, self._settings(n_scores))
        if not self.keep_sample:
            self.learner_.sample = None
        self.column_space_ = columns

    def _settings(self, n_scores: int) -> Settings:
        """Return the parameters that a learner keeps."""
        return Settings(
            self._loss_name(n_scores),
            n_scores,
            None if self.learning_rate == "auto" else float(self.learning_rate),
            float(self.beta),
            float(self.l1),
            float(self.l2),
            bool(self.fit_intercept),
        )

    def _require_settings(self) -> None:
        """Raise ValueError if a parameter was changed since the first call of `partial_fit`."""
        before = self.learner_.settings
        now = asdict(self._settings(before.n_scores))
        for name, value in asdict(before).items():
            if now[name] != value:
                own = {"rate": "learning_rate"}.get(name, name)
                raise ValueError(
                    f"{own} was changed from {value!r} to {now[name]!r} since the first call of "
                    "partial_fit, and a model keeps it. Change it back, or begin with a new model."
                )

    def _learn(self, rows: Rows, n_passes: int) -> None:
        """Learn from rows: that many times to the end, or, with 0 passes, as part of a stream."""
        learner = self.learner_
        report = Reporter(self) if self.verbose else None
        learner.progress.start()
        try:
            for number in range(max(1, n_passes)):
                learner.keeps_progress = number == 0 and self._is_first_pass
                learner.learn(rows, self.n_jobs, report)
                if n_passes:
                    learner.close_block(self.n_jobs, report)
            if report is not None and n_passes and learner.n_reported < learner.n_rows:
                report.print()
        finally:
            learner.keeps_progress = True
            learner.progress.stop()
            self._known_coef = None

    def _waits_for_rows(self, x: CanonicalCsr) -> bool:
        """Whether columns that are observed wait for the first row; if so, forget X's features."""
        is_observed = (
            self.columns == "observed"
            if isinstance(self.columns, str)
            else (isinstance(self.columns, ObservedPolynomialFeatures))
        )
        waits = x.shape[0] == 0 and is_observed
        if waits:
            self._forget()
        return waits

    def _end_pass(self) -> None:
        """Learn from the rows that wait, as at the end of each pass of `fit`."""
        learner = self.learner_
        learner.keeps_progress = self._is_first_pass
        try:
            learner.close_block(self.n_jobs)
        finally:
            learner.keeps_progress = True
            self._known_coef = None

    def _widen(self, n_features: int) -> None:
        """Go on with more features, which have not occurred before; columns are hashed."""
        self.learner_.widen(n_features)
        self.column_space_ = self.learner_.columns
        self.n_features_in_ = n_features

    def _forget(self) -> None:
        """Remove the fitted attributes, so that a failed fit leaves none of them."""
        for name in [name for name in vars(self) if name.endswith("_") or name == "_known_coef"]:
            delattr(self, name)

    def _weights(self, sample_weight: Any, n_rows: int, *, is_all: bool) -> NDArray[np.float64]:
        """Read the weights of rows, of all that there are or of some of a stream."""
        weights = as_weights(sample_weight, n_rows)
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            bad = float(weights[~(np.isfinite(weights) & (weights >= 0))][0])
            raise ValueError(f"sample_weight must be finite and at least 0; it has {bad}.")
        if is_all and n_rows and not weights.any():
            raise ValueError("sample_weight is zero for all rows: there is nothing to learn from.")
        return weights

    def _read_targets(self, y: Any) -> NDArray[np.float64]:
        """Return targets as the loss takes them; raise ValueError if they are not valid."""
        raise NotImplementedError

    def _loss_name(self, n_scores: int) -> str:
        raise NotImplementedError

    # ------------------------------------------------------------------------------- reading rows

    def _read_rows(self, X: Any, **wanted: Any) -> Any:
        """Validate X, and y if it is given, as `estimators.shared.read_sparse` does."""
        return read_sparse(self, X, **wanted)

    def _read(self, X: Any, **wanted: Any) -> Any:
        """Validate X, as `coef_` is multiplied with it: scaled, if columns are hashed."""
        x = self._read_rows(X, **wanted)
        x = replace(x, data=x.data.astype(np.float64, copy=False))
        scaling = self.learner_.scaling
        return scaling.scale(x) if scaling is not None and self._is_hashed else x

    @property
    def _is_hashed(self) -> bool:
        return isinstance(self.column_space_, HashedColumns)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return self._scores_of_rows(self._read_rows(X, reset=False))

    def _scores_of_rows(self, x: CanonicalCsr) -> NDArray[np.float64]:
        return self.learner_.scores(x, self.n_jobs)

    def _response(self, scores: NDArray[np.float64], method: str) -> Any:
        """Return what a public method returns, given the scores of rows."""
        raise NotImplementedError

    # ----------------------------------------------------------------------------- what is fitted

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The coefficients, in the order of `column_space_`.

        Those of hashed columns are for X divided by `scale_`, all others for X as it is.
        """
        coefficients: NDArray[np.float64] = self._coefficients()[0]
        return coefficients

    @property
    def intercept_(self) -> Any:
        """The intercept."""
        return self._coefficients()[1]

    def _coefficients(self) -> tuple[Any, Any]:
        if not hasattr(self, "learner_"):
            raise AttributeError(f"{type(self).__name__} is not fitted yet: call fit first.")
        if self._known_coef is None:
            weights, intercept = self.learner_.weights()
            coefficients = weights.T.astype(np.float64)
            if not self._is_hashed and self.learner_.scaling is not None:
                coefficients /= self.learner_.scales_of_columns()
            self._known_coef = self._shaped(coefficients, intercept.astype(np.float64))
        return self._known_coef

    def _shaped(self, coefficients: Any, intercept: Any) -> tuple[Any, Any]:
        return coefficients, intercept

    @property
    def scale_(self) -> NDArray[np.float64] | None:
        """What each feature is divided by; None if `learning_rate` was given."""
        scaling = self.learner_.scaling
        return None if scaling is None else scaling.scales

    @property
    def learning_rate_(self) -> float:
        """The learning rate that is used; while rates compete, that of the leader."""
        return self.learner_.rate

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows that the model has learned from, including those of every pass."""
        return self.learner_.n_rows

    @property
    def n_samples_pending_(self) -> int:
        """Number of rows that wait for the rest of their block."""
        pending = self.learner_.pending
        return 0 if pending is None else len(pending)

    @property
    def n_sampled_rows_(self) -> int:
        """Number of rows in which `top_terms` looks for the terms of hashed columns."""
        sample = self.learner_.sample
        return 0 if sample is None else len(sample)

    def _sampled_rows(self) -> CanonicalCsr | None:
        """Return the rows in which to look for terms, or None."""
        sample = self.learner_.sample
        if sample is None or not len(sample):
            return None
        return countable_rows(self.column_space_.basis, sample.as_matrix(self.n_features_in_))

    # -------------------------------------------------------------------------------- progress

    @property
    def progressive_loss_(self) -> float:
        """The mean loss of every row before the model learned from it."""
        return self.learner_.progress.mean_loss

    @property
    def recent_loss_(self) -> float:
        """The same for the last 1,024 rows."""
        return self.learner_.progress.recent_loss

    @property
    def calibration_(self) -> float:
        """The sum of what was predicted of rows before learning, divided by that of the targets."""
        return self.learner_.progress.calibration

    @property
    def rows_per_second_(self) -> float:
        """Number of rows that were learned from in a second, in all passes."""
        seconds = self.learner_.progress.seconds
        return self.learner_.n_rows / seconds if seconds else float("nan")

    def progress(self) -> Any:
        """Return how the loss changed.

        Returns
        -------
        pandas.DataFrame, or a small table that prints alike if pandas is not installed
            A row for each stretch of the stream, of at least 1,024 rows. Its columns: `rows`, how
            many rows there were up to its end; `loss`, the mean loss of its rows before the model
            learned from them; `mean_loss`, the same of all rows up to its end.
        """
        check_is_fitted(self)
        return as_table(self.learner_.progress.table())

    def plot_progress(self, *, ax: Any = None) -> Any:
        """Draw the loss over the stream: of each stretch, and the mean over all rows so far.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        check_is_fitted(self)
        return draw_progress(self.learner_.progress.table(), ax, label=self._loss_label)

    @property
    def _loss_label(self) -> str:
        """What a plot calls the loss."""
        raise NotImplementedError

    def save(self, path: Any) -> None:
        """Write the model to a file, without pickle, so that it can go on to learn.

        Parameters
        ----------
        path : path-like
            File to write or to replace, an .npz of plain arrays. It is written atomically.

        See Also
        --------
        polysparse.load_model : Read the file.

        Notes
        -----
        The whole state is saved, including rows that wait for the rest of their block: a model that
        is loaded and learns on has the bits of one that was never saved. If columns are hashed, the
        file contains the features of `n_sampled_rows_` rows, without values and targets.
        """
        check_is_fitted(self)
        as_online_file(self).write(path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


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
        super().__init__(
            learning_rate,
            beta,
            l1,
            l2,
            degree,
            interaction_only,
            groups,
            terms,
            categorical_features,
            columns,
            n_columns,
            feature_names,
            fit_intercept,
            n_passes,
            keep_sample,
            n_jobs,
            verbose,
        )

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
            self._require_settings()
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
        unseen = self.classes_[places] != own
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
        super().__init__(
            learning_rate,
            beta,
            l1,
            l2,
            degree,
            interaction_only,
            groups,
            terms,
            categorical_features,
            columns,
            n_columns,
            feature_names,
            fit_intercept,
            n_passes,
            keep_sample,
            n_jobs,
            verbose,
        )
        self.loss = loss

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
            self._require_settings()
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
