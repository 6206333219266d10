"""What the estimators of models and their fitted models share: params and output columns."""

from __future__ import annotations

from typing import Any

from pyspark.errors import IllegalArgumentException
from pyspark.ml.param.shared import (
    HasFeaturesCol,
    HasFitIntercept,
    HasLabelCol,
    HasMaxIter,
    HasPredictionCol,
    HasTol,
    HasWeightCol,
)
from pyspark.sql.types import DataType, DoubleType, StructType

from polysparse.estimators.hashed import HashedPolynomialFeatures
from polysparse.estimators.observed import ObservedPolynomialFeatures
from polysparse.spark.params import Stage

TERM_PARAMS = (
    *("degree", "interactionOnly", "groups", "terms"),
    *("columns", "minCount", "maxColumns", "nColumns"),
)
SOLVER_PARAMS = ("tol", "maxIter", "verbose")
COLUMN_PARAMS = ("featuresCol", "labelCol", "weightCol", "predictionCol")


class ModelParams(
    Stage,
    HasFeaturesCol,  # type: ignore[misc]
    HasLabelCol,  # type: ignore[misc]
    HasPredictionCol,  # type: ignore[misc]
    HasWeightCol,  # type: ignore[misc]
    HasFitIntercept,  # type: ignore[misc]
    HasTol,  # type: ignore[misc]
    HasMaxIter,  # type: ignore[misc]
):
    """The params that all models have."""

    _vectors = "featuresCol"

    def _offset_column(self) -> str | None:
        """Return the column of offsets, if the model has one."""
        is_set = self.hasParam("offsetCol") and self.isDefined("offsetCol")
        return (self.getOrDefault("offsetCol") or None) if is_set else None

    def _predicted(self) -> dict[str, DataType]:
        """Return what can be predicted, and of which types; `<name>Col` names its column."""
        return {"prediction": DoubleType()}

    def _outputs(self) -> dict[str, DataType]:
        """Return what is predicted: that whose column has a name."""
        return {
            name: kind
            for name, kind in self._predicted().items()
            if self.getOrDefault(f"{name}Col")
        }

    def _with_outputs(self, schema: StructType) -> StructType:
        """Return a schema with the output columns; raise if it has one of them already."""
        out = StructType(list(schema.fields))
        for name, kind in self._outputs().items():
            column = self.getOrDefault(f"{name}Col")
            if column in schema.names:
                raise IllegalArgumentException(
                    f"Output column {column!r} already exists: set another {name}Col, or an empty "
                    "one to leave it out."
                )
            out = out.add(column, kind)
        return out

    def _python_arguments(
        self, schema: StructType | None = None, n_features: int | None = None
    ) -> dict[str, Any]:
        """Return the arguments of the model in Python, where a transformer describes columns."""
        arguments = super()._python_arguments(schema, n_features)
        of_basis = "degree", "interaction_only", "groups", "terms"
        terms = {name: arguments[name] for name in of_basis}
        observed = {name: arguments.pop(name) for name in ("min_count", "max_columns")}
        hashed = {"n_columns": arguments.pop("n_columns")}
        if arguments["columns"] == "observed":
            arguments["columns"] = ObservedPolynomialFeatures(
                **terms, **observed, include_bias=False
            )
        elif arguments["columns"] == "hashed":
            arguments["columns"] = HashedPolynomialFeatures(**terms, **hashed, include_bias=False)
        return arguments
