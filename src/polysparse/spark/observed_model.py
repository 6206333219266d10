"""ObservedPolynomialFeaturesModel: the terms that occur in the data of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.types import StructField, StructType

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.arguments import as_ranks
from polysparse.columns.spaces import ChosenColumns, ColumnSpace
from polysparse.spark.expanding import COLUMN_PARAMS, EXPANSION_PARAMS, ExpandingTransformer
from polysparse.spark.params import has_params
from polysparse.spark.saving import SavableModel
from polysparse.spark.schema import stated_features

OBSERVED_PARAMS = (*EXPANSION_PARAMS, "minCount", "maxColumns", *COLUMN_PARAMS)


@has_params(*OBSERVED_PARAMS, is_fitted=True)
class ObservedPolynomialFeaturesModel(ExpandingTransformer, SavableModel):
    """The terms that occurred, as a Transformer. Made by `ObservedPolynomialFeatures.fit`.

    Terms that were not kept are dropped, as CountVectorizerModel drops unknown words.

    Attributes
    ----------
    columns : ndarray of int64
        The columns of the full expansion that were kept, in increasing order.
    counts : ndarray of int64
        Number of rows in which each was seen.
    basis : MonomialBasis
        The full expansion. It maps terms to columns and back.

    Examples
    --------
    >>> from polysparse.spark import ObservedPolynomialFeatures
    >>> from pyspark.ml.linalg import Vectors
    >>> df = spark.createDataFrame([(Vectors.sparse(3, {0: 1.0, 2: 2.0}),)], ["x"])
    >>> model = ObservedPolynomialFeatures(inputCol="x", outputCol="expanded").fit(df)
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

    def _known_features(self, field: StructField) -> int:
        stated = stated_features(field)
        return self.basis.n_features if stated is None else stated

    def _column_space(self, schema: StructType, n_features: int | None) -> ChosenColumns:
        if n_features != self.basis.n_features:
            raise ValueError(
                f"Column {self.getInputCol()!r} has {n_features} features, but "
                f"{type(self).__name__} was fitted with {self.basis.n_features} features."
            )
        return self._space

    def _column_names(self, space: ColumnSpace, features: list[str] | None) -> Sequence[str]:
        return space.basis._names_that_may_clash(self.columns, features)[0]

    def _as_data(self) -> tuple[pa.Table, dict[str, Any]]:
        table = pa.table({"column": self.columns, "count": self.counts})
        return table, {"basis": self.basis.as_dict()}

    @classmethod
    def _from_data(
        cls, table: pa.Table, metadata: dict[str, Any]
    ) -> ObservedPolynomialFeaturesModel:
        table = table.sort_by("column")
        basis = MonomialBasis(**metadata["basis"])
        space = ChosenColumns(basis, as_ranks(basis, table["column"].to_numpy()))
        return cls(space, table["count"].to_numpy())
