"""Regression of counts and amounts: Poisson, Gamma and Tweedie."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import d2_tweedie_score

from polysparse.basis.degrees import Degree
from polysparse.dispatch import dispatch
from polysparse.display.plotting import draw_means
from polysparse.estimators.shared import IntegerRange, RealRange
from polysparse.models.base import PolynomialModel
from polysparse.models.bootstrap import Bootstrap
from polysparse.models.calibration import CalibrationByMean, require_targets
from polysparse.models.docstrings import documented
from polysparse.models.losses.interface import Loss
from polysparse.models.losses.log_link import LogLinkLoss, exponentials
from polysparse.models.losses.squared import SquaredLoss
from polysparse.models.regressor import PolynomialRegressor
from polysparse.models.row_store import RowStore
from polysparse.models.sample_weight import as_offset, as_weights
from polysparse.models.sparse_path import SparsePath
from polysparse.models.sparse_penalty import SparsePenaltyMixin, path_of


class GeneralizedLinearModel(SparsePenaltyMixin, PolynomialRegressor):
    """A regression whose loss is half a deviance; a subclass has the power of its variance."""

    alpha: float
    penalty: str | None
    warm_start: bool
    n_iter_: int

    _power: Any  # of the mean: what variances are proportional to
    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        **PolynomialModel._ranges,
        "alpha": RealRange(may_be_zero=True),
    }
    _bool_parameters = ("fit_intercept", "warm_start")
    _link = "log"

    def __init__(
        self,
        alpha: float = 1.0,
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
        tol: float = 1e-6,
        max_iter: int = 100,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. The blocks of a dask array are computed once, and stay on their workers.
        y : array-like or dask array of shape (n_samples,)
            The targets.
        sample_weight : float, array-like or dask array of shape (n_samples,), optional
            Non-negative weights of the rows.
        offset : float, array-like or dask array of shape (n_samples,), optional
            Added to the linear predictor of each row. With a log link, pass the logarithm of the
            exposure of each row, such as the time in which its events were counted.

        Returns
        -------
        self : object
            Fitted model.
        """
        return self._fit(X, y, sample_weight, offset)

    def path(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        *,
        alphas: Any = 100,
        eps: float = 1e-3,
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
        offset : float or array-like of shape (n_samples,), optional
            Added to the linear predictor of each row, as in `fit`.
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
        >>> from polysparse import PolynomialPoissonRegressor
        >>> X = np.random.default_rng(0).integers(0, 2, (100, 4))
        >>> y = 1 + X[:, 0] * X[:, 1]
        >>> model = PolynomialPoissonRegressor(penalty="l1", interaction_only=True)
        >>> model.path(X, y, alphas=5).entries(1)["name"][0]
        'x0 x1'
        """
        return path_of(self, (X, y, sample_weight, offset), "alpha", alphas, eps)

    def bootstrap(
        self,
        X: Any,
        y: Any,
        n: int = 100,
        *,
        sample_weight: Any = None,
        offset: Any = None,
        method: str = "poisson",
        n_terms: int | None = 1000,
        tol: float = 1e-2,
        random_state: Any = None,
    ) -> Bootstrap:
        """Refit the model with random weights of the rows, to see how certain its terms are.

        As `PolynomialRidge.bootstrap`, which describes the other parameters, with the offset of
        `fit`.

        Parameters
        ----------
        X, y, n, sample_weight, method, n_terms, tol, random_state
            As there.
        offset : float or array-like of shape (n_samples,), optional
            Added to the linear predictor of each row: required if `fit` was passed one, and only
            then.

        Returns
        -------
        Bootstrap
            The replicates.
        """
        return self._bootstrap(X, y, n, sample_weight, offset, method, n_terms, tol, random_state)

    def _make_loss(self, rows: RowStore) -> Loss:
        targets = rows.describe_targets()
        with np.errstate(over="ignore", divide="ignore"):
            factor = float(np.float64(1) / self._unit / targets.weight)
        if not 0 < factor * targets.weight < np.inf:
            raise ValueError(
                f"The weights of rows, divided by their sum and by alpha={self.alpha}, are not "
                "above 0, or not finite. Bring alpha and weights closer to 1."
            )
        if self._link == "identity":
            return SquaredLoss(factor)
        loss = LogLinkLoss(self._power, factor)
        loss.require_valid(targets, has_intercept=bool(self.fit_intercept))
        return loss

    @property
    def _has_penalty(self) -> bool:
        return self.alpha > 0

    @property
    def _unit(self) -> float:
        return float(self.alpha) if self._has_penalty else 1.0

    @dispatch("predict", method="predict")
    def predict(self, X: Any, offset: Any = None) -> NDArray[np.float64]:
        """Predict means.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array} of shape (n_samples, n_features)
            The data. For a dask array, the result is lazy.
        offset : float, array-like or dask array of shape (n_samples,), optional
            Added to the linear predictor of each row, as in `fit`. Without it, a model with a log
            link predicts the mean for an exposure of 1.

        Returns
        -------
        ndarray of float64 of shape (n_samples,)
            Predicted means.
        """
        scores = self._scores(X)
        own = as_offset(offset, len(scores))
        if offset is None and self._held_out is not None:
            own = self._held_out.offset_of(X)
        return self._response(scores if own is None else scores + own, "predict")

    def _response(self, scores: NDArray[np.float64], method: str) -> NDArray[np.float64]:
        return scores if self._link == "identity" else exponentials(scores)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return D^2, the share of the deviance that the model explains.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows.
        offset : float or array-like of shape (n_samples,), optional
            Added to the linear predictor of each row, as in `fit`.

        Returns
        -------
        float
            1 less the deviance of the predictions, divided by that of the mean of y. If all y are
            equal, 1 if they are predicted exactly, otherwise 0, as of r2_score.
        """
        means = self.predict(X, offset)
        if np.ndim(y) == 1 and np.ptp(y) == 0:
            return float(np.array_equal(means, y))
        found = d2_tweedie_score(y, means, sample_weight=sample_weight, power=self._power)
        return float(found)

    def plot_calibration(
        self,
        X: Any,
        y: Any,
        *,
        n_bins: int = 10,
        sample_weight: Any = None,
        offset: Any = None,
        ax: Any = None,
    ) -> Any:
        """Draw the mean of the targets against the mean of the predictions, in bins.

        Rows are sorted by their predictions, and divided into bins of about equal weight. Where the
        line is on the diagonal, the model predicts the right mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data; preferably rows that the model was not fitted to.
        y : array-like of shape (n_samples,)
            The targets.
        n_bins : int, default=10
            Number of bins.
        sample_weight : float or array-like of shape (n_samples,), optional
            Non-negative weights of the rows.
        offset : float or array-like of shape (n_samples,), optional
            Added to the linear predictor of each row, as in `fit`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with a logarithmic scale if all means are above 0.
        """
        IntegerRange(1).require("n_bins", n_bins)
        means, targets = self.predict(X, offset), np.asarray(y)
        require_targets(targets, len(means), "target")
        calibration = CalibrationByMean()
        calibration.add(means, targets, as_weights(sample_weight, len(means)))
        return draw_means(calibration.bins(int(n_bins)), ax)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._link == "log"
        return tags


