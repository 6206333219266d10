"""PolynomialRidge: ridge regression on polynomial features, without building them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from polysparse.basis.degrees import Degree
from polysparse.columns.spaces import ColumnSpace
from polysparse.estimators.shared import IntegerRange, RealRange
from polysparse.models import least_squares
from polysparse.models.base import PolynomialModel
from polysparse.models.docstrings import documented
from polysparse.models.losses.squared import SquaredLoss
from polysparse.models.regressor import PolynomialRegressor
from polysparse.models.row_store import RowStore
from polysparse.models.solution import Solution


@documented
class PolynomialRidge(PolynomialRegressor):
    """Ridge regression on polynomial features, without building them.

    Equivalent to scikit-learn's Ridge on the output of PolynomialFeatures, which is never built:
    matrix-vector products with it are computed from X. A fit needs memory for X, a few vectors of
    coefficients, and up to 256 MB for the solver.

    The sum of ``sample_weight * (y - prediction) ** 2`` plus `alpha` times the sum of squared
    coefficients is minimized in float64: in a Krylov space whose vectors are kept, or by
    preconditioned conjugate gradients if they do not fit. The intercept is not regularized; it
    replaces the bias column.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, at least 0.
    {features}
    {penalty_factors}
    {fit_intercept}
    {tol}
    max_iter : int, default=5000
        Maximum number of iterations. Each is one pass over the data.
    {threads}

    Attributes
    ----------
    coef_ : ndarray of float64 of shape (n_columns,) or (n_targets, n_columns)
        Coefficients, in the order of `column_space_`.
    intercept_ : float, or ndarray of float64 of shape (n_targets,)
        The intercept.
    {fitted_columns}
    n_iter_ : int
        Number of iterations; of several targets, the largest one.
    {fitted_features}

    See Also
    --------
    PolynomialLogisticRegression : The same for classes.
    PolynomialOperator : The matrix-vector products that fits consist of.

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

    alpha: float
    n_iter_: int

    _kind = "ridge"

    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        **PolynomialModel._ranges,
        "alpha": RealRange(may_be_zero=True),
    }
    _multi_output = True

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
        penalty_factors: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 5000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PolynomialRidge:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. The blocks of a dask array are computed once, and stay on their workers.
        y : array-like or dask array of shape (n_samples,), or array-like of shape \
(n_samples, n_targets)
            The targets. Several are fitted one after the other.
        sample_weight : float, array-like or dask array of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        self : object
            Fitted model.
        """
        return self._fit(X, y, sample_weight)  # type: ignore[no-any-return]

    @property
    def _n_vectors(self) -> int:
        return least_squares.N_VECTORS

    def _make_loss(self, rows: RowStore) -> SquaredLoss:
        return SquaredLoss(1 / self._strength, n_targets=rows.count_targets())

    @property
    def _has_factors(self) -> bool:
        """Whether coefficients are penalized differently, for which Newton's method is used."""
        return self.penalty_factors is not None and self.alpha > 0

    @property
    def _strength(self) -> float:
        """What Newton's method divides the weights of rows by."""
        return float(self.alpha) if self._has_factors else 1.0

    @property
    def _uniform_penalty(self) -> float:
        return float(self.alpha)

    @property
    def _unit(self) -> float:
        return 2 * self._strength if self._has_factors else 1.0

    def _solve(
        self, columns: ColumnSpace, rows: RowStore, loss: Any, last: dict[str, Any]
    ) -> Solution:
        if loss.n_targets is None:
            return self._solve_one(columns, rows, loss, last)
        solutions = []
        for target in range(loss.n_targets):
            one = replace(loss, target=target)
            rows.set_targets(columns, one)
            solutions.append(self._solve_one(columns, rows, one, last))
        return Solution.of_several(solutions)

    def _solve_one(
        self, columns: ColumnSpace, rows: RowStore, loss: Any, last: dict[str, Any]
    ) -> Solution:
        """Return the solution for one target."""
        if self._has_factors:
            return super()._solve(columns, rows, loss, last)
        errors = rows.squared_errors(bool(self.fit_intercept), self.n_jobs)
        return least_squares.minimize(
            errors,
            float(self.alpha),
            tol=self.tol,
            max_iter=self.max_iter,
            report=self._reporter(errors),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
