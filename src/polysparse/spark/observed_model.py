"""ObservedPolynomialFeaturesModel: the products that occurred, and how they are saved."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.ml import Model
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql.types import StructField

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.arguments import as_ranks
from polysparse.columns.spaces import ChosenColumns, ColumnSpace
from polysparse.spark.errors import illegal_arguments
from polysparse.spark.expanding import Expanding
from polysparse.spark.params import ObservedParams, PolynomialParams
from polysparse.spark.schema import stated_features


class ObservedPolynomialParams(ObservedParams, PolynomialParams):
    """The params of ObservedPolynomialFeatures and of its model."""

    def _set_defaults(self) -> None:
        self._setDefault(degree=2, interactionOnly=False, includeBias=True)
        self._setDefault(minCount=1, maxColumns=None)


class ObservedPolynomialFeaturesModel(
    ObservedPolynomialParams,
    Expanding,
    Model,  # type: ignore[misc]
    MLReadable,  # type: ignore[misc]
    MLWritable,  # type: ignore[misc]
):
    """The products that occurred, as a Transformer. Made by `ObservedPolynomialFeatures.fit`.

    A product that was not kept is dropped, as CountVectorizerModel drops unknown words.

    Attributes
    ----------
    columns : ndarray of int64
        The columns of the full expansion that were kept, in increasing order.
    counts : ndarray of int64
        Number of rows in which each was seen.
    basis : MonomialBasis
        The full expansion. It maps products to columns and back.

    Examples
    --------
    >>> from polysparse.spark import ObservedPolynomialFeatures
    >>> from pyspark.ml.linalg import Vectors
    >>> df = spark.createDataFrame([(Vectors.sparse(3, {0: 1.0, 2: 2.0}),)], ["x"])
    >>> model = ObservedPolynomialFeatures(inputCol="x", outputCol="products").fit(df)
    >>> model.basis.names(model.columns)
    array(['1', 'x0', 'x2', 'x0^2', 'x0 x2', 'x2^2'], dtype=object)
    """

    def __init__(self, space: ChosenColumns, counts: NDArray[np.int64]) -> None:
        super().__init__()
        self._set_defaults()
        self._space, self._counts = space, counts

    @property
    def columns(self) -> NDArray[np.int64]:
        """The columns of the full expansion that were kept, in increasing order."""
        return self._space.ranks

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows in which each kept column was seen."""
        return self._counts

    @property
    def basis(self) -> MonomialBasis:
        """The full expansion."""
        return self._space.basis

    def known_features(self, field: StructField) -> int:
        """Return the number of features that the metadata of a column state, or else that of fit.

        Parameters
        ----------
        field : StructField
            The input column.

        Returns
        -------
        int
            The number of features.
        """
        stated = stated_features(field)
        return self.basis.n_features if stated is None else stated

    def column_space(self, n_features: int) -> ChosenColumns:
        """Return the columns of the output, in the form that polysparse's functions use.

        Parameters
        ----------
        n_features : int
            Number of input features; ValueError is raised if the model was fitted with another
            number.

        Returns
        -------
        ChosenColumns
            The columns that were kept.
        """
        if n_features != self.basis.n_features:
            raise ValueError(
                f"Column {self.getInputCol()!r} has {n_features} features, but "
                f"{type(self).__name__} was fitted with {self.basis.n_features} features."
            )
        return self._space

    def column_names(self, space: ColumnSpace, features: list[str] | None) -> Sequence[str]:
        """Return the names of all columns.

        Parameters
        ----------
        space : ChosenColumns
            The columns.
        features : list of str or None
            Names of the input features; "x0", "x1", ... by default.

        Returns
        -------
        sequence of str
            The names, in the order of the output.
        """
        return space.basis._names_that_may_clash(self.columns, features)[0]

    def write(self) -> MLWriter:
        """Return a writer of the model: params as JSON and arrays as Parquet, by way of Spark.

        Returns
        -------
        MLWriter
            The writer.
        """
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader:
        """Return a reader of models that were saved.

        Returns
        -------
        MLReader
            The reader.
        """
        return _Reader()


class _Writer(MLWriter):  # type: ignore[misc]
    def __init__(self, model: ObservedPolynomialFeaturesModel) -> None:
        super().__init__()
        self.model = model

    def saveImpl(self, path: str) -> None:
        """Write to any path that Spark can write to."""
        model, basis = self.model, {"basis": self.model.basis.as_dict()}
        DefaultParamsWriter.saveMetadata(model, path, self.sparkSession, extraMetadata=basis)
        kept = pa.table({"column": model.columns, "count": model.counts})
        self.sparkSession.createDataFrame(kept).write.parquet(os.path.join(path, "data"))


class _Reader(MLReader):  # type: ignore[misc]
    def load(self, path: str) -> ObservedPolynomialFeaturesModel:
        """Read what a writer has written."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        kept = self.sparkSession.read.parquet(os.path.join(path, "data")).toArrow()
        columns, counts = (kept.column(name).to_numpy() for name in ("column", "count"))
        order = np.argsort(columns)  # Spark may read files in any order
        with illegal_arguments():
            basis = MonomialBasis(**metadata["basis"])
            space = ChosenColumns(basis, as_ranks(basis, columns[order]))
        model = ObservedPolynomialFeaturesModel(space, counts[order])
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model
