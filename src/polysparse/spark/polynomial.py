"""PolynomialFeatures on Spark: all polynomial terms of a vector."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql.types import StructType

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns, ColumnSpace
from polysparse.spark.expanding import (
    COLUMN_PARAMS,
    EXPANSION_PARAMS,
    ExpandingTransformer,
    RowExpander,
)
from polysparse.spark.mllib_order import expand_rows_as_mllib, mllib_products
from polysparse.spark.params import has_params


@has_params(*EXPANSION_PARAMS, "columnOrder", *COLUMN_PARAMS)
class PolynomialFeatures(
    ExpandingTransformer,
    DefaultParamsReadable,  # type: ignore[misc]
    DefaultParamsWritable,  # type: ignore[misc]
):
    """Generate polynomial and interaction features of a column of vectors.

    Columns and values are those of `polysparse.PolynomialFeatures`, and so of scikit-learn, bit for
    bit. Vectors may be sparse or dense, and both in one column; the result is sparse. The number of
    features is read from the column's metadata, which VectorAssembler and VectorSizeHint write, or
    else from the first row, which runs a job. All rows must have the same number.

    See Also
    --------
    ObservedPolynomialFeatures : Only the columns that occur in the data.
    HashedPolynomialFeatures : A fixed number of columns.

    Notes
    -----
    A vector has fewer than 2**31 columns. `transformSchema` raises an error for a wider expansion,
    as does `transform` before any row is expanded.

    With columnOrder="spark", terms that underflow to zero are dropped, as MLlib does. Where MLlib
    would stop at such a term although a later factor is infinite, the result is nan.

    Examples
    --------
    >>> from polysparse.spark import PolynomialFeatures
    >>> from pyspark.ml.linalg import Vectors
    >>> df = spark.createDataFrame([(Vectors.sparse(3, {1: 2.0, 2: 3.0}),)], ["x"])
    >>> poly = PolynomialFeatures(degree=2, inputCol="x", outputCol="expanded")
    >>> poly.transform(df).first().expanded
    SparseVector(10, {0: 1.0, 2: 2.0, 3: 3.0, 7: 4.0, 8: 6.0, 9: 9.0})
    >>> poly.setColumnOrder("spark").transform(df).first().expanded
    SparseVector(9, {2: 2.0, 4: 4.0, 5: 3.0, 7: 6.0, 8: 9.0})
    """

    def _column_space(self, schema: StructType, n_features: int | None) -> AllColumns:
        """Return all columns, in scikit-learn's order."""
        arguments = self._python_arguments(schema, n_features)
        del arguments["column_order"]
        if self._has_mllib_order():
            arguments["include_bias"] = False
        return AllColumns(MonomialBasis(n_features or 0, **arguments))

    def _column_names(self, space: ColumnSpace, features: list[str] | None) -> Sequence[str]:
        names: Any = space.basis._names_that_may_clash(None, features)[0]
        if self._has_mllib_order() and names:
            positions, _ = mllib_products(space.basis.n_features, space.basis.max_degree)
            return [names[position] for position in positions]
        return names  # type: ignore[no-any-return]

    def _row_expander(self, space: ColumnSpace) -> RowExpander:
        if self._has_mllib_order():
            return partial(expand_rows_as_mllib, space)
        return super()._row_expander(space)

    def _has_mllib_order(self) -> bool:
        """Return whether columnOrder is "spark"; raise if other params contradict that."""
        order = self.getColumnOrder()
        if order not in ("sklearn", "spark"):
            raise ValueError(f'columnOrder must be "sklearn" or "spark"; got {order!r}.')
        if order == "sklearn":
            return False
        for name, is_supported in (
            ("degree", isinstance(self.getDegree(), int) and self.getDegree() != 0),
            ("interactionOnly", not self.getInteractionOnly()),
            ("groups", self.getGroups() is None),
            ("terms", self.getTerms() is None),
            ("includeBias", not (self.isSet(self.includeBias) and self.getIncludeBias())),
        ):
            if not is_supported:
                raise ValueError(
                    'columnOrder="spark" is the order of MLlib, which does not support '
                    f'{name}={self.getOrDefault(name)}: set columnOrder="sklearn", or leave {name} '
                    "out."
                )
        return True
