"""Plans and limits of memory with chosen and hashed columns."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import bits, nbytes
from column_kinds import SPACES, X, every_space, selected_space
from csr_zoo import random_dense, raw_csr
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures


@every_space
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plans_are_exact(space, dtype):
    columns = SPACES[space]()
    planned = polysparse.plan(X.astype(dtype), columns=columns)
    result = polysparse.expand(X.astype(dtype), columns=columns)
    assert planned.shape == result.shape
    assert planned.nnz == result.nnz
    assert planned.nbytes == nbytes(result)
    assert planned.index_dtype == result.indices.dtype
    assert planned.dtype == result.dtype
    assert not planned.is_upper_bound


@every_space
@pytest.mark.usefixtures("wide")
def test_plans_are_exact_when_wide(space):
    columns = SPACES[space]()
    planned = polysparse.plan(X, columns=columns)
    assert planned.index_dtype == np.int64
    assert planned.nbytes == nbytes(polysparse.expand(X, columns=columns))


@pytest.mark.parametrize("columns", [[], [0], [3, 9, 80], np.arange(120)], ids=len)
def test_plans_by_degree(columns):
    planned = polysparse.plan(X, 3, columns=columns)
    stored = polysparse.expand(X, 3, columns=np.asarray(columns, dtype=int))
    ends = [1, 8, 36, 120]
    expected, before = {}, 0
    for d, end in enumerate(ends):
        below = int((np.asarray(columns, dtype=int)[stored.indices] < end).sum())
        expected[d] = below - before
        before = below
    assert planned.nnz_by_degree == expected


def test_plans_of_hashed_columns_say_what_falls_together():
    planned = polysparse.plan(X, columns=SPACES["hashed"]())
    full = polysparse.plan(X)
    assert planned.nnz_by_degree == full.nnz_by_degree
    assert planned.n_merged == full.nnz - planned.nnz > 0
    last = str(planned).splitlines()[-1]
    assert last == f"{planned.n_merged:,} fall into the same column as another"


def test_plans_of_hashed_columns_are_exact_where_products_outnumber_the_columns():
    """More products in all than rows times columns, and yet not every column of every row."""
    many = sparse.csr_array(random_dense(1000, 50, 0.3))
    poly = HashedPolynomialFeatures(n_columns=64)
    planned, result = polysparse.plan(many, columns=poly), polysparse.expand(many, columns=poly)
    assert polysparse.plan(many).nnz > 1000 * 64 > result.nnz
    assert planned.nnz == result.nnz
    assert planned.nbytes == nbytes(result)
    assert planned.n_merged == polysparse.plan(many).nnz - result.nnz


def test_a_printed_plan():
    planned = polysparse.plan(sparse.csr_array(np.eye(3)), columns=[0, 2, 3, 9])
    assert str(planned).splitlines() == [
        "degree  columns  stored values     bytes",
        "0             1              3  36 bytes",
        "1             2              2  24 bytes",
        "2             1              1  12 bytes",
        "all           4              6  88 bytes",
        "CSR, 3 x 4, float64 values, int32 indices",
    ]


def test_a_plan_of_more_columns_than_int64_can_number():
    wide = raw_csr([1.0, 2.0], [5, 2**62], [0, 2], (1, 2**63 - 1), sparse.csr_array, np.int64)
    planned = polysparse.plan(wide, columns=HashedPolynomialFeatures(5, n_columns=2**31 - 1))
    assert planned.nnz + planned.n_merged == 21
    assert planned.shape == (1, 2**31 - 1)
    assert str(planned)


@selected_space
def test_max_bytes_is_the_last_that_is_enough(space):
    columns = SPACES[space]()
    result = polysparse.expand(X, columns=columns)
    assert bits(polysparse.expand(X, columns=columns, max_bytes=nbytes(result))) == bits(result)
    with pytest.raises(MemoryError, match=r"would need at least .* allowed \(max_bytes=\d+\)"):
        polysparse.expand(X, columns=columns, max_bytes=nbytes(result) - 1)


def test_max_bytes_counts_rows_without_stored_values():
    with pytest.raises(MemoryError, match="max_bytes=10"):
        polysparse.expand(sparse.csr_array((1000, 3)), columns=[1], max_bytes=10)


def test_what_is_refused_names_the_bytes_that_are_needed():
    poly = ObservedPolynomialFeatures().fit(np.ones((3, 4)))
    with pytest.raises(MemoryError) as refused:
        polysparse.expand(np.ones((3, 4)), columns=poly, max_bytes=20)
    assert "3 x 15 would need at least 28 bytes; 20 bytes are allowed" in str(refused.value)


@pytest.mark.parametrize("max_bytes", [0, -1, "many", 2.5])
def test_max_bytes_that_cannot_be_right(max_bytes):
    with pytest.raises(ValueError, match="max_bytes must be a positive number of bytes"):
        polysparse.expand(X, columns=[0], max_bytes=max_bytes)


def test_column_spaces_and_plans_can_be_sent_to_other_processes():
    for poly in (ObservedPolynomialFeatures().fit(X), HashedPolynomialFeatures(n_columns=64)):
        plan = polysparse.plan(X, columns=poly)
        again = pickle.loads(pickle.dumps(plan))
        assert again.nnz == plan.nnz == polysparse.expand(X, columns=poly).nnz
        assert again.columns.n_columns == poly.column_space(7).n_columns


def test_a_hashed_row_is_never_longer_than_its_columns():
    """So a long row into few columns fits into little memory."""
    long = sparse.csr_array(np.ones((1, 3000)))
    poly = HashedPolynomialFeatures(n_columns=1000)
    assert polysparse.plan(long, columns=poly).nnz <= 1000
    ((_, block),) = polysparse.iter_expand(long, columns=poly, max_bytes=20_000)
    assert bits(block) == bits(polysparse.expand(long, columns=poly, max_bytes=20_000))
