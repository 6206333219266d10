"""Regression of counts and amounts on Spark, fitted on executors without an expansion."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from polysparse.models import generalized as in_python
from polysparse.spark.fitted import FittedModel
from polysparse.spark.model_estimator import ModelEstimator
from polysparse.spark.model_params import COLUMN_PARAMS, SOLVER_PARAMS, TERM_PARAMS
from polysparse.spark.params import has_params
from polysparse.spark.schema import column_named

_OTHERS = (*TERM_PARAMS, "fitIntercept", *SOLVER_PARAMS, *COLUMN_PARAMS, "offsetCol")
_has_params = partial(has_params, "alpha", *_OTHERS)
_has_tweedie_params = partial(has_params, "power", "alpha", "link", *_OTHERS)


class GeneralizedModel(FittedModel):
    """What the fitted models of counts and amounts share."""

    @staticmethod
    def _predict(model: Any, X: Any) -> dict[str, pa.Array]:
        return {"prediction": pa.array(model.predict(X))}

    def _with_offset(self, name: str, predicted: Column) -> Column:
        column = self._offset_column()
        if column is None:
            return predicted
        offset = column_named(column).cast("double")
        return predicted * F.exp(offset) if self.model._link == "log" else predicted + offset

    @property
    def intercept(self) -> float:
        """The intercept."""
        return float(self.model.intercept_)


@_has_params(is_fitted=True)
class PolynomialPoissonRegressorModel(GeneralizedModel):
    """A fitted model as a Transformer. Made by `PolynomialPoissonRegressor.fit`.

    `transform` multiplies rows with coefficients, without an expansion.

    Attributes
    ----------
    model : polysparse.PolynomialPoissonRegressor
        The fitted model in Python, with all its methods.
    coefficients : ndarray of float64 of shape (n_columns,)
        Coefficients of the terms.
    intercept : float
        The intercept.
    numFeatures : int
        Number of features.

    Examples
    --------
    >>> from polysparse.spark import PolynomialPoissonRegressor
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(Vectors.dense(1.0, 2.0), 5.0), (Vectors.dense(3.0, 4.0), 6.0)]
    >>> df = spark.createDataFrame(rows, ["features", "label"])
    >>> PolynomialPoissonRegressor(degree=1).fit(df).coefficients.shape
    (2,)
    """


@_has_params()
class PolynomialPoissonRegressor(ModelEstimator):
    """Poisson regression on polynomial features, without an expansion.

    The model is `polysparse.PolynomialPoissonRegressor`, fitted to all rows of a dataset on the
    executors: each pass is a job that adds up contributions of partitions, and only vectors of
    coefficients are sent. The result does not depend on the partitions, except for rounding.

    Half the weighted mean of the Poisson deviance plus `alpha` / 2 times the sum of squared
    coefficients is minimized. Features are not standardized.

    See Also
    --------
    PolynomialTweedieRegressor : For amounts that may be 0.

    Examples
    --------
    >>> from polysparse.spark import PolynomialPoissonRegressor
    >>> from pyspark.ml.linalg import Vectors
    >>> from math import log
    >>> rows = [(0.0, 0.0, 10, 1), (0.0, 1.0, 20, 2), (1.0, 0.0, 10, 1), (1.0, 1.0, 5, 10)]
    >>> df = spark.createDataFrame(
    ...     [(Vectors.dense(a, b), log(years), float(claims)) for a, b, years, claims in rows],
    ...     ["features", "exposure", "label"],
    ... )
    >>> model = PolynomialPoissonRegressor(alpha=1e-6, offsetCol="exposure").fit(df)
    >>> [round(row.prediction, 2) for row in model.transform(df).collect()]
    [1.0, 2.0, 1.0, 10.0]
    """

    _python_class = in_python.PolynomialPoissonRegressor
    _fitted_class = PolynomialPoissonRegressorModel


@_has_params(is_fitted=True)
class PolynomialGammaRegressorModel(GeneralizedModel):
    """A fitted model as a Transformer. Made by `PolynomialGammaRegressor.fit`.

    `transform` multiplies rows with coefficients, without an expansion.

    Attributes
    ----------
    model : polysparse.PolynomialGammaRegressor
        The fitted model in Python, with all its methods.
    coefficients : ndarray of float64 of shape (n_columns,)
        Coefficients of the terms.
    intercept : float
        The intercept.
    numFeatures : int
        Number of features.

    Examples
    --------
    >>> from polysparse.spark import PolynomialGammaRegressor
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(Vectors.dense(1.0, 2.0), 5.0), (Vectors.dense(3.0, 4.0), 6.0)]
    >>> df = spark.createDataFrame(rows, ["features", "label"])
    >>> PolynomialGammaRegressor(degree=1).fit(df).coefficients.shape
    (2,)
    """


@_has_params()
class PolynomialGammaRegressor(ModelEstimator):
    """Gamma regression on polynomial features, without an expansion.

    The model is `polysparse.PolynomialGammaRegressor`, fitted to all rows of a dataset on the
    executors: each pass is a job that adds up contributions of partitions, and only vectors of
    coefficients are sent. The result does not depend on the partitions, except for rounding.

    Half the weighted mean of the Gamma deviance plus `alpha` / 2 times the sum of squared
    coefficients is minimized. Features are not standardized.

    See Also
    --------
    PolynomialPoissonRegressor : For counts.

    Examples
    --------
    >>> from polysparse.spark import PolynomialGammaRegressor
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(0.0, 0.0, 1.0), (0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 5.0)]
    >>> df = spark.createDataFrame(
    ...     [(Vectors.dense(a, b), label) for a, b, label in rows], ["features", "label"]
    ... )
    >>> model = PolynomialGammaRegressor(alpha=1e-6).fit(df)
    >>> [round(row.prediction, 2) for row in model.transform(df).collect()]
    [1.0, 1.0, 1.0, 5.0]
    """

    _python_class = in_python.PolynomialGammaRegressor
    _fitted_class = PolynomialGammaRegressorModel


@_has_tweedie_params(is_fitted=True)
class PolynomialTweedieRegressorModel(GeneralizedModel):
    """A fitted model as a Transformer. Made by `PolynomialTweedieRegressor.fit`.

    `transform` multiplies rows with coefficients, without an expansion.

    Attributes
    ----------
    model : polysparse.PolynomialTweedieRegressor
        The fitted model in Python, with all its methods.
    coefficients : ndarray of float64 of shape (n_columns,)
        Coefficients of the terms.
    intercept : float
        The intercept.
    numFeatures : int
        Number of features.

    Examples
    --------
    >>> from polysparse.spark import PolynomialTweedieRegressor
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(Vectors.dense(1.0, 2.0), 0.0), (Vectors.dense(3.0, 4.0), 6.0)]
    >>> df = spark.createDataFrame(rows, ["features", "label"])
    >>> PolynomialTweedieRegressor(power=1.5, degree=1).fit(df).coefficients.shape
    (2,)
    """


@_has_tweedie_params()
class PolynomialTweedieRegressor(ModelEstimator):
    """Regression with a Tweedie deviance on polynomial features, without an expansion.

    The model is `polysparse.PolynomialTweedieRegressor`, fitted to all rows of a dataset on the
    executors: each pass is a job that adds up contributions of partitions, and only vectors of
    coefficients are sent. The result does not depend on the partitions, except for rounding.

    Half the weighted mean of the deviance plus `alpha` / 2 times the sum of squared coefficients is
    minimized. Features are not standardized.

    See Also
    --------
    PolynomialPoissonRegressor : The same with power=1.

    Examples
    --------
    >>> from polysparse.spark import PolynomialTweedieRegressor
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(0.0, 10.0), (0.0, 10.0), (1.0, 0.0), (1.0, 100.0)]
    >>> df = spark.createDataFrame([(Vectors.dense(a), y) for a, y in rows], ["features", "label"])
    >>> model = PolynomialTweedieRegressor(power=1.5, alpha=1e-6).fit(df)
    >>> [round(row.prediction) for row in model.transform(df).collect()]
    [10, 10, 50, 50]
    """

    _python_class = in_python.PolynomialTweedieRegressor
    _fitted_class = PolynomialTweedieRegressorModel
