"""ObservedPolynomialFeatures on Spark: only the terms that occur in the data."""

from __future__ import annotations

from pyspark.errors import IllegalArgumentException
from pyspark.ml import Estimator
from pyspark.ml.param.shared import HasInputCol, HasOutputCol
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ChosenColumns
from polysparse.estimators.observed import ObservedPolynomialFeatures as InPython
from polysparse.spark.counting import choose_columns
from polysparse.spark.errors import illegal_arguments
from polysparse.spark.observed_model import OBSERVED_PARAMS, ObservedPolynomialFeaturesModel
from polysparse.spark.params import Stage, has_params
from polysparse.spark.schema import first_features, stated_features, vector_field, with_vectors


@has_params(*OBSERVED_PARAMS)
class ObservedPolynomialFeatures(
    Stage,
    HasInputCol,  # type: ignore[misc]
    HasOutputCol,  # type: ignore[misc]
    Estimator,  # type: ignore[misc]
    DefaultParamsReadable,  # type: ignore[misc]
    DefaultParamsWritable,  # type: ignore[misc]
):
    """Generate the polynomial and interaction features that occur in the data.

    `fit` counts in how many rows each term occurs and keeps the terms that occur often
    enough, in a pass over the data that expands nothing. Columns, counts and values are those of
    `polysparse.ObservedPolynomialFeatures`, bit for bit, however the rows are partitioned.

    See Also
    --------
    PolynomialFeatures : All columns.
    HashedPolynomialFeatures : A fixed number of columns, without a fit.

    Notes
    -----
    A worker needs about 24 bytes for each distinct column in its partition, and the driver 16 for
    each that is kept: set minCount or maxColumns where most occur only once.

    Examples
    --------
    >>> from polysparse.spark import ObservedPolynomialFeatures
    >>> from pyspark.ml.linalg import Vectors
    >>> rows = [({0: 1.0, 2: 2.0},), ({0: 3.0},), ({0: 5.0, 2: 1.0},)]
    >>> df = spark.createDataFrame([(Vectors.sparse(3, *row),) for row in rows], ["x"])
    >>> poly = ObservedPolynomialFeatures(minCount=2, interactionOnly=True, inputCol="x")
    >>> model = poly.setOutputCol("expanded").fit(df)
    >>> model.columns, model.counts
    (array([0, 1, 3, 5]), array([3, 3, 2, 2]))
    >>> model.transform(df).first().expanded
    SparseVector(4, {0: 1.0, 1: 1.0, 2: 2.0, 3: 2.0})
    """

    def transformSchema(self, schema: StructType) -> StructType:
        """Return the schema of what the model returns for a dataset of a schema.

        Parameters
        ----------
        schema : StructType
            Schema of a dataset. IllegalArgumentException is raised if it cannot be fitted to.

        Returns
        -------
        StructType
            The same with the output column, whose number of columns is not known yet.
        """
        n_features = stated_features(vector_field(schema, self.getInputCol()))
        self._basis(schema, n_features)
        return with_vectors(schema, self.getOutputCol(), {})

    def _basis(self, schema: StructType, n_features: int | None) -> MonomialBasis:
        """Return the full expansion; raise if a param is not valid."""
        with illegal_arguments():
            in_python = InPython(**self._python_arguments(schema, n_features))
            in_python._require_parameters()
            basis = in_python._make_basis(n_features or 0)
            basis.require_indexable()
        return basis

    def _fit(self, dataset: DataFrame) -> ObservedPolynomialFeaturesModel:
        self.transformSchema(dataset.schema)
        column, limits = self.getInputCol(), (self.getMinCount(), self.getMaxColumns())
        n_features = stated_features(vector_field(dataset.schema, column))
        if n_features is None:
            n_features = first_features(dataset, column)
        basis = self._basis(dataset.schema, n_features)
        columns, counts = choose_columns(dataset, column, basis, limits)
        if len(columns) == 0:
            raise IllegalArgumentException(
                f"No term of the features in column {column!r} occurs in "
                f"minCount={limits[0]} rows: lower minCount, or pass more rows."
            )
        model = ObservedPolynomialFeaturesModel(ChosenColumns(basis, columns), counts)
        return self._copyValues(model._resetUid(self.uid))  # type: ignore[no-any-return]
