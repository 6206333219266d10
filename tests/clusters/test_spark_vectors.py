"""Vectors over Arrow: what is read is the matrix, without copies, and what is not is a fault."""

import numpy as np
import pytest
from scipy import sparse

from csr_zoo import random_dense

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from polysparse.spark.vectors import VECTOR, VectorFault, as_rows, as_vectors  # noqa: E402

DENSE = random_dense(9, 5, 0.4)
X = sparse.csr_array(DENSE)


def vector(size=None, indices=None, values=(), kind=0):
    return {"type": kind, "size": size, "indices": indices, "values": values}


def batch(*vectors):
    return pa.array(vectors, type=VECTOR)


def dense_of(x):
    return sparse.csr_array((x.data, x.indices, x.indptr), shape=x.shape).toarray()


@pytest.mark.parametrize("rows", [X, DENSE], ids=["sparse", "dense"])
def test_vectors_of_rows_are_read_back_as_these_rows(rows):
    x = as_rows(as_vectors(rows), "v", 5)
    assert np.array_equal(dense_of(x), DENSE)
    assert np.all(x.data != 0)


@pytest.mark.parametrize("rows", [slice(0, 0), slice(2, 7), slice(8, 9)])
def test_slices_of_a_batch_are_read_as_their_rows(rows):
    part = as_vectors(X)[rows.start : rows.stop]
    assert np.array_equal(dense_of(as_rows(part, "v", 5)), DENSE[rows])


def test_sparse_and_dense_vectors_mix():
    both = pa.concat_arrays([as_vectors(X), as_vectors(DENSE)])
    mixed = both.take(pa.array(np.arange(18).reshape(2, 9).T.ravel()))
    assert np.array_equal(dense_of(as_rows(mixed, "v", 5)), np.repeat(DENSE, 2, axis=0))


def test_values_and_indices_are_shared_not_copied():
    vectors = as_vectors(X)
    assert vectors.field("values").values.to_numpy().ctypes.data == X.data.ctypes.data
    assert vectors.field("indices").values.to_numpy().ctypes.data == X.indices.ctypes.data
    x = as_rows(vectors, "v", 5)
    assert np.shares_memory(x.data, X.data)
    assert np.shares_memory(x.indices, X.indices)


def test_stored_zeros_are_dropped_and_unsorted_indices_sorted():
    x = as_rows(batch(vector(3, [2, 0], [5.0, 4.0]), vector(3, [1], [0.0])), "v", 3)
    assert np.array_equal(dense_of(x), [[4, 0, 5], [0, 0, 0]])
    assert x.indices.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([None], r"'v' has a row that is null.*drop such rows"),
        ([vector(3, [], [])], r"'v' has a vector of size 3, where n_features is 2"),
        ([vector(values=[1.0], kind=1)], r"'v' has a vector of size 1, where n_features is 2"),
        ([vector(None, [0], [1.0])], r"'v' has a vector of size -1"),
        ([vector(2, [0, 1], [1.0])], r"'v' has a malformed vector: .*numbers of indices"),
        ([vector(2, [2], [1.0])], r"'v' has a malformed vector: .* is 2, but X has 2 columns"),
        ([vector(2, [-1], [1.0])], r"'v' has a malformed vector: .* is -1"),
        ([vector(2, None, [1.0])], r"'v' has a malformed vector: .*without indices"),
        ([vector(2, [0], None)], r"'v' has a malformed vector: .*no values"),
        ([vector(2, [0], [1.0], kind=7)], r"'v' has a malformed vector: its type"),
    ],
)
def test_faults_name_the_column_and_what_is_wrong(vectors, message):
    good = vector(2, [0], [1.0])
    with pytest.raises(VectorFault, match=message):
        as_rows(batch(good, *vectors), "v", 2)
