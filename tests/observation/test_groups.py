"""Counting with groups and terms: the columns that occur, as the whole expansion has them."""

import numpy as np
import pytest
from scipy import sparse

import reference
from checks import DEGREES
from csr_zoo import ZOO, random_dense
from groupings import GROUPINGS, all_terms, interleaved
from looping import loop_over
from polysparse import MonomialBasis
from polysparse.matrix.canonical import as_canonical
from polysparse.observation.tally import ColumnTally, observed_columns

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")


def expected_counts(dense, least=1, **how):
    """Columns in at least so many rows of the expansion, and their counts."""
    counts = reference.expand(dense, **how)[1].sum(axis=0)
    columns = np.flatnonzero(counts >= least)
    return columns, counts[columns]


def basis_of(dense, **how):
    return MonomialBasis(dense.shape[1], **how)


def assert_counted(X, dense, **how):
    """Counts are right for any number of threads, also if only frequent columns are wanted."""
    x = as_canonical(X).as_sparse()
    for n_jobs in (1, 3):
        for least in (1, 2, 3):
            tally = ColumnTally(basis_of(dense, **how))
            tally.count(x, n_jobs, least=least)
            expected = expected_counts(dense, least, **how)
            np.testing.assert_array_equal(tally.chosen(least, None), expected)


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@pytest.mark.parametrize("grouping", GROUPINGS)
@loop_over("build", ZOO)
def test_zoo_with_groups(build, grouping, degree, interaction_only):
    X, dense = build()
    groups = grouping(dense.shape[1])
    assert_counted(X, dense, groups=groups, degree=degree, interaction_only=interaction_only)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("grouping", GROUPINGS)
@loop_over("build", ZOO)
def test_zoo_with_terms(build, grouping, degree):
    X, dense = build()
    groups = grouping(dense.shape[1])
    if terms := all_terms(groups, degree):
        assert_counted(X, dense, groups=groups, terms=terms)


HOW = [
    {"degree": 3, "groups": interleaved(9)},
    {"groups": interleaved(9), "terms": [("g2",), ("g0", "g2"), ("g0", "g1", "g2")]},
]


@pytest.mark.parametrize("how", HOW, ids=["groups", "terms"])
@pytest.mark.usefixtures("small_tasks", "small_batches")
def test_batches_are_counted_as_the_whole(how):
    """Batches of rows within a matrix, because memory is short, and several matrices."""
    dense = random_dense(60, 9, 0.4)
    expected = expected_counts(dense, **how)
    tallies = []
    for rows in (slice(0, 25), slice(25, 26), slice(26, 60)):
        tallies.append(ColumnTally(basis_of(dense, **how)))
        tallies[-1].count(as_canonical(sparse.csr_array(dense[rows])))
    np.testing.assert_array_equal(ColumnTally.sum(tallies).chosen(1, None), expected)


@pytest.mark.parametrize("how", HOW, ids=["groups", "terms"])
def test_columns_of_a_basis_that_occur(how):
    dense = random_dense(5, 9, 0.3)
    x = as_canonical(sparse.csr_array(dense))
    found = observed_columns(basis_of(dense, **how), x, 2)
    np.testing.assert_array_equal(found, expected_counts(dense, **how)[0])


@pytest.mark.parametrize("how", HOW, ids=["groups", "terms"])
def test_a_limit_on_the_memory_of_counting(how):
    x = as_canonical(sparse.csr_array(random_dense(60, 9, 0.4)))
    tally = ColumnTally(MonomialBasis(9, **how))
    n_columns = len(observed_columns(tally.basis, x, None))
    with pytest.raises(MemoryError, match="More columns occur than fit into"):
        tally.count(x, max_bytes=24 * (n_columns // 2))
    assert tally.n_entries == 0
    tally.count(x, max_bytes=24 * n_columns)
    assert tally.n_entries == n_columns


def test_columns_next_to_the_largest():
    """Groups of 2**20 features: columns come near 2**60."""
    n = 2**20
    X = sparse.csr_array(
        ([1.0] * 6, ([0, 0, 0, 1, 1, 1], [0, n, 2 * n, n - 1, 2 * n - 1, 3 * n - 1]))
    )
    for how in ({"degree": (3, 3)}, {"terms": ["g0:g1:g2"]}):
        basis = MonomialBasis(3 * n, groups=[n, n, n], include_bias=False, **how)
        found = observed_columns(basis, as_canonical(X), 1)
        assert found.tolist() == [0, n**3 - 1]
