"""PolynomialLogisticRegression: logistic regression on features that are never built."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight

from polysparse.basis.degrees import Degree
from polysparse.columns.spaces import ColumnSpace
from polysparse.dispatch import dispatch
from polysparse.estimators.shared import IntegerRange
from polysparse.models.base import PolynomialModel, RealRange
from polysparse.models.losses.logistic import LogLoss, log_probabilities, probabilities
from polysparse.models.row_store import RowStore
from polysparse.models.solution import Solution


class PolynomialLogisticRegression(ClassifierMixin, PolynomialModel):  # type: ignore[misc]
    """Logistic regression on polynomial features that are never built.

    The model is that of scikit-learn's LogisticRegression on the features of PolynomialFeatures. It
    is fitted to X itself: products of the expansion with vectors are computed from X, so a
    fit needs memory for X and seven vectors of coefficients.

    `C` times the weighted sum of the log losses, plus half the sum of squared coefficients, is
    minimized, by Newton's method with preconditioned conjugate gradients in float64, whatever the
    dtype of X is. The intercept is not regularized; it replaces the bias column. With two
    classes there is one vector of coefficients, for the second class; with more, one for each class
    (multinomial loss).

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the strength of the penalty, above 0.
    degree : int or tuple (min_degree, max_degree), default=2
        Degrees of the features. If a single int is given, it is the maximum degree.
    interaction_only : bool, default=False
        If True, only products of distinct input features are used.
    groups : sequence of (str or None), mapping of str to int, or sequence of int, optional
        Groups of features, such as the levels of a categorical variable: each interaction uses at
        most one feature per group. A label for each feature (None for a feature that is not in a
        group), a mapping of labels to the sizes of contiguous groups, or a list of sizes;
        `groups_from` reads them from a fitted encoder. If members of a group are not contiguous,
        columns are ordered as if the features were sorted by group.
    terms : sequence of (str or tuple of str), optional
        Which groups are multiplied, instead of all up to a degree: formulas such as "user:item",
        "user*hour" or "(a + b + c)**2", or tuples of labels. Main effects are included only if
        listed. Without `groups`, labels are the names of the features, or "x0", "x1", ...
    categorical_features : "from_dtype", array-like of bool, int or str, TableEncoder or None, \
