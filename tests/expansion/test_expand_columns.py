"""expand and iter_expand with chosen and hashed columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import polysparse
from checks import DEGREES, assert_is_restricted, bits, nbytes, zoo_law
from column_kinds import SPACES, X, every_space, selected_space
from csr_zoo import ZOO, random_dense, raw_csr
from inside import before, fail_at, lower
from looping import loop_over
from polysparse import HashedPolynomialFeatures, MonomialBasis

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("build", ZOO)
def test_ranks_are_columns_of_the_law(build, degree, interaction_only):
    law = zoo_law(build, degree, interaction_only, True)
    n = law[0].shape[1]
    for columns in (range(n), range(0, n, 3), range(max(0, n - 2), n), []):
        result = polysparse.expand(
            build()[0], degree, interaction_only=interaction_only, columns=columns
        )
        assert_is_restricted(result, law, list(columns))
        assert result.indices.dtype == np.int32


@given(
    columns=st.sets(st.integers(0, 119)).map(sorted),
    n_jobs=st.integers(1, 4),
    task=st.sampled_from([0, 1, 5, 40]),
    wide=st.booleans(),
)
def test_any_ranks_are_those_columns_of_the_expansion(columns, n_jobs, task, wide):
    full = polysparse.expand(X, 3)
    with pytest.MonkeyPatch.context() as patch:
        lower(patch, TASK_OUTPUTS=task, OUTPUTS_PER_THREAD=1)
        if wide:
            lower(patch, MAX_INT32=0)
        result = polysparse.expand(X, 3, columns=columns, n_jobs=n_jobs)
    np.testing.assert_array_equal(result.toarray(), full.toarray()[:, columns])
    assert result.nnz == np.isin(full.indices, columns).sum()
    assert result.indices.dtype == (np.int64 if wide and columns else np.int32)


def test_ranks_far_apart_and_close_together():
    """Few among many are looked up in another way than many among few."""
    wide = raw_csr(np.ones(3), [2, 10**8, 10**9 - 1], [0, 3], (1, 10**9))
    basis = MonomialBasis(10**9)
    full = polysparse.expand(wide)
    for chosen in (full.indices, full.indices[1::2], np.arange(10**5), basis.n_columns - 1):
        columns = np.atleast_1d(chosen)
        result = polysparse.expand(wide, columns=chosen)
        expected = np.flatnonzero(np.isin(columns, full.indices))
        np.testing.assert_array_equal(result.indices, expected)
        assert result.shape == (1, len(columns))


@selected_space
def test_dense_input_gives_the_same_csr(space):
    columns = SPACES[space]()
    result = polysparse.expand(X.toarray(), columns=columns)
    assert sparse.issparse(result)
    assert bits(result) == bits(polysparse.expand(X, columns=columns))
    planned = polysparse.plan(X.toarray(), columns=columns)
    assert planned.is_sparse
    assert planned.nnz == result.nnz


@selected_space
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_container_family_is_kept(space, container):
    result = polysparse.expand(container(X), columns=SPACES[space]())
    assert type(result) is container
    blocks = polysparse.iter_expand(container(X), columns=SPACES[space]())
    assert all(type(block) is container for _, block in blocks)


@every_space
@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("max_bytes", [700, 3000, 10**6])
def test_blocks_are_the_rows_of_the_whole(space, reuse, max_bytes):
    columns = SPACES[space]()
    whole = polysparse.expand(X, columns=columns)
    ends = [0]
    for rows, block in polysparse.iter_expand(X, columns=columns, max_bytes=max_bytes, reuse=reuse):
        assert rows.start == ends[-1]
        ends.append(rows.stop)
        assert bits(block) == bits(whole[rows])
        assert block.shape == (rows.stop - rows.start, whole.shape[1])
        assert nbytes(block) <= max_bytes
    assert ends[-1] == X.shape[0]
    assert len(ends) > 2 or max_bytes == 10**6


@selected_space
@pytest.mark.usefixtures("wide", "small_tasks")
def test_blocks_that_are_wide(space):
    columns = SPACES[space]()
    whole = polysparse.expand(X, columns=columns, n_jobs=3)
    assert whole.indices.dtype == np.int64
    blocks = polysparse.iter_expand(X, columns=columns, max_bytes=3000, n_jobs=3, reuse=True)
    for rows, block in blocks:
        np.testing.assert_array_equal(block.toarray(), whole[rows].toarray())
        assert block.indices.dtype == block.indptr.dtype == np.int64


@selected_space
@pytest.mark.parametrize("shape", [(0, 7), (3, 7)])
def test_no_rows_and_empty_rows(space, shape):
    empty = sparse.csr_array(shape)
    columns = SPACES[space]()
    result = polysparse.expand(empty, columns=columns)
    assert result.shape[0] == result.nnz == shape[0]  # the bias
    assert polysparse.plan(empty, columns=columns).nbytes == nbytes(result)
    assert sum(block.nnz for _, block in polysparse.iter_expand(empty, columns=columns)) == shape[0]


def test_no_columns():
    result = polysparse.expand(X, columns=[])
    assert result.shape == (60, 0)
    assert result.nnz == 0
    assert polysparse.plan(X, columns=[]).nbytes == nbytes(result)


def test_no_features():
    result = polysparse.expand(np.zeros((4, 0)), columns=HashedPolynomialFeatures(n_columns=3))
    assert result.nnz == 4
    assert polysparse.expand(np.zeros((4, 0)), columns=[0]).toarray().tolist() == [[1]] * 4


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_long_row(n_jobs):
    """4.5 million outputs; those around it are as if it were not there."""
    dense = random_dense(9, 5000, 0.002)
    dense[4] = np.where(np.arange(5000) < 3000, np.arange(1, 5001), 0)
    long = sparse.csr_array(dense)
    full = polysparse.expand(long)
    columns = np.arange(0, MonomialBasis(5000).n_columns, 7)
    result = polysparse.expand(long, columns=columns, n_jobs=n_jobs)
    kept = full.indices % 7 == 0
    np.testing.assert_array_equal(result.indices, full.indices[kept] // 7)
    assert result.data.tobytes() == full.data[kept].tobytes()
    poly = HashedPolynomialFeatures(n_columns=2**22, alternate_sign=False)
    hashed = polysparse.expand(long, columns=poly, n_jobs=n_jobs)
    assert hashed.has_canonical_format
    assert hashed[[4]].sum() == full[[4]].sum()
    for r in (0, 8):
        assert bits(hashed[[r]]) == bits(polysparse.expand(long[[r]], columns=poly))


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize(
    ("degree", "stored"),
    [
        (1, 30_000),
        (2, 300),
        ((2, 2), 300),
        (3, 60),
        ((2, 3), 60),
        ((3, 3), 60),
        ((3, 4), 30),
        (5, 18),
    ],
    ids=str,
)
def test_long_rows_are_the_same_in_pieces(degree, stored, interaction_only):
    """Tens of thousands of outputs in one row, and short ones before and behind."""
    rng = np.random.default_rng(0)
    n = stored + 9
    columns = np.concatenate([[2, n - 1], np.sort(rng.permutation(n)[:stored]), [0, 1, 5]])
    data = rng.standard_normal(stored + 5)
    long = raw_csr(data, columns, [0, 2, stored + 2, stored + 2, stored + 5], (4, n))
    full = polysparse.expand(long, degree, interaction_only=interaction_only)
    occurring = np.unique(full.indices)
    for chosen in (occurring, occurring[::3], occurring[-5:]):
        result = polysparse.expand(
            long, degree, interaction_only=interaction_only, columns=chosen, n_jobs=2
        )
        kept = np.isin(full.indices, chosen)
        np.testing.assert_array_equal(result.indices, np.searchsorted(chosen, full.indices[kept]))
        assert result.data.tobytes() == full.data[kept].tobytes()


@selected_space
def test_input_is_not_changed(space):
    own = X.copy()
    for array in (own.data, own.indices, own.indptr):
        array.flags.writeable = False
    before = bits(own)
    columns = SPACES[space]()
    polysparse.expand(own, columns=columns)
    polysparse.plan(own, columns=columns)
    list(polysparse.iter_expand(own, columns=columns))
    assert bits(own) == before


def test_no_rows_need_no_look_up(monkeypatch):
    fail_at(monkeypatch, "look up", AssertionError("it was built"))
    empty = polysparse.expand(sparse.csr_array((0, 7)), columns=[0, 5])
    assert empty.shape == (0, 2)
    assert empty.indptr.tolist() == [0]


@selected_space
def test_where_memory_is_set_aside_at_once_it_is_no_more_than_the_result(space, monkeypatch):
    columns, sizes = SPACES[space](), []
    expected = polysparse.expand(X, columns=columns)
    before(monkeypatch, "allocate", lambda shape, *_: sizes.append(shape))
    lower(monkeypatch, MOST_SET_ASIDE=0, CACHE_PER_THREAD=100)
    assert bits(polysparse.expand(X, columns=columns)) == bits(expected)
    assert sizes[-2:] == [expected.nnz, expected.nnz]
    assert max(sizes) <= max(expected.nnz, X.shape[0] + 1)