@documented
class PolynomialPoissonRegressor(GeneralizedLinearModel):
    """Poisson regression on polynomial features, for counts.

    Equivalent to scikit-learn's PoissonRegressor on the output of PolynomialFeatures, which is
    never built: matrix-vector products with it are computed from X. The logarithm of the mean is
    linear in these features. A fit needs memory for X and seven vectors of coefficients.

    Half the weighted mean of the Poisson deviance plus `alpha` / 2 times the sum of squared
    coefficients is minimized, by Newton's method with preconditioned conjugate gradients in
    float64. The intercept is not regularized; it replaces the bias column.

    {l1_penalty}

    Parameters
    ----------
    {alpha_or_none}
    {l1_ratio}
    {features}
    {penalty_factors}
    {fit_intercept}
    {tol}
    {max_iter_of_newton}
    {warm_start}
    {threads}

    Attributes
    ----------
    {fitted_by_newton}

    See Also
    --------
    PolynomialGammaRegressor : For positive amounts.
    PolynomialTweedieRegressor : For amounts that may be 0.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialPoissonRegressor
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> years = np.array([10.0, 20.0, 10.0, 5.0])
    >>> claims = [1, 2, 1, 10]  # of all years
    >>> model = PolynomialPoissonRegressor(1e-6).fit(X, claims, offset=np.log(years))
    >>> model.predict(X).round(2)  # in one year
    array([0.1, 0.1, 0.1, 2. ])
    >>> model.predict(X[3:], offset=np.log(2)).round(2)
    array([4.])
    """

    _kind = "poisson"
    _power = 1.0


