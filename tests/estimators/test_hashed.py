"""HashedPolynomialFeatures against the law: values, wide inputs, and counts of collisions."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import polysparse
import reference
from checks import DEGREES, assert_is_hashed, bits, zoo_law
from csr_zoo import ZOO, random_dense, raw_csr
from inside import lower
from looping import loop_over
from polysparse import HashedPolynomialFeatures

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")


def assert_is_law(result, law, n_features, basis, hashing):
    tuples = reference.monomials(n_features, *basis)
    rows = reference.hashed(law, tuples, *hashing)
    assert_is_hashed(result, rows, hashing[0], law[0].dtype)


@pytest.mark.parametrize("include_bias", [True, False])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("build", ZOO)
def test_zoo_obeys_the_law(build, degree, interaction_only, include_bias):
    X, dense = build()
    basis = degree, interaction_only, include_bias
    law = zoo_law(build, *basis)
    # Few columns are summed in place; many are sorted.
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
@loop_over("build", ZOO)
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
@settings(max_examples=200)
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
        lower(patch, TASK_OUTPUTS=task, OUTPUTS_PER_THREAD=1)
        result = polysparse.expand(sparse.csr_array(dense), columns=poly, n_jobs=n_jobs)
    basis = degree, interaction_only, include_bias
    law = reference.expand(dense, *basis)
    assert_is_law(result, law, dense.shape[1], basis, (n_columns, alternate_sign, seed))


@pytest.mark.parametrize("stored", [3, 8, 9, 12, 40, 170, 400])
@pytest.mark.parametrize("n_columns", [50, 5000, 2**17, 2**20, 2**31 - 1])
@pytest.mark.parametrize("degree", [2, (2, 2)], ids=str)
def test_rows_of_any_length_are_the_expansion_times_the_hashing_matrix(stored, n_columns, degree):
    """How a row is sorted depends on its length. Here NumPy sorts what is expected."""
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


@pytest.mark.parametrize("n_columns", [1, 63, 300, 1000])
@pytest.mark.parametrize("degree", [2, (3, 3), (2, 4)], ids=str)
def test_long_rows_among_others_are_shared_with_the_same_bits(monkeypatch, degree, n_columns):
    dense = random_dense(12, 14, 0.9)
    dense[[0, 3, 4, 11]] *= np.arange(14) < 2
    X = sparse.csr_array(dense)

    def transform(task, n_jobs):
        lower(monkeypatch, TASK_OUTPUTS=task, OUTPUTS_PER_THREAD=1)
        return HashedPolynomialFeatures(degree, n_columns=n_columns, n_jobs=n_jobs).transform(X)

    whole = transform(2**20, 1)
    for task in (1, 20):
        for n_jobs in (1, 4, 7):
            assert bits(transform(task, n_jobs)) == bits(whole)
    lower(monkeypatch, TASK_OUTPUTS=20)
    poly = HashedPolynomialFeatures(degree, n_columns=n_columns)
    with pytest.raises(MemoryError, match="at least"):
        polysparse.expand(X, columns=poly, max_bytes=whole.data.nbytes)


def test_without_signs_what_is_not_negative_stays_so():
    X = np.abs(random_dense(50, 20, 0.5))
    hashed = HashedPolynomialFeatures(n_columns=40, alternate_sign=False).transform(X)
    assert hashed.data.min() > 0
    np.testing.assert_allclose(hashed.toarray().sum(axis=1), polysparse.expand(X).sum(axis=1))


def test_values_that_cancel_stay_stored():
    """The pattern depends on the features, not on their values."""
    poly = HashedPolynomialFeatures(1, include_bias=False, n_columns=1)
    signs = poly.column_of([(0,), (1,)], return_sign=True)[1]
    result = poly.transform(sparse.csr_array([signs.astype(float) * [1, -1]]))
    assert result.nnz == 1
    assert result.data[0] == 0


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


# --------------------------------------------------------------------------------------- collisions


def collisions_by_brute_force(X, poly):
    """Count by the law, over all tuples of the features of each row."""
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
    """20,000 features occur, two in each row. Few of their 2.7e19 products of five occur."""
    n = 10_000
    X = raw_csr(np.ones(2 * n), np.arange(2 * n), np.arange(0, 2 * n + 1, 2), (n, 2 * n))
    poly = HashedPolynomialFeatures(5, include_bias=False)
    with pytest.raises(ValueError, match=r"20,000 features that occur.* Pass fewer rows"):
        poly.collisions(X)
    assert poly.collisions(X[:100]).n_monomials == 100 * 20


@pytest.mark.parametrize("X", [np.zeros((3, 4)), np.zeros((3, 0)), np.zeros((0, 4))], ids=np.shape)
def test_collisions_of_nothing(X):
    found = HashedPolynomialFeatures().collisions(X)
    assert found.n_sharing == 0
    assert found.n_monomials == found.n_columns == (len(X) > 0)
