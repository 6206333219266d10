"""HashedPolynomialFeatures: the hash function, and the expansion against the law."""

import os
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, product

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

import polysparse
import reference
from checks import DEGREES, assert_is_hashed, bits, zoo_law
from csr_zoo import ZOO, random_dense, raw_csr
from polysparse import HashedPolynomialFeatures

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")

HAS_SPARSE_INTERFACE = "sparse_interface" in sklearn.get_config()

# ---------------------------------------------------------------------------- the hash function

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
@settings(deadline=None)
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
        ((-1,), "-1 is no input column"),
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


# ---------------------------------------------------------------------------- how good it is


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


# ------------------------------------------------------------------------------------- the law


def assert_is_law(result, law, n_features, basis, hashing):
    tuples = reference.monomials(n_features, *basis)
    rows = reference.hashed(law, tuples, *hashing)
    assert_is_hashed(result, rows, hashing[0], law[0].dtype)


@pytest.mark.parametrize("include_bias", [True, False])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@pytest.mark.parametrize("build", ZOO, ids=lambda build: build.__name__)
def test_zoo_obeys_the_law(build, degree, interaction_only, include_bias):
    X, dense = build()
    basis = degree, interaction_only, include_bias
    law = zoo_law(build, *basis)
    # Few columns are summed up in place, many are sorted.
    for n_columns, alternate_sign in ((1, True), (7, False), (64, True), (2**20, True)):
        poly = HashedPolynomialFeatures(
            degree,
            interaction_only=interaction_only,
            include_bias=include_bias,
            n_columns=n_columns,
            alternate_sign=alternate_sign,
            seed=3,
        )
        result = polysparse.expand(X, columns=poly)
        assert_is_law(result, law, dense.shape[1], basis, (n_columns, alternate_sign, 3))
        assert result.indices.dtype == np.int32


@pytest.mark.parametrize("n_columns", [7, 2**20])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@pytest.mark.parametrize("build", ZOO, ids=lambda build: build.__name__)
@pytest.mark.usefixtures("wide", "small_tasks")
def test_zoo_obeys_the_law_wide_and_split(build, degree, n_columns):
    X, dense = build()
    law = zoo_law(build, degree, False, True)
    poly = HashedPolynomialFeatures(degree, n_columns=n_columns, alternate_sign=False)
    result = polysparse.expand(X, columns=poly, n_jobs=3)
    assert_is_law(result, law, dense.shape[1], (degree,), (n_columns, False, 0))
    assert result.indices.dtype == np.int64


