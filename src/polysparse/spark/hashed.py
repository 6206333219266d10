"""HashedPolynomialFeatures on Spark: products of features, hashed to a fixed number of columns."""

from __future__ import annotations

from pyspark import keyword_only
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable

from polysparse.columns.spaces import HashedColumns
from polysparse.estimators.hashed import HashedPolynomialFeatures as InPython
from polysparse.spark.expanding import Expanding
from polysparse.spark.params import HashedSetters, PolynomialSetters


class HashedPolynomialFeatures(
    HashedSetters,
    PolynomialSetters,
    Expanding,
    DefaultParamsReadable,  # type: ignore[misc]
    DefaultParamsWritable,  # type: ignore[misc]
):
    """Generate polynomial and interaction features, hashed to a fixed number of columns.

    Columns and values are those of `polysparse.HashedPolynomialFeatures`, bit for bit, so that a
    model may be fitted on Spark and used in Python. Nothing is learnt and nothing can be too wide.

    Parameters
    ----------
    degree : int or pair (min_degree, max_degree), default=2
        Degrees of the features. If a single int is given, it is the maximum degree.
    interactionOnly : bool, default=False
        If True, only products of distinct input features are generated.
    includeBias : bool, default=True
        If True, every row includes a one, which is hashed as well.
    nColumns : int, default=2**20
        Number of output columns, up to 2**31 - 1.
    alternateSign : bool, default=True
        If True, the hash of a product also decides the sign of its values.
    seed : int, default=0
        Selects the hash function, from 0 to 2**64 - 1.
    inputCol, outputCol : str
        The column of vectors, and the column that is added.

    See Also
    --------
    ObservedPolynomialFeatures : A column of its own for each product that occurs.
    PolynomialFeatures : All columns.

    Examples
    --------
    >>> from polysparse.spark import HashedPolynomialFeatures
    >>> from pyspark.ml.linalg import Vectors
    >>> df = spark.createDataFrame([(Vectors.sparse(10**9, {3: 2.0, 17: 3.0}),)], ["x"])
    >>> poly = HashedPolynomialFeatures(interactionOnly=True, inputCol="x", outputCol="products")
    >>> poly.transform(df).first().products
    SparseVector(1048576, {278661: -3.0, 386586: 6.0, 922370: 2.0, 926218: -1.0})
    """

    alternateSign = Param(
        Params._dummy(),
        "alternateSign",
        "whether the hash of a product also decides the sign of its values",
        typeConverter=TypeConverters.toBoolean,
    )
    seed = Param(
        Params._dummy(),
        "seed",
        "selects the hash function, from 0 to 2**64 - 1",
        typeConverter=TypeConverters.toInt,
    )

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        degree: int | tuple[int, int] | list[int] = 2,
        interactionOnly: bool = False,
        includeBias: bool = True,
        nColumns: int = 2**20,
        alternateSign: bool = True,
        seed: int = 0,
        inputCol: str | None = None,
        outputCol: str | None = None,
    ) -> None:
        super().__init__()
        self._setDefault(degree=2, interactionOnly=False, includeBias=True)
        self._setDefault(nColumns=2**20, alternateSign=True, seed=0)
        self._set(**self._input_kwargs)

    @keyword_only  # type: ignore[untyped-decorator]
    def setParams(
        self,
        *,
        degree: int | tuple[int, int] | list[int] = 2,
        interactionOnly: bool = False,
        includeBias: bool = True,
        nColumns: int = 2**20,
        alternateSign: bool = True,
        seed: int = 0,
        inputCol: str | None = None,
        outputCol: str | None = None,
    ) -> HashedPolynomialFeatures:
        """Set the params that are given."""
        return self._set(**self._input_kwargs)  # type: ignore[no-any-return]

    def getAlternateSign(self) -> bool:
        """Return the value of alternateSign, or its default."""
        return self.getOrDefault(self.alternateSign)  # type: ignore[no-any-return]

    def getSeed(self) -> int:
        """Return the value of seed, or its default."""
        return self.getOrDefault(self.seed)  # type: ignore[no-any-return]

    def setAlternateSign(self, value: bool) -> HashedPolynomialFeatures:
        """Set the value of alternateSign."""
        return self._set(alternateSign=value)  # type: ignore[no-any-return]

    def setSeed(self, value: int) -> HashedPolynomialFeatures:
        """Set the value of seed."""
        return self._set(seed=value)  # type: ignore[no-any-return]

    def column_space(self, n_features: int) -> HashedColumns:
        """Return the columns of the output, in the form that polysparse's functions use.

        Parameters
        ----------
        n_features : int
            Number of input features.

        Returns
        -------
        HashedColumns
            The columns.
        """
        same = InPython(
            **self._shared(),
            n_columns=self.getNColumns(),
            alternate_sign=self.getAlternateSign(),
            seed=self.getSeed(),
        )
        return same.column_space(n_features)
