"""PolynomialRidge on Spark, fitted to rows where they are, without an expansion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import keyword_only
from pyspark.ml import Estimator
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, DoubleType, StructType

from polysparse.models.ridge import PolynomialRidge as InPython
from polysparse.spark.fitted import FittedModel, Predictor
from polysparse.spark.fitting import fit_in_python, require_fittable
from polysparse.spark.model_params import ModelParams, ModelSetters


class RidgeParams(ModelParams):
    """The params of PolynomialRidge and of its model."""

    alpha = Param(
        Params._dummy(),
        "alpha",
        "strength of the penalty (>= 0), as in scikit-learn: MLlib's regParam is "
        "alpha / sum of weights",
        typeConverter=TypeConverters.toFloat,
    )

    def getAlpha(self) -> float:
        """Return the value of alpha, or its default."""
        return self.getOrDefault(self.alpha)  # type: ignore[no-any-return]

    def _set_defaults(self) -> None:
        super()._set_defaults()
        self._setDefault(alpha=1.0, maxIter=5000)

    def _outputs(self) -> dict[str, DataType]:
        return {"prediction": DoubleType()} if self.getPredictionCol() else {}


class PolynomialRidge(
    RidgeParams,
    ModelSetters,
    Estimator,  # type: ignore[misc]
    DefaultParamsReadable,  # type: ignore[misc]
    DefaultParamsWritable,  # type: ignore[misc]
):
    """Ridge regression on polynomial features that are never built.

    The model is `polysparse.PolynomialRidge`, fitted to all rows of a dataset where they are: each
    pass is a job that sums what the partitions contribute, and only vectors of coefficients travel.
    It is the same but for rounding however the rows are partitioned.

    The sum of ``weight * (label - prediction) ** 2`` plus `alpha` times the sum of squared
    coefficients is minimised. Features are not standardised. It is the objective of MLlib's
    LinearRegression with standardization=False and regParam = alpha / sum of weights, on
    PolynomialExpansion.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, at least 0.
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
    tol : float, default=1e-6
        The fit ends when the objective is estimated to be within `tol` times its value of its
        minimum.
    maxIter : int, default=5000
        Maximum number of iterations. Each is one pass.
    verbose : int, default=0
        If not 0, the driver prints a line for each iteration.
    featuresCol, labelCol, weightCol, predictionCol : str
        Columns of vectors, of numbers and of weights, and the column that the model adds.

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

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        alpha: float = 1.0,
        degree: int | tuple[int, int] | list[int] = 2,
        interactionOnly: bool = False,
        columns: str = "all",
        minCount: int = 1,
        maxColumns: int | None = None,
        nColumns: int = 2**20,
        fitIntercept: bool = True,
        tol: float = 1e-6,
        maxIter: int = 5000,
        verbose: int = 0,
        featuresCol: str = "features",
        labelCol: str = "label",
        weightCol: str | None = None,
        predictionCol: str = "prediction",
    ) -> None:
        super().__init__()
        self._set_defaults()
        self._set(**self._input_kwargs)

    @keyword_only  # type: ignore[untyped-decorator]
    def setParams(
        self,
        *,
        alpha: float = 1.0,
        degree: int | tuple[int, int] | list[int] = 2,
        interactionOnly: bool = False,
        columns: str = "all",
        minCount: int = 1,
        maxColumns: int | None = None,
        nColumns: int = 2**20,
        fitIntercept: bool = True,
        tol: float = 1e-6,
        maxIter: int = 5000,
        verbose: int = 0,
        featuresCol: str = "features",
        labelCol: str = "label",
        weightCol: str | None = None,
        predictionCol: str = "prediction",
    ) -> PolynomialRidge:
        """Set the params that are given."""
        return self._set(**self._input_kwargs)  # type: ignore[no-any-return]

    def setAlpha(self, value: float) -> PolynomialRidge:
        """Set the value of alpha."""
        return self._set(alpha=value)  # type: ignore[no-any-return]

    def transformSchema(self, schema: StructType) -> StructType:
        """Return the schema of what the model returns for a dataset of a schema.

        Parameters
        ----------
        schema : StructType
            Schema of a dataset. IllegalArgumentException is raised if it cannot be fitted to.

        Returns
        -------
        StructType
            The same with the output column.
        """
        require_fittable(self, schema)
        out = StructType(list(schema.fields))
        for name, kind in self._outputs().items():
            out = out.add(self.getOrDefault(f"{name}Col"), kind)
        return out

    def _fit(self, dataset: DataFrame) -> PolynomialRidgeModel:
        model = InPython(self.getAlpha(), **self._shared())
        fit_in_python(self, model, dataset)
        stage = PolynomialRidgeModel(model)
        return self._copyValues(stage._resetUid(self.uid))  # type: ignore[no-any-return]


def columns_of(model: InPython, X: Any) -> dict[str, pa.Array]:
    """Return the predictions for rows, on a worker."""
    return {"prediction": pa.array(model.predict(X))}


class PolynomialRidgeModel(RidgeParams, FittedModel):
    """A fitted model as a Transformer. Made by `PolynomialRidge.fit`.

    `transform` multiplies rows with coefficients, and never builds an expansion.

    Attributes
    ----------
    model : polysparse.PolynomialRidge
        The fitted model in Python, with all that it can tell and write.
    coefficients : ndarray of float64 of shape (n_columns,)
        Coefficients of the products.
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

    def _predictor(self) -> Predictor:
        return columns_of

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """Coefficients of the products, in the order of `model.column_space_`."""
        return self.model.coef_  # type: ignore[no-any-return]

    @property
    def intercept(self) -> float:
        """The intercept."""
        return float(self.model.intercept_)
