"""Columns of vectors in a schema: their type, their number of features, their metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors import IllegalArgumentException
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from polysparse.spark.attributes import ML_ATTR, attributes_of

# Spark keeps a column's names in its schema, which is part of every plan.
MOST_NAMES = 4096


def column_named(name: str) -> Column:
    """Return a column by its name, which may have dots."""
    escaped = name.replace("`", "``")
    return F.col(f"`{escaped}`")


def vector_field(schema: StructType, column: str) -> StructField:
    """Return the field of a column; raise if it does not exist or does not hold vectors."""
    if column not in schema.names:
        there = ", ".join(map(repr, schema.names))
        raise IllegalArgumentException(f"Column {column!r} does not exist. Available: {there}.")
    field = schema[column]
    if not isinstance(field.dataType, VectorUDT):
        raise IllegalArgumentException(
            f"Column {column!r} must hold vectors, but its type is "
            f"{field.dataType.simpleString()}: VectorAssembler makes vectors of numbers."
        )
    return field


def with_vectors(schema: StructType, column: str, metadata: dict[str, Any]) -> StructType:
    """Return a schema with one more column, of vectors; raise if it has one of that name."""
    if column in schema.names:
        raise IllegalArgumentException(
            f"Output column {column!r} already exists: set another outputCol."
        )
    more = StructField(column, VectorUDT(), nullable=True, metadata=metadata)
    return StructType([*schema.fields, more])


def stated_features(field: StructField) -> int | None:
    """Return the number of features that the metadata of a column state, or None."""
    n_features = (field.metadata.get(ML_ATTR) or {}).get("num_attrs")
    attributes = attributes_of(field)
    return int(n_features) if n_features is not None else len(attributes) or None


def first_features(dataset: DataFrame, column: str) -> int | None:
    """Return the size of the first vector; None if there is none.

    This runs a job, which reads one row if the dataset is computed row by row. Streams are refused.
    """
    if dataset.isStreaming:
        raise IllegalArgumentException(
            f"Column {column!r} of a stream has no metadata that state the number of features: "
            "put a VectorSizeHint before this stage."
        )
    vectors = column_named(column)
    first = dataset.select(vectors).where(vectors.isNotNull()).first()
    return None if first is None else int(first[0].size)


def metadata_of(n_columns: int, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the metadata of a column of vectors, in the form that MLlib reads."""
    about: dict[str, Any] = {"num_attrs": n_columns}
    if names is not None:
        named = [{"idx": j, "name": name} for j, name in enumerate(names)]
        about["attrs"] = {"numeric": named}
    return {ML_ATTR: about}
