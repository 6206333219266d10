"""Metadata of a column of vectors: its type, its number of features, their names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from pyspark.errors import IllegalArgumentException
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

# Spark keeps a column's names in its schema, which is part of every plan.
MOST_NAMES = 4096

ML_ATTR = "ml_attr"  # MLlib's key for what it knows about a column


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
    names = _attributes(field)
    return int(n_features) if n_features is not None else len(names) or None


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


def feature_names(field: StructField, n_features: int) -> list[str] | None:
    """Return the names of all features, `x<index>` by default; None if none has a name."""
    names = {each["idx"]: each["name"] for each in _attributes(field) if "name" in each}
    return [names.get(j, f"x{j}") for j in range(n_features)] if names else None


def groups_by_column(schema: StructType, field: StructField) -> list[str | None]:
    """Return the column that each binary feature was taken from, and None for other features.

    VectorAssembler names the features of a column of vectors after it. ValueError is raised if the
    metadata do not have what is needed.
    """
    attributes = _attributes(field)
    if not attributes:
        raise ValueError(
            f"groups='metadata', but column {field.name!r} has no metadata on its features: "
            "assemble it with VectorAssembler, or set groups to a label for each feature."
        )
    groups: list[str | None] = [None] * (stated_features(field) or 0)
    vectors = [each.name for each in schema if isinstance(each.dataType, VectorUDT)]
    kinds = field.metadata[ML_ATTR]["attrs"]
    for each in kinds.get("binary") or []:
        name = each.get("name", "")
        found = [column for column in vectors if name.startswith(f"{column}_")]
        if not found:
            raise ValueError(
                f"groups='metadata', but feature {name!r} of column {field.name!r} is not named "
                "after a column of vectors: keep the columns that VectorAssembler took features "
                "from, or set groups to a label for each feature."
            )
        groups[each["idx"]] = max(found, key=len)
    return groups


def _attributes(field: StructField) -> list[dict[str, Any]]:
    kinds = (field.metadata.get(ML_ATTR) or {}).get("attrs") or {}
    return list(chain.from_iterable(kinds.values()))


def metadata_of(n_columns: int, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the metadata of a column of vectors, in the form that MLlib reads."""
    about: dict[str, Any] = {"num_attrs": n_columns}
    if names is not None:
        named = [{"idx": j, "name": name} for j, name in enumerate(names)]
        about["attrs"] = {"numeric": named}
    return {ML_ATTR: about}
