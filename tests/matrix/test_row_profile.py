"""RowProfile: how many rows store how many values, and what follows for an expansion."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import DEGREES
from csr_zoo import (
    duplicates_that_cancel,
    empty_rows,
    full_rows,
    no_features,
    no_rows,
    random_csr,
    sorted_rows,
    stored_zeros,
    uneven_rows,
)
from looping import loop_over
from polysparse import MonomialBasis
from polysparse.matrix.canonical import as_canonical, as_canonical_csr
from polysparse.matrix.row_profile import RowProfile

SOME = [
    sorted_rows,
    uneven_rows,
    full_rows,
    empty_rows,
    stored_zeros,
    duplicates_that_cancel,
    no_rows,
    no_features,
]


@pytest.mark.parametrize("include_bias", [True, False])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("build", SOME)
def test_sizes_are_those_of_the_expansion(build, degree, interaction_only, include_bias):
    X = build()[0]
    parameters = {"interaction_only": interaction_only, "include_bias": include_bias}
    basis = MonomialBasis(X.shape[1], degree, **parameters)
    result = polysparse.expand(X, degree, **parameters)
    profile = as_canonical_csr(X).profile
    by_degree = {
        d: np.count_nonzero((result.indices >= columns.start) & (result.indices < columns.stop))
        for d, columns in basis.degree_slices.items()
    }
    assert profile.outputs_by_degree(basis) == by_degree
    assert profile.outputs(basis) == result.nnz
    assert profile.n_rows == X.shape[0]
    if X.shape[0]:
        assert profile.largest_row(basis) == np.diff(result.indptr).max()


@loop_over("build", SOME)
def test_stored_values_are_those_that_are_not_zero(build):
    X, dense = build()
    assert as_canonical_csr(X).profile.n_stored == np.count_nonzero(dense)


@pytest.mark.parametrize("other", [(7, 5, 0.1), (3, 5, 1.0), (0, 5, 0.5)], ids=str)
def test_a_sum_is_the_profile_of_stacked_rows(other):
    one, other = random_csr(20, 5, 0.4), random_csr(*other, seed=1)
    whole = as_canonical_csr(sparse.vstack([one, other], format="csr")).profile
    assert as_canonical_csr(one).profile + as_canonical_csr(other).profile == whole
    assert as_canonical_csr(other).profile + as_canonical_csr(one).profile == whole
    assert whole + RowProfile() == whole


def test_a_dense_matrix_stores_everything():
    profile = as_canonical(np.zeros((4, 3))).profile
    assert profile == RowProfile(((3, 4),))
    assert profile.outputs(MonomialBasis(3)) == polysparse.expand(np.zeros((4, 3))).size