default="from_dtype"
        Which columns are categorical, if X is a table: those of categories, strings and booleans
        ("from_dtype"), or a mask, numbers or names of columns. Their levels that occur in `fit`
        become features, as TableEncoder encodes them; pass one for other settings. Each column of
        the table is then a group. None: X consists of numbers.
    columns : {"all", "observed", "hashed"}, array-like of int or transformer, default="all"
        Which features there are. "all": all products. "observed": those that occur in X, as
        ObservedPolynomialFeatures finds them. "hashed": 2**20 columns that products are hashed to,
        as by HashedPolynomialFeatures. An array: column numbers of the expansion without bias,
        increasing. A polysparse transformer uses its own degree and interaction_only; a different
        value given to the model raises ValueError (the defaults never do). If it is not fitted, a
        clone of it is fitted to X; it is never changed itself. Its bias column is dropped.
    feature_names : sequence of str, optional
        Names of the input features, for `top_terms` and whatever else shows terms; for X without
        names, such as a sparse matrix. By default those of X. Prediction does not use them, and
        `set_params` may set them after `fit`. They are saved with the model.
    fit_intercept : bool, default=True
        If False, the intercept is 0.
    class_weight : dict or "balanced", optional
        Weights of the classes, by which those of their rows are multiplied. "balanced": inverse to
        the sums of weights of their rows.
    tol : float, default=1e-6
        The fit ends when the objective is within `tol` times its value of its minimum. It does not
        depend on the scales of X, C or the weights. If rounding errors prevent that, or
        `max_iter`, a ConvergenceWarning says so. 0 means as close as rounding allows.
    max_iter : int, default=100
        Maximum number of Newton's iterations, each of which takes several passes over the data.
    warm_start : bool, default=False
        If True, `fit` starts from the last solution if columns and classes are the same.
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS; for a dask array, one in each task. The result does not depend on it.
    verbose : int, default=0
        If not 0, a line is printed for each iteration: objective, norm of the gradient, passes over
        the data, seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    coef_ : ndarray of float64 of shape (1, n_columns) or (n_classes, n_columns)
        Coefficients, in the order of `column_space_`.
    intercept_ : ndarray of float64 of shape (1,) or (n_classes,)
        The intercepts.
    column_space_ : AllColumns, ChosenColumns or HashedColumns
        The columns that coefficients belong to, without the bias.
    column_counts_ : ndarray of int64 of shape (n_columns,), or None
        In how many rows of X each column occurs; None if columns are hashed.
    objective_ : float
        What was minimized, at the solution.
    gap_ : float
        Upper bound of how far `objective_` is above its minimum, by the gradient at the solution.
    n_iter_ : ndarray of int32 of shape (1,)
        Number of Newton's iterations.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str objects
        Names of features seen during `fit`. Defined only if X has feature names that are all
        strings.

    See Also
    --------
    PolynomialRidge : The same for numbers.
    PolynomialOperator : The products that the fit is made of.

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

    classes_: NDArray[Any]
    n_iter_: NDArray[np.int32]

    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        **PolynomialModel._ranges,
        "C": RealRange(may_be_zero=False),
    }
    _bool_parameters = ("fit_intercept", "warm_start")
    _y_numeric = False

    def __init__(
        self,
        C: float = 1.0,
        *,
        degree: Degree = 2,
        interaction_only: bool = False,
        groups: Any = None,
        terms: Any = None,
        categorical_features: Any = "from_dtype",
        columns: Any = "all",
        feature_names: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            degree,
            interaction_only,
            groups,
            terms,
            categorical_features,
            columns,
            feature_names,
            fit_intercept,
            tol,
            max_iter,
            n_jobs,
            verbose,
        )
        self.C = C
        self.class_weight = class_weight
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PolynomialLogisticRegression:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. The blocks of a dask array are computed once, and fitted to where they are.
        y : array-like or dask array of shape (n_samples,)
            The classes.
        sample_weight : float, array-like or dask array of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        self : object
            Fitted model.
        """
        return self._fit(X, y, sample_weight)  # type: ignore[no-any-return]

    def _make_loss(self, rows: RowStore) -> LogLoss:
        found = rows.count_classes()
        return LogLoss(found.classes, self._class_factors(found.classes, found.weights))

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
            factors: NDArray[np.float64] = self.C * self._class_weights(classes, sums)
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

    def _start(
        self, columns: ColumnSpace, loss: Any, last: dict[str, Any]
    ) -> tuple[NDArray[np.float64], Any]:
        """Return initial coefficients and intercept: with warm_start those of the last fit."""
        if not (
            "coef_" in last
            and np.array_equal(last["classes_"], loss.classes)
            and last["column_space_"] == columns
        ):
            return super()._start(columns, loss, last)
        coefficients, intercept = last["coef_"].T.copy(), last["intercept_"]
        if not self.fit_intercept:
            intercept = np.zeros_like(intercept)
        if loss.n_scores == 1:
            return coefficients.reshape(-1), float(intercept[0])
        return coefficients, intercept

    def _set_solution(self, solution: Solution, loss: LogLoss) -> None:
        self.classes_ = loss.classes
        self.coef_ = np.atleast_2d(np.ascontiguousarray(solution.coefficients.T))
        self.intercept_ = np.atleast_1d(np.asarray(solution.intercept, dtype=np.float64))
        self.n_iter_ = np.array([solution.n_iter], dtype=np.int32)

    # ------------------------------------------------------------------------------- predicting

    @dispatch("predict", method="decision_function")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. For a dask array, the result is a lazy one.

        Returns
        -------
        ndarray of float64 of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the log odds of the second one.
        """
        return self._response(self._scores(X), "decision_function")

    @dispatch("predict", method="predict")
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. For a dask array, the result is a lazy one.

        Returns
        -------
        ndarray of shape (n_samples,)
            The most probable class of each row.
        """
        return self._response(self._scores(X), "predict")

    @dispatch("predict", method="predict_proba")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities of classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. For a dask array, the result is a lazy one.

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
            The data. For a dask array, the result is a lazy one.

        Returns
        -------
        ndarray of float64 of shape (n_samples, n_classes)
            Logarithms of probabilities, in the order of `classes_`.
        """
        return self._response(self._scores(X), "predict_log_proba")

    def _response(self, scores: NDArray[np.float64], method: str) -> NDArray[Any]:
        if scores.shape[1] == 1:
            scores = scores[:, 0]
        if method == "predict":
            which = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
            return self.classes_[which.astype(np.intp)]
        if method == "predict_proba":
            return probabilities(scores, self.n_jobs)
        return log_probabilities(scores) if method == "predict_log_proba" else scores
