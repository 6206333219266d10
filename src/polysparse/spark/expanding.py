"""ExpandingTransformer: expands every row, to columns that a subclass defines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.ml import Transformer
from pyspark.ml.linalg import VectorUDT
from pyspark.ml.param.shared import HasInputCol, HasOutputCol
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from polysparse.columns.spaces import MAX_COMPACT_COLUMNS, ColumnSpace
from polysparse.expansion.by_blocks import iter_expand_columns
from polysparse.machine import format_count
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.spark.attributes import feature_names
from polysparse.spark.errors import illegal_arguments
from polysparse.spark.params import Stage
from polysparse.spark.schema import (
    MOST_NAMES,
    first_features,
    metadata_of,
    stated_features,
    vector_field,
    with_vectors,
)
from polysparse.spark.vectors import as_vectors, on_rows

# No limit except that of a vector, which has fewer than 2**31 values. Blocks that are reused fit
# into the cache, unless a single row is larger.
MOST_BYTES = 2**36

RowExpander = Callable[[CanonicalCsr], Iterator[pa.Array]]


EXPANSION_PARAMS = ("degree", "interactionOnly", "includeBias", "groups", "terms")
COLUMN_PARAMS = ("inputCol", "outputCol")


class ExpandingTransformer(Stage, HasInputCol, HasOutputCol, Transformer):  # type: ignore[misc]
    """The methods of all transformers that expand."""

    def _column_space(self, schema: StructType, n_features: int | None) -> ColumnSpace:
        """Return the columns of the output, for vectors of so many features of a dataset.

        If their number is not known, params are checked, except for groups and terms.
        """
        raise NotImplementedError

    def _known_features(self, field: StructField) -> int | None:
        """Return the number of features, if it is known without reading rows."""
        return stated_features(field)

    def _column_names(self, space: ColumnSpace, features: list[str] | None) -> Sequence[str] | None:
        """Return the names of all columns, or None if they have none."""
        return None

    def _row_expander(self, space: ColumnSpace) -> RowExpander:
        """Return the function that expands rows on a worker."""
        return partial(expand_rows, space)

    def transformSchema(self, schema: StructType) -> StructType:
        """Return the schema of what `transform` returns for a dataset of a schema.

        Parameters
        ----------
        schema : StructType
            Schema of a dataset. IllegalArgumentException is raised if it lacks the input column, or
            if that does not hold vectors, or if its metadata state more features than can be
            expanded.

        Returns
        -------
        StructType
            The same with the output column.
        """
        field = vector_field(schema, self.getInputCol())
        _, metadata = self._output(schema, self._known_features(field))
        return with_vectors(schema, self.getOutputCol(), metadata)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        self.transformSchema(dataset.schema)
        column, out = self.getInputCol(), self.getOutputCol()
        field = vector_field(dataset.schema, column)
        n_features = self._known_features(field)
        if n_features is None:
            n_features = first_features(dataset, column)
        space, metadata = self._output(dataset.schema, n_features)
        made = on_rows(self._row_expander(space), VectorUDT(), column, n_features)
        return dataset.withColumn(out, made.alias(out, metadata=metadata))

    def _output(
        self, schema: StructType, n_features: int | None
    ) -> tuple[ColumnSpace, dict[str, Any]]:
        """Return the columns of the output and its metadata; raise if a vector cannot hold them.

        Where the number of features is not known, only the params are checked.
        """
        field = vector_field(schema, self.getInputCol())
        with illegal_arguments():
            space = self._column_space(schema, n_features)
            if n_features is None:
                return space, {}
            if space.n_columns > MAX_COMPACT_COLUMNS:
                raise ValueError(
                    f"The {n_features:,} features of column {field.name!r} would have "
                    f"{format_count(space.n_columns)} terms of degree={self.getDegree()}; a "
                    f"vector of Spark has at most {MAX_COMPACT_COLUMNS:,} columns. "
                    "HashedPolynomialFeatures has n_columns columns, whatever the number of "
                    "terms; ObservedPolynomialFeatures keeps only the terms that occur, at most "
                    "max_columns of them."
                )
            space.require_indexable()
            names = None
            if space.n_columns <= MOST_NAMES:
                names = self._column_names(space, feature_names(schema, field, n_features))
        return space, metadata_of(space.n_columns, names)


def expand_rows(space: ColumnSpace, x: CanonicalCsr) -> Iterator[pa.Array]:
    """Yield the expansion of rows, on a worker, as vectors."""
    for _, block in blocks_of(space, x):
        yield as_vectors(block)


def blocks_of(space: ColumnSpace, x: CanonicalCsr) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of the expansion, each of which is valid until the next one is requested.

    They use as many threads as Spark gives a task, which OMP_NUM_THREADS holds.
    """
    return iter_expand_columns(space, x, n_jobs=None, max_bytes=MOST_BYTES, reuse=True)
