"""A dataset as blocks of rows for a fit: packed once, and kept by Spark in a compact form.

A block is the arrays of a CSR matrix, of labels and of weights, as bytes. Indices are as narrow as
their number allows, and values are float32 where that changes none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from polysparse.clusters.data_blocks import DataBlock
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.spark.schema import column_named
from polysparse.spark.vectors import VectorFault, as_rows, unless_fault

MOST_BYTES = 2**26  # of a block, unless a single batch is larger

ARRAYS = ("indptr", "indices", "data", "y", "weights", "offset")
NUMBER = "number"  # the column that counts the blocks of a partition


def pack(
    dataset: DataFrame,
    features: str,
    label: str,
    weight: str | None,
    offset: str | None,
    n_features: int,
) -> DataFrame:
    """Return the rows of a dataset as blocks, which Spark keeps. Nothing is computed yet.

    There are no more partitions than tasks at a time: a task costs more than its share of a pass.
    """
    y = column_named(label).cast("double")
    weights = F.lit(1.0) if weight is None else column_named(weight).cast("double")
    columns = [column_named(features), y.alias("y"), weights.alias("weights")]
    names = [features, label, weight or "weights"]
    if offset is not None:
        columns.append(column_named(offset).cast("double").alias("offset"))
        names.append(offset)
    given = dataset.select(*columns)
    given = given.coalesce(dataset.sparkSession.sparkContext.defaultParallelism)
    schema = ", ".join(f"{name}_type string, {name} binary" for name in ARRAYS)
    packing = partial(pack_rows, tuple(names), n_features)
    blocks = given.mapInArrow(packing, f"{NUMBER} int, {schema}, fault string")
    checked: list[Column] = [F.col(name) for name in blocks.columns[:-1]]
    checked[-1] = unless_fault(checked[-1], F.col("fault")).alias(ARRAYS[-1])
    return blocks.select(*checked).persist(StorageLevel.MEMORY_AND_DISK_DESER)


def pack_rows(
    names: tuple[str, ...], n_features: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the blocks of a partition, at least one, on a worker."""
    gathered: list[DataBlock] = []
    number = 0
    try:
        for batch in batches:
            gathered.append(read_batch(batch, names, n_features))
            if sum(map(_size, gathered)) >= MOST_BYTES:
                yield _as_row(number, join(gathered, n_features))
                gathered, number = [], number + 1
    except VectorFault as fault:
        yield _as_row(number, join([], n_features), str(fault))
        return
    yield _as_row(number, join(gathered, n_features))


def read_batch(batch: pa.RecordBatch, names: tuple[str, ...], n_features: int) -> DataBlock:
    """Read features, labels, weights and offsets, if there are any.

    VectorFault is raised if some are missing or not finite.
    """
    x = as_rows(batch.column(0), names[0], n_features)
    columns = [x.data]
    for array, name in zip(batch.columns[1:], names[1:], strict=True):
        if array.null_count:
            raise VectorFault(
                f"Column {name!r} has a row that is null, where a number is needed: drop such "
                f"rows, with dataset.na.drop(subset=[{name!r}])."
            )
        columns.append(array.to_numpy())
    for values, name in zip(columns, names, strict=True):
        if not np.isfinite(values).all():
            raise VectorFault(f"Column {name!r} has a value that is NaN or infinite.")
    return DataBlock(x, *columns[1:])


def join(parts: list[DataBlock], n_features: int) -> DataBlock:
    """Return the rows of some blocks, one after the other, in a single block."""
    lengths = [np.zeros(1, np.int64), *(np.diff(part.x.indptr) for part in parts)]

    def joined(arrays: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
        return np.concatenate([np.empty(0, dtype), *arrays])

    x = CanonicalCsr(
        (sum(part.x.shape[0] for part in parts), n_features),
        np.cumsum(np.concatenate(lengths)),
        joined([part.x.indices for part in parts], np.int32),
        joined([part.x.data for part in parts], np.float64),
        is_array=True,
    )
    offsets = [part.offset for part in parts if part.offset is not None]
    return DataBlock(
        x,
        joined([part.y for part in parts], np.float64),
        joined([part.weights for part in parts], np.float64),
        joined(offsets, np.float64) if offsets else None,
    )


def _size(rows: DataBlock) -> int:
    return rows.x.indices.nbytes + rows.x.data.nbytes


def _as_row(number: int, rows: DataBlock, fault: str | None = None) -> pa.RecordBatch:
    """Return a block as a row of Arrow's."""
    x = rows.x
    arrays: dict[str, Any] = {NUMBER: pa.array([number], pa.int32())}
    narrow = (
        _narrow_integers(x.indptr),
        _narrow_integers(x.indices),
        _narrow_floats(x.data),
        rows.y,
        _narrow_floats(rows.weights),
        np.empty(0) if rows.offset is None else rows.offset,
    )
    for name, array in zip(ARRAYS, narrow, strict=True):
        arrays[f"{name}_type"] = pa.array([array.dtype.str])
        arrays[name] = pa.array([array.tobytes()], pa.binary())
    arrays["fault"] = pa.array([fault], pa.string())
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _narrow_integers(values: NDArray[Any]) -> NDArray[Any]:
    most = int(values.max(initial=0))
    return values.astype(np.min_scalar_type(most))


def _narrow_floats(values: NDArray[np.float64]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow, values) else values


def unpack(packed: Any, n_features: int) -> DataBlock:
    """Return the rows of a block, as Spark has it. They were checked before they were packed."""
    _, *parts = packed
    indptr, indices, data, y, weights, offset = (
        np.frombuffer(raw, dtype) for dtype, raw in zip(parts[::2], parts[1::2], strict=True)
    )
    x = CanonicalCsr(
        (len(indptr) - 1, n_features),
        indptr.astype(np.int32 if len(data) < 2**31 else np.int64),
        indices.astype(np.int32),
        data.astype(np.float64, copy=False),
        is_array=True,
    )
    own = offset if len(offset) else None
    return DataBlock(x, y, weights.astype(np.float64, copy=False), own)
