"""ObservedPolynomialFeatures: the columns that occur, against the law."""

import copy
import os
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import polysparse
import reference
from checks import DEGREES, assert_is_restricted, bits, zoo_law
from csr_zoo import ZOO, random_dense, raw_csr
from polysparse import MonomialBasis, ObservedPolynomialFeatures, machine
from polysparse.engine import cpu
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.observation.tally import ColumnTally

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")

HAS_SPARSE_INTERFACE = "sparse_interface" in sklearn.get_config()

# What scikit-learn's estimators take: at least a row and a feature, and no infinity.
FIT = [build for build in ZOO if build.__name__ not in ("no_rows", "no_features", "extreme_values")]


@pytest.fixture
def small_batches(monkeypatch):
    """Small data are counted in several batches, which are then merged."""
    monkeypatch.setattr("polysparse.thresholds.COUNTING_BYTES", 300)


def vocabulary(poly):
    """What was learnt, to be compared."""
    return poly.columns_.tolist(), poly.counts_.tolist()


def random_csr(n_rows=40, n_features=6, density=0.4, seed=0):
    return sparse.csr_array(random_dense(n_rows, n_features, density, seed))


def wide_csr(n_rows, n_features, stored, seed=0):
    """Some stored values in every row, among many features."""
    rng = np.random.default_rng(seed)
    columns = [np.sort(rng.choice(n_features, stored, replace=False)) for _ in range(n_rows)]
    offsets = np.arange(0, n_rows * stored + 1, stored)
    data = rng.uniform(0.5, 1.5, n_rows * stored)
    return raw_csr(data, np.concatenate(columns), offsets, (n_rows, n_features))


# ------------------------------------------------------------------------------------- the law


@pytest.mark.parametrize("include_bias", [True, False])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@pytest.mark.parametrize("build", FIT, ids=lambda build: build.__name__)
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
@pytest.mark.parametrize("build", FIT, ids=lambda build: build.__name__)
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
    assert vocabulary(poly) == ([0, 1, 2, 3], [3, 3, 3, 3])


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
        results.append((vocabulary(poly), bits(result)))
    assert results.count(results[0]) == 4


@pytest.mark.parametrize("degree", [2, 3], ids=str)
def test_many_rows_agree_with_the_columns_of_the_full_expansion(degree):
    """Without small tasks: counters, spans and lookups of their usual size."""
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
    assert vocabulary(poly) == ([0, 1, 3, 6], [n] * 4)


def test_one_long_row_among_short_ones():
    X = sparse.vstack([wide_csr(5, 4000, 3), wide_csr(1, 4000, 3000), wide_csr(5, 4000, 2)])
    full = polysparse.expand(X.tocsr(), 2)
    poly = ObservedPolynomialFeatures()
    result = poly.fit_transform(X)
    columns, places = np.unique(full.indices, return_inverse=True)
    np.testing.assert_array_equal(poly.columns_, columns)
    np.testing.assert_array_equal(result.indices, places.ravel())
    assert result.data.tobytes() == full.data.tobytes()


# ------------------------------------------------------------------------ many batches, one fit


def batches_of(data, X):
    """A split of the rows of X into batches of at least one row, in any order."""
    n = X.shape[0]
    order = np.array(data.draw(st.permutations(range(n))))
    cuts = data.draw(st.sets(st.integers(1, n - 1))) if n > 1 else set()
    edges = [0, *sorted(cuts), n]
    return [X[order[a:b]] for a, b in pairwise(edges)]


ANY_MATRIX = st.tuples(
    st.integers(1, 10), st.integers(1, 5), st.sampled_from([0.1, 0.4, 0.9]), st.integers(0, 99)
)
ANY_PARAMETERS = st.fixed_dictionaries(
    {
        "degree": st.sampled_from([1, 2, 3, (2, 3), (3, 3)]),
        "interaction_only": st.booleans(),
        "include_bias": st.just(True),
        "min_count": st.integers(1, 4),
        "max_columns": st.sampled_from([None, 1, 3, 10]),
        "n_jobs": st.sampled_from([1, 3]),
    }
)


