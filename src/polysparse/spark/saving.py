"""Fitted models are saved by way of Spark: params as JSON, data as Parquet, nothing is pickled."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.ml import Model
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)

from polysparse.spark.errors import illegal_arguments
from polysparse.spark.params import Stage

Self = TypeVar("Self", bound="SavableModel")


class SavableModel(Stage, Model, MLReadable, MLWritable):  # type: ignore[misc]
    """A fitted model that defines which data it is saved as."""

    def _as_data(self) -> tuple[pa.Table, dict[str, Any]]:
        """Return what is saved: a table, and what the metadata have besides the params."""
        raise NotImplementedError

    @classmethod
    def _from_data(cls: type[Self], table: pa.Table, metadata: dict[str, Any]) -> Self:
        """Return the model that was saved. The rows of the table are in any order."""
        raise NotImplementedError

    def write(self) -> MLWriter:
        """Return a writer of the model, to any path that Spark can write to.

        Returns
        -------
        MLWriter
            The writer.
        """
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader:
        """Return a reader of saved models.

        Returns
        -------
        MLReader
            The reader.
        """
        return _Reader(cls)


class _Writer(MLWriter):  # type: ignore[misc]
    def __init__(self, model: SavableModel) -> None:
        super().__init__()
        self.model = model

    def saveImpl(self, path: str) -> None:
        table, more = self.model._as_data()
        DefaultParamsWriter.saveMetadata(self.model, path, self.sparkSession, extraMetadata=more)
        self.sparkSession.createDataFrame(table).write.parquet(os.path.join(path, "data"))


class _Reader(MLReader):  # type: ignore[misc]
    def __init__(self, model_class: type[SavableModel]) -> None:
        super().__init__()
        self.model_class = model_class

    def load(self, path: str) -> SavableModel:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        table = self.sparkSession.read.parquet(os.path.join(path, "data")).toArrow()
        with illegal_arguments():
            model = self.model_class._from_data(table, metadata)
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model
