"""Blocks of a dense matrix: dense, all of them, in order, each within the limit."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
from csr_zoo import random_dense
from inside import lower

X = random_dense(50, 6, 0.5)


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("rows_in_a_block", [1, 7, 50, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_are_the_rows_of_the_whole_and_stay_within_the_limit(
    dtype, rows_in_a_block, n_jobs, reuse
):
    dense = X.astype(dtype)
    whole = polysparse.expand(dense, 3)
    limit = rows_in_a_block * whole[0].nbytes
    stop = 0
    for rows, block in polysparse.iter_expand(
        dense, 3, max_bytes=limit, n_jobs=n_jobs, reuse=reuse
    ):
        assert isinstance(block, np.ndarray)
        assert rows == slice(stop, min(stop + rows_in_a_block, 50))
        assert block.dtype == dtype
        assert block.nbytes <= limit
        np.testing.assert_array_equal(block, whole[rows])
        stop = rows.stop
    assert stop == 50


def test_a_reused_block_lies_where_the_one_before_lay():
    limit = 10 * polysparse.expand(X)[0].nbytes
    blocks = [block for _, block in polysparse.iter_expand(X, max_bytes=limit, reuse=True)]
    assert all(np.shares_memory(block, blocks[0]) for block in blocks)


def test_reused_blocks_stay_small_enough_for_the_cache(monkeypatch):
    lower(monkeypatch, CACHE_PER_THREAD=5000)
    sizes = [block.nbytes for _, block in polysparse.iter_expand(X, n_jobs=1, reuse=True)]
    assert len(sizes) > 1
    assert max(sizes) <= 5000


def test_a_row_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"max_bytes=100 is too little: row 0 .* 224 bytes"):
        polysparse.iter_expand(X, max_bytes=100)


@pytest.mark.parametrize("given", [X.tolist(), X.astype(int), np.asfortranarray(X), X[::-2]])
def test_whatever_expand_takes_comes_in_blocks(given):
    blocks = [block for _, block in polysparse.iter_expand(given, max_bytes=1000)]
    np.testing.assert_array_equal(np.vstack(blocks), polysparse.expand(given))


def test_chosen_columns_of_a_dense_matrix_come_in_sparse_blocks():
    poly = polysparse.HashedPolynomialFeatures(n_columns=16)
    for columns in (poly, [0, 5, 20]):
        whole = polysparse.expand(X, columns=columns)
        blocks = [b for _, b in polysparse.iter_expand(X, columns=columns, max_bytes=600)]
        assert len(blocks) > 1
        assert all(sparse.issparse(block) for block in blocks)
        np.testing.assert_array_equal(sparse.vstack(blocks).toarray(), whole.toarray())


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("include_bias", [False, True])
def test_matrices_without_rows_or_features(shape, include_bias):
    empty = np.empty(shape)
    whole = polysparse.expand(empty, include_bias=include_bias)
    blocks = list(polysparse.iter_expand(empty, include_bias=include_bias, reuse=True))
    assert sum(len(block) for _, block in blocks) == shape[0]
    for rows, block in blocks:
        np.testing.assert_array_equal(block, whole[rows])
