"""PolynomialLogisticRegression on Spark, fitted to rows where they are, without an expansion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import keyword_only
from pyspark.ml import Estimator
from pyspark.ml.linalg import VectorUDT
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasProbabilityCol, HasRawPredictionCol
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, DoubleType, StructType

from polysparse.models.logistic import PolynomialLogisticRegression as InPython
from polysparse.spark.fitted import FittedModel, Predictor
from polysparse.spark.fitting import fit_in_python, require_fittable
from polysparse.spark.model_params import ModelParams, ModelSetters
from polysparse.spark.vectors import as_vectors

ClassWeight = str | dict[float, float] | None


def to_class_weight(value: Any) -> ClassWeight:
    """Convert to a string or a dict of numbers, unless it is None. JSON makes keys strings."""
    if isinstance(value, Mapping):
        return {float(label): float(weight) for label, weight in value.items()}
    return None if value is None else TypeConverters.toString(value)


class LogisticParams(
    ModelParams,
    HasProbabilityCol,  # type: ignore[misc]
    HasRawPredictionCol,  # type: ignore[misc]
):
    """The params of PolynomialLogisticRegression and of its model."""

    C = Param(
        Params._dummy(),
        "C",
        "inverse of the strength of the penalty (> 0), as in scikit-learn: MLlib's regParam is "
        "1 / (C * sum of weights)",
        typeConverter=TypeConverters.toFloat,
    )
    classWeight = Param(
        Params._dummy(),
        "classWeight",
        'None, "balanced", which gives all classes the same weight in sum, or a dict with the '
        "weight of each label, by which those of its rows are multiplied",
        typeConverter=to_class_weight,
    )

    def getC(self) -> float:
        """Return the value of C, or its default."""
        return self.getOrDefault(self.C)  # type: ignore[no-any-return]

    def getClassWeight(self) -> ClassWeight:
        """Return the value of classWeight, or its default."""
        return self.getOrDefault(self.classWeight)  # type: ignore[no-any-return]

    def setProbabilityCol(self, value: str) -> LogisticParams:
        """Set the value of probabilityCol."""
        return self._set(probabilityCol=value)  # type: ignore[no-any-return]

    def setRawPredictionCol(self, value: str) -> LogisticParams:
        """Set the value of rawPredictionCol."""
        return self._set(rawPredictionCol=value)  # type: ignore[no-any-return]

    def _set_defaults(self) -> None:
        super()._set_defaults()
        self._setDefault(C=1.0, classWeight=None, maxIter=100)

    def _outputs(self) -> dict[str, DataType]:
        kinds = {"rawPrediction": VectorUDT(), "probability": VectorUDT()}
        every = {**kinds, "prediction": DoubleType()}
        return {name: kind for name, kind in every.items() if self.getOrDefault(f"{name}Col")}


class PolynomialLogisticRegression(
    LogisticParams,
    ModelSetters,
    Estimator,  # type: ignore[misc]
    DefaultParamsReadable,  # type: ignore[misc]
    DefaultParamsWritable,  # type: ignore[misc]
):
    """Logistic regression on polynomial features that are never built.

    The model is `polysparse.PolynomialLogisticRegression`, fitted to all rows of a dataset where
    they are: each pass is a job that sums what the partitions contribute, and only vectors of
    coefficients travel. It is the same but for rounding however the rows are partitioned.

    `C` times the weighted sum of the log losses, plus half the sum of squared coefficients, is
    minimised. Features are not standardised. It is the objective of MLlib's LogisticRegression with
    standardization=False and regParam = 1 / (C * sum of weights), on PolynomialExpansion.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the strength of the penalty.
    degree : int or pair (min_degree, max_degree), default=2
        Degrees of the features. If a single int is given, it is the maximum degree.
    interactionOnly : bool, default=False
        If True, only products of distinct features are used.
    columns : {"all", "observed", "hashed"}, default="all"
        Which products have a coefficient: all, those that occur, or `nColumns` columns that
        products are hashed to.
    minCount, maxColumns : int
        As in ObservedPolynomialFeatures, if columns are observed.
    nColumns : int, default=2**20
        As in HashedPolynomialFeatures, if columns are hashed.
    fitIntercept : bool, default=True
        If False, the intercept is 0.
    classWeight : dict or "balanced", optional
        Weights of the labels, by which those of their rows are multiplied; a label that is not in
        the dict has a weight of 1. "balanced" gives all classes the same weight in sum.
    tol : float, default=1e-6
        The fit ends when the objective is estimated to be within `tol` times its value of its
        minimum.
    maxIter : int, default=100
        Maximum number of iterations. Each takes some passes.
    verbose : int, default=0
        If not 0, the driver prints a line for each iteration.
    featuresCol, labelCol, weightCol : str
        Columns of vectors, of classes, which may be any numbers, and of weights.
    predictionCol, probabilityCol, rawPredictionCol : str
        Columns that the model adds. That of an empty name is left out.

    See Also
    --------
    PolynomialRidge : The same for numbers.

    Notes
    -----
    Rows are packed once and kept by Spark for the time of the fit, in memory or on disk. A row with
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

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        C: float = 1.0,
        degree: int | tuple[int, int] | list[int] = 2,
        interactionOnly: bool = False,
        columns: str = "all",
        minCount: int = 1,
        maxColumns: int | None = None,
        nColumns: int = 2**20,
        fitIntercept: bool = True,
        classWeight: ClassWeight = None,
        tol: float = 1e-6,
        maxIter: int = 100,
        verbose: int = 0,
        featuresCol: str = "features",
        labelCol: str = "label",
        weightCol: str | None = None,
        predictionCol: str = "prediction",
        probabilityCol: str = "probability",
        rawPredictionCol: str = "rawPrediction",
    ) -> None:
        super().__init__()
        self._set_defaults()
        self._set(**self._input_kwargs)

    @keyword_only  # type: ignore[untyped-decorator]
    def setParams(
        self,
        *,
        C: float = 1.0,
        degree: int | tuple[int, int] | list[int] = 2,
        interactionOnly: bool = False,
        columns: str = "all",
        minCount: int = 1,
        maxColumns: int | None = None,
        nColumns: int = 2**20,
        fitIntercept: bool = True,
        classWeight: ClassWeight = None,
        tol: float = 1e-6,
        maxIter: int = 100,
        verbose: int = 0,
        featuresCol: str = "features",
        labelCol: str = "label",
        weightCol: str | None = None,
        predictionCol: str = "prediction",
        probabilityCol: str = "probability",
        rawPredictionCol: str = "rawPrediction",
    ) -> PolynomialLogisticRegression:
        """Set the params that are given."""
        return self._set(**self._input_kwargs)  # type: ignore[no-any-return]

    def setC(self, value: float) -> PolynomialLogisticRegression:
        """Set the value of C."""
        return self._set(C=value)  # type: ignore[no-any-return]

    def setClassWeight(self, value: ClassWeight) -> PolynomialLogisticRegression:
        """Set the value of classWeight."""
        return self._set(classWeight=value)  # type: ignore[no-any-return]

    def transformSchema(self, schema: StructType) -> StructType:
        """Return the schema of what the model returns for a dataset of a schema.

        Parameters
        ----------
        schema : StructType
            Schema of a dataset. IllegalArgumentException is raised if it cannot be fitted to.

        Returns
        -------
        StructType
            The same with the output columns.
        """
        require_fittable(self, schema)
        out = StructType(list(schema.fields))
        for name, kind in self._outputs().items():
            out = out.add(self.getOrDefault(f"{name}Col"), kind)
        return out

    def _fit(self, dataset: DataFrame) -> PolynomialLogisticRegressionModel:
        model = InPython(self.getC(), class_weight=self.getClassWeight(), **self._shared())
        fit_in_python(self, model, dataset)
        stage = PolynomialLogisticRegressionModel(model)
        return self._copyValues(stage._resetUid(self.uid))  # type: ignore[no-any-return]


def columns_of(model: InPython, X: Any) -> dict[str, pa.Array]:
    """Return the predictions for rows, on a worker."""
    scores = model._scores(X)
    raw = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
    return {
        "rawPrediction": as_vectors(raw),
        "probability": as_vectors(model._response(scores, "predict_proba")),
        "prediction": pa.array(model._response(scores, "predict").astype(np.float64)),
    }


class PolynomialLogisticRegressionModel(LogisticParams, FittedModel):
    """A fitted model as a Transformer. Made by `PolynomialLogisticRegression.fit`.

    `transform` multiplies rows with coefficients, and never builds an expansion. As MLlib's model,
    it adds scores (two classes have two, of opposite sign), probabilities and predictions.

    Attributes
    ----------
    model : polysparse.PolynomialLogisticRegression
        The fitted model in Python, with all that it can tell and write.
    coefficients : ndarray of float64 of shape (1, n_columns) or (n_classes, n_columns)
        Coefficients of the products.
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

    def _predictor(self) -> Predictor:
        return columns_of

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """Coefficients of the products, in the order of `model.column_space_`."""
        return self.model.coef_  # type: ignore[no-any-return]

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
