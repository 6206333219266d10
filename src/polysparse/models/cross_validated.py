"""The models whose penalty is chosen by cross-validation: each as the plain model, with a `CV`."""

from __future__ import annotations

from typing import Any

from polysparse.models.amounts_cross_validation import CrossValidatedAmounts
from polysparse.models.choosing import Penalties
from polysparse.models.docstrings import documented
from polysparse.models.elastic_net import PolynomialElasticNet, PolynomialLasso
from polysparse.models.generalized import (
    PolynomialGammaRegressor,
    PolynomialPoissonRegressor,
    PolynomialTweedieRegressor,
)
from polysparse.models.logistic import PolynomialLogisticRegression
from polysparse.models.ridge import PolynomialRidge
from polysparse.models.ridge_cross_validation import CrossValidatedRidge
from polysparse.models.sparse_cross_validation import CrossValidatedLasso, CrossValidatedSparse
from polysparse.models.support_vectors import PolynomialLinearSVC, PolynomialLinearSVR

INVERSE = Penalties("C", (-4, 4))
OF_SUMS = Penalties("alpha", (-4, 4))
OF_MEANS = Penalties("alpha", (-6, 2))
RELATIVE = Penalties("alpha", (-3, 0))  # to the strongest penalty that matters


@documented
class PolynomialRidgeCV(CrossValidatedRidge, PolynomialRidge):
    """Ridge regression on polynomial features, with a cross-validated penalty.

    {choosing}

    Parameters
    ----------
    {alphas}
    {features}
    {penalty_factors}
    {fit_intercept}
    {cv}
    {tol}
    max_iter : int, default=5000
        Maximum number of iterations of each fit.
    {threads}

    Attributes
    ----------
    {chosen}
    coef_ : ndarray of float64 of shape (n_columns,) or (n_targets, n_columns)
        Coefficients, in the order of `column_space_`.
    intercept_ : float, or ndarray of float64 of shape (n_targets,)
        The intercept.
    n_iter_ : int
        Number of iterations of the fit to all rows.
    {fitted_columns}
    {fitted_features}

    See Also
    --------
    PolynomialRidge : The model with a given penalty.
    PolynomialLogisticRegressionCV : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (300, 8)).astype(float)
    >>> y = X[:, 0] * X[:, 1] + rng.standard_normal(300)
    >>> model = PolynomialRidgeCV([0.1, 1, 10, 100], interaction_only=True).fit(X, y)
    >>> model.alpha_
    100.0
    >>> model.scores_.shape
    (5, 4)
    >>> list(model.top_terms(1)["name"])
    ['x0 x1']
    """

    _plain = PolynomialRidge
    _penalties = OF_SUMS


@documented
class PolynomialLogisticRegressionCV(CrossValidatedSparse, PolynomialLogisticRegression):
    """Logistic regression on polynomial features, with a cross-validated penalty.

    {choosing}

    Parameters
    ----------
    {Cs}
    {l1_ratio}
    {features}
    {penalty_factors}
    {fit_intercept}
    {class_weight_of_plain}
    {cv}
    {tol}
    max_iter : int, default=100
        Maximum number of iterations of each fit.
    {threads}

    Attributes
    ----------
    {chosen}
    {fitted_classes}
    n_iter_ : ndarray of int32 of shape (1,)
        Number of Newton's iterations of the fit to all rows.
    {fitted_columns}
    {fitted_features}

    See Also
    --------
    PolynomialLogisticRegression : The model with a given penalty.
    PolynomialRidgeCV : The same for numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialLogisticRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (300, 8)).astype(float)
    >>> y = 2 * (X[:, 0] == X[:, 1]) - 1 + rng.logistic(size=300) > 0
    >>> model = PolynomialLogisticRegressionCV(6, scoring="neg_log_loss").fit(X, y)
    >>> round(model.C_, 4)
    0.1585
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    """

    _plain = PolynomialLogisticRegression
    _penalties = INVERSE


