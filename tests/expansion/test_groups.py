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
from polysparse import _kernels
from polysparse.engine import cpu

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


def test_columns_that_change_after_the_plan_are_refused(monkeypatch):
    n_rows, n = 1_000, 60
    dense = np.tile(np.repeat([1.0, 0.0], [n, n]), (n_rows, 1))
    dense[-1, 0] = 0  # rows that are alike are not counted again
    X = sparse.csr_array(dense)
    groups = ["one"] * n + [None] * n  # all values of a row are in one group, at first
    fill = cpu.fill

    def changed(*arguments):
        X.indices[:] = np.resize(np.arange(n, 2 * n, dtype=X.indices.dtype), X.nnz)
        return fill(*arguments)

    monkeypatch.setattr(cpu, "fill", changed)
    with pytest.raises(RuntimeError, match="X has changed while it was expanded"):
        polysparse.expand(X, 6, groups=groups, interaction_only=True, n_jobs=2)


def test_offsets_never_fall_and_totals_that_do_not_fit_are_told():
    native = _kernels.Basis(300, 1, 5, True, False, [0] * 6)
    native.set_groups([1] * 300, False)
    offsets = np.arange(0, 10 * 300 + 1, 300, dtype=np.int32)
    columns = np.tile(np.arange(300, dtype=np.int32), 10)
    out = np.empty(11, np.int32)
    assert not _kernels.fill_row_offsets(native, offsets, columns, out, 3)
    assert out[0] == 0
    assert (np.diff(out) >= 0).all()
    assert _kernels.fill_row_offsets(native, offsets, columns, np.empty(11, np.int64), 3)


@pytest.mark.parametrize(
    "how", [{"terms": ["w:a:b:c"]}, {"degree": (4, 4)}], ids=["terms", "groups"]
)
@pytest.mark.parametrize("columns", [None, "hashed", "observed"])
def test_long_rows_take_memory_for_what_groups_allow(how, columns):
    n = 3_000  # has 4.5e9 triples
    X = sparse.csr_array(np.ones((2, n + 3)))
    groups = {"w": n, "a": 1, "b": 1, "c": 1}
    out = polysparse.expand(
        X, groups=groups, include_bias=False, interaction_only=True, columns=columns, **how
    )
    assert out.sum() == 2 * n or columns == "hashed"
    assert out.nnz <= 2 * n
