"""ObservedCounts: columns are chosen once, and the counts of the others can be dropped."""

import pickle

import numpy as np
import pytest

import reference
from checks import columns_and_counts
from csr_zoo import random_csr
from polysparse import MonomialBasis, ObservedPolynomialFeatures
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.observation.observed_counts import ObservedCounts
from polysparse.observation.tally import ColumnTally
from programs import run


def test_what_is_kept_cannot_be_changed_from_outside():
    poly = ObservedPolynomialFeatures().fit(random_csr())
    for array in (poly.columns_, poly.counts_):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_pickling_leaves_it_ready_to_transform():
    """A look-up takes a while to build. It goes with its columns, which must stay the same."""
    X = random_csr()
    poly = ObservedPolynomialFeatures().fit(X)
    space = poly.column_space(X.shape[1])
    pickle.dumps(poly)
    assert poly.column_space(X.shape[1]) is space


@pytest.mark.no_sanitizer
def test_threads_may_be_the_first_to_ask_for_the_columns():
    """After partial_fit the first to need the columns chooses them: here, many threads at once."""
    done = run(
        """
        from concurrent.futures import ThreadPoolExecutor
        from polysparse import ObservedPolynomialFeatures
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


def test_what_was_rejected_can_be_forgotten():
    X = random_csr()
    poly = ObservedPolynomialFeatures(min_count=8).fit(X)
    before, size = columns_and_counts(poly), len(pickle.dumps(poly))
    assert columns_and_counts(poly.forget_rejected()) == before
    assert len(pickle.dumps(poly)) < size
    for learn in (poly.partial_fit, lambda X: poly.merge(ObservedPolynomialFeatures().fit(X))):
        with pytest.raises(ValueError, match=r"are gone, by forget_rejected .* Call fit to start"):
            learn(X)
    with pytest.raises(ValueError, match="are gone, by forget_rejected"):
        ObservedPolynomialFeatures().merge(poly)
    assert columns_and_counts(poly) == before
    assert columns_and_counts(poly.fit(X)) == before


def test_where_nothing_was_rejected_nothing_is_forgotten():
    X = random_csr()
    poly = ObservedPolynomialFeatures().fit(X[:9]).forget_rejected().partial_fit(X[9:])
    assert columns_and_counts(poly) == columns_and_counts(ObservedPolynomialFeatures().fit(X))


def learned(min_count, X):
    """What a first batch teaches."""
    basis = MonomialBasis(X.shape[1])
    tally = ColumnTally(basis)
    tally.count(as_canonical_csr(X))
    return ObservedCounts(basis, tally, (min_count, None))


def test_columns_are_chosen_once():
    columns, counts = reference.observed(random_csr().toarray(), min_count=8)
    kept = learned(8, random_csr())
    chosen = kept.choose(None)
    np.testing.assert_array_equal(chosen[0].ranks, columns)
    np.testing.assert_array_equal(chosen[1], counts)
    assert kept.choose(None) is chosen


def test_counts_are_not_held_twice_where_all_columns_are_chosen():
    some, every = learned(8, random_csr()), learned(1, random_csr())
    for kept in (some, every):
        kept.choose(None)
    assert some.tally is not None
    assert every.tally is None
    columns, counts = reference.observed(random_csr().toarray())
    tally = every.counts()
    np.testing.assert_array_equal(tally.chosen(1, None), (columns, counts))
