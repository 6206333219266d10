"""Columns of vectors as CSR, and back, over Arrow: used by the workers of all stages.

A stage writes one function from rows to results, and `on_rows` makes a column of it::

    def predict(x: CanonicalCsr) -> Iterator[pa.Array]:  # the rows of one batch
        yield pa.array(scores_of(x))                     # as many results, in one piece or several

    scores = on_rows(predict, DoubleType(), "features", n_features=123)
    dataset.withColumn("prediction", scores)

A result may be a number, a struct or a vector: `as_vectors` makes vectors of CSR or dense rows. A
function of whole batches, for `mapInArrow`, calls `as_rows` itself, gives the text of a VectorFault
in a column of its own, and lets `unless_fault` raise it. The indices, values and offsets of sparse
vectors are read and written where they are, without a copy. A piece is sent before the next one is
requested, so that all may use the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StringType, StructType
from scipy import sparse

from polysparse.matrix.canonical import CanonicalCsr, as_canonical_csr
from polysparse.matrix.output import as_csr
from polysparse.spark.schema import column_named
from polysparse.spark.worker import prepare_process

# type, size, indices and values. Spark compares Arrow types strictly, with what may be null.
VECTOR = to_arrow_type(VectorUDT())
SPARSE, DENSE = 0, 1  # the values of type; a dense vector has neither size nor indices


class VectorFault(ValueError):
    """A row without a vector of the right size. The message names the column."""


def on_rows(
    function: Callable[[CanonicalCsr], Iterator[pa.Array]],
    result: DataType,
    column: str,
    n_features: int | None,
) -> Column:
    """Return the column that a function makes of the vectors in another column.

    The function gets the rows of a batch and yields arrays of the Arrow type of `result`, with as
    many rows in all. It is sent to the workers. n_features is None if there are no vectors at all.
    A fault in a row raises Spark's error for it once the row is needed.
    """
    kind = to_arrow_type(result)

    def work(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        prepare_process()
        for vectors in batches:
            try:
                x = as_rows(vectors, column, n_features)
            except VectorFault as fault:  # of the whole batch, whichever of its rows is needed
                faults = pa.array([str(fault)] * len(vectors))
                yield _beside(pa.nulls(len(vectors), kind), faults)
                continue
            for piece in function(x):
                yield _beside(piece, pa.nulls(len(piece), pa.string()))

    both = StructType().add("value", result).add("fault", StringType())
    made = F.arrow_udf(work, returnType=both)(column_named(column))
    return unless_fault(made["value"], made["fault"])


def _beside(values: pa.Array, faults: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([values, faults], names=["value", "fault"])


def unless_fault(value: Column, fault: Column) -> Column:
    """Return a column that raises Spark's error, with its text, where there is a fault."""
    return F.when(fault.isNotNull(), F.raise_error(fault)).otherwise(value)


# ----------------------------------------------------------------------------------------- reading


def as_rows(vectors: pa.StructArray, column: str, n_features: int | None) -> CanonicalCsr:
    """Read a batch of vectors, of which some may be sparse and some dense.

    VectorFault is raised for a null, for another number of features and for a malformed vector.
    """
    if vectors.null_count:
        raise VectorFault(
            f"Column {column!r} has a row that is null, where a vector is needed: drop such rows, "
            f"with dataset.na.drop(subset=[{column!r}])."
        )
    try:
        is_dense, sizes, indices, values = _parts_of(vectors)
        wrong = sizes[sizes != n_features]
        if len(wrong):
            raise VectorFault(
                f"Column {column!r} has a vector of size {wrong[0]}, where n_features is "
                f"{n_features}, by the column's metadata, the first row or fit: all vectors of a "
                "column must have the same size."
            )
        shape = len(vectors), int(n_features or 0)
        arrays = _csr_arrays(is_dense, indices, values, shape[1])
        return as_canonical_csr(as_csr(shape, *arrays, is_array=True))
    except VectorFault:
        raise
    except ValueError as error:
        raise VectorFault(f"Column {column!r} has a malformed vector: {error}") from None


_Lists = tuple[NDArray[np.int32], NDArray[Any]]  # offsets that begin with 0, and elements


def _parts_of(vectors: pa.StructArray) -> tuple[NDArray[np.bool_], NDArray[Any], _Lists, _Lists]:
    """Return which vectors are dense, the sizes of all, their indices and their values."""
    kinds, sizes, indices, values = (vectors.field(i) for i in range(4))
    is_dense = kinds.to_numpy() == DENSE
    if np.any(kinds.to_numpy()[~is_dense] != SPARSE):
        raise ValueError("its type is neither 0, sparse, nor 1, dense.")
    if values.null_count or np.any(indices.is_null().to_numpy(False) & ~is_dense):
        raise ValueError("it has no values, or is sparse without indices.")
    given = sizes.fill_null(-1).to_numpy()
    found = _lists(values)
    return is_dense, np.where(is_dense, np.diff(found[0]), given), _lists(indices), found


def _lists(lists: pa.ListArray) -> _Lists:
    offsets = lists.offsets.to_numpy()
    first, last = offsets[0], offsets[-1]
    return offsets - first, lists.values.slice(first, last - first).to_numpy()


def _csr_arrays(
    is_dense: NDArray[np.bool_], indices: _Lists, values: _Lists, n_features: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return indptr, indices and data. The indices of dense vectors are all there are."""
    lengths, stored = np.diff(values[0]), np.diff(indices[0])
    if np.any((lengths != stored) & ~is_dense):
        raise ValueError("it has other numbers of indices and values.")
    columns = indices[1]
    if np.any(is_dense):
        columns = np.empty(len(values[1]), np.int32)
        in_dense = np.repeat(is_dense, lengths)
        columns[~in_dense] = indices[1]
        columns[in_dense] = np.tile(np.arange(n_features, dtype=np.int32), int(is_dense.sum()))
    return values[0], columns, values[1]


# ----------------------------------------------------------------------------------------- writing


def as_vectors(rows: Any) -> pa.StructArray:
    """Return CSR rows as sparse vectors, or the rows of a dense array as dense ones.

    CSR must have int32 indices and float64 values, which are not copied.
    """
    n_rows, n_columns = rows.shape
    if sparse.issparse(rows):
        kinds, sizes = np.full(n_rows, SPARSE, np.int8), np.full(n_rows, n_columns, np.int32)
        indices = _as_lists(rows.indptr, rows.indices, "indices")
        values = _as_lists(rows.indptr, rows.data, "values")
        arrays = [pa.array(kinds), pa.array(sizes), indices, values]
    else:
        offsets = np.arange(n_rows + 1, dtype=np.int32) * n_columns
        values = _as_lists(offsets, np.ascontiguousarray(rows, np.float64).ravel(), "values")
        nulls = [pa.nulls(n_rows, VECTOR.field(name).type) for name in ("size", "indices")]
        arrays = [pa.array(np.full(n_rows, DENSE, np.int8)), *nulls, values]
    return pa.StructArray.from_arrays(arrays, fields=list(VECTOR))


def _as_lists(offsets: NDArray[np.int32], elements: NDArray[Any], field: str) -> pa.ListArray:
    kind = VECTOR.field(field).type
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(elements), type=kind)