@given(data=st.data(), shape=ANY_MATRIX, parameters=ANY_PARAMETERS, looks=st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_batches_give_what_one_fit_gives(data, shape, parameters, looks):
    """Also if somebody looks at the columns in between."""
    X = random_csr(*shape)
    whole = ObservedPolynomialFeatures(**parameters).partial_fit(X)
    parts = ObservedPolynomialFeatures(**parameters)
    for batch in batches_of(data, X):
        parts.partial_fit(batch)
        if looks:
            parts.transform(batch)
    columns, counts = reference.observed(
        X.toarray(),
        *(parameters[name] for name in ("degree", "interaction_only", "include_bias")),
        parameters["min_count"],
        parameters["max_columns"],
    )
    assert vocabulary(parts) == vocabulary(whole) == (columns.tolist(), counts.tolist())
    assert bits(parts.transform(X)) == bits(whole.transform(X))


@given(data=st.data(), shape=ANY_MATRIX, parameters=ANY_PARAMETERS, by_pickle=st.booleans())
@settings(max_examples=150, deadline=None)
def test_parts_merge_in_any_order_to_what_one_fit_gives(data, shape, parameters, by_pickle):
    """As a cluster would: parts are learnt apart, sent, and joined two by two."""
    X = random_csr(*shape)
    whole = ObservedPolynomialFeatures(**parameters).partial_fit(X)
    parts = [
        ObservedPolynomialFeatures(**parameters).partial_fit(batch) for batch in batches_of(data, X)
    ]
    while len(parts) > 1:
        if by_pickle:
            parts = pickle.loads(pickle.dumps(parts))
        other = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        before = vocabulary(copy.deepcopy(other))
        parts[data.draw(st.integers(0, len(parts) - 1))].merge(other)
        assert vocabulary(other) == before
    assert vocabulary(parts[0]) == vocabulary(whole)


def test_fit_then_partial_fit_is_one_fit():
    X = random_csr()
    parts = ObservedPolynomialFeatures(min_count=4).fit(X[:15]).partial_fit(X[15:])
    assert vocabulary(parts) == vocabulary(ObservedPolynomialFeatures(min_count=4).fit(X))


def test_fit_forgets_what_was_learnt_before():
    X = random_csr()
    poly = ObservedPolynomialFeatures().fit(X[:20])
    assert vocabulary(poly.fit(X[20:])) == vocabulary(ObservedPolynomialFeatures().fit(X[20:]))
    assert poly.set_params(degree=3).fit(X[:, :4]).n_features_in_ == 4


def test_rows_without_stored_values_count_for_the_bias_alone():
    poly = ObservedPolynomialFeatures().partial_fit(sparse.csr_array((5, 3)))
    assert vocabulary(poly) == ([0], [5])
    assert vocabulary(poly.partial_fit(np.eye(3)[:1])) == ([0, 1, 4], [6, 1, 1])


def test_nothing_may_be_kept_between_batches():
    X = sparse.csr_array(np.eye(3))
    poly = ObservedPolynomialFeatures(include_bias=False, min_count=2).partial_fit(X)
    assert poly.n_output_features_ == 0
    assert poly.transform(X).shape == (3, 0)
    assert poly.get_feature_names_out().tolist() == []
    assert poly.inverse().shape == (0, 2)
    assert vocabulary(poly.partial_fit(X)) == ([0, 1, 2, 3, 6, 8], [2] * 6)


def test_merge_into_one_that_has_learnt_nothing():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    fitted = ObservedPolynomialFeatures(min_count=2).fit(frame)
    poly = ObservedPolynomialFeatures().merge(fitted)
    assert vocabulary(poly) == vocabulary(ObservedPolynomialFeatures().fit(frame))
    assert poly.n_features_in_ == 3
    assert poly.feature_names_in_.tolist() == ["a", "b", "c"]


def test_merge_with_itself_counts_every_row_twice():
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    once = poly.counts_
    np.testing.assert_array_equal(poly.merge(poly).counts_, 2 * once)


@pytest.mark.parametrize(
    ("parameters", "n_features"),
    [({"degree": 3}, 3), ({"interaction_only": True}, 3), ({"include_bias": False}, 3), ({}, 4)],
    ids=str,
)
def test_merging_other_columns_is_refused(parameters, n_features):
    other = ObservedPolynomialFeatures(**parameters).fit(np.eye(n_features))
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    before = vocabulary(poly)
    with pytest.raises(ValueError, match="only columns of the same degree and of the same feature"):
        poly.merge(other)
    assert vocabulary(poly) == before


def test_merging_other_names_is_refused():
    pd = pytest.importorskip("pandas")
    one, two = (
        ObservedPolynomialFeatures().fit(pd.DataFrame(np.eye(2), columns=names))
        for names in (["a", "b"], ["a", "c"])
    )
    with pytest.raises(ValueError, match="of the same features can be merged"):
        one.merge(two)
    with pytest.raises(ValueError, match="of the same features can be merged"):
        one.merge(ObservedPolynomialFeatures().fit(np.eye(2)))


def test_merging_what_is_no_vocabulary_is_refused():
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    with pytest.raises(TypeError, match="other must be an ObservedPolynomialFeatures; got int"):
        poly.merge(3)
    with pytest.raises(NotFittedError):
        poly.merge(ObservedPolynomialFeatures())


def test_what_was_rejected_can_be_forgotten():
    X = random_csr()
    poly = ObservedPolynomialFeatures(min_count=8).fit(X)
    before, size = vocabulary(poly), len(pickle.dumps(poly))
    assert vocabulary(poly.forget_rejected()) == before
    assert len(pickle.dumps(poly)) < size
    for learn in (poly.partial_fit, lambda X: poly.merge(ObservedPolynomialFeatures().fit(X))):
        with pytest.raises(ValueError, match=r"are gone, by forget_rejected .* Call fit to begin"):
            learn(X)
    with pytest.raises(ValueError, match="are gone, by forget_rejected"):
        ObservedPolynomialFeatures().merge(poly)
    assert vocabulary(poly) == before
    assert vocabulary(poly.fit(X)) == before


def test_where_nothing_was_rejected_nothing_is_forgotten():
    X = random_csr()
    poly = ObservedPolynomialFeatures().fit(X[:9]).forget_rejected().partial_fit(X[9:])
    assert vocabulary(poly) == vocabulary(ObservedPolynomialFeatures().fit(X))


def test_partial_fit_of_other_columns_is_refused():
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    before = vocabulary(poly)
    with pytest.raises(ValueError, match=r"which was learnt before: call fit to begin anew"):
        poly.set_params(degree=3).partial_fit(np.eye(3))
    poly.set_params(degree=2)
    with pytest.raises(ValueError, match="X has 4 features, but ObservedPolynomialFeatures is exp"):
        poly.partial_fit(np.eye(4))
    assert vocabulary(poly) == before


# ------------------------------------------------------------------------------------ transform


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


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_container_family_is_kept(container):
    X = container(np.eye(3))
    poly = ObservedPolynomialFeatures().fit(X)
    assert poly.transform(X).format == "csr"
    if not HAS_SPARSE_INTERFACE:
        assert sparse.isspmatrix(poly.transform(X)) == sparse.isspmatrix(X)
        return
    for interface in ("spmatrix", "sparray"):
        with sklearn.config_context(sparse_interface=interface):
            assert sparse.isspmatrix(poly.transform(X)) == (interface == "spmatrix")


def test_dense_and_sparse_input_are_the_same():
    dense = random_dense(20, 5, 0.4)
    one = ObservedPolynomialFeatures(3).fit(dense)
    two = ObservedPolynomialFeatures(3).fit(sparse.csr_array(dense))
    assert vocabulary(one) == vocabulary(two)
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


def test_output_that_does_not_fit_is_refused(monkeypatch):
    poly = ObservedPolynomialFeatures().fit(np.ones((2, 3)))
    monkeypatch.setattr("polysparse.machine.available_if_less", lambda n: 100 if n > 100 else None)
    with pytest.raises(MemoryError, match=r"would need at least .* bytes are available"):
        poly.transform(np.ones((50, 3)))
    assert poly.transform(np.eye(3)[:1]).nnz == 3


# ---------------------------------------------------------------------------------- wide inputs


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
    assert vocabulary(poly) == ([0, 1, 6, n], [2, 1, 1, 1])
    assert result.toarray().tolist() == [[1, 1, 0, 2], [1, 0, 3, 0]]
    assert poly.get_feature_names_out().tolist() == ["1", "x0", "x5", f"x{n - 1}"]


def test_a_basis_that_int64_cannot_number_is_refused_with_the_way_out():
    X = raw_csr([1.0], [2**40], [0, 1], (1, 2**41), sparse.csr_array, np.int64)
    poly = ObservedPolynomialFeatures()
    with pytest.raises(ValueError, match=r"at most 2\*\*63 - 1 .*HashedPolynomialFeatures"):
        poly.fit(X)
    with pytest.raises(NotFittedError):
        poly.transform(X)


# --------------------------------------------------------------------------------------- memory


def test_too_little_memory_for_the_columns_names_the_way_out(monkeypatch):
    monkeypatch.setattr(machine, "available_bytes", lambda: 24 * 100)
    with pytest.raises(MemoryError, match=r"2\.4 kB of memory, 100 columns.* HashedPolynomial"):
        ObservedPolynomialFeatures().fit(np.ones((3, 50)))
    assert ObservedPolynomialFeatures().fit(np.ones((3, 5))).n_output_features_ == 21


@pytest.mark.parametrize("prepare", [lambda poly: poly, lambda poly: poly.forget_rejected()])
@pytest.mark.usefixtures("small_batches")
def test_a_partial_fit_that_runs_out_of_memory_changes_nothing(monkeypatch, prepare):
    X = random_csr(60, 30, 0.3)
    poly = prepare(ObservedPolynomialFeatures().fit(X[:5]))
    before = vocabulary(poly)
    with monkeypatch.context() as patch:
        patch.setattr(machine, "available_bytes", lambda: 24 * 100)
        with pytest.raises(MemoryError, match="HashedPolynomialFeatures"):
            poly.partial_fit(X[5:])
    assert vocabulary(poly) == before
    assert vocabulary(poly.partial_fit(X[5:])) == vocabulary(ObservedPolynomialFeatures().fit(X))


def test_memory_that_runs_out_unforeseen_is_told_as_it_is(monkeypatch):
    """Where nobody knows what is available there is no number of columns to tell."""

    class Full:
        n_entries = 0

        def observe(self, *_):
            return False

    monkeypatch.setattr(machine, "available_bytes", lambda: None)
    monkeypatch.setattr(cpu, "Tally", Full)
    with pytest.raises(MemoryError, match="HashedPolynomialFeatures") as refused:
        ObservedPolynomialFeatures().fit(np.eye(3))
    assert "9,223,372," not in str(refused.value)


def test_a_limit_on_the_memory_of_counting():
    X = as_canonical_csr(sparse.csr_array(np.ones((4, 50))))
    tally = ColumnTally(MonomialBasis(50, 2))
    with pytest.raises(MemoryError, match=r"More columns occur than fit into 2\.4 kB of memory"):
        tally.count(X, max_bytes=24 * 100)
    assert tally.n_entries == 0
    tally.count(X, max_bytes=24 * 2000)
    assert len(tally.chosen(4, None)[0]) == 1326


def test_an_expansion_that_cannot_be_counted_is_refused():
    """A row with so many monomials that nobody could ever list them."""
    X = sparse.csr_array(np.ones((1, 200)))
    with pytest.raises(ValueError, match="HashedPolynomialFeatures"):
        ObservedPolynomialFeatures(20).fit(X)


# ------------------------------------------------------------------------------------- failures


def test_a_min_count_that_no_column_reaches():
    poly = ObservedPolynomialFeatures(min_count=4)
    with pytest.raises(ValueError, match="No column occurs in min_count=4 rows: lower min_count"):
        poly.fit(np.eye(3))
    with pytest.raises(NotFittedError):
        poly.transform(np.eye(3))


@pytest.mark.parametrize(
    "bad",
    [{"degree": (3, 2)}, {"min_count": 0}, {"max_columns": 0}, {"n_jobs": "2"}, {"degree": 0.5}],
    ids=str,
)
def test_a_failed_refit_leaves_it_unfitted(bad):
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    with pytest.raises(ValueError, match=next(iter(bad))):
        poly.set_params(**bad).fit(np.eye(3))
    with pytest.raises(NotFittedError):
        poly.set_params(**ObservedPolynomialFeatures().get_params()).transform(np.eye(3))


@pytest.mark.parametrize("parameters", [{"min_count": 2**64}, {"max_columns": 2**64}], ids=str)
def test_numbers_beyond_64_bits_are_only_very_large(parameters):
    poly = ObservedPolynomialFeatures(**parameters).partial_fit(np.eye(3))
    assert poly.n_output_features_ == (0 if "min_count" in parameters else 7)


@pytest.mark.parametrize(
    "use",
    [
        lambda poly: poly.transform(np.eye(3)),
        lambda poly: poly.get_feature_names_out(),
        lambda poly: poly.inverse(),
        lambda poly: poly.columns_,
        lambda poly: poly.forget_rejected(),
        lambda poly: poly.save("never"),
        lambda poly: polysparse.expand(np.eye(3), columns=poly),
    ],
    ids=["transform", "names", "inverse", "columns", "forget", "save", "expand"],
)
def test_before_fit_everything_says_so(use):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        use(ObservedPolynomialFeatures())


def test_no_rows_are_refused_as_scikit_learn_does():
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        ObservedPolynomialFeatures().fit(sparse.csr_array((0, 3)))


# ------------------------------------------------------------------------------ names and tuples


def test_inverse_of_all_of_some_and_of_one():
    dense = random_dense(10, 5, 0.5)
    poly = ObservedPolynomialFeatures(3, min_count=2).fit(dense)
    tuples = reference.monomials(5, 3)
    expected = [tuples[c] for c in poly.columns_]
    assert [tuple(t[t >= 0].tolist()) for t in poly.inverse()] == expected
    assert poly.inverse(4) == expected[4]
    assert poly.inverse(np.int32(4)) == expected[4]
    np.testing.assert_array_equal(poly.inverse([4, 0]), poly.inverse()[[4, 0]])
    assert poly.inverse([]).shape == (0, 3)


@pytest.mark.parametrize("column", [-1, 7, [0, 7], 2**70])
def test_inverse_of_a_column_that_is_not_there(column):
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    with pytest.raises(ValueError, match=r"is not in \[0, 7\)|must be integers"):
        poly.inverse(column)


def test_inverse_of_no_integer():
    with pytest.raises(ValueError, match="columns must be integers"):
        ObservedPolynomialFeatures().fit(np.eye(3)).inverse(0.5)


def test_names_are_those_of_the_basis():
    poly = ObservedPolynomialFeatures(min_count=2).fit([[1, 0, 1], [1, 1, 1], [0, 1, 0]])
    expected = ["1", "x0", "x1", "x2", "x0^2", "x0 x2", "x1^2", "x2^2"]
    assert poly.get_feature_names_out().tolist() == expected
    assert poly.get_feature_names_out(["a", "b", "c"])[5] == "a c"
    assert poly.get_feature_names_out().dtype == object


def test_names_of_data_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[1.0, 0.0], [0.0, 2.0]], columns=["a", "b"])
    poly = ObservedPolynomialFeatures().fit(frame)
    assert poly.get_feature_names_out().tolist() == ["1", "a", "b", "a^2", "b^2"]
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        poly.get_feature_names_out(["x", "y"])
    with pytest.raises(ValueError, match="feature names should match"):
        poly.transform(frame[["b", "a"]])


