"""Matrices as Spark DataFrames of vectors, and back."""

import numpy as np
from scipy import sparse


def vectors_of(X, dense_rows=()):
    """The rows of a matrix as vectors, sparse ones but for `dense_rows`."""
    from pyspark.ml.linalg import Vectors

    X = sparse.csr_array(X)
    rows = []
    for i, (start, stop) in enumerate(zip(X.indptr[:-1], X.indptr[1:], strict=True)):
        indices, values = X.indices[start:stop], X.data[start:stop]
        if i in dense_rows:
            rows.append(Vectors.dense(np.bincount(indices, values, X.shape[1]).tolist()))
        else:
            rows.append(Vectors.sparse(X.shape[1], indices.tolist(), values.tolist()))
    return rows


def frame_of(spark, vectors):
    """A DataFrame of numbered vectors, in one partition."""
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql.types import LongType, StructType

    schema = StructType().add("id", LongType()).add("x", VectorUDT())
    return spark.createDataFrame(list(enumerate(vectors)), schema).coalesce(1)


def matrix_of(frame, column):
    """A column of sparse vectors as CSR, just as stored, with rows in the order of their ids."""
    from pyspark.sql.functions import unwrap_udt

    table = frame.select("id", unwrap_udt(column).alias("vector")).toArrow().combine_chunks()
    vectors = table.take(np.argsort(table["id"].to_numpy()))["vector"].combine_chunks()
    kinds, sizes, indices, values = (vectors.field(i) for i in range(4))
    assert not np.any(kinds.to_numpy())
    assert indices.offsets.equals(values.offsets)
    (n_columns,) = np.unique(sizes.to_numpy())
    arrays = (each.to_numpy() for each in (values.flatten(), indices.flatten(), indices.offsets))
    return sparse.csr_array(tuple(arrays), shape=(len(vectors), n_columns))


def assert_same_bits(found, expected):
    """Both store the same bits in the same places."""
    assert found.shape == expected.shape
    assert np.array_equal(found.indptr, expected.indptr)
    assert np.array_equal(found.indices, expected.indices)
    assert found.data.tobytes() == expected.data.tobytes()
