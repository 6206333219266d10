"""PolynomialRidge: ridge regression on polynomial features that are never built."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from polysparse.basis.degrees import Degree
from polysparse.columns.spaces import ColumnSpace
from polysparse.dispatch import dispatch
from polysparse.estimators.shared import IntegerRange
from polysparse.models import least_squares
from polysparse.models.base import PolynomialModel, RealRange
from polysparse.models.losses.squared import SquaredLoss
from polysparse.models.row_store import RowStore
from polysparse.models.solution import Solution


class PolynomialRidge(RegressorMixin, PolynomialModel):  # type: ignore[misc]
    """Ridge regression on polynomial features that are never built.

    The model is that of scikit-learn's Ridge on the features of PolynomialFeatures. It is fitted to
    X itself: products of the expansion with vectors are computed from X, so a fit needs
    memory for X and a few vectors of coefficients.

    The sum of ``sample_weight * (y - prediction) ** 2`` plus `alpha` times the sum of squared
    coefficients is minimized, by preconditioned conjugate gradients in float64, whatever the dtype
    of X is. The intercept is not regularized; it replaces the bias column.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, at least 0.
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
    tol : float, default=1e-6
        The fit ends when the objective is within `tol` times its value of its minimum. It does not
        depend on the scales of X, y, alpha or the weights. If rounding errors prevent that, or
        `max_iter`, a ConvergenceWarning says so. 0 means as close as rounding allows.
    max_iter : int, default=5000
        Maximum number of iterations. Each is one pass over the data.
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS; for a dask array, one in each task. The result does not depend on it.
    verbose : int, default=0
        If not 0, a line is printed for each iteration: objective, norm of the gradient, passes over
        the data, seconds.

    Attributes
    ----------
    coef_ : ndarray of float64 of shape (n_columns,)
        Coefficients, in the order of `column_space_`.
    intercept_ : float
        The intercept.
    column_space_ : AllColumns, ChosenColumns or HashedColumns
        The columns that coefficients belong to, without the bias.
    column_counts_ : ndarray of int64 of shape (n_columns,), or None
        In how many rows of X each column occurs; None if columns are hashed.
    objective_ : float
        What was minimized, at the solution.
    gap_ : float
        Upper bound of how far `objective_` is above its minimum, by the gradient at the solution.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of str objects
        Names of features seen during `fit`. Defined only if X has feature names that are all
        strings.

    See Also
    --------
    PolynomialLogisticRegression : The same for classes.
    PolynomialOperator : The products that the fit is made of.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialRidge
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 3.0]])
    >>> y = 1 + X[:, 0] * X[:, 1]
    >>> model = PolynomialRidge(1e-6, interaction_only=True).fit(X, y)
    >>> model.predict([[5.0, 2.0]]).round(3)
    array([11.])
    >>> model.column_space_.basis.names()[np.argmax(model.coef_)]
    'x0 x1'
    """

    n_iter_: int

    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        **PolynomialModel._ranges,
        "alpha": RealRange(may_be_zero=True),
    }
    _n_vectors = least_squares.N_VECTORS

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        degree: Degree = 2,
        interaction_only: bool = False,
        groups: Any = None,
        terms: Any = None,
        categorical_features: Any = "from_dtype",
        columns: Any = "all",
        feature_names: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 5000,
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
        self.alpha = alpha

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PolynomialRidge:
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
        return self._fit(X, y, sample_weight)  # type: ignore[no-any-return]

    def _make_loss(self, rows: RowStore) -> SquaredLoss:
        return SquaredLoss()

    def _solve(
        self, columns: ColumnSpace, rows: RowStore, loss: Any, last: dict[str, Any]
    ) -> Solution:
        errors = rows.squared_errors(bool(self.fit_intercept), self.n_jobs)
        return least_squares.minimize(
            errors,
            float(self.alpha),
            tol=self.tol,
            max_iter=self.max_iter,
            report=self._reporter(errors),
        )

    def _set_solution(self, solution: Solution, loss: Any) -> None:
        self.coef_ = solution.coefficients
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
        ndarray of float64 of shape (n_samples,)
            Predicted targets.
        """
        return self._response(self._scores(X), "predict")

    def _response(self, scores: NDArray[np.float64], method: str) -> NDArray[np.float64]:
        return scores
