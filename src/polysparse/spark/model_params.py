"""The params of the models, and the estimators in Python that they describe."""

from __future__ import annotations

from typing import Any, TypeVar

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasFeaturesCol,
    HasFitIntercept,
    HasLabelCol,
    HasMaxIter,
    HasPredictionCol,
    HasTol,
    HasWeightCol,
)

from polysparse.estimators.hashed import HashedPolynomialFeatures
from polysparse.estimators.observed import ObservedPolynomialFeatures
from polysparse.spark.params import (
    HashedParams,
    HashedSetters,
    ObservedParams,
    ObservedSetters,
    TermParams,
    TermSetters,
)

Self = TypeVar("Self", bound="ModelParams")


class ModelParams(
    TermParams,
    ObservedParams,
    HashedParams,
    HasFeaturesCol,  # type: ignore[misc]
    HasLabelCol,  # type: ignore[misc]
    HasPredictionCol,  # type: ignore[misc]
    HasWeightCol,  # type: ignore[misc]
    HasFitIntercept,  # type: ignore[misc]
    HasTol,  # type: ignore[misc]
    HasMaxIter,  # type: ignore[misc]
):
    """The params that both models have."""

    columns = Param(
        Params._dummy(),
        "columns",
        'which products have a coefficient: "all", "observed", those that occur, or "hashed"',
        typeConverter=TypeConverters.toString,
    )
    verbose = Param(
        Params._dummy(),
        "verbose",
        "if not 0, the driver prints a line for each iteration",
        typeConverter=TypeConverters.toInt,
    )

    def getColumns(self) -> str:
        """Return the value of columns, or its default."""
        return self.getOrDefault(self.columns)  # type: ignore[no-any-return]

    def getVerbose(self) -> int:
        """Return the value of verbose, or its default."""
        return self.getOrDefault(self.verbose)  # type: ignore[no-any-return]

    def setFeaturesCol(self: Self, value: str) -> Self:
        """Set the value of featuresCol."""
        return self._set(featuresCol=value)  # type: ignore[no-any-return]

    def setPredictionCol(self: Self, value: str) -> Self:
        """Set the value of predictionCol."""
        return self._set(predictionCol=value)  # type: ignore[no-any-return]

    def _set_defaults(self) -> None:
        self._setDefault(
            degree=2,
            interactionOnly=False,
            columns="all",
            minCount=1,
            maxColumns=None,
            nColumns=2**20,
            fitIntercept=True,
            tol=1e-6,
            verbose=0,
        )

    def _shared(self) -> dict[str, Any]:
        """Return the arguments that both models in Python have."""
        terms: dict[str, Any] = {
            "degree": self.getDegree(),
            "interaction_only": self.getInteractionOnly(),
        }
        columns: Any = self.getColumns()
        if columns == "observed":
            columns = ObservedPolynomialFeatures(
                **terms,
                min_count=self.getMinCount(),
                max_columns=self.getMaxColumns(),
                include_bias=False,
            )
        elif columns == "hashed":
            columns = HashedPolynomialFeatures(
                **terms, n_columns=self.getNColumns(), include_bias=False
            )
        return {
            **terms,
            "columns": columns,
            "fit_intercept": self.getFitIntercept(),
            "tol": self.getTol(),
            "max_iter": self.getMaxIter(),
            "verbose": self.getVerbose(),
        }


class ModelSetters(TermSetters, ObservedSetters, HashedSetters, ModelParams):
    """The setters of what a fitted model cannot change any more."""

    def setColumns(self: Self, value: str) -> Self:
        """Set the value of columns."""
        return self._set(columns=value)  # type: ignore[no-any-return]

    def setFitIntercept(self: Self, value: bool) -> Self:
        """Set the value of fitIntercept."""
        return self._set(fitIntercept=value)  # type: ignore[no-any-return]

    def setTol(self: Self, value: float) -> Self:
        """Set the value of tol."""
        return self._set(tol=value)  # type: ignore[no-any-return]

    def setMaxIter(self: Self, value: int) -> Self:
        """Set the value of maxIter."""
        return self._set(maxIter=value)  # type: ignore[no-any-return]

    def setVerbose(self: Self, value: int) -> Self:
        """Set the value of verbose."""
        return self._set(verbose=value)  # type: ignore[no-any-return]

    def setLabelCol(self: Self, value: str) -> Self:
        """Set the value of labelCol."""
        return self._set(labelCol=value)  # type: ignore[no-any-return]

    def setWeightCol(self: Self, value: str) -> Self:
        """Set the value of weightCol."""
        return self._set(weightCol=value)  # type: ignore[no-any-return]