def test_names_that_clash_warn():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.ones((3, 2)), columns=["0", "1"])
    poly = ObservedPolynomialFeatures().fit(frame)
    with pytest.warns(UserWarning, match="are both named '1'"):
        assert poly.get_feature_names_out()[[0, 2]].tolist() == ["1", "1"]


# --------------------------------------------------------------------------------- scikit-learn


@parametrize_with_checks(
    [ObservedPolynomialFeatures(), ObservedPolynomialFeatures((2, 3), interaction_only=True)]
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)


def test_clone_pickle_and_deep_copy():
    X = random_csr()
    poly = ObservedPolynomialFeatures(3, interaction_only=True, min_count=2, max_columns=9).fit(X)
    assert clone(poly).get_params() == poly.get_params()
    with pytest.raises(NotFittedError):
        clone(poly).transform(X)
    wanted = bits(poly.transform(X))
    for other in (pickle.loads(pickle.dumps(poly)), copy.deepcopy(poly)):
        assert bits(other.transform(X)) == wanted
        assert other.basis_ == poly.basis_
        assert vocabulary(other.partial_fit(X)) != vocabulary(poly)
    assert bits(poly.transform(X)) == wanted


def test_pickling_leaves_it_ready_to_transform():
    """The lookup of the columns takes a while to make: nobody else's copy may cost it."""
    X = random_csr()
    poly = ObservedPolynomialFeatures().fit(X)
    space = poly.column_space(X.shape[1])
    pickle.dumps(poly)
    assert poly.column_space(X.shape[1]) is space


