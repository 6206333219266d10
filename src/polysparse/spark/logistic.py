"""PolynomialLogisticRegression on Spark, fitted on executors without an expansion."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.ml.linalg import VectorUDT
from pyspark.ml.param.shared import HasProbabilityCol, HasRawPredictionCol
from pyspark.sql.types import DataType

from polysparse.models.logistic import PolynomialLogisticRegression as InPython
from polysparse.spark.fitted import FittedModel
from polysparse.spark.model_estimator import ModelEstimator
from polysparse.spark.model_params import COLUMN_PARAMS, SOLVER_PARAMS, TERM_PARAMS, ModelParams
from polysparse.spark.params import has_params
from polysparse.spark.vectors import as_vectors

_has_logistic_params = partial(
    has_params,
    "C",
    *TERM_PARAMS,
    "fitIntercept",
    "classWeight",
    *SOLVER_PARAMS,
    *COLUMN_PARAMS,
    "probabilityCol",
    "rawPredictionCol",
)


class LogisticParams(
    ModelParams,
    HasProbabilityCol,  # type: ignore[misc]
    HasRawPredictionCol,  # type: ignore[misc]
):
    """The outputs of PolynomialLogisticRegression and of its model."""

    def _predicted(self) -> dict[str, DataType]:
        vectors = {"rawPrediction": VectorUDT(), "probability": VectorUDT()}
        return {**vectors, **super()._predicted()}


@_has_logistic_params(is_fitted=True)
class PolynomialLogisticRegressionModel(LogisticParams, FittedModel):
    """A fitted model as a Transformer. Made by `PolynomialLogisticRegression.fit`.

    `transform` multiplies rows with coefficients, without an expansion. As MLlib's model,
    it adds scores (two classes have two, of opposite sign), probabilities and predictions.

    Attributes
    ----------
    model : polysparse.PolynomialLogisticRegression
        The fitted model in Python, with all its methods.
    coefficients : ndarray of float64 of shape (1, n_columns) or (n_classes, n_columns)
        Coefficients of the terms.
    intercepts : ndarray of float64 of shape (1,) or (n_classes,)
        The intercepts.
    classes : ndarray of float64
        The labels, in the order of probabilities.
    numClasses, numFeatures : int
        Numbers of classes and of features.

    Examples
    --------
    >>> from polysparse.spark import PolynomialLogisticRegression
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(Vectors.dense(1.0, 2.0), 0.0), (Vectors.dense(3.0, 4.0), 1.0)]
    >>> df = spark.createDataFrame(rows, ["features", "label"])
    >>> model = PolynomialLogisticRegression(interactionOnly=True).fit(df)
    >>> model.numClasses, list(model.model.top_terms(1)["name"])
    (2, ['x0 x1'])
    """

    @staticmethod
    def _predict(model: InPython, X: Any) -> dict[str, pa.Array]:
        scores = model._scores(X)
        raw = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
        return {
            "rawPrediction": as_vectors(raw),
            "probability": as_vectors(model._response(scores, "predict_proba")),
            "prediction": pa.array(model._response(scores, "predict").astype(np.float64)),
        }

    @property
    def intercepts(self) -> NDArray[np.float64]:
        """The intercepts."""
        return self.model.intercept_  # type: ignore[no-any-return]

    @property
    def classes(self) -> NDArray[np.float64]:
        """The labels, in the order of probabilities."""
        return self.model.classes_  # type: ignore[no-any-return]

    @property
    def numClasses(self) -> int:
        """Number of classes."""
        return len(self.classes)


@_has_logistic_params()
class PolynomialLogisticRegression(LogisticParams, ModelEstimator):
    """Logistic regression on polynomial features, without an expansion.

    The model is `polysparse.PolynomialLogisticRegression`, fitted to all rows of a dataset on the
    executors: each pass is a job that adds up contributions of partitions, and only vectors of
    coefficients are sent. The result does not depend on the partitions, except for rounding.

    `C` times the weighted sum of the log losses, plus half the sum of squared coefficients, is
    minimized. Features are not standardized. It is the objective of MLlib's LogisticRegression with
    standardization=False and regParam = 1 / (C * sum of weights), on PolynomialExpansion.

    See Also
    --------
    PolynomialRidge : The same for numbers.

    Notes
    -----
    Rows are packed once and cached by Spark during the fit, in memory or on disk. A row with
    n stored features takes about 6 n bytes if there are fewer than 65,536 features and float32
    holds their values, else 12 n.

    Examples
    --------
    >>> from polysparse.spark import PolynomialLogisticRegression
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 1.0)]
    >>> df = spark.createDataFrame(
    ...     [(Vectors.dense(a, b), label) for a, b, label in rows], ["features", "label"]
    ... )
    >>> model = PolynomialLogisticRegression(C=100.0).fit(df)
    >>> [row.prediction for row in model.transform(df).collect()]
    [1.0, 0.0, 0.0, 1.0]
    """

    _python_class = InPython
    _fitted_class = PolynomialLogisticRegressionModel