@documented
class PolynomialGammaRegressor(GeneralizedLinearModel):
    """Gamma regression on polynomial features, for positive amounts.

    Equivalent to scikit-learn's GammaRegressor on the output of PolynomialFeatures, which is never
    built: matrix-vector products with it are computed from X. The logarithm of the mean is linear
    in these features. A fit needs memory for X and seven vectors of coefficients.

    Half the weighted mean of the Gamma deviance plus `alpha` / 2 times the sum of squared
    coefficients is minimized, by Newton's method with preconditioned conjugate gradients in
    float64. The intercept is not regularized; it replaces the bias column.

    {l1_penalty}

    Parameters
    ----------
    {alpha_or_none}
    {l1_ratio}
    {features}
    {penalty_factors}
    {fit_intercept}
    {tol}
    {max_iter_of_newton}
    {warm_start}
    {threads}

    Attributes
    ----------
    {fitted_by_newton}

    See Also
    --------
    PolynomialPoissonRegressor : For counts.
    PolynomialTweedieRegressor : For amounts that may be 0.

    Examples
    --------
    >>> from polysparse import PolynomialGammaRegressor
    >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> model = PolynomialGammaRegressor(1e-6).fit(X, [100, 100, 100, 500])
    >>> model.predict(X).round()
    array([100., 100., 100., 500.])
    """

    _kind = "gamma"
    _power = 2.0


@documented
class PolynomialTweedieRegressor(GeneralizedLinearModel):
    """Regression with a Tweedie deviance on polynomial features, without building them.

    Equivalent to scikit-learn's TweedieRegressor on the output of PolynomialFeatures, which is
    never built: matrix-vector products with it are computed from X. A fit needs memory for X and
    seven vectors of coefficients.

    Half the weighted mean of the deviance plus `alpha` / 2 times the sum of squared coefficients is
    minimized, by Newton's method with preconditioned conjugate gradients in float64. The intercept
    is not regularized; it replaces the bias column.

    {l1_penalty}

    Parameters
    ----------
    power : float, default=0.0
        The power of the mean that the variance of a target is proportional to: 0 for squared
        errors (normal distribution), 1 for counts (Poisson), between 1 and 2 for amounts that may
        be 0 (compound Poisson Gamma), 2 for positive amounts (Gamma). Other powers, which
        scikit-learn accepts, are refused: their objective is not convex, so that a fit could not
        tell whether it found the minimum.
    {alpha_or_none}
    {l1_ratio}
    link : {"auto", "identity", "log"}, default="auto"
        How a score becomes a mean: exp(score) if it is "log". "auto" is "identity" if `power` is 0,
        and otherwise "log"; no other combinations have a convex objective.
    {features}
    {penalty_factors}
    {fit_intercept}
    {tol}
    {max_iter_of_newton}
    {warm_start}
    {threads}

    Attributes
    ----------
    {fitted_by_newton}

    See Also
    --------
    PolynomialPoissonRegressor : The same with power=1.
    PolynomialGammaRegressor : The same with power=2.

    Examples
    --------
    >>> from polysparse import PolynomialTweedieRegressor
    >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 2
    >>> y = [10, 0, 0, 0, 10, 20, 20, 100]
    >>> model = PolynomialTweedieRegressor(power=1.5, alpha=1e-6).fit(X, y)
    >>> model.predict(X[:4]).round()
    array([10., 10., 10., 50.])
    """

    _kind = "tweedie"

    def __init__(
        self,
        *,
        power: float = 0.0,
        alpha: float = 1.0,
        l1_ratio: float = 0.0,
        penalty: str | None = None,
        link: str = "auto",
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
        max_iter: int = 100,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def _require_parameters(self) -> None:
        super()._require_parameters()
        power: Any = self.power
        is_real = isinstance(power, Real) and not isinstance(power, bool | np.bool_)
        if not is_real or not (power == 0 or 1 <= power <= 2):
            raise ValueError(
                f"power must be 0, or from 1 to 2; got {power!r}. For other powers, the objective "
                "is not convex."
            )
        links = ("auto", "identity" if power == 0 else "log")
        if self.link not in links:
            raise ValueError(
                f"link must be {links[0]!r} or {links[1]!r} if power={power}; got {self.link!r}. "
                "With another link, the objective is not convex."
            )

    @property
    def _power(self) -> float:
        return float(self.power)

    @property
    def _link(self) -> str:  # type: ignore[override]
        return "identity" if self.power == 0 else "log"
