"""PolynomialFeatures on Spark: all products of the features of a vector."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pyspark import keyword_only
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns, ColumnSpace
from polysparse.spark.expanding import Expanding, Rows
from polysparse.spark.mllib_order import expand_rows_as_mllib, mllib_products
from polysparse.spark.params import PolynomialSetters


class PolynomialFeatures(
    PolynomialSetters,
    Expanding,
    DefaultParamsReadable,  # type: ignore[misc]
    DefaultParamsWritable,  # type: ignore[misc]
):
    """Generate polynomial and interaction features of a column of vectors.

    Columns and values are those of `polysparse.PolynomialFeatures`, and so of scikit-learn, bit for
    bit. Vectors may be sparse or dense, and both in one column; the result is sparse. The number of
    features is read from the column's metadata, or else from its first row, which is computed for
    that: VectorAssembler and VectorSizeHint write it there. Every row must have as many.

    Parameters
    ----------
    degree : int or pair (min_degree, max_degree), default=2
        Degrees of the features. If a single int is given, it is the maximum degree.
    interactionOnly : bool, default=False
        If True, only products of distinct input features are generated.
    includeBias : bool, default=True
        If True, a column of ones is prepended.
    order : {"sklearn", "spark"}, default="sklearn"
        With "spark", columns, values and size are those of MLlib's PolynomialExpansion, for models
        that were fitted to it. There is no bias then, and neither a pair of degrees nor
        interactionOnly is possible.
    inputCol, outputCol : str
        The column of vectors, and the column that is added. In its metadata, the columns of narrow
        expansions (up to 4096) have names.

    See Also
    --------
    ObservedPolynomialFeatures : Only the columns that occur in the data.
    HashedPolynomialFeatures : A fixed number of columns.

    Notes
    -----
    A vector has fewer than 2**31 columns. A wider expansion is refused by `transformSchema`, and by
    `transform` before any row is expanded.

    With order="spark", products that underflow to zero are dropped, as MLlib does. Where MLlib
    would stop at such a product, although a factor that follows is infinite, the result is nan.

    Examples
    --------
    >>> from polysparse.spark import PolynomialFeatures
    >>> from pyspark.ml.linalg import Vectors
    >>> df = spark.createDataFrame([(Vectors.sparse(3, {1: 2.0, 2: 3.0}),)], ["x"])
    >>> poly = PolynomialFeatures(degree=2, inputCol="x", outputCol="products")
    >>> poly.transform(df).first().products
    SparseVector(10, {0: 1.0, 2: 2.0, 3: 3.0, 7: 4.0, 8: 6.0, 9: 9.0})
    >>> poly.setOrder("spark").transform(df).first().products
    SparseVector(9, {2: 2.0, 4: 4.0, 5: 3.0, 7: 6.0, 8: 9.0})
    """

    order = Param(
        Params._dummy(),
        "order",
        "order of the columns: sklearn, or spark for that of MLlib's PolynomialExpansion",
        typeConverter=TypeConverters.toString,
    )

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        degree: int | tuple[int, int] | list[int] = 2,
        interactionOnly: bool = False,
        includeBias: bool = True,
        order: str = "sklearn",
        inputCol: str | None = None,
        outputCol: str | None = None,
    ) -> None:
        super().__init__()
        self._setDefault(degree=2, interactionOnly=False, includeBias=True, order="sklearn")
        self._set(**self._input_kwargs)

    @keyword_only  # type: ignore[untyped-decorator]
    def setParams(
        self,
        *,
        degree: int | tuple[int, int] | list[int] = 2,
        interactionOnly: bool = False,
        includeBias: bool = True,
        order: str = "sklearn",
        inputCol: str | None = None,
        outputCol: str | None = None,
    ) -> PolynomialFeatures:
        """Set the params that are given."""
        return self._set(**self._input_kwargs)  # type: ignore[no-any-return]

    def getOrder(self) -> str:
        """Return the value of order, or its default."""
        return self.getOrDefault(self.order)  # type: ignore[no-any-return]

    def setOrder(self, value: str) -> PolynomialFeatures:
        """Set the value of order."""
        return self._set(order=value)  # type: ignore[no-any-return]

    def column_space(self, n_features: int) -> AllColumns:
        """Return the columns of the output, in the form that polysparse's functions use.

        Parameters
        ----------
        n_features : int
            Number of input features.

        Returns
        -------
        AllColumns
            All columns, in scikit-learn's order.
        """
        shared = self._shared()
        if self._has_mllib_order():
            shared["include_bias"] = False
        return AllColumns(MonomialBasis(n_features, **shared))

    def column_names(self, space: ColumnSpace, features: list[str] | None) -> Sequence[str]:
        """Return the names of all columns.

        Parameters
        ----------
        space : AllColumns
            The columns.
        features : list of str or None
            Names of the input features; "x0", "x1", ... by default.

        Returns
        -------
        sequence of str
            The names, in the order of the output.
        """
        names: Any = space.basis._names_that_may_clash(None, features)[0]
        if self._has_mllib_order() and names:
            places, _ = mllib_products(space.basis.n_features, space.basis.max_degree)
            return [names[place] for place in places]
        return names  # type: ignore[no-any-return]

    def row_expander(self, space: ColumnSpace) -> Rows:
        """Return the function that expands rows on a worker.

        Parameters
        ----------
        space : AllColumns
            The columns.

        Returns
        -------
        callable
            From rows to vectors.
        """
        if self._has_mllib_order():
            return partial(expand_rows_as_mllib, space)
        return super().row_expander(space)

    def _has_mllib_order(self) -> bool:
        """Return whether order is "spark"; raise ValueError if that contradicts other params."""
        order = self.getOrder()
        if order not in ("sklearn", "spark"):
            raise ValueError(f'order must be "sklearn" or "spark"; got {order!r}.')
        if order == "sklearn":
            return False
        for name, may_be in (
            ("degree", isinstance(self.getDegree(), int) and self.getDegree() != 0),
            ("interactionOnly", not self.getInteractionOnly()),
            ("includeBias", not (self.isSet(self.includeBias) and self.getIncludeBias())),
        ):
            if not may_be:
                raise ValueError(
                    f'order="spark" is that of MLlib, which has no {name}='
                    f'{self.getOrDefault(name)}: set order="sklearn", or leave {name} out.'
                )
        return True