def test_searched_in_a_pipeline_with_a_linear_model():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (200, 3)).astype(str)
    y = (X[:, 0] == X[:, 1]).astype(int)
    encode = ColumnTransformer([("onehot", OneHotEncoder(), [0, 1, 2])], sparse_threshold=1.0)
    model = make_pipeline(encode, ObservedPolynomialFeatures(), SGDClassifier(random_state=0))
    grid = {"observedpolynomialfeatures__degree": [1, 2]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_params_ == {"observedpolynomialfeatures__degree": 2}
    assert search.best_score_ > 0.95
    best = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(best.predict(X), search.predict(X))
    assert "onehot__x0_1 onehot__x1_1" in best[:-1].get_feature_names_out()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        SGDClassifier(max_iter=5, tol=None, random_state=0),
        LinearSVC(random_state=0),
        LogisticRegression(solver="liblinear"),
        LogisticRegression(solver="saga", max_iter=20, random_state=0),
        Lasso(alpha=0.001, max_iter=20),
        ElasticNet(alpha=0.001, max_iter=20),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'solver', '')}".strip(),
)
def test_linear_models_learn_pairs_of_a_hundred_thousand_features(model):
    """Whether features 0 and 1 are there together decides; neither says anything alone."""
    rng = np.random.default_rng(1)
    n = 120
    there = rng.random((n, 2)) < 0.5
    X = wide_csr(n, 100_000, 6, seed=2).tolil()
    X[:, :2] = np.where(there, 1.0, 0.0)
    X = X.tocsr()
    y = (there[:, 0] == there[:, 1]).astype(int)
    pipeline = make_pipeline(ObservedPolynomialFeatures(min_count=3), model).fit(X, y)
    predicted = pipeline.predict(X)
    assert np.mean((predicted > 0.5) == y) > 0.95
    assert pipeline[:-1].transform(X).indices.dtype == np.int32


