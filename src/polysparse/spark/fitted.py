"""What the fitted models share: predictions without an expansion, and how they are saved."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import IllegalArgumentException
from pyspark.ml import Model
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructType

from polysparse.clusters.predicting import travelling
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.matrix.output import as_csr
from polysparse.models.loading import load_model
from polysparse.spark.errors import illegal_arguments
from polysparse.spark.model_params import ModelParams
from polysparse.spark.schema import stated_features, vector_field
from polysparse.spark.vectors import on_rows

PIECE = 2**26  # bytes of a model in a row of Parquet
MADE = "__polysparse_predictions__"  # a column that is dropped again

# From a fitted model in Python and rows to what is predicted.
Predictor = Callable[[Any, Any], dict[str, pa.Array]]
Self = TypeVar("Self", bound="FittedModel")


class FittedModel(
    ModelParams,
    Model,  # type: ignore[misc]
    MLReadable,  # type: ignore[misc]
    MLWritable,  # type: ignore[misc]
):
    """A fitted model in Python as a Transformer.

    A subclass says which columns it adds, and how a worker makes them.
    """

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

    def _outputs(self) -> dict[str, DataType]:
        """Return what is predicted, by the params that name its columns, and of which types."""
        raise NotImplementedError

    def _predictor(self) -> Predictor:
        """Return the function that predicts rows on a worker."""
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
        out = StructType(list(schema.fields))
        for each, kind in self._outputs().items():
            name = self.getOrDefault(f"{each}Col")
            if name in schema.names:
                raise IllegalArgumentException(
                    f"Output column {name!r} already exists: set another {each}Col, or an empty "
                    "one to leave it out."
                )
            out = out.add(name, kind)
        return out

    def _transform(self, dataset: DataFrame) -> DataFrame:
        self.transformSchema(dataset.schema)
        result = StructType()
        for each, kind in self._outputs().items():
            result = result.add(each, kind)
        model = travelling(self.model)
        work = partial(predict_rows, self._predictor(), model, to_arrow_type(result))
        made = on_rows(work, result, self.getFeaturesCol(), self.numFeatures)
        out = dataset.withColumn(MADE, made)
        named = {self.getOrDefault(f"{each}Col"): out[MADE][each] for each in result.names}
        return out.withColumns(named).drop(MADE)

    def write(self) -> MLWriter:
        """Return a writer of the model, by way of Spark, without pickle.

        Returns
        -------
        MLWriter
            The writer.
        """
        return _Writer(self)

    @classmethod
    def read(cls: type[Self]) -> MLReader:
        """Return a reader of models that were saved.

        Returns
        -------
        MLReader
            The reader.
        """
        return _Reader(cls)


def predict_rows(
    columns_of: Predictor,
    model: Any,
    result: pa.StructType,
    x: CanonicalCsr,
) -> Iterator[pa.Array]:
    """Yield the predictions of a batch of rows, on a worker."""
    if x.shape[0] == 0:
        return
    X = as_csr(x.shape, x.indptr, x.indices, x.data, is_array=x.is_array)
    made = columns_of(model, X)
    yield pa.StructArray.from_arrays([made[field.name] for field in result], fields=list(result))


class _Writer(MLWriter):  # type: ignore[misc]
    def __init__(self, stage: FittedModel) -> None:
        super().__init__()
        self.stage = stage

    def saveImpl(self, path: str) -> None:
        """Write to any path that Spark can write to: params as JSON, a model file as Parquet."""
        DefaultParamsWriter.saveMetadata(self.stage, path, self.sparkSession)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.npz"
            self.stage.model.save(file)
            whole = file.read_bytes()
        pieces = [whole[i : i + PIECE] for i in range(0, len(whole), PIECE)]
        table = pa.table({"number": range(len(pieces)), "piece": pieces})
        self.sparkSession.createDataFrame(table).write.parquet(os.path.join(path, "data"))


class _Reader(MLReader):  # type: ignore[misc]
    def __init__(self, kind: type[FittedModel]) -> None:
        super().__init__()
        self.kind = kind

    def load(self, path: str) -> FittedModel:
        """Read what a writer has written. Nothing is unpickled."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        table = self.sparkSession.read.parquet(os.path.join(path, "data")).toArrow()
        pieces = dict(zip(*(table[name].to_pylist() for name in ("number", "piece")), strict=True))
        with tempfile.TemporaryDirectory() as folder, illegal_arguments():
            file = Path(folder) / "model.npz"
            file.write_bytes(b"".join(pieces[number] for number in sorted(pieces)))
            stage = self.kind(load_model(file))
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        return stage
