"""Columns that are built one by one."""

import numpy as np
import pytest

from polysparse import MonomialBasis
from polysparse.columns.spaces import AllColumns
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.built_columns import BuiltColumns


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_indices_that_left_the_matrix_are_clipped(n_jobs):
    """X may change while it is read: here after it was checked."""
    indices = np.array([-5, 1, 0, 99], np.int32)
    x = CanonicalCsr((2, 3), np.array([0, 2, 4], np.int32), indices, np.ones(4), True)
    built = BuiltColumns(AllColumns(MonomialBasis(3, 2, include_bias=False)), x, n_jobs)
    built.add(np.arange(9))
    dense = np.array([[1, 1, 0], [1, 0, 1]])
    expected = dense[:, [0, 0, 0, 1, 1, 2]] * dense[:, [0, 1, 2, 1, 2, 2]]
    assert np.diff(built.by_column.offsets).tolist() == [2, 1, 1, *expected.sum(axis=0)]
