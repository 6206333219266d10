"""The params that all stages share."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeVar

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasInputCol, HasOutputCol

from polysparse.basis.degrees import as_degree_range

Self = TypeVar("Self", bound=Params)


def to_degree(value: Any) -> int | list[int]:
    """Convert to what JSON can hold: an int, or a list of two."""
    low, high = as_degree_range(value)
    return high if isinstance(value, Integral) else [low, high]


def to_optional_int(value: Any) -> int | None:
    """Convert to an int, unless it is None."""
    return None if value is None else TypeConverters.toInt(value)


class TermParams(Params):  # type: ignore[misc]
    """Which products there are: degree and interactionOnly."""

    degree = Param(
        Params._dummy(),
        "degree",
        "degrees of the products: the highest one, or a pair of the lowest and the highest",
        typeConverter=to_degree,
    )
    interactionOnly = Param(
        Params._dummy(),
        "interactionOnly",
        "whether there are only products of distinct features",
        typeConverter=TypeConverters.toBoolean,
    )

    def getDegree(self) -> int | list[int]:
        """Return the value of degree, or its default."""
        return self.getOrDefault(self.degree)  # type: ignore[no-any-return]

    def getInteractionOnly(self) -> bool:
        """Return the value of interactionOnly, or its default."""
        return self.getOrDefault(self.interactionOnly)  # type: ignore[no-any-return]


class TermSetters(TermParams):
    """The setters of what a model cannot change any more."""

    def setDegree(self: Self, value: int | tuple[int, int] | list[int]) -> Self:
        """Set the value of degree."""
        return self._set(degree=value)  # type: ignore[no-any-return]

    def setInteractionOnly(self: Self, value: bool) -> Self:
        """Set the value of interactionOnly."""
        return self._set(interactionOnly=value)  # type: ignore[no-any-return]


class ObservedParams(Params):  # type: ignore[misc]
    """Which of the products that occur are kept: minCount and maxColumns."""

    minCount = Param(
        Params._dummy(),
        "minCount",
        "of observed products, keep only those that are stored in at least this many rows (>= 1)",
        typeConverter=TypeConverters.toInt,
    )
    maxColumns = Param(
        Params._dummy(),
        "maxColumns",
        "of observed products, keep at most this many, the most frequent ones (>= 1); None for all",
        typeConverter=to_optional_int,
    )

    def getMinCount(self) -> int:
        """Return the value of minCount, or its default."""
        return self.getOrDefault(self.minCount)  # type: ignore[no-any-return]

    def getMaxColumns(self) -> int | None:
        """Return the value of maxColumns, or its default."""
        return self.getOrDefault(self.maxColumns)  # type: ignore[no-any-return]


class ObservedSetters(ObservedParams):
    """The setters of what a model cannot change any more."""

    def setMinCount(self: Self, value: int) -> Self:
        """Set the value of minCount."""
        return self._set(minCount=value)  # type: ignore[no-any-return]

    def setMaxColumns(self: Self, value: int | None) -> Self:
        """Set the value of maxColumns."""
        return self._set(maxColumns=value)  # type: ignore[no-any-return]


class HashedParams(Params):  # type: ignore[misc]
    """How many columns products are hashed to."""

    nColumns = Param(
        Params._dummy(),
        "nColumns",
        "number of columns that products are hashed to, from 1 to 2**31 - 1",
        typeConverter=TypeConverters.toInt,
    )

    def getNColumns(self) -> int:
        """Return the value of nColumns, or its default."""
        return self.getOrDefault(self.nColumns)  # type: ignore[no-any-return]


class HashedSetters(HashedParams):
    """The setter of what a model cannot change any more."""

    def setNColumns(self: Self, value: int) -> Self:
        """Set the value of nColumns."""
        return self._set(nColumns=value)  # type: ignore[no-any-return]


class PolynomialParams(TermParams, HasInputCol, HasOutputCol):  # type: ignore[misc]
    """The params of all transformers."""

    includeBias = Param(
        Params._dummy(),
        "includeBias",
        "whether every row has a one besides the products",
        typeConverter=TypeConverters.toBoolean,
    )

    def getIncludeBias(self) -> bool:
        """Return the value of includeBias, or its default."""
        return self.getOrDefault(self.includeBias)  # type: ignore[no-any-return]

    def setInputCol(self: Self, value: str) -> Self:
        """Set the value of inputCol."""
        return self._set(inputCol=value)  # type: ignore[no-any-return]

    def setOutputCol(self: Self, value: str) -> Self:
        """Set the value of outputCol."""
        return self._set(outputCol=value)  # type: ignore[no-any-return]

    def _shared(self) -> dict[str, Any]:
        """Return the arguments of the estimator in Python that all of them have."""
        return {
            "degree": self.getDegree(),
            "interaction_only": self.getInteractionOnly(),
            "include_bias": self.getIncludeBias(),
        }


class PolynomialSetters(TermSetters, PolynomialParams):
    """The setters of what a model cannot change any more."""

    def setIncludeBias(self: Self, value: bool) -> Self:
        """Set the value of includeBias."""
        return self._set(includeBias=value)  # type: ignore[no-any-return]
