"""What the estimators share: fitting a model in Python to a dataset, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame
from pyspark.sql.types import NumericType, StructType

from polysparse.clusters.row_store import ClusterRows
from polysparse.models.fitting import fit
from polysparse.spark.attributes import feature_names
from polysparse.spark.cluster import SparkCluster
from polysparse.spark.errors import illegal_arguments, with_params
from polysparse.spark.model_params import ModelParams
from polysparse.spark.packing import pack
from polysparse.spark.schema import first_features, stated_features, vector_field


def require_fittable(stage: ModelParams, schema: StructType) -> None:
    """Raise IllegalArgumentException if a column is missing, or of the wrong type."""
    vector_field(schema, stage.getFeaturesCol())
    for column in filter(
        None, (stage.getLabelCol(), _weight_column(stage), stage._offset_column())
    ):
        if column not in schema.names:
            there = ", ".join(map(repr, schema.names))
            raise IllegalArgumentException(f"Column {column!r} does not exist. Available: {there}.")
        kind = schema[column].dataType
        if not isinstance(kind, NumericType):
            raise IllegalArgumentException(
                f"Column {column!r} must hold numbers, but its type is {kind.simpleString()}: "
                "StringIndexer makes numbers of strings."
            )


def fit_in_python(stage: ModelParams, model: Any, dataset: DataFrame) -> None:
    """Fit a model in Python to a dataset, whose rows stay where they are."""
    require_fittable(stage, dataset.schema)
    features = stage.getFeaturesCol()
    with illegal_arguments():
        model._require_parameters()
        field = vector_field(dataset.schema, features)
        n_features = stated_features(field)
        if n_features is None:
            n_features = first_features(dataset, features)
        if n_features is None:
            raise ValueError(f"Column {features!r} has no rows to fit a model to.")
        if n_features == 0:
            raise ValueError(
                f"Column {features!r} has vectors of size 0; at least one feature is needed to fit "
                "a model."
            )
        model.set_params(**stage._python_arguments(dataset.schema, n_features))
        model.feature_names = feature_names(dataset.schema, field, n_features)
        others = stage.getLabelCol(), _weight_column(stage), stage._offset_column()
        blocks = pack(dataset, features, *others, n_features)

        @contextmanager
        def open_rows() -> Iterator[ClusterRows]:
            with SparkCluster(blocks, n_features) as cluster:
                yield ClusterRows(cluster, cluster.rows, n_features, model.n_jobs)

        fit(model, open_rows, stacklevel=4, wording=with_params)


def _weight_column(stage: ModelParams) -> str | None:
    return stage.getWeightCol() if stage.isDefined(stage.weightCol) else None