@documented
class PolynomialPoissonRegressorCV(CrossValidatedAmounts, PolynomialPoissonRegressor):
    """Poisson regression on polynomial features, with a cross-validated penalty.

    {choosing}

    Parameters
    ----------
    {alphas_of_means}
    {l1_ratio}
    {features}
    {penalty_factors}
    {fit_intercept}
    {cv}
    {tol}
    max_iter : int, default=100
        Maximum number of iterations of each fit.
    {threads}

    Attributes
    ----------
    {chosen}
    {fitted_numbers}
    {fitted_columns}
    {fitted_features}

    See Also
    --------
    PolynomialPoissonRegressor : The model with a given penalty.
    PolynomialGammaRegressorCV : For positive amounts.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialPoissonRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (300, 8)).astype(float)
    >>> years = rng.uniform(1, 3, 300)
    >>> claims = rng.poisson(years * np.exp(X[:, 0] * X[:, 1]))
    >>> model = PolynomialPoissonRegressorCV(5).fit(X, claims, offset=np.log(years))
    >>> model.alpha_
    0.01
    """

    _plain = PolynomialPoissonRegressor
    _penalties = OF_MEANS


@documented
class PolynomialGammaRegressorCV(CrossValidatedAmounts, PolynomialGammaRegressor):
    """Gamma regression on polynomial features, with a cross-validated penalty.

    {choosing}

    Parameters
    ----------
    {alphas_of_means}
    {l1_ratio}
    {features}
    {penalty_factors}
    {fit_intercept}
    {cv}
    {tol}
    max_iter : int, default=100
        Maximum number of iterations of each fit.
    {threads}

    Attributes
    ----------
    {chosen}
    {fitted_numbers}
    {fitted_columns}
    {fitted_features}

    See Also
    --------
    PolynomialGammaRegressor : The model with a given penalty.
    PolynomialPoissonRegressorCV : For counts.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialGammaRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (300, 8)).astype(float)
    >>> y = rng.gamma(2, np.exp(X[:, 0] * X[:, 1]))
    >>> model = PolynomialGammaRegressorCV(5).fit(X, y)
    >>> model.alpha_
    0.01
    """

    _plain = PolynomialGammaRegressor
    _penalties = OF_MEANS


@documented
class PolynomialTweedieRegressorCV(CrossValidatedAmounts, PolynomialTweedieRegressor):
    """Regression with a Tweedie deviance on polynomial features, with a cross-validated penalty.

    {choosing}

    Parameters
    ----------
    power : float, default=0.0
        The power of the mean that the variance of a target is proportional to: 0, or from 1 to 2.
    {alphas_of_means}
    {l1_ratio}
    link : {"auto", "identity", "log"}, default="auto"
        How a score becomes a mean.
    {features}
    {penalty_factors}
    {fit_intercept}
    {cv}
    {tol}
    max_iter : int, default=100
        Maximum number of iterations of each fit.
    {threads}

    Attributes
    ----------
    {chosen}
    {fitted_numbers}
    {fitted_columns}
    {fitted_features}

    See Also
    --------
    PolynomialTweedieRegressor : The model with a given penalty, and what its powers mean.
    PolynomialPoissonRegressorCV : The same with power=1.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialTweedieRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (300, 8)).astype(float)
    >>> y = rng.gamma(2, np.exp(X[:, 0] * X[:, 1])) * rng.integers(0, 2, 300)
    >>> model = PolynomialTweedieRegressorCV(power=1.5, alphas=5).fit(X, y)
    >>> model.alpha_
    1.0
    """

    _plain = PolynomialTweedieRegressor
    _penalties = OF_MEANS


@documented
class PolynomialLinearSVCCV(CrossValidatedSparse, PolynomialLinearSVC):
    """Linear support vector classification on polynomial features, with a cross-validated penalty.

    {choosing}

    Parameters
    ----------
    {Cs}
    {l1_ratio}
    {features}
    {penalty_factors}
    {fit_intercept}
    {intercept_scaling}
    {class_weight_of_plain}
    {cv}
    {tol}
    max_iter : int, default=100
        Maximum number of iterations of each fit.
    {threads}

    Attributes
    ----------
    {chosen}
    {fitted_classes}
    n_iter_ : int
        Number of Newton's iterations of the fit to all rows.
    {fitted_columns}
    {fitted_features}

    See Also
    --------
    PolynomialLinearSVC : The model with a given penalty.
    PolynomialLogisticRegressionCV : Classes with probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialLinearSVCCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (300, 8)).astype(float)
    >>> y = 2 * (X[:, 0] == X[:, 1]) - 1 + rng.logistic(size=300) > 0
    >>> model = PolynomialLinearSVCCV([0.001, 0.01, 0.1], scoring="roc_auc").fit(X, y)
    >>> model.C_
    0.1
    """

    _plain = PolynomialLinearSVC
    _penalties = INVERSE


