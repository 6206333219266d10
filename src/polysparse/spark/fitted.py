"""FittedModel: a fitted model in Python as a Transformer, which predicts without an expansion."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from polysparse.clusters.worker_copies import copy_for_workers
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.matrix.output import as_csr
from polysparse.models.loading import load_model
from polysparse.spark.model_params import ModelParams
from polysparse.spark.saving import SavableModel
from polysparse.spark.schema import stated_features, vector_field
from polysparse.spark.vectors import on_rows

PIECE_BYTES = 2**26  # of a model file in a row of Parquet
TEMPORARY = "__polysparse_predictions__"  # a column that is dropped again

Self = TypeVar("Self", bound="FittedModel")


class FittedModel(ModelParams, SavableModel):
    """The methods of all fitted models. A subclass defines how a worker predicts."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._set_defaults()
        self._model = model

    @property
    def model(self) -> Any:
        """The fitted model in Python: coefficients, `top_terms`, `save`, `to_onnx`."""
        return self._model

    @property
    def numFeatures(self) -> int:
        """Number of features."""
        return int(self._model.n_features_in_)

    @property
    def coefficients(self) -> Any:
        """Coefficients of the terms, in the order of `model.column_space_`."""
        return self._model.coef_

    @staticmethod
    def _predict(model: Any, X: Any) -> dict[str, pa.Array]:
        """Return what a model in Python predicts for rows, by the names of outputs."""
        raise NotImplementedError

    def transformSchema(self, schema: StructType) -> StructType:
        """Return the schema of what `transform` returns for a dataset of a schema.

        Parameters
        ----------
        schema : StructType
            Schema of a dataset. IllegalArgumentException is raised if it lacks the column of
            features, or has an output column already.

        Returns
        -------
        StructType
            The same with the output columns.
        """
        field = vector_field(schema, self.getFeaturesCol())
        n_features = stated_features(field)
        if n_features not in (None, self.numFeatures):
            raise IllegalArgumentException(
                f"Column {field.name!r} has {n_features} features, but {type(self).__name__} was "
                f"fitted with {self.numFeatures} features."
            )
        return self._with_outputs(schema)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        self.transformSchema(dataset.schema)
        result = StructType()
        for name, kind in self._outputs().items():
            result = result.add(name, kind)
        model = copy_for_workers(self.model)
        predict = partial(predict_rows, self._predict, model, to_arrow_type(result))
        predictions = on_rows(predict, result, self.getFeaturesCol(), self.numFeatures)
        out = dataset.withColumn(TEMPORARY, predictions)
        columns = {
            self.getOrDefault(f"{name}Col"): self._with_offset(name, out[TEMPORARY][name])
            for name in result.names
        }
        return out.withColumns(columns).drop(TEMPORARY)

    def _with_offset(self, name: str, predicted: Column) -> Column:
        """Return a predicted column with the offsets of rows, if the model has them."""
        return predicted

    def _as_data(self) -> tuple[pa.Table, dict[str, Any]]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.npz"
            self.model.save(file)
            content = file.read_bytes()
        starts = range(0, len(content), PIECE_BYTES)
        pieces = [content[start : start + PIECE_BYTES] for start in starts]
        return pa.table({"number": range(len(pieces)), "piece": pieces}), {}

    @classmethod
    def _from_data(cls: type[Self], table: pa.Table, metadata: dict[str, Any]) -> Self:
        pieces = table.sort_by("number")["piece"].to_pylist()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.npz"
            file.write_bytes(b"".join(pieces))
            return cls(load_model(file))


def predict_rows(
    predict: Any, model: Any, result: pa.StructType, x: CanonicalCsr
) -> Iterator[pa.Array]:
    """Yield the predictions of a batch of rows, on a worker."""
    if x.shape[0] == 0:
        return
    X = as_csr(x.shape, x.indptr, x.indices, x.data, is_array=x.is_array)
    found = predict(model, X)
    yield pa.StructArray.from_arrays([found[field.name] for field in result], fields=list(result))
