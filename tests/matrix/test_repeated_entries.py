"""Entries stored more than once: converted first, then summed in the order in which they stand."""

import numpy as np
import pytest
from scipy import sparse

import polysparse
from checks import assert_is_law
from csr_zoo import raw_csr

FORMATS = ["csr", "csc", "coo", "bsr"]


def with_repeats(format, data, row, col, shape, container="array"):
    """A matrix of one of the formats that can store an entry more than once."""
    X = getattr(sparse, f"coo_{container}")((data, (row, col)), shape=shape)
    if format == "coo":
        return X
    if format == "bsr":
        order = np.argsort(row, kind="stable")
        offsets = np.searchsorted(row[order], np.arange(shape[0] + 1))
        blocks = data[order].reshape(-1, 1, 1)
        return getattr(sparse, f"bsr_{container}")((blocks, col[order], offsets), shape=shape)
    major, minor = (row, col) if format == "csr" else (col, row)
    order = np.argsort(major, kind="stable")
    n_major = shape[0] if format == "csr" else shape[1]
    offsets = np.searchsorted(major[order], np.arange(n_major + 1))
    make = getattr(sparse, f"{format}_{container}")
    return make((data[order], minor[order], offsets), shape=shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(4))
def test_the_result_is_that_of_the_dense_array_to_the_last_bit(format, dtype, seed):
    """Forty entries on twelve places: sums of several terms, which depend on their order."""
    rng = np.random.default_rng(seed)
    data = (10.0 ** rng.uniform(-8, 8, 40) * rng.choice([-1, 1], 40)).astype(dtype)
    X = with_repeats(format, data, rng.integers(3, size=40), rng.integers(4, size=40), (3, 4))
    dense = X.toarray()
    assert dense.dtype == dtype
    assert_is_law(polysparse.expand(X, 2), dense, 2)
    np.testing.assert_array_equal(
        polysparse.PolynomialFeatures(2).fit_transform(X).toarray(), polysparse.expand(dense, 2)
    )


@pytest.mark.parametrize("format", FORMATS)
def test_rows_with_and_without_repeats_stand_side_by_side(format):
    rng = np.random.default_rng(7)
    n = 1500
    X = with_repeats(
        format,
        rng.standard_normal(n),
        rng.integers(200, size=n),
        rng.integers(60, size=n),
        (200, 60),
    )
    dense = X.toarray()
    lengths = np.diff(sparse.csr_array(dense).indptr)
    stored = np.bincount(X.tocoo().row, minlength=200)
    assert 20 < np.count_nonzero(lengths < stored) < 180
    assert_is_law(polysparse.expand(X, 1), dense, 1)


def test_many_repeats_of_one_column_are_summed_from_the_first_to_the_last():
    values = np.random.default_rng(0).standard_normal(1000)
    X = raw_csr(values, np.zeros(1000), [0, 1000], (1, 3))
    total = 0.0
    for value in values:
        total += value
    assert polysparse.expand(X, 1, include_bias=False).data.tolist() == [total]


@pytest.mark.parametrize("container", ["array", "matrix"])
@pytest.mark.parametrize("format", FORMATS)
def test_small_integers_do_not_overflow_when_they_are_summed(format, container):
    data, zeros = np.array([100, 100], np.int8), np.zeros(2, int)
    X = with_repeats(format, data, zeros, zeros, (1, 2), container)
    assert polysparse.expand(X, 1).toarray().tolist() == [[1.0, 200.0, 0.0]]
    for poly in (
        polysparse.PolynomialFeatures(1),
        polysparse.ObservedPolynomialFeatures(1, include_bias=True),
    ):
        assert poly.fit_transform(X).toarray()[0, 1] == 200.0


@pytest.mark.parametrize("format", FORMATS)
def test_booleans_count_as_ones(format):
    X = with_repeats(format, np.ones(3, bool), np.zeros(3, int), np.zeros(3, int), (1, 1))
    assert polysparse.expand(X, 1).toarray().tolist() == [[1.0, 3.0]]


@pytest.mark.parametrize("format", FORMATS)
def test_large_integers_are_converted_before_they_are_summed(format):
    data = np.array([2**53 + 1, 1], np.int64)
    X = with_repeats(format, data, np.zeros(2, int), np.zeros(2, int), (1, 1))
    assert polysparse.expand(X, 1).toarray()[0, 1] == float(2**53 + 1) + 1.0


@pytest.mark.parametrize("format", FORMATS)
def test_repeats_that_cancel_are_not_stored(format):
    data = np.array([1.0, 1e-30, -1.0])
    X = with_repeats(format, data, np.zeros(3, int), np.zeros(3, int), (1, 1))
    assert polysparse.expand(X, 1, include_bias=False).nnz == 0


def test_repeats_among_very_many_columns_need_no_array_as_long_as_they_are_many():
    X = raw_csr([1.0, 2.0, 4.0], [2**40, 5, 2**40], [0, 3], (1, 2**41), index_dtype=np.int64)
    result = polysparse.expand(X, 1, include_bias=False)
    assert (result.indices.tolist(), result.data.tolist()) == ([5, 2**40], [2.0, 5.0])


def test_the_callers_arrays_stay_as_they_are():
    X = raw_csr([1.0, 2.0, 4.0], [1, 0, 1], [0, 3], (1, 2))
    polysparse.expand(X, 2)
    assert (X.indices.tolist(), X.data.tolist()) == ([1, 0, 1], [1.0, 2.0, 4.0])
