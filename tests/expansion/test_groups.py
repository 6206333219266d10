"""expand with groups and terms against the reference, over the zoo."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
import reference
from checks import DEGREES, bits
from csr_zoo import ZOO, random_dense
from groupings import GROUPINGS, all_terms, interleaved
from looping import loop_over

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")


def assert_is_reference(result, dense, **parameters):
    """The result has the reference values bit for bit, its pattern, and is canonical CSR."""
    expected, stored = reference.expand(dense, **parameters)
    rows, columns = np.nonzero(stored)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.indptr, np.searchsorted(rows, range(len(dense) + 1)))
    np.testing.assert_array_equal(result.indices, columns)
    assert result.data.tobytes() == expected[stored].tobytes()


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@pytest.mark.parametrize("grouping", GROUPINGS)
@loop_over("build", ZOO)
def test_zoo_with_groups(build, grouping, degree, interaction_only):
    X, dense = build()
    how = {"degree": degree, "interaction_only": interaction_only}
    how["groups"] = grouping(dense.shape[1])
    result = polysparse.expand(X, **how)
    assert_is_reference(result, dense, **how)
    plan = polysparse.plan(X, **how)
    assert (plan.shape, plan.nnz) == (result.shape, result.nnz)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("degree", [2, 3, (2, 3), (3, 5)], ids=str)
@loop_over("build", ZOO)
@pytest.mark.usefixtures("wide", "small_tasks")
def test_zoo_with_groups_wide_and_split(build, grouping, degree):
    X, dense = build()
    how = {"degree": degree, "groups": grouping(dense.shape[1])}
    assert_is_reference(polysparse.expand(X, n_jobs=3, **how), dense, **how)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@loop_over("build", ZOO)
def test_zoo_with_terms(build, grouping, degree):
    X, dense = build()
    labels = grouping(dense.shape[1])
    terms = all_terms(labels, degree)
    if not terms:
        return
    how = {"groups": labels, "terms": terms}
    for n_jobs in (1, 3):
        assert_is_reference(polysparse.expand(X, n_jobs=n_jobs, **how), dense, **how)


def test_blocks_of_rows_have_the_rows_of_the_whole():
    X = sparse.csr_array(random_dense(200, 12, 0.4))
    for terms in (None, ["g0:g1", "g1 + g2"]):
        how = {"groups": interleaved(12), "terms": terms}
        whole = polysparse.expand(X, **how)
        blocks = [block.copy() for _, block in polysparse.iter_expand(X, max_bytes=3000, **how)]
        assert len(blocks) > 3
        assert bits(sparse.vstack(blocks, format="csr")) == bits(whole)


def test_one_long_row_is_divided(small_tasks):
    dense = random_dense(1, 30, 0.9)
    how = {"degree": 3, "groups": interleaved(30)}
    assert_is_reference(polysparse.expand(sparse.csr_array(dense), n_jobs=4, **how), dense, **how)
