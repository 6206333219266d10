"""PolynomialElasticNet and PolynomialLasso: squared errors with a penalty that selects columns."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from polysparse.basis.degrees import Degree
from polysparse.estimators.shared import IntegerRange, RealRange
from polysparse.models.base import PolynomialModel
from polysparse.models.docstrings import documented
from polysparse.models.losses.squared import SquaredLoss
from polysparse.models.regressor import PolynomialRegressor
from polysparse.models.row_store import RowStore
from polysparse.models.sparse_path import SparsePath
from polysparse.models.sparse_penalty import SparsePenaltyMixin, path_of


@documented
class PolynomialElasticNet(SparsePenaltyMixin, PolynomialRegressor):
    """Linear regression with an elastic-net penalty on polynomial features, without building them.

    Equivalent to scikit-learn's ElasticNet on the output of PolynomialFeatures, which is never
    built. Most coefficients are exactly 0, and only a working set of columns is computed from X.

    The weighted mean of ``(y - prediction)**2 / 2`` plus `alpha` times the sum of
    ``l1_ratio * abs(w) + (1 - l1_ratio) * w**2 / 2`` over all coefficients w is minimized, in
    float64 for any dtype of X. The intercept is not regularized; it replaces the bias
    column.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, above 0.
    l1_ratio : float, default=0.5
        Share of the L1 penalty, from 0 (only squares) to 1 (only absolute values).
    {features}
    {positive_factors}
    {fit_intercept}
    {tol}
    max_iter : int, default=1000
        Maximum number of Newton's iterations.
    {warm_start}
    {threads}

    Attributes
    ----------
    coef_ : ndarray of float64 of shape (n_columns,)
        Coefficients, in the order of `column_space_`.
    intercept_ : float
        The intercept.
    {fitted_columns}
    n_iter_ : int
        Number of Newton's iterations.
    {fitted_features}

    See Also
    --------
    PolynomialLasso : The same with only the L1 penalty.
    PolynomialLogisticRegression : The same for classes, with `l1_ratio`.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialElasticNet
    >>> X = np.random.default_rng(0).integers(0, 2, (50, 4))
    >>> y = 1 + X[:, 0] * X[:, 1]
    >>> model = PolynomialElasticNet(0.01, interaction_only=True).fit(X, y)
    >>> model.top_terms(1)["name"][0]
    'x0 x1'
    """

    alpha: float
    warm_start: bool
    n_iter_: int

    _kind = "elastic-net"
    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        **PolynomialModel._ranges,
        "alpha": RealRange(may_be_zero=False),
    }
    _bool_parameters = ("fit_intercept", "warm_start")

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
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
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : float or array-like of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        self : object
            Fitted model.
        """
        return self._fit(X, y, sample_weight)

    def path(
        self, X: Any, y: Any, sample_weight: Any = None, *, alphas: Any = 100, eps: float = 1e-3
    ) -> SparsePath:
        """Fit for many values of `alpha`, from the strongest penalty to the weakest.

        Each fit starts from the solution of the last. The model itself is not changed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : float or array-like of shape (n_samples,), optional
            Non-negative weights of the rows.
        alphas : int or array-like, default=100
            The values, or how many. If an int is given, values range from the smallest penalty with
            which all coefficients are 0 down to `eps` times that.
        eps : float, default=1e-3
            The weakest penalty relative to the strongest.

        Returns
        -------
        SparsePath
            The solutions. It prints as a table; `table()` returns it, `entries()` lists terms in
            the order in which they get a coefficient, and `plot_path()` draws them.

        Examples
        --------
        >>> import numpy as np
        >>> from polysparse import PolynomialElasticNet
        >>> X = np.random.default_rng(0).integers(0, 2, (100, 4))
        >>> y = X[:, 0] * X[:, 1]
        >>> path = PolynomialElasticNet(interaction_only=True).path(X, y, alphas=5)
        >>> path.entries(1)["name"][0]
        'x0 x1'
        """
        return path_of(self, (X, y, sample_weight), "alpha", alphas, eps)

    def _make_loss(self, rows: RowStore) -> SquaredLoss:
        _, weights = rows.describe()
        factor = 1 / (float(self.alpha) * weights.total)
        if not 0 < factor < np.inf:
            raise ValueError(
                f"alpha={self.alpha} times the sum of sample_weight is not above 0, or not finite. "
                "Bring alpha and weights closer to 1."
            )
        return SquaredLoss(factor)

    @property
    def _unit(self) -> float:
        return float(self.alpha)


@documented
class PolynomialLasso(PolynomialElasticNet):
    """Linear regression with an L1 penalty on polynomial features, without building them.

    Equivalent to scikit-learn's Lasso on the output of PolynomialFeatures, which is never built.
    Most coefficients are exactly 0, and only a working set of columns is computed from X.

    The weighted mean of ``(y - prediction)**2 / 2`` plus `alpha` times the sum of absolute
    coefficients is minimized, in float64, whatever the dtype of X is. The intercept is not
    regularized; it replaces the bias column.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, above 0.
    {features}
    {positive_factors}
    {fit_intercept}
    {tol}
    max_iter : int, default=1000
        Maximum number of Newton's iterations.
    {warm_start}
    {threads}

    Attributes
    ----------
    coef_ : ndarray of float64 of shape (n_columns,)
        Coefficients, in the order of `column_space_`.
    intercept_ : float
        The intercept.
    {fitted_columns}
    n_iter_ : int
        Number of Newton's iterations.
    {fitted_features}

    See Also
    --------
    PolynomialElasticNet : The same with squares in the penalty.
    PolynomialRidge : Squares alone.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialLasso
    >>> X = np.random.default_rng(0).integers(0, 2, (50, 4))
    >>> y = 1 + X[:, 0] * X[:, 1]
    >>> model = PolynomialLasso(0.01, interaction_only=True).fit(X, y)
    >>> list(model.top_terms()["name"])
    ['x0 x1']
    """

    _kind = "lasso"

    l1_ratio = 1.0

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
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())