@given(
    shape=st.tuples(
        st.integers(0, 5), st.integers(0, 6), st.sampled_from([0.2, 0.6, 1.0]), st.integers(0, 99)
    ),
    degree=st.tuples(st.integers(0, 3), st.integers(0, 2)).map(lambda d: (d[0], max(1, sum(d)))),
    interaction_only=st.booleans(),
    include_bias=st.booleans(),
    n_columns=st.one_of(st.integers(1, 5000), st.just(2**31 - 1)),
    alternate_sign=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
    n_jobs=st.integers(1, 4),
    task=st.sampled_from([0, 1, 5]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=200, deadline=None)
def test_any_matrix_obeys_the_law(
    shape,
    degree,
    interaction_only,
    include_bias,
    n_columns,
    alternate_sign,
    seed,
    n_jobs,
    task,
    dtype,
):
    dense = random_dense(*shape, dtype=dtype)
    poly = HashedPolynomialFeatures(
        degree,
        interaction_only=interaction_only,
        include_bias=include_bias,
        n_columns=n_columns,
        alternate_sign=alternate_sign,
        seed=seed,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polysparse.thresholds.TASK_OUTPUTS", task)
        patch.setattr("polysparse.thresholds.OUTPUTS_PER_THREAD", 1)
        result = polysparse.expand(sparse.csr_array(dense), columns=poly, n_jobs=n_jobs)
    basis = degree, interaction_only, include_bias
    law = reference.expand(dense, *basis)
    assert_is_law(result, law, dense.shape[1], basis, (n_columns, alternate_sign, seed))


@pytest.mark.parametrize("stored", [3, 8, 9, 12, 40, 170, 400])
@pytest.mark.parametrize("n_columns", [50, 5000, 2**17, 2**20, 2**31 - 1])
@pytest.mark.parametrize("degree", [2, (2, 2)], ids=str)
def test_rows_of_any_length_are_the_expansion_times_the_hashing_matrix(stored, n_columns, degree):
    """Rows are sorted in different ways by their length: here also long ones, by NumPy."""
    rng = np.random.default_rng(stored)
    x = rng.standard_normal(stored).astype(np.float32)
    X = raw_csr(x, np.arange(stored) * 3, [0, stored], (1, 3 * stored))
    poly = HashedPolynomialFeatures(degree, n_columns=n_columns)
    full = polysparse.expand(X, degree)
    tuples = polysparse.MonomialBasis(3 * stored, degree).unrank(full.indices)
    columns, signs = poly.column_of(tuples, return_sign=True)
    order = np.argsort(columns, kind="stable")
    values = (full.data * signs.astype(np.float32))[order]
    kept, starts = np.unique(columns[order], return_index=True)
    sums = [np.add.accumulate(part)[-1] for part in np.split(values, starts[1:])]
    result = poly.transform(X)
    np.testing.assert_array_equal(result.indices, kept)
    assert result.data.tobytes() == np.array(sums, dtype=np.float32).tobytes()


@pytest.mark.parametrize("n_columns", [100, 2**20])
@pytest.mark.parametrize("degree", [2, 3, (3, 4)], ids=str)
@pytest.mark.usefixtures("small_tasks")
def test_result_does_not_depend_on_threads(degree, n_columns):
    X = sparse.csr_array(random_dense(200, 30, 0.2))
    results = [
        bits(HashedPolynomialFeatures(degree, n_columns=n_columns, n_jobs=n_jobs).transform(X))
        for n_jobs in (1, 2, 3, 8)
    ]
    assert results.count(results[0]) == 4


def test_without_signs_what_is_not_negative_stays_so():
    X = np.abs(random_dense(50, 20, 0.5))
    hashed = HashedPolynomialFeatures(n_columns=40, alternate_sign=False).transform(X)
    assert hashed.data.min() > 0
    np.testing.assert_allclose(hashed.toarray().sum(axis=1), polysparse.expand(X).sum(axis=1))


def test_values_that_cancel_stay_stored():
    """The pattern depends on the features alone."""
    poly = HashedPolynomialFeatures(1, include_bias=False, n_columns=1)
    signs = poly.column_of([(0,), (1,)], return_sign=True)[1]
    result = poly.transform(sparse.csr_array([signs.astype(float) * [1, -1]]))
    assert result.nnz == 1
    assert result.data[0] == 0


# ---------------------------------------------------------------------------------- wide inputs


@pytest.mark.parametrize("degree", [1, 2, 3, 5], ids=str)
def test_as_many_features_as_an_index_can_name(degree):
    columns = [0, 2**31, 2**40, 2**62, 2**63 - 2]
    x = np.array([2.0, 3.0, 5.0, 7.0, 11.0])
    X = raw_csr(x, columns, [0, 5], (1, 2**63 - 1), sparse.csr_array, np.int64)
    poly = HashedPolynomialFeatures(degree, n_columns=2**31 - 1)
    result = poly.transform(X)
    law = reference.expand(x[None], degree)
    tuples = [[columns[j] for j in t] for t in reference.monomials(5, degree)]
    assert_is_hashed(
        result, reference.hashed(law, tuples, 2**31 - 1), 2**31 - 1, np.dtype(np.float64)
    )
    assert result.indices.dtype == np.int32


def test_new_features_may_appear_later():
    poly = HashedPolynomialFeatures(n_columns=1000)
    X = random_dense(20, 6, 0.5)
    wider = np.hstack([X, np.zeros((20, 9))])
    assert bits(poly.transform(X)) == bits(poly.transform(wider))


def test_transform_needs_no_fit():
    X = random_dense(20, 6, 0.5)
    poly = HashedPolynomialFeatures(n_columns=100)
    assert bits(poly.transform(X)) == bits(clone(poly).fit(X).transform(X))
    assert bits(poly.transform(X)) == bits(clone(poly).fit_transform(X))
    assert bits(poly.transform(X)) == bits(clone(poly).partial_fit(X).transform(X))


def test_after_fit_another_number_of_features_is_refused():
    poly = HashedPolynomialFeatures(n_columns=100).fit(np.eye(3))
    with pytest.raises(ValueError, match="X has 4 features, but HashedPolynomialFeatures is expec"):
        poly.transform(np.eye(4))


def test_input_may_be_read_only_and_is_not_changed():
    X = sparse.csr_array(random_dense(20, 6, 0.5))
    before = bits(X)
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    HashedPolynomialFeatures(3).fit_transform(X)
    assert bits(X) == before


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_container_family_is_kept(container):
    X = container(np.eye(3))
    poly = HashedPolynomialFeatures()
    if not HAS_SPARSE_INTERFACE:
        assert sparse.isspmatrix(poly.transform(X)) == sparse.isspmatrix(X)
        return
    for interface in ("spmatrix", "sparray"):
        with sklearn.config_context(sparse_interface=interface):
            assert sparse.isspmatrix(poly.transform(X)) == (interface == "spmatrix")


# ----------------------------------------------------------------------------------- collisions


def collisions_by_brute_force(X, poly):
    """By the law, over all tuples of the features of each row."""
    X = sparse.csr_array(X)
    seen = set()
    for r in range(X.shape[0]):
        row = np.sort(X.indices[X.indptr[r] : X.indptr[r + 1]]).tolist()
        for t in reference.monomials(
            len(row), poly.degree, poly.interaction_only, poly.include_bias
        ):
            seen.add(tuple(row[j] for j in t))
    buckets = Counter(
        reference.hashed_column(t, poly.n_columns, poly.alternate_sign, poly.seed)[0] for t in seen
    )
    return len(seen), len(buckets), sum(n for n in buckets.values() if n > 1)


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", [1, 2, (2, 3)], ids=str)
@pytest.mark.parametrize("n_columns", [1, 100, 2**20])
def test_collisions_are_counted(degree, interaction_only, n_columns):
    X = sparse.csr_array(random_dense(30, 12, 0.3))
    poly = HashedPolynomialFeatures(
        degree, interaction_only=interaction_only, n_columns=n_columns, seed=4
    )
    found = poly.collisions(X)
    expected = collisions_by_brute_force(X, poly)
    assert (found.n_monomials, found.n_columns, found.n_sharing) == expected


def test_collisions_of_more_columns_than_int64_can_number():
    columns = [5, 2**40, 2**62, 5, 7, 2**62]
    X = raw_csr(np.ones(6), columns, [0, 3, 6], (2, 2**63 - 1), sparse.csr_array, np.int64)
    poly = HashedPolynomialFeatures(3, n_columns=10)
    found = poly.collisions(X)
    expected = collisions_by_brute_force(X, poly)
    assert (found.n_monomials, found.n_columns, found.n_sharing) == expected


def test_collisions_where_the_features_that_occur_have_too_many_products():
    """20,000 features occur, two in a row: 2.7e19 products of five, of which few occur."""
    n = 10_000
    X = raw_csr(np.ones(2 * n), np.arange(2 * n), np.arange(0, 2 * n + 1, 2), (n, 2 * n))
    poly = HashedPolynomialFeatures(5, include_bias=False)
    with pytest.raises(ValueError, match=r"20,000 features that occur.* Give fewer rows"):
        poly.collisions(X)
    assert poly.collisions(X[:100]).n_monomials == 100 * 20


@pytest.mark.parametrize("X", [np.zeros((3, 4)), np.zeros((3, 0)), np.zeros((0, 4))], ids=np.shape)
def test_collisions_of_nothing(X):
    found = HashedPolynomialFeatures().collisions(X)
    assert found.n_sharing == 0
    assert found.n_monomials == found.n_columns == (len(X) > 0)


# --------------------------------------------------------------------------------- scikit-learn


@parametrize_with_checks(
    [HashedPolynomialFeatures(n_columns=64), HashedPolynomialFeatures((2, 3), seed=1, n_columns=16)]
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_columns": 0},
        {"n_columns": 2**31},
        {"n_columns": 2.5},
        {"seed": -1},
        {"seed": 2**64},
        {"alternate_sign": "yes"},
        {"degree": (3, 2)},
        {"degree": -1},
        {"n_jobs": "2"},
    ],
    ids=str,
)
def test_parameters_are_validated(bad):
    for use in (
        lambda poly: poly.fit(np.eye(3)),
        lambda poly: poly.transform(np.eye(3)),
        lambda poly: poly.column_of((1, 2)),
        lambda poly: polysparse.expand(np.eye(3), columns=poly),
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            use(HashedPolynomialFeatures(**bad))


def test_numpy_integers_are_integers():
    poly = HashedPolynomialFeatures(np.int64(2), n_columns=np.int32(64), seed=np.uint64(2**63))
    assert poly.transform(np.eye(3)).shape == (3, 64)
    assert poly.column_of((1, 2)) == reference.hashed_column((1, 2), 64, seed=2**63)[0]


def test_clone_and_pickle():
    X = random_dense(9, 4, 0.5)
    poly = HashedPolynomialFeatures(3, n_columns=32, seed=9).fit(X)
    assert clone(poly).get_params() == poly.get_params()
    assert bits(pickle.loads(pickle.dumps(poly)).transform(X)) == bits(poly.transform(X))


def test_names_are_numbers_of_columns():
    names = HashedPolynomialFeatures(n_columns=3).get_feature_names_out()
    assert names.tolist() == [f"hashedpolynomialfeatures{i}" for i in range(3)]


def test_searched_in_a_pipeline_with_a_linear_model():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (200, 3)).astype(str)
    y = (X[:, 0] == X[:, 1]).astype(int)
    encode = ColumnTransformer([("onehot", OneHotEncoder(), [0, 1, 2])], sparse_threshold=1.0)
    model = make_pipeline(encode, HashedPolynomialFeatures(), SGDClassifier(random_state=0))
    grid = {
        "hashedpolynomialfeatures__degree": [1, 2],
        "hashedpolynomialfeatures__n_columns": [2, 2**12],
    }
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_params_ == dict(zip(grid, [2, 2**12], strict=True))
    assert search.best_score_ > 0.95
    best = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(best.predict(X), search.predict(X))


# ---------------------------------------------------------------------------- threads and forks


def test_threads_may_transform_at_once():
    X = sparse.csr_array(random_dense(400, 20, 0.3))
    poly = HashedPolynomialFeatures(3, n_jobs=2)
    wanted = bits(poly.transform(X))
    with ThreadPoolExecutor(8) as pool:
        assert all(bits(r) == wanted for r in pool.map(poly.transform, [X] * 16))


@pytest.mark.no_sanitizer
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.usefixtures("small_tasks")
def test_a_fork_after_a_threaded_call_works():
    X = sparse.csr_array(random_dense(100, 20, 0.3))
    poly = HashedPolynomialFeatures(n_jobs=2)
    wanted = bits(poly.transform(X))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = int(bits(poly.transform(X)) != wanted)
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_frame_needs_no_fit():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.eye(3), columns=list("abc"))
    assert HashedPolynomialFeatures(n_columns=9).transform(frame).shape == (3, 9)