@pytest.mark.parametrize("model", [LinearSVC(), Lasso(), SGDClassifier()], ids=str)
def test_linear_models_refuse_the_exact_expansion_of_so_many(model):
    X = wide_csr(20, 100_000, 6)
    with pytest.raises(ValueError, match="Only sparse matrices with 32-bit integer indices"):
        model.fit(polysparse.expand(X), np.arange(20) % 2)


# ------------------------------------------------------------------- signals, forks and threads

LARGE = """
    import numpy as np, polysparse
    from scipy import sparse
    from polysparse import ObservedPolynomialFeatures
    n, k, d = {rows}, {stored}, {features}
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, d // k, (n, k)) * k + np.arange(k), axis=1).ravel()
    X = sparse.csr_array((np.ones(n * k), columns, np.arange(0, n * k + 1, k)), shape=(n, d))
"""


def run(code, rows=2000, stored=60, features=6000):
    """Run a program of its own."""
    program = textwrap.dedent(LARGE).format(rows=rows, stored=stored, features=features)
    return subprocess.run(
        [sys.executable, "-c", program + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.no_sanitizer
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_long_calls_and_leaves_things_right(n_jobs):
    """The work is repeated until the signal arrives; a kernel that never looks would time out."""
    done = run(
        f"""
        import signal
        def handler(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, handler)
        poly = ObservedPolynomialFeatures(n_jobs={n_jobs})
        fitted = ObservedPolynomialFeatures(min_count=3, n_jobs={n_jobs}).fit(X[:300])
        hashed = polysparse.HashedPolynomialFeatures(n_jobs={n_jobs})
        for call in (poly.fit, fitted.transform, hashed.transform):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                while True:
                    call(X)
            except KeyboardInterrupt:
                print("stopped")
            signal.setitimer(signal.ITIMER_REAL, 0)
        poly.fit(X[:50])
        print(poly.transform(X[:50]).nnz, fitted.counts_[0])
        """
    )
    assert done.stdout.split() == [*["stopped"] * 3, str(50 * 61 * 62 // 2), "300"], done.stderr


@pytest.mark.no_sanitizer
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_during_partial_fit_leaves_what_was_learnt():
    done = run(
        """
        import signal
        class Late(Exception): pass
        def handler(*_):
            raise Late
        signal.signal(signal.SIGALRM, handler)
        poly = ObservedPolynomialFeatures(n_jobs=2).fit(X[:30])
        counts = poly.counts_.sum()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            poly.partial_fit(sparse.vstack([X] * 4, format="csr"))
        except Late:
            assert poly.counts_.sum() == counts, "learnt in part"
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(poly.partial_fit(X[30:60]).counts_[0] in (60, 8060))
        """
    )
    assert done.stdout.split() == ["True"], done.stderr


@pytest.mark.no_sanitizer
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_after_threaded_calls_works():
    done = run(
        """
        import os, warnings
        warnings.simplefilter("ignore")
        poly = ObservedPolynomialFeatures(n_jobs=2).fit(X)
        wanted = poly.transform(X)
        child = os.fork()
        if child == 0:
            again = ObservedPolynomialFeatures(n_jobs=2).fit(X)
            same = (again.counts_ == poly.counts_).all()
            same &= poly.transform(X).data.tobytes() == wanted.data.tobytes()
            os._exit(0 if same else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        rows=500,
    )
    assert done.stdout.strip() == "0", done.stderr


def test_threads_that_count_and_ask_at_once_lose_nothing():
    X = as_canonical_csr(random_csr(200, 12, 0.5))
    basis = MonomialBasis(12, 3)
    alone, shared = ColumnTally(basis), ColumnTally(basis)
    alone.count(X)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(shared.chosen, 1, None) for _ in range(8)]
        list(pool.map(lambda _: shared.count(X, 1), range(40)))
        assert all(len(columns) == len(counts) for columns, counts in (a.result() for a in asked))
    columns, counts = alone.chosen(1, None)
    found = shared.chosen(1, None)
    np.testing.assert_array_equal(found[0], columns)
    np.testing.assert_array_equal(found[1], 40 * counts)


def test_an_interruption_leaves_a_batch_learnt_not_at_all(monkeypatch):
    """Ctrl-C may strike when all is counted, but not yet put in its place."""
    first, second = random_csr(20, 8, 0.5, seed=1), random_csr(30, 8, 0.5, seed=2)
    poly = ObservedPolynomialFeatures().fit(first)
    before = vocabulary(poly)
    count = ColumnTally.count

    def interrupted(self, *arguments):
        count(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ColumnTally, "count", interrupted)
        with pytest.raises(KeyboardInterrupt):
            poly.partial_fit(second)
    assert vocabulary(poly) == before
    poly.partial_fit(second)
    together = ObservedPolynomialFeatures().fit(sparse.vstack([first, second], format="csr"))
    assert vocabulary(poly) == vocabulary(together)


@pytest.mark.no_sanitizer  # which needs memory of its own
def test_a_row_with_too_many_products_is_refused_while_it_is_counted():
    """79 million products of one row: the limit is looked at long before all are listed."""
    code = """
        import resource
        import numpy as np
        from scipy import sparse
        from polysparse import MonomialBasis
        from polysparse.matrix.canonical import as_canonical_csr
        from polysparse.observation.tally import ColumnTally
        X = as_canonical_csr(sparse.csr_array(np.ones((1, 98))))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            ColumnTally(MonomialBasis(98, 5)).count(X, max_bytes=24_000)
        except MemoryError:
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 50_000  # kB; all of them would take a million


def test_what_is_kept_cannot_be_changed_from_outside():
    poly = ObservedPolynomialFeatures().fit(random_csr())
    for array in (poly.columns_, poly.counts_):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_a_failed_fit_leaves_no_names_behind():
    pd = pytest.importorskip("pandas")
    poly = ObservedPolynomialFeatures(min_count=9)
    with pytest.raises(ValueError, match="lower min_count"):
        poly.fit(pd.DataFrame(np.eye(3), columns=list("abc")))
    other = ObservedPolynomialFeatures().fit(np.ones((10, 4)))
    assert poly.merge(other).get_feature_names_out()[1] == "x0"


def test_threads_may_transform_at_once():
    X = random_csr(400, 20, 0.3)
    poly = ObservedPolynomialFeatures(3, n_jobs=2).fit(X)
    wanted = bits(poly.transform(X))
    with ThreadPoolExecutor(8) as pool:
        assert all(bits(r) == wanted for r in pool.map(poly.transform, [X] * 32))


@pytest.mark.no_sanitizer
def test_threads_may_be_the_first_to_ask_for_the_columns():
    """After partial_fit the columns are chosen by who needs them first: here by many at once."""
    done = run(
        """
        from concurrent.futures import ThreadPoolExecutor
        wanted = ObservedPolynomialFeatures().fit(X).transform(X[:5]).data.tobytes()
        for _ in range(5):
            poly = ObservedPolynomialFeatures()
            for part in (X[:1200], X[1200:1600], X[1600:1800], X[1800:1900], X[1900:]):
                poly.partial_fit(part)
            with ThreadPoolExecutor(8) as pool:
                results = list(pool.map(poly.transform, [X[:5]] * 8))
            assert all(r.data.tobytes() == wanted for r in results)
        print("same")
        """,
        stored=40,
    )
    assert done.stdout.strip() == "same", done.stderr


@pytest.mark.no_sanitizer
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_counting_never_holds_the_expansion():
    """46 million outputs in 20,100 columns: the expansion would be over half a gigabyte."""
    done = run(
        """
        def status(key):
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
        ObservedPolynomialFeatures().fit(X[:10])
        open("/proc/self/clear_refs", "w").write("5")
        before = status("VmRSS")
        ObservedPolynomialFeatures().fit(X)
        print(status("VmHWM") - before)
        """,
        rows=10_000,
        stored=95,
        features=190,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 150e6
