"""The params that all stages share."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeVar

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasInputCol, HasOutputCol

from polysparse.basis.degrees import as_degree_range

Self = TypeVar("Self", bound="PolynomialParams")


def to_degree(value: Any) -> int | list[int]:
    """Convert to what JSON can hold: an int, or a list of two."""
    low, high = as_degree_range(value)
    return high if isinstance(value, Integral) else [low, high]


def to_optional_int(value: Any) -> int | None:
    """Convert to an int, unless it is None."""
    return None if value is None else TypeConverters.toInt(value)


class PolynomialParams(HasInputCol, HasOutputCol):  # type: ignore[misc]
    """Degree, interactionOnly, includeBias, inputCol and outputCol."""

    degree = Param(
        Params._dummy(),
        "degree",
        "degrees of the products: the highest one (>= 0), or a pair of the lowest and the highest",
        typeConverter=to_degree,
    )
    interactionOnly = Param(
        Params._dummy(),
        "interactionOnly",
        "whether only products of distinct features are made",
        typeConverter=TypeConverters.toBoolean,
    )
    includeBias = Param(
        Params._dummy(),
        "includeBias",
        "whether every row has a one besides the products",
        typeConverter=TypeConverters.toBoolean,
    )

    def getDegree(self) -> int | list[int]:
        """Return the value of degree, or its default."""
        return self.getOrDefault(self.degree)  # type: ignore[no-any-return]

    def getInteractionOnly(self) -> bool:
        """Return the value of interactionOnly, or its default."""
        return self.getOrDefault(self.interactionOnly)  # type: ignore[no-any-return]

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


class PolynomialSetters(PolynomialParams):
    """The setters of what a model cannot change any more."""

    def setDegree(self: Self, value: int | tuple[int, int] | list[int]) -> Self:
        """Set the value of degree."""
        return self._set(degree=value)  # type: ignore[no-any-return]

    def setInteractionOnly(self: Self, value: bool) -> Self:
        """Set the value of interactionOnly."""
        return self._set(interactionOnly=value)  # type: ignore[no-any-return]

    def setIncludeBias(self: Self, value: bool) -> Self:
        """Set the value of includeBias."""
        return self._set(includeBias=value)  # type: ignore[no-any-return]
