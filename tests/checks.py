"""Assertions that several tests share."""

import numpy as np
from scipy import sparse

import reference

# Every kind of basis: below, at and above degree 3, with and without lower degrees.
DEGREES = [1, 2, 3, 4, (2, 2), (2, 3), (3, 3), (3, 5), (4, 4)]


def assert_is_law(result, dense, degree, interaction_only=False, include_bias=True):
    """The result has the law's values bit for bit, its pattern, and is canonical CSR."""
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
