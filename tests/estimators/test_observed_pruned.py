"""remember_rejected=False: the same columns as ever, without walking what cannot be kept."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from checks import DEGREES, columns_and_counts
from csr_zoo import (
    duplicates_that_cancel,
    empty_rows,
    full_rows,
    no_stored_values,
    one_feature,
    random_csr,
    sorted_rows,
    stored_zeros,
    uneven_rows,
)
from inside import lower
from looping import loop_over
from polysparse import MonomialBasis, ObservedPolynomialFeatures
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.observation.tally import ColumnTally

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid|underflow)")


# What is counted; test_observed.py has every format and dtype that X may come in.
SOME = [
    sorted_rows,
    uneven_rows,
    full_rows,
    empty_rows,
    stored_zeros,
    duplicates_that_cancel,
    no_stored_values,
    one_feature,
]


def outcome(poly, X):
    """Columns and counts that a fit keeps, or its error."""
    try:
        return columns_and_counts(poly.fit(X))
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("min_count", [1, 2, 3])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("build", SOME)
@pytest.mark.usefixtures("small_tasks", "small_batches")
def test_the_zoo_keeps_the_same(build, degree, interaction_only, min_count):
    X, _ = build()
    poly = ObservedPolynomialFeatures(
        degree, interaction_only=interaction_only, min_count=min_count, n_jobs=3
    )
    expected = outcome(poly, X)
    assert outcome(clone(poly).set_params(remember_rejected=False), X) == expected


@pytest.mark.parametrize("max_columns", [None, 1, 40, 1000])
@pytest.mark.parametrize("min_count", [2, 5, 30])
@pytest.mark.parametrize("degree", [2, 3, (3, 3), 5], ids=str)
def test_many_rows_keep_the_same(degree, min_count, max_columns):
    X = random_csr(300, 12, 0.3)
    poly = ObservedPolynomialFeatures(degree, min_count=min_count, max_columns=max_columns)
    expected = outcome(poly, X)
    for n_jobs in (1, 3):
        pruned = clone(poly).set_params(remember_rejected=False, n_jobs=n_jobs)
        assert outcome(pruned, X) == expected


def test_a_product_that_underflows_counts_as_it_does_otherwise():
    X = sparse.csr_array(np.array([[1e-200, 1e-200], [1e-200, 1e-200]]))
    poly = ObservedPolynomialFeatures(3, min_count=2)
    expected = outcome(poly, X)
    assert len(expected[0]) == 10
    assert outcome(poly.set_params(remember_rejected=False), X) == expected


def test_what_cannot_be_kept_is_not_counted():
    """Every row has products of its own; only those of the first two columns are in all of them."""
    n = 40
    dense = np.zeros((n, 2 + 3 * n))
    dense[:, :2] = 1
    for i in range(n):
        dense[i, 2 + 3 * i : 5 + 3 * i] = 1
    x = as_canonical_csr(sparse.csr_array(dense))
    tally = ColumnTally(MonomialBasis(x.shape[1], 3))
    tally.count(x, least=2)
    columns, counts = tally.chosen(1, None)
    assert tally.n_entries == len(columns) == 10  # 1, two columns, and their products
    assert (counts == n).all()
    assert not tally.is_whole


def test_memory_for_what_is_kept_suffices():
    x = as_canonical_csr(random_csr(300, 40, 0.2))
    basis = MonomialBasis(40, 4)
    tally = ColumnTally(basis)
    tally.count(x, least=20)
    room = 24 * (tally.n_entries + 10)
    with pytest.raises(MemoryError, match="More columns occur than fit"):
        ColumnTally(basis).count(x, max_bytes=room)
    again = ColumnTally(basis)
    again.count(x, max_bytes=room, least=20)
    assert again.n_entries == tally.n_entries


def test_more_than_the_kernels_count_at_once_is_counted_whole(monkeypatch):
    X = random_csr(60, 8, 0.4)
    expected = outcome(ObservedPolynomialFeatures(3, min_count=4), X)
    monkeypatch.setattr("polysparse.observation.tally.MOST_AT_ONCE", X.nnz)
    lower(monkeypatch, COUNTING_BYTES=300)
    pruned = ObservedPolynomialFeatures(3, min_count=4, remember_rejected=False)
    assert outcome(pruned, X) == expected


def test_nothing_is_learned_afterwards():
    X = random_csr(60, 8, 0.4)
    poly = ObservedPolynomialFeatures(min_count=2, remember_rejected=False).fit(X)
    gone = r"are gone, by .*remember_rejected=False.* Call fit to start over"
    with pytest.raises(ValueError, match=gone):
        poly.partial_fit(X)
    with pytest.raises(ValueError, match=gone):
        poly.merge(ObservedPolynomialFeatures().fit(X))
    with pytest.raises(ValueError, match=gone):
        ObservedPolynomialFeatures().merge(poly)
    assert columns_and_counts(poly.fit(X)) == columns_and_counts(poly)


def test_with_a_min_count_of_1_nothing_is_rejected_and_learning_goes_on():
    X = random_csr(60, 8, 0.4)
    poly = ObservedPolynomialFeatures(remember_rejected=False).fit(X[:30]).partial_fit(X[30:])
    assert columns_and_counts(poly) == columns_and_counts(ObservedPolynomialFeatures().fit(X))


def test_partial_fit_remembers_until_fit_forgets():
    X = random_csr(60, 8, 0.4)
    poly = ObservedPolynomialFeatures(min_count=9, remember_rejected=False)
    poly.partial_fit(X[:30]).partial_fit(X[30:])
    expected = ObservedPolynomialFeatures(min_count=9).fit(X)
    assert columns_and_counts(poly) == columns_and_counts(expected)


def test_the_parameter_must_be_a_bool():
    poly = ObservedPolynomialFeatures(remember_rejected="no")
    with pytest.raises(ValueError, match="remember_rejected must be True or False; got 'no'"):
        poly.fit(np.eye(3))
