"""Awkward inputs by name: each builder gives (X as SciPy sees it, the dense array it means)."""

import numpy as np
from scipy import sparse


def raw_csr(data, indices, indptr, shape, container=sparse.csr_matrix, index_dtype=np.int32):
    """CSR with exactly these arrays: no checks, no conversions."""
    X = container(shape, dtype=np.asarray(data).dtype)
    X.data, X.indices, X.indptr = (
        np.asarray(data),
        np.asarray(indices, dtype=index_dtype),
        np.asarray(indptr, dtype=index_dtype),
    )
    return X


def random_dense(n_rows, n_features, density, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)).astype(dtype)
    X[rng.random(X.shape) >= density] = 0
    return X


def random_csr(n_rows=40, n_features=6, density=0.4, seed=0):
    return sparse.csr_array(random_dense(n_rows, n_features, density, seed))


def wide_csr(n_rows, n_features, stored, seed=0):
    """A fixed number of stored values in every row, among many features."""
    rng = np.random.default_rng(seed)
    columns = [np.sort(rng.choice(n_features, stored, replace=False)) for _ in range(n_rows)]
    offsets = np.arange(0, n_rows * stored + 1, stored)
    data = rng.uniform(0.5, 1.5, n_rows * stored)
    return raw_csr(data, np.concatenate(columns), offsets, (n_rows, n_features))


def sorted_rows():
    dense = random_dense(6, 5, 0.5)
    return sparse.csr_matrix(dense), dense


def csr_array():
    dense = random_dense(6, 5, 0.5, seed=1)
    return sparse.csr_array(dense), dense


def float32():
    dense = random_dense(6, 5, 0.5, seed=2, dtype=np.float32)
    return sparse.csr_array(dense), dense


def unsorted_indices():
    X = raw_csr([2.0, 3.0, 5.0], [2, 0, 1], [0, 3], (1, 4))
    return X, np.array([[3.0, 5.0, 2.0, 0.0]])


def duplicates():
    X = raw_csr([1.0, 2.0, 4.0], [1, 1, 2], [0, 3], (1, 3))
    return X, np.array([[0.0, 3.0, 4.0]])


def duplicates_that_cancel():
    X = raw_csr([1.0, -1.0, 4.0], [1, 1, 2], [0, 3], (1, 3))
    return X, np.array([[0.0, 0.0, 4.0]])


def stored_zeros():
    X = raw_csr([0.0, 2.0, -0.0], [0, 1, 2], [0, 2, 3], (2, 3))
    return X, np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])


def flags_that_lie():
    X, dense = unsorted_indices()
    X.has_sorted_indices = X.has_canonical_format = True
    return X, dense


def read_only():
    X, dense = sorted_rows()
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    return X, dense


def int64_indices():
    X, dense = sorted_rows()
    return raw_csr(X.data, X.indices, X.indptr, X.shape, index_dtype=np.int64), dense


def mixed_index_dtypes():
    X, dense = sorted_rows()
    X.indptr = X.indptr.astype(np.int64)
    return X, dense


def odd_index_dtypes():
    X, dense = sorted_rows()
    X.indices, X.indptr = X.indices.astype(np.uint16), X.indptr.astype(">i4")
    return X, dense


def strided_arrays():
    X, dense = sorted_rows()
    X.data = np.repeat(X.data, 2)[::2]
    X.indices = np.repeat(X.indices, 3)[::3]
    return X, dense


def spare_capacity():
    X, dense = sorted_rows()
    X.data = np.append(X.data, [99.0, 98.0])
    X.indices = np.append(X.indices, np.int32([0, 77]))
    return X, dense


def big_endian_values():
    X, dense = sorted_rows()
    X.data = X.data.astype(">f8")
    return X, dense


def integers():
    dense = np.array([[1, 0, 3], [0, -2, 5]])
    return sparse.csr_matrix(dense), dense.astype(float)


def booleans():
    dense = np.array([[True, False, True], [False, False, True]])
    return sparse.csr_matrix(dense), dense.astype(float)


def empty_rows():
    dense = np.zeros((4, 3))
    dense[2, 1] = 7
    return sparse.csr_matrix(dense), dense


def no_stored_values():
    return sparse.csr_matrix((3, 4)), np.zeros((3, 4))


def no_rows():
    return sparse.csr_matrix((0, 4)), np.zeros((0, 4))


def no_features():
    return sparse.csr_matrix((3, 0)), np.zeros((3, 0))


def one_feature():
    dense = np.array([[2.0], [0.0], [-3.0]])
    return sparse.csr_matrix(dense), dense


def full_rows():
    dense = random_dense(3, 6, 1.0)
    return sparse.csr_matrix(dense), dense


def uneven_rows():
    dense = random_dense(9, 12, 0.1, seed=3)
    dense[4] = np.arange(1, 13)
    return sparse.csr_matrix(dense), dense


def extreme_values():
    dense = np.array([[1e200, 1e-200, 0.0, 1e-310], [np.inf, 0.0, -1.0, 3.0]])
    return sparse.csr_matrix(dense), dense


def _other_format(name):
    def build():
        dense = random_dense(6, 4, 0.5, seed=4)
        return sparse.csr_array(dense).asformat(name), dense

    build.__name__ = name
    return build


FORMATS = [_other_format(name) for name in ("csc", "coo", "bsr", "dia", "lil", "dok")]

ZOO = [
    sorted_rows,
    csr_array,
    float32,
    unsorted_indices,
    duplicates,
    duplicates_that_cancel,
    stored_zeros,
    flags_that_lie,
    read_only,
    int64_indices,
    mixed_index_dtypes,
    odd_index_dtypes,
    strided_arrays,
    spare_capacity,
    big_endian_values,
    integers,
    booleans,
    empty_rows,
    no_stored_values,
    no_rows,
    no_features,
    one_feature,
    full_rows,
    uneven_rows,
    extreme_values,
    *FORMATS,
]

# What scikit-learn's estimators take: at least one row and one feature, and no infinity.
FITTABLE = [build for build in ZOO if build not in (no_rows, no_features, extreme_values)]