@documented
class PolynomialLinearSVRCV(CrossValidatedSparse, PolynomialLinearSVR):
    """Linear support vector regression on polynomial features, with a cross-validated penalty.

    {choosing}

    Parameters
    ----------
    {Cs}
    {l1_ratio}
    epsilon : float, default=0.0
        Errors up to this size have no loss.
    {features}
    {penalty_factors}
    {fit_intercept}
    {intercept_scaling}
    {cv}
    {tol}
    max_iter : int, default=100
        Maximum number of iterations of each fit.
    {threads}

    Attributes
    ----------
    {chosen}
    {fitted_numbers}
    {fitted_columns}
    {fitted_features}

    See Also
    --------
    PolynomialLinearSVR : The model with a given penalty.
    PolynomialRidgeCV : Squared errors without a tube.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialLinearSVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (300, 8)).astype(float)
    >>> y = X[:, 0] * X[:, 1] + rng.standard_normal(300)
    >>> model = PolynomialLinearSVRCV([0.001, 0.01, 0.1, 1], epsilon=0.1).fit(X, y)
    >>> model.C_
    0.01
    """

    _plain = PolynomialLinearSVR
    _penalties = INVERSE


@documented
class PolynomialLassoCV(CrossValidatedLasso, PolynomialLasso):
    """Lasso on polynomial features, with a cross-validated penalty.

    {choosing}

    Parameters
    ----------
    {relative_alphas}
    {features}
    {positive_factors}
    {fit_intercept}
    {cv}
    {tol}
    max_iter : int, default=1000
        Maximum number of Newton's iterations of each fit.
    {threads}

    Attributes
    ----------
    {chosen}
    {fitted_numbers}
    {fitted_columns}
    {fitted_features}

    See Also
    --------
    PolynomialLasso : The model with a given penalty; its `path` shows all penalties.
    PolynomialRidgeCV : Squares alone in the penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialLassoCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (300, 8)).astype(float)
    >>> y = X[:, 0] * X[:, 1] + rng.standard_normal(300)
    >>> model = PolynomialLassoCV(selection="one_standard_error", interaction_only=True).fit(X, y)
    >>> list(model.top_terms(1)["name"])
    ['x0 x1']
    """

    _plain = PolynomialLasso
    _penalties = RELATIVE


@documented
class PolynomialElasticNetCV(CrossValidatedLasso, PolynomialElasticNet):
    """Elastic net on polynomial features, with a cross-validated penalty.

    {choosing}

    Parameters
    ----------
    {relative_alphas}
    l1_ratio : float, default=0.5
        Share of the L1 penalty, from 0 to 1.
    {features}
    {positive_factors}
    {fit_intercept}
    {cv}
    {tol}
    max_iter : int, default=1000
        Maximum number of Newton's iterations of each fit.
    {threads}

    Attributes
    ----------
    {chosen}
    {fitted_numbers}
    {fitted_columns}
    {fitted_features}

    See Also
    --------
    PolynomialElasticNet : The model with a given penalty; its `path` shows all penalties.
    PolynomialRidgeCV : Squares alone in the penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialElasticNetCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (300, 8)).astype(float)
    >>> y = X[:, 0] * X[:, 1] + rng.standard_normal(300)
    >>> model = PolynomialElasticNetCV(interaction_only=True).fit(X, y)
    >>> list(model.top_terms(1)["name"])
    ['x0 x1']
    """

    _plain = PolynomialElasticNet
    _penalties = RELATIVE


# By the names that the command line has for them.
CROSS_VALIDATED: dict[str, Any] = {
    model._kind: model
    for model in (
        PolynomialLogisticRegressionCV,
        PolynomialRidgeCV,
        PolynomialLassoCV,
        PolynomialElasticNetCV,
        PolynomialPoissonRegressorCV,
        PolynomialGammaRegressorCV,
        PolynomialTweedieRegressorCV,
        PolynomialLinearSVCCV,
        PolynomialLinearSVRCV,
    )
}
