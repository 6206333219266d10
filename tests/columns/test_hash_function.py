"""The hash function: frozen, and as good as a random one."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import polysparse
import reference
from csr_zoo import random_dense, raw_csr
from polysparse import HashedPolynomialFeatures

# (features, seed, n_columns): (column, sign). The function is frozen: these must never change.
GOLDEN = {
    ((), 0, 1048576): (926218, -1),
    ((), 1, 1): (0, -1),
    ((0,), 0, 1048576): (287225, -1),
    ((1,), 0, 1048576): (540321, 1),
    ((0, 0), 0, 1048576): (713565, -1),
    ((0, 1), 0, 1048576): (570344, -1),
    ((3, 17), 0, 1048576): (386586, 1),
    ((17, 3), 0, 1048576): (386586, 1),
    ((3, 17), 7, 1000): (587, 1),
    ((3, 17), 18446744073709551615, 2147483647): (117957705, 1),
    ((2147483648,), 0, 2147483647): (1607610073, -1),
    ((4611686018427387904,), 0, 1048576): (683312, -1),
    ((9223372036854775806,), 0, 2147483647): (460671656, -1),
    ((5, 4611686018427387904, 9223372036854775806), 12345, 4194304): (545536, -1),
    ((2, 2, 2), 0, 64): (9, -1),
    ((1, 2, 3, 4), 0, 16777216): (6497202, -1),
    ((4, 3, 2, 1, 0), 0, 16777216): (11608353, -1),
    ((9, 9, 9, 9, 9), 3, 7): (4, 1),
    ((0, 1, 2, 3, 99999), 9223372036854775808, 2147483647): (1202972323, 1),
}


@pytest.mark.parametrize(("given", "expected"), GOLDEN.items(), ids=str)
def test_the_function_is_frozen(given, expected):
    features, seed, n_columns = given
    poly = HashedPolynomialFeatures(5, n_columns=n_columns, seed=seed)
    assert poly.column_of(features, return_sign=True) == expected
    assert reference.hashed_column(features, n_columns, seed=seed) == expected


@given(
    features=st.lists(st.integers(0, 2**63 - 2), max_size=6),
    n_columns=st.integers(1, 2**31 - 1),
    seed=st.integers(0, 2**64 - 1),
    alternate_sign=st.booleans(),
)
def test_any_tuple_goes_where_the_law_says(features, n_columns, seed, alternate_sign):
    poly = HashedPolynomialFeatures(
        6, n_columns=n_columns, seed=seed, alternate_sign=alternate_sign
    )
    expected = reference.hashed_column(features, n_columns, alternate_sign, seed)
    assert poly.column_of(tuple(features), return_sign=True) == expected
    assert poly.column_of(tuple(features)) == expected[0]


def test_many_tuples_at_once():
    poly = HashedPolynomialFeatures(3, n_columns=1000)
    tuples = [(), (4,), (1, 0), (2, 2, 9), (9, 2, 2)]
    columns, signs = poly.column_of(tuples, return_sign=True)
    expected = [reference.hashed_column(t, 1000) for t in tuples]
    assert list(zip(columns.tolist(), signs.tolist(), strict=True)) == expected
    assert columns.dtype == signs.dtype == np.int64
    padded = np.array([[-1, -1, -1], [4, -1, -1], [1, 0, -1], [2, 2, 9], [9, 2, 2]])
    np.testing.assert_array_equal(poly.column_of(padded), columns)
    assert columns[3] == columns[4]


def test_where_a_monomial_goes_depends_on_nothing_but_itself():
    X = raw_csr([2.0, 3.0], [3, 17], [0, 2], (1, 20))
    poly = HashedPolynomialFeatures(2, include_bias=False)
    column, sign = poly.column_of((17, 3), return_sign=True)
    for n_features, degree in product((18, 20, 10**6, 2**63 - 1), (2, 3, (2, 5))):
        wider = raw_csr(X.data, X.indices, X.indptr, (1, n_features), sparse.csr_array, np.int64)
        result = polysparse.expand(wider, columns=poly.set_params(degree=degree))
        assert result[0, column] == 6 * sign


@pytest.mark.parametrize(
    ("tuples", "message"),
    [
        ((1, 2, 3), r"its degree is not in \[1, 2\]"),
        ((-1,), "-1 is not an input column"),
        ((2**63 - 1,), "input columns must be in"),
        (5, "tuples must be a tuple of input columns"),
        ((0.5,), "tuples must be integers"),
        ([(1,), 2], "must all be sequences"),
    ],
)
def test_tuples_that_go_nowhere(tuples, message):
    with pytest.raises(ValueError, match=message):
        HashedPolynomialFeatures().column_of(tuples)


def test_tuples_that_the_parameters_exclude():
    poly = HashedPolynomialFeatures((2, 3), interaction_only=True, include_bias=False)
    for bad, message in (
        ((), "include_bias=False"),
        ((1,), "degree is not in"),
        ((1, 1), "interaction_only=True"),
    ):
        with pytest.raises(ValueError, match=message):
            poly.column_of(bad)
    with pytest.raises(ValueError, match=r"input columns must be in \[0, 3\)"):
        poly.fit(np.eye(3)).column_of((1, 3))


# ----------------------------------------------------------------------------------- how good it is


def all_pairs(n):
    first, second = np.triu_indices(n)
    return np.column_stack([first, second])


def distinct_if_random(n, n_columns):
    """Expected number of distinct columns of n monomials under an ideal random function."""
    return n_columns * -np.expm1(n * np.log1p(-1 / n_columns))


@pytest.mark.parametrize("seed", [0, 1])
def test_all_pairs_of_consecutive_features_spread_like_random_ones(seed):
    pairs = all_pairs(3000)
    columns = HashedPolynomialFeatures(n_columns=2**24, seed=seed).column_of(pairs)
    distinct = np.count_nonzero(np.bincount(columns, minlength=2**24))
    assert distinct >= 0.97 * distinct_if_random(len(pairs), 2**24)


def test_pairs_of_frequent_features_spread_like_random_ones():
    """Zipf: low numbers occur most, as in a vocabulary that is sorted by frequency."""
    rng = np.random.default_rng(0)
    ranks = np.minimum(rng.zipf(1.1, (1_500_000, 2)) - 1, 99_999)
    pairs = np.unique(np.sort(ranks, axis=1)[:, 0] * 100_000 + np.sort(ranks, axis=1)[:, 1])
    pairs = np.column_stack([pairs // 100_000, pairs % 100_000])
    columns = HashedPolynomialFeatures(n_columns=2**22).column_of(pairs)
    assert len(pairs) > 300_000
    distinct = len(np.unique(columns))
    assert distinct >= 0.97 * distinct_if_random(len(pairs), 2**22)


@pytest.mark.parametrize("n_columns", [7, 64, 1000])
def test_few_columns_are_used_evenly(n_columns):
    """Chi-squared, within five standard deviations of what chance gives."""
    columns = HashedPolynomialFeatures(n_columns=n_columns).column_of(all_pairs(1000))
    counts = np.bincount(columns, minlength=n_columns)
    expected = len(columns) / n_columns
    chi2 = np.sum((counts - expected) ** 2 / expected)
    assert abs(chi2 - (n_columns - 1)) < 5 * np.sqrt(2 * (n_columns - 1))


@pytest.mark.parametrize(
    "tuples",
    [
        all_pairs(1000),
        np.repeat(np.arange(500_000), 2).reshape(-1, 2),
        np.column_stack([np.arange(500_000), np.arange(500_000) + 1]),
        np.arange(500_000).reshape(-1, 1),
        np.repeat(np.arange(500_000), 3).reshape(-1, 3),
    ],
    ids=["pairs", "squares", "neighbours", "single", "cubes"],
)
def test_signs_are_balanced_and_do_not_go_with_columns(tuples):
    n_columns = 2**20
    poly = HashedPolynomialFeatures(3, n_columns=n_columns)
    columns, signs = poly.column_of(tuples, return_sign=True)
    limit = 5 / np.sqrt(len(tuples))  # standard errors
    assert abs(signs.mean()) < limit
    assert abs(np.corrcoef(columns, signs)[0, 1]) < limit
    for bit in range(20):
        assert abs(np.mean(signs * (1 - 2 * (columns >> bit & 1)))) < limit


@pytest.mark.parametrize("seed", [0, 5])
def test_signs_of_a_cycle_of_pairs_do_not_cancel(seed):
    """The product of the signs of (a, b), (b, a'), (a', b') and (b', a), over all such cycles.

    A sign that is a product of signs of features would give 1 in every cycle.
    """
    n = 1000
    pairs = np.stack(np.meshgrid(np.arange(n), np.arange(n, 2 * n), indexing="ij"), axis=-1)
    poly = HashedPolynomialFeatures(seed=seed)
    signs = poly.column_of(pairs.reshape(-1, 2), return_sign=True)[1].reshape(n, n).astype(float)
    both = (signs @ signs.T)[np.triu_indices(n, 1)]  # over b, of the signs of (a, b) and (a', b)
    average = np.mean(both**2 - n) / (n * (n - 1))
    assert abs(average) < 5 * np.sqrt(2) / n / np.sqrt(len(both))


@pytest.mark.parametrize("features", [(), (0,), (1,), (0, 0), (0, 1), (7, 7, 7)], ids=str)
def test_every_monomial_moves_with_the_seed(features):
    places = {
        HashedPolynomialFeatures(3, seed=seed).column_of(features, return_sign=True)
        for seed in range(200)
    }
    assert len({column for column, _ in places}) > 190
    assert 60 < sum(sign > 0 for _, sign in places) < 140


def test_seeds_are_different_functions():
    pairs = all_pairs(300)
    columns, signs = zip(
        *(HashedPolynomialFeatures(seed=s).column_of(pairs, return_sign=True) for s in (0, 1, 2)),
        strict=True,
    )
    for a, b in combinations(range(3), 2):
        assert np.mean(columns[a] == columns[b]) < 1e-4
        assert abs(np.mean(signs[a] * signs[b])) < 5 / np.sqrt(len(pairs))


def test_inner_products_are_preserved_in_expectation():
    X = random_dense(2, 30, 0.6, seed=8)
    exact = polysparse.expand(X)
    wanted = exact[0] @ exact[1], exact[0] @ exact[0]
    found = []
    for seed in range(400):
        hashed = HashedPolynomialFeatures(n_columns=64, seed=seed).transform(X).toarray()
        found.append((hashed[0] @ hashed[1], hashed[0] @ hashed[0]))
    errors = np.std(found, axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(np.mean(found, axis=0) - wanted) < 4 * errors)
