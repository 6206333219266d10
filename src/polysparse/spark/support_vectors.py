"""Linear support vector machines on Spark, fitted on executors without an expansion."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.ml.linalg import VectorUDT
from pyspark.ml.param.shared import HasRawPredictionCol
from pyspark.sql.types import DataType

from polysparse.models import support_vectors as in_python
from polysparse.spark.fitted import FittedModel
from polysparse.spark.model_estimator import ModelEstimator
from polysparse.spark.model_params import COLUMN_PARAMS, SOLVER_PARAMS, TERM_PARAMS, ModelParams
from polysparse.spark.params import has_params
from polysparse.spark.vectors import as_vectors

_has_svc_params = partial(
    has_params,
    "C",
    *TERM_PARAMS,
    "fitIntercept",
    "interceptScaling",
    "classWeight",
    *SOLVER_PARAMS,
    *COLUMN_PARAMS,
    "rawPredictionCol",
)
_has_svr_params = partial(
    has_params,
    "C",
    "epsilon",
    *TERM_PARAMS,
    "fitIntercept",
    "interceptScaling",
    *SOLVER_PARAMS,
    *COLUMN_PARAMS,
)


class MarginParams(ModelParams, HasRawPredictionCol):  # type: ignore[misc]
    """The outputs of PolynomialLinearSVC and of its model."""

    def _predicted(self) -> dict[str, DataType]:
        return {"rawPrediction": VectorUDT(), **super()._predicted()}


@_has_svc_params(is_fitted=True)
class PolynomialLinearSVCModel(MarginParams, FittedModel):
    """A fitted model as a Transformer. Made by `PolynomialLinearSVC.fit`.

    `transform` multiplies rows with coefficients, without an expansion. As MLlib's model, it adds
    scores (two classes have two, of opposite sign) and predictions.

    Attributes
    ----------
    model : polysparse.PolynomialLinearSVC
        The fitted model in Python, with all its methods.
    coefficients : ndarray of float64 of shape (1, n_columns) or (n_classes, n_columns)
        Coefficients of the terms.
    intercepts : ndarray of float64 of shape (1,) or (n_classes,)
        The intercepts.
    classes : ndarray of float64
        The labels, in the order of scores.
    numClasses, numFeatures : int
        Numbers of classes and of features.

    Examples
    --------
    >>> from polysparse.spark import PolynomialLinearSVC
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(Vectors.dense(1.0, 2.0), 0.0), (Vectors.dense(3.0, 4.0), 1.0)]
    >>> df = spark.createDataFrame(rows, ["features", "label"])
    >>> PolynomialLinearSVC(interactionOnly=True).fit(df).numClasses
    2
    """

    @staticmethod
    def _predict(model: Any, X: Any) -> dict[str, pa.Array]:
        scores = model._scores(X)
        raw = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
        return {
            "rawPrediction": as_vectors(raw),
            "prediction": pa.array(model._response(scores, "predict").astype(np.float64)),
        }

    @property
    def intercepts(self) -> NDArray[np.float64]:
        """The intercepts."""
        return self.model.intercept_  # type: ignore[no-any-return]

    @property
    def classes(self) -> NDArray[np.float64]:
        """The labels, in the order of scores."""
        return self.model.classes_  # type: ignore[no-any-return]

    @property
    def numClasses(self) -> int:
        """Number of classes."""
        return len(self.classes)


@_has_svc_params()
class PolynomialLinearSVC(MarginParams, ModelEstimator):
    """Linear support vector classification on polynomial features, without an expansion.

    The model is `polysparse.PolynomialLinearSVC`, fitted to all rows of a dataset on the executors:
    each pass is a job that adds up contributions of partitions, and only vectors of coefficients
    are sent. The result does not depend on the partitions, except for rounding.

    `C` times the weighted sum of squared hinge losses, plus half the sum of squared coefficients,
    is minimized. Features are not standardized. MLlib's LinearSVC has the hinge loss itself.

    See Also
    --------
    PolynomialLogisticRegression : Classes with probabilities.

    Examples
    --------
    >>> from polysparse.spark import PolynomialLinearSVC
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 1.0)]
    >>> df = spark.createDataFrame(
    ...     [(Vectors.dense(a, b), label) for a, b, label in rows], ["features", "label"]
    ... )
    >>> model = PolynomialLinearSVC(C=100.0).fit(df)
    >>> [row.prediction for row in model.transform(df).collect()]
    [1.0, 0.0, 0.0, 1.0]
    """

    _python_class = in_python.PolynomialLinearSVC
    _fitted_class = PolynomialLinearSVCModel


@_has_svr_params(is_fitted=True)
class PolynomialLinearSVRModel(FittedModel):
    """A fitted model as a Transformer. Made by `PolynomialLinearSVR.fit`.

    `transform` multiplies rows with coefficients, without an expansion.

    Attributes
    ----------
    model : polysparse.PolynomialLinearSVR
        The fitted model in Python, with all its methods.
    coefficients : ndarray of float64 of shape (n_columns,)
        Coefficients of the terms.
    intercept : float
        The intercept.
    numFeatures : int
        Number of features.

    Examples
    --------
    >>> from polysparse.spark import PolynomialLinearSVR
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(Vectors.dense(1.0, 2.0), 5.0), (Vectors.dense(3.0, 4.0), 6.0)]
    >>> df = spark.createDataFrame(rows, ["features", "label"])
    >>> PolynomialLinearSVR(degree=1).fit(df).coefficients.shape
    (2,)
    """

    @staticmethod
    def _predict(model: Any, X: Any) -> dict[str, pa.Array]:
        return {"prediction": pa.array(model.predict(X))}

    @property
    def intercept(self) -> float:
        """The intercept."""
        return float(self.model.intercept_)


@_has_svr_params()
class PolynomialLinearSVR(ModelEstimator):
    """Linear support vector regression on polynomial features, without an expansion.

    The model is `polysparse.PolynomialLinearSVR`, fitted to all rows of a dataset on the executors:
    each pass is a job that adds up contributions of partitions, and only vectors of coefficients
    are sent. The result does not depend on the partitions, except for rounding.

    `C` times the weighted sum of squared epsilon-insensitive losses, plus half the sum of squared
    coefficients, is minimized. Features are not standardized.

    See Also
    --------
    PolynomialRidge : Squared errors.

    Examples
    --------
    >>> from polysparse.spark import PolynomialLinearSVR
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (2.0, 3.0)]
    >>> df = spark.createDataFrame(
    ...     [(Vectors.dense(a, b), 1 + a * b) for a, b in rows], ["features", "label"]
    ... )
    >>> model = PolynomialLinearSVR(C=1e6, interactionOnly=True).fit(df)
    >>> new = spark.createDataFrame([(Vectors.dense(5.0, 2.0),)], ["features"])
    >>> round(model.transform(new).first().prediction, 2)
    11.0
    """

    _python_class = in_python.PolynomialLinearSVR
    _fitted_class = PolynomialLinearSVRModel
