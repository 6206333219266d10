"""Assertions that several tests share."""

from functools import cache

import numpy as np
import sklearn
from scipy import sparse

import reference

# Every kind of basis: below, at and above degree 3, with and without lower degrees.
DEGREES = [1, 2, 3, 4, (2, 2), (2, 3), (3, 3), (3, 5), (4, 4)]


def assert_is_law(result, dense, degree, interaction_only=False, include_bias=True):
    """The result has the reference values bit for bit, its pattern, and is canonical CSR."""
    expected, stored = reference.expand(dense, degree, interaction_only, include_bias)
    assert result.shape == expected.shape
    assert sparse.issparse(result)
    assert result.format == "csr"
    assert result.indptr.dtype == result.indices.dtype
    rows, columns = np.nonzero(stored)
    assert len(result.indptr) == len(dense) + 1
    assert len(result.indices) == len(result.data) == len(rows)
    np.testing.assert_array_equal(result.indptr, np.searchsorted(rows, range(len(dense) + 1)))
    np.testing.assert_array_equal(result.indices, columns)
    assert result.dtype == expected.dtype
    assert result.data.tobytes() == expected[stored].tobytes()


def bits(result):
    """Everything in a CSR matrix, to be compared."""
    return tuple((a.dtype, a.tobytes()) for a in (result.indptr, result.indices, result.data))


def nbytes(result):
    """Bytes of the arrays of a CSR matrix."""
    return result.data.nbytes + result.indices.nbytes + result.indptr.nbytes


@cache
def zoo_law(build, degree, interaction_only, include_bias):
    """The law for a matrix of the zoo, worked out once: (values, pattern)."""
    return reference.expand(build()[1], degree, interaction_only, include_bias)


def assert_is_restricted(result, law, columns):
    """The result has these columns of the reference, bit for bit, and is canonical CSR."""
    values, stored = (a[:, columns] for a in law)
    rows, places = np.nonzero(stored)
    assert_is_csr(result, stored.shape, np.searchsorted(rows, range(len(stored) + 1)), places)
    assert result.dtype == values.dtype
    assert result.data.tobytes() == values[stored].tobytes()


def assert_is_hashed(result, rows, n_columns, dtype):
    """The result has these rows, each a dict of column to value, and is canonical CSR."""
    offsets = np.cumsum([0, *map(len, rows)])
    columns = [column for row in rows for column in row]
    assert_is_csr(result, (len(rows), n_columns), offsets, columns)
    assert result.dtype == dtype
    values = np.array([value for row in rows for value in row.values()], dtype=dtype)
    assert result.data.tobytes() == values.tobytes()


def assert_is_csr(result, shape, offsets, columns):
    """The result is CSR of this pattern, and says itself that it is canonical."""
    assert result.shape == shape
    assert result.format == "csr"
    assert result.has_canonical_format
    assert result.indptr.dtype == result.indices.dtype
    np.testing.assert_array_equal(result.indptr, offsets)
    np.testing.assert_array_equal(result.indices, columns)
    assert len(result.data) == len(result.indices)


def assert_family_is_kept(poly, X):
    """Output is of the array or matrix family, like X, or as scikit-learn is told to make it."""
    if "sparse_interface" not in sklearn.get_config():
        assert sparse.isspmatrix(poly.transform(X)) == sparse.isspmatrix(X)
        return
    for interface in ("spmatrix", "sparray"):
        with sklearn.config_context(sparse_interface=interface):
            assert sparse.isspmatrix(poly.transform(X)) == (interface == "spmatrix")


def columns_and_counts(poly):
    """What an ObservedPolynomialFeatures has learned, to be compared."""
    return poly.columns_.tolist(), poly.counts_.tolist()


def names_in(folder):
    """The names of the files in a folder, sorted."""
    return sorted(p.name for p in folder.iterdir())
