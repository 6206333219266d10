"""Blocks of rows: all of them, in order, each within the limit."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits, nbytes
from csr_zoo import ZOO, random_dense, raw_csr
from inside import lower
from looping import loop_over

X = sparse.csr_array(random_dense(200, 15, 0.3))


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("max_bytes", [2**28, 30_000, 10_000, 5_000])
@pytest.mark.parametrize("degree", [2, 3, (3, 3)], ids=str)
def test_blocks_are_the_rows_of_the_whole_and_stay_within_the_limit(
    degree, max_bytes, n_jobs, reuse
):
    if max_bytes < 2**28:
        max_bytes = max(max_bytes, polysparse.plan(X[[100]], degree).nbytes * 8)
    whole = polysparse.expand(X, degree)
    stop = 0
    for rows, block in polysparse.iter_expand(
        X, degree, max_bytes=max_bytes, n_jobs=n_jobs, reuse=reuse
    ):
        assert rows.start == stop
        stop = rows.stop
        assert nbytes(block) <= max_bytes
        assert bits(block) == bits(whole[rows])
        assert block.has_canonical_format
    assert stop == X.shape[0]


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("max_bytes", [2**28, 20_000, 2**80])
def test_blocks_with_int64_indices(max_bytes, reuse):
    whole = polysparse.expand(X, 2)
    for rows, block in polysparse.iter_expand(X, 2, max_bytes=max_bytes, reuse=reuse):
        assert block.indices.dtype == np.int64
        assert bits(block) == bits(whole[rows])
    assert rows.stop == X.shape[0]


@loop_over("build", ZOO)
def test_the_zoo_in_single_rows(build):
    matrix, dense = build()
    rows = [sparse.csr_array(dense[[r]]) for r in range(len(dense))]
    limit = max((polysparse.plan(row, 3).nbytes for row in rows), default=1)
    whole = polysparse.expand(matrix, 3)
    blocks = [block for _, block in polysparse.iter_expand(matrix, 3, max_bytes=limit)]
    assert len(blocks) <= matrix.shape[0]
    if blocks:
        assert bits(sparse.vstack(blocks, format="csr")) == bits(whole)


def test_reused_blocks_share_memory_and_fresh_ones_do_not():
    fresh = [block for _, block in polysparse.iter_expand(X, max_bytes=9_000)]
    reused = [block for _, block in polysparse.iter_expand(X, max_bytes=9_000, reuse=True)]
    assert not np.shares_memory(fresh[0].data, fresh[1].data)
    assert np.shares_memory(reused[0].data, reused[1].data)


def test_reused_blocks_keep_to_the_cache_but_for_rows_that_are_larger(monkeypatch):
    lower(monkeypatch, CACHE_PER_THREAD=6_000)
    matrix = sparse.vstack([X, sparse.csr_array(np.ones((1, 15)))], format="csr")
    longest = polysparse.plan(matrix[[-1]], 3).nbytes
    sizes = [nbytes(b) for _, b in polysparse.iter_expand(matrix, 3, n_jobs=1, reuse=True)]
    assert len(sizes) > 1
    assert max(sizes) == longest > 6_000
    sizes = [nbytes(b) for _, b in polysparse.iter_expand(matrix, 2, n_jobs=1, reuse=True)]
    assert max(sizes) <= 6_000


def test_a_row_too_large_for_the_limit_is_named_before_anything_is_yielded():
    matrix = raw_csr(np.ones(53), [*range(3), *range(50)], [0, 3, 53], (2, 60))
    with pytest.raises(ValueError, match=r"max_bytes=1000 is too little: row 1 alone .* 1,326 sto"):
        polysparse.iter_expand(matrix, 2, max_bytes=1000)


@pytest.mark.parametrize("max_bytes", [None, 0, "available", 1e6])
def test_a_limit_is_needed(max_bytes):
    with pytest.raises(ValueError, match="max_bytes must be a positive number of bytes"):
        polysparse.iter_expand(X, max_bytes=max_bytes)


def test_all_blocks_have_one_index_dtype_even_if_the_whole_would_need_int64(monkeypatch):
    """Blocks of few values stay int32 although all values together do not fit."""
    longest = max(polysparse.plan(X[[r]], 2).nnz for r in range(X.shape[0]))
    limit = max(longest, polysparse.plan(X, 2).shape[1])
    assert limit < polysparse.plan(X, 2).nnz
    lower(monkeypatch, MAX_INT32=limit)
    assert polysparse.expand(X, 2).indices.dtype == np.int64
    for _, block in polysparse.iter_expand(X, 2):
        assert block.indices.dtype == np.int32
        assert block.nnz <= limit


def test_too_many_values_to_count_are_refused():
    wide = raw_csr(np.ones(3000), np.arange(3000), [0, 3000], (1, 3000))
    with pytest.raises(MemoryError, match="more than can be counted"):
        polysparse.iter_expand(sparse.vstack([wide] * 4, format="csr"), 6)
