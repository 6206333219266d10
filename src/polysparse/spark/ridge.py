"""PolynomialRidge on Spark, fitted on executors without an expansion."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from polysparse.models.ridge import PolynomialRidge as InPython
from polysparse.spark.fitted import FittedModel
from polysparse.spark.model_estimator import ModelEstimator
from polysparse.spark.model_params import COLUMN_PARAMS, SOLVER_PARAMS, TERM_PARAMS
from polysparse.spark.params import has_params

_has_ridge_params = partial(
    has_params, "alpha", *TERM_PARAMS, "fitIntercept", *SOLVER_PARAMS, *COLUMN_PARAMS, maxIter=5000
)


@_has_ridge_params(is_fitted=True)
class PolynomialRidgeModel(FittedModel):
    """A fitted model as a Transformer. Made by `PolynomialRidge.fit`.

    `transform` multiplies rows with coefficients, without an expansion.

    Attributes
    ----------
    model : polysparse.PolynomialRidge
        The fitted model in Python, with all its methods.
    coefficients : ndarray of float64 of shape (n_columns,)
        Coefficients of the terms.
    intercept : float
        The intercept.
    numFeatures : int
        Number of features.

    Examples
    --------
    >>> from polysparse.spark import PolynomialRidge
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(Vectors.dense(1.0, 2.0), 5.0), (Vectors.dense(3.0, 4.0), 6.0)]
    >>> df = spark.createDataFrame(rows, ["features", "label"])
    >>> PolynomialRidge(degree=1).fit(df).coefficients.shape
    (2,)
    """

    @staticmethod
    def _predict(model: InPython, X: Any) -> dict[str, pa.Array]:
        return {"prediction": pa.array(model.predict(X))}

    @property
    def intercept(self) -> float:
        """The intercept."""
        return float(self.model.intercept_)


@_has_ridge_params()
class PolynomialRidge(ModelEstimator):
    """Ridge regression on polynomial features, without an expansion.

    The model is `polysparse.PolynomialRidge`, fitted to all rows of a dataset on the executors:
    each pass is a job that adds up contributions of partitions, and only vectors of coefficients
    are sent. The result does not depend on the partitions, except for rounding.

    The sum of ``weight * (label - prediction) ** 2`` plus `alpha` times the sum of squared
    coefficients is minimized. Features are not standardized. It is the objective of MLlib's
    LinearRegression with standardization=False and regParam = alpha / sum of weights, on
    PolynomialExpansion.

    See Also
    --------
    PolynomialLogisticRegression : The same for classes.

    Examples
    --------
    >>> from polysparse.spark import PolynomialRidge
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (2.0, 3.0)]
    >>> df = spark.createDataFrame(
    ...     [(Vectors.dense(a, b), 1 + a * b) for a, b in rows], ["features", "label"]
    ... )
    >>> model = PolynomialRidge(alpha=1e-6, interactionOnly=True).fit(df)
    >>> new = spark.createDataFrame([(Vectors.dense(5.0, 2.0),)], ["features"])
    >>> round(model.transform(new).first().prediction, 3)
    11.0
    """

    _python_class = InPython
    _fitted_class = PolynomialRidgeModel
