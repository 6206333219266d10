"""HashedPolynomialFeatures on Spark: terms hashed to a fixed number of columns."""

from __future__ import annotations

from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql.types import StructType

from polysparse.columns.spaces import HashedColumns
from polysparse.estimators.hashed import HashedPolynomialFeatures as InPython
from polysparse.spark.expanding import COLUMN_PARAMS, EXPANSION_PARAMS, ExpandingTransformer
from polysparse.spark.params import has_params


@has_params(*EXPANSION_PARAMS, "nColumns", "alternateSign", "seed", *COLUMN_PARAMS)
class HashedPolynomialFeatures(
    ExpandingTransformer,
    DefaultParamsReadable,  # type: ignore[misc]
    DefaultParamsWritable,  # type: ignore[misc]
):
    """Generate polynomial and interaction features, hashed to a fixed number of columns.

    Columns and values are those of `polysparse.HashedPolynomialFeatures`, bit for bit, so that a
    model may be fitted on Spark and used in Python. There is nothing to fit, and no limit to
    the width of the expansion.

    See Also
    --------
    ObservedPolynomialFeatures : A separate column for each term that occurs.
    PolynomialFeatures : All columns.

    Examples
    --------
    >>> from polysparse.spark import HashedPolynomialFeatures
    >>> from pyspark.ml.linalg import Vectors
    >>> df = spark.createDataFrame([(Vectors.sparse(10**9, {3: 2.0, 17: 3.0}),)], ["x"])
    >>> poly = HashedPolynomialFeatures(interactionOnly=True, inputCol="x", outputCol="expanded")
    >>> poly.transform(df).first().expanded
    SparseVector(1048576, {278661: -3.0, 386586: 6.0, 922370: 2.0, 926218: -1.0})
    """

    def _column_space(self, schema: StructType, n_features: int | None) -> HashedColumns:
        return InPython(**self._python_arguments(schema, n_features)).column_space(n_features or 0)
