"""ObservedPolynomialFeatures against the law: what it learns, and what it makes of rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import polysparse
import reference
from checks import DEGREES, assert_is_restricted, bits, columns_and_counts, zoo_law
from csr_zoo import FITTABLE, random_csr, random_dense, raw_csr, wide_csr
from looping import loop_over
from polysparse import MonomialBasis, ObservedPolynomialFeatures

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")


@pytest.mark.parametrize("include_bias", [True, False])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("build", FITTABLE)
def test_zoo_obeys_the_law(build, degree, interaction_only, include_bias):
    X, dense = build()
    values, stored = law = zoo_law(build, degree, interaction_only, include_bias)
    poly = ObservedPolynomialFeatures(
        degree, interaction_only=interaction_only, include_bias=include_bias
    )
    if not stored.any():
        with pytest.raises(ValueError, match="No column occurs in min_count=1 rows"):
            poly.fit(X)
        return
    result = poly.fit_transform(X)
    np.testing.assert_array_equal(poly.columns_, np.flatnonzero(stored.any(axis=0)))
    np.testing.assert_array_equal(poly.counts_, stored.sum(axis=0)[poly.columns_])
    assert poly.columns_.dtype == poly.counts_.dtype == np.int64
    assert poly.n_output_features_ == len(poly.columns_)
    assert poly.n_features_in_ == dense.shape[1]
    assert poly.basis_.n_columns == values.shape[1]
    assert_is_restricted(result, law, poly.columns_)
    assert result.indices.dtype == np.int32


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("build", FITTABLE)
@pytest.mark.usefixtures("wide", "small_tasks", "small_batches")
def test_zoo_obeys_the_law_wide_split_and_in_batches(build, degree, interaction_only):
    X = build()[0]
    law = zoo_law(build, degree, interaction_only, True)
    poly = ObservedPolynomialFeatures(degree, interaction_only=interaction_only, n_jobs=3)
    result = poly.fit_transform(X)
    np.testing.assert_array_equal(poly.columns_, np.flatnonzero(law[1].any(axis=0)))
    np.testing.assert_array_equal(poly.counts_, law[1].sum(axis=0)[poly.columns_])
    assert_is_restricted(result, law, poly.columns_)
    if max(result.shape[1], result.nnz) > 3:
        assert result.indices.dtype == np.int64


@pytest.mark.parametrize("max_columns", [None, 1, 5, 12, 1000])
@pytest.mark.parametrize("min_count", [1, 2, 4, 9])
@pytest.mark.parametrize("degree", [1, 2, (2, 3)], ids=str)
def test_frequent_columns_are_kept_and_ties_go_by_order(degree, min_count, max_columns):
    dense = random_dense(25, 5, 0.4, seed=5)
    poly = ObservedPolynomialFeatures(degree, min_count=min_count, max_columns=max_columns)
    result = poly.fit_transform(sparse.csr_array(dense))
    columns, counts = reference.observed(
        dense, degree, min_count=min_count, max_columns=max_columns
    )
    np.testing.assert_array_equal(poly.columns_, columns)
    np.testing.assert_array_equal(poly.counts_, counts)
    assert_is_restricted(result, reference.expand(dense, degree), columns)


def test_of_equally_frequent_columns_the_first_are_kept():
    poly = ObservedPolynomialFeatures(include_bias=False, max_columns=4).fit(np.ones((3, 4)))
    assert columns_and_counts(poly) == ([0, 1, 2, 3], [3, 3, 3, 3])


@pytest.mark.parametrize("degree", [1, 2, 3, (3, 4)], ids=str)
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.usefixtures("small_tasks")
def test_result_does_not_depend_on_threads(degree, interaction_only):
    X = random_csr(300, 12, 0.3)
    results = []
    for n_jobs in (1, 2, 3, 8):
        poly = ObservedPolynomialFeatures(
            degree, interaction_only=interaction_only, min_count=3, n_jobs=n_jobs
        )
        result = poly.fit_transform(X)
        results.append((columns_and_counts(poly), bits(result)))
    assert results.count(results[0]) == 4


@pytest.mark.parametrize("degree", [2, 3], ids=str)
def test_many_rows_agree_with_the_columns_of_the_full_expansion(degree):
    """Tasks are not made small: counters, spans and look-ups have their usual sizes."""
    X = wide_csr(2000, 60 if degree == 3 else 3000, 12)
    full = polysparse.expand(X, degree)
    columns, counts = np.unique(full.indices, return_counts=True)
    poly = ObservedPolynomialFeatures(degree, min_count=2, n_jobs=2)
    result = poly.fit_transform(X)
    np.testing.assert_array_equal(poly.columns_, columns[counts >= 2])
    np.testing.assert_array_equal(poly.counts_, counts[counts >= 2])
    places = np.searchsorted(poly.columns_, full.indices)
    kept = poly.columns_[np.minimum(places, len(poly.columns_) - 1)] == full.indices
    np.testing.assert_array_equal(result.indices, places[kept])
    assert result.data.tobytes() == full.data[kept].tobytes()


def test_a_column_in_very_many_rows_is_counted():
    """More rows than a counter of 16 bits could hold, in several batches."""
    n = 70_000
    X = raw_csr(np.ones(n), np.zeros(n), np.arange(n + 1), (n, 2))
    poly = ObservedPolynomialFeatures(3).fit(X)
    assert columns_and_counts(poly) == ([0, 1, 3, 6], [n] * 4)


def test_one_long_row_among_short_ones():
    X = sparse.vstack([wide_csr(5, 4000, 3), wide_csr(1, 4000, 3000), wide_csr(5, 4000, 2)])
    full = polysparse.expand(X.tocsr(), 2)
    poly = ObservedPolynomialFeatures()
    result = poly.fit_transform(X)
    columns, places = np.unique(full.indices, return_inverse=True)
    np.testing.assert_array_equal(poly.columns_, columns)
    np.testing.assert_array_equal(result.indices, places.ravel())
    assert result.data.tobytes() == full.data.tobytes()


# ---------------------------------------------------------------------------------------- transform


def test_monomials_that_were_not_seen_are_dropped():
    poly = ObservedPolynomialFeatures().fit([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert poly.get_feature_names_out().tolist() == [
        *("1", "x0", "x1", "x2", "x0^2", "x0 x1", "x1^2", "x2^2")
    ]
    result = poly.transform(sparse.csr_array([[2.0, 0.0, 3.0], [0.0, 0.0, 0.0]]))
    assert result.toarray().tolist() == [[1, 2, 0, 3, 4, 0, 0, 9], [1, 0, 0, 0, 0, 0, 0, 0]]
    assert result.nnz == 6


def test_another_number_of_features_is_refused():
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    with pytest.raises(ValueError, match="X has 4 features, but ObservedPolynomialFeatures is exp"):
        poly.transform(sparse.csr_array(np.eye(4)))


def test_dense_and_sparse_input_are_the_same():
    dense = random_dense(20, 5, 0.4)
    one = ObservedPolynomialFeatures(3).fit(dense)
    two = ObservedPolynomialFeatures(3).fit(sparse.csr_array(dense))
    assert columns_and_counts(one) == columns_and_counts(two)
    assert bits(one.transform(dense)) == bits(two.transform(sparse.csr_array(dense)))


def test_float32_stays_float32():
    X = random_csr().astype(np.float32)
    assert ObservedPolynomialFeatures().fit_transform(X).dtype == np.float32


def test_input_may_be_read_only_and_is_not_changed():
    X = random_csr()
    before = bits(X)
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    poly = ObservedPolynomialFeatures(3).fit(X)
    poly.partial_fit(X)
    poly.transform(X)
    assert bits(X) == before


def test_unsorted_input_is_not_sorted_in_place():
    X = raw_csr([2.0, 3.0, 5.0], [2, 0, 1], [0, 3], (1, 4))
    before = bits(X)
    ObservedPolynomialFeatures().fit_transform(X)
    assert bits(X) == before


# -------------------------------------------------------------------------------------- wide inputs


def test_a_hundred_thousand_features():
    X = wide_csr(300, 100_000, 20)
    poly = ObservedPolynomialFeatures()
    result = poly.fit_transform(X)
    full = polysparse.expand(X)
    assert full.indices.dtype == np.int64
    columns, places = np.unique(full.indices, return_inverse=True)
    np.testing.assert_array_equal(poly.columns_, columns)
    np.testing.assert_array_equal(result.indices, places.ravel())
    assert result.indices.dtype == result.indptr.dtype == np.int32
    assert result.data.tobytes() == full.data.tobytes()


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.usefixtures("small_tasks", "small_batches")
def test_a_basis_just_below_what_int64_can_number(n_jobs):
    n = 3 * 10**9
    columns = np.array([0, 7, n - 1, 7, 2**31, 5, n - 2, n - 1])
    X = raw_csr(np.arange(1.0, 9), columns, [0, 3, 5, 8], (3, n), sparse.csr_array, np.int64)
    poly = ObservedPolynomialFeatures(n_jobs=n_jobs).fit(X)
    basis = MonomialBasis(n)
    assert 2**62 - 1 > basis.n_columns > 2**61
    tuples = [
        sorted(t)
        for row in np.split(columns, [3, 5])
        for t in reference.monomials(len(row), 2)
        for t in [tuple(row[list(t)].tolist())]
    ]
    expected = np.unique(basis.rank([tuple(t) for t in tuples]))
    np.testing.assert_array_equal(poly.columns_, expected)
    assert poly.inverse(poly.n_output_features_ - 1) == (n - 1, n - 1)
    result = poly.transform(X)
    assert result.indices.dtype == np.int32
    assert result.nnz == 10 + 6 + 10
    assert result[2, -1] == 64


def test_degree_one_of_nearly_every_index_there_is():
    n = 2**62
    X = raw_csr([1.0, 2.0, 3.0], [0, n - 1, 5], [0, 2, 3], (2, n), sparse.csr_array, np.int64)
    poly = ObservedPolynomialFeatures(1)
    result = poly.fit_transform(X)
    assert columns_and_counts(poly) == ([0, 1, 6, n], [2, 1, 1, 1])
    assert result.toarray().tolist() == [[1, 1, 0, 2], [1, 0, 3, 0]]
    assert poly.get_feature_names_out().tolist() == ["1", "x0", "x5", f"x{n - 1}"]


def test_a_basis_that_int64_cannot_number_is_refused_with_the_way_out():
    X = raw_csr([1.0], [2**40], [0, 1], (1, 2**41), sparse.csr_array, np.int64)
    poly = ObservedPolynomialFeatures()
    with pytest.raises(ValueError, match=r"at most 2\*\*63 - 1 .*HashedPolynomialFeatures"):
        poly.fit(X)
    with pytest.raises(NotFittedError):
        poly.transform(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_count": 0}, r"min_count must be an int \(at least 1\); got 0\."),
        ({"min_count": True}, r"min_count must be an int \(at least 1\); got True\."),
        ({"max_columns": 0.5}, r"max_columns must be an int \(at least 1\) or None; got 0\.5\."),
        ({"n_jobs": "2"}, r"n_jobs must be an int or None; got '2'\."),
        ({"sparse_output": 1}, r"sparse_output must be True or False; got 1\."),
    ],
)
def test_parameters_without_a_meaning_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        ObservedPolynomialFeatures(**parameters).fit(random_csr())
