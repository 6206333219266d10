"""ModelEstimator: an Estimator that fits a model in Python to a dataset, without an expansion."""

from __future__ import annotations

from typing import Any, ClassVar

from pyspark.ml import Estimator
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from polysparse.spark.errors import illegal_arguments
from polysparse.spark.fitted import FittedModel
from polysparse.spark.fitting import fit_in_python, require_fittable
from polysparse.spark.model_params import ModelParams


class ModelEstimator(
    ModelParams,
    Estimator,  # type: ignore[misc]
    DefaultParamsReadable,  # type: ignore[misc]
    DefaultParamsWritable,  # type: ignore[misc]
):
    """The methods of all estimators of models. A subclass names its two classes of models."""

    _python_class: ClassVar[Any]
    _fitted_class: ClassVar[type[FittedModel]]

    def transformSchema(self, schema: StructType) -> StructType:
        """Return the schema of what the fitted model returns for a dataset of a schema.

        Parameters
        ----------
        schema : StructType
            Schema of a dataset. IllegalArgumentException is raised if it cannot be fitted to, or
            if a param is not valid.

        Returns
        -------
        StructType
            The same with the output columns.
        """
        require_fittable(self, schema)
        with illegal_arguments():
            self._python_model()._require_parameters()
        return self._with_outputs(schema)

    def _python_model(self) -> Any:
        return self._python_class(**self._python_arguments())

    def _fit(self, dataset: DataFrame) -> FittedModel:
        model = self._python_model()
        fit_in_python(self, model, dataset)
        fitted = self._fitted_class(model)
        return self._copyValues(fitted._resetUid(self.uid))  # type: ignore[no-any-return]
