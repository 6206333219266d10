"""ObservedPolynomialFeatures over many batches: partial_fit and merge give what one fit gives."""

import copy
import os
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import reference
from checks import bits, columns_and_counts
from csr_zoo import random_csr
from inside import interrupt_after, set_available_memory
from polysparse import ObservedPolynomialFeatures
from programs import run


def batches_of(data, X):
    """Split the rows of X, in any order, into batches of at least one row."""
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
@settings(max_examples=150)
def test_any_batches_give_what_one_fit_gives(data, shape, parameters, looks):
    """Also if the columns are looked at between batches."""
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
    assert (
        columns_and_counts(parts)
        == columns_and_counts(whole)
        == (columns.tolist(), counts.tolist())
    )
    assert bits(parts.transform(X)) == bits(whole.transform(X))


@given(data=st.data(), shape=ANY_MATRIX, parameters=ANY_PARAMETERS, by_pickle=st.booleans())
@settings(max_examples=150)
def test_parts_merge_in_any_order_to_what_one_fit_gives(data, shape, parameters, by_pickle):
    """As on a cluster: parts are learned separately, sent, and merged two by two."""
    X = random_csr(*shape)
    whole = ObservedPolynomialFeatures(**parameters).partial_fit(X)
    parts = [
        ObservedPolynomialFeatures(**parameters).partial_fit(batch) for batch in batches_of(data, X)
    ]
    while len(parts) > 1:
        if by_pickle:
            parts = pickle.loads(pickle.dumps(parts))
        other = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        before = columns_and_counts(copy.deepcopy(other))
        parts[data.draw(st.integers(0, len(parts) - 1))].merge(other)
        assert columns_and_counts(other) == before
    assert columns_and_counts(parts[0]) == columns_and_counts(whole)


def test_fit_then_partial_fit_is_one_fit():
    X = random_csr()
    parts = ObservedPolynomialFeatures(min_count=4).fit(X[:15]).partial_fit(X[15:])
    assert columns_and_counts(parts) == columns_and_counts(
        ObservedPolynomialFeatures(min_count=4).fit(X)
    )


def test_fit_forgets_what_was_learned_before():
    X = random_csr()
    poly = ObservedPolynomialFeatures().fit(X[:20])
    assert columns_and_counts(poly.fit(X[20:])) == columns_and_counts(
        ObservedPolynomialFeatures().fit(X[20:])
    )
    assert poly.set_params(degree=3).fit(X[:, :4]).n_features_in_ == 4


def test_rows_without_stored_values_count_for_the_bias_alone():
    poly = ObservedPolynomialFeatures().partial_fit(sparse.csr_array((5, 3)))
    assert columns_and_counts(poly) == ([0], [5])
    assert columns_and_counts(poly.partial_fit(np.eye(3)[:1])) == ([0, 1, 4], [6, 1, 1])


def test_nothing_may_be_kept_between_batches():
    X = sparse.csr_array(np.eye(3))
    poly = ObservedPolynomialFeatures(include_bias=False, min_count=2).partial_fit(X)
    assert poly.n_output_features_ == 0
    assert poly.transform(X).shape == (3, 0)
    assert poly.get_feature_names_out().tolist() == []
    assert poly.inverse().shape == (0, 2)
    assert columns_and_counts(poly.partial_fit(X)) == ([0, 1, 2, 3, 6, 8], [2] * 6)


# -------------------------------------------------------------------------------------------- merge


def test_merge_into_one_that_has_learned_nothing():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    fitted = ObservedPolynomialFeatures(min_count=2).fit(frame)
    poly = ObservedPolynomialFeatures().merge(fitted)
    assert columns_and_counts(poly) == columns_and_counts(ObservedPolynomialFeatures().fit(frame))
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
    before = columns_and_counts(poly)
    with pytest.raises(ValueError, match="only columns of the same degree and of the same feature"):
        poly.merge(other)
    assert columns_and_counts(poly) == before


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


# ----------------------------------------------------------------------------------------- failures


def test_partial_fit_of_other_columns_is_refused():
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    before = columns_and_counts(poly)
    with pytest.raises(ValueError, match="which was learned before: degree is different"):
        poly.set_params(degree=3).partial_fit(np.eye(3))
    poly.set_params(degree=2)
    with pytest.raises(ValueError, match="X has 4 features, but ObservedPolynomialFeatures is exp"):
        poly.partial_fit(np.eye(4))
    assert columns_and_counts(poly) == before


@pytest.mark.parametrize("prepare", [lambda poly: poly, lambda poly: poly.forget_rejected()])
@pytest.mark.usefixtures("small_batches")
def test_a_partial_fit_that_runs_out_of_memory_changes_nothing(monkeypatch, prepare):
    X = random_csr(60, 30, 0.3)
    poly = prepare(ObservedPolynomialFeatures().fit(X[:5]))
    before = columns_and_counts(poly)
    with monkeypatch.context() as patch:
        set_available_memory(patch, 24 * 100)
        with pytest.raises(MemoryError, match="HashedPolynomialFeatures"):
            poly.partial_fit(X[5:])
    assert columns_and_counts(poly) == before
    assert columns_and_counts(poly.partial_fit(X[5:])) == columns_and_counts(
        ObservedPolynomialFeatures().fit(X)
    )


def test_an_interruption_leaves_a_batch_learned_not_at_all(monkeypatch):
    """Ctrl-C may arrive when everything is counted but nothing is kept yet."""
    first, second = random_csr(20, 8, 0.5, seed=1), random_csr(30, 8, 0.5, seed=2)
    poly = ObservedPolynomialFeatures().fit(first)
    before = columns_and_counts(poly)
    with monkeypatch.context() as patch:
        interrupt_after(patch, "count")
        with pytest.raises(KeyboardInterrupt):
            poly.partial_fit(second)
    assert columns_and_counts(poly) == before
    poly.partial_fit(second)
    together = ObservedPolynomialFeatures().fit(sparse.vstack([first, second], format="csr"))
    assert columns_and_counts(poly) == columns_and_counts(together)


@pytest.mark.alone
@pytest.mark.no_sanitizer
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_during_partial_fit_leaves_what_was_learned():
    done = run(
        """
        from polysparse import ObservedPolynomialFeatures
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
            assert poly.counts_.sum() == counts, "learned in part"
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(poly.partial_fit(X[30:60]).counts_[0] in (60, 8060))
        """
    )
    assert done.stdout.split() == ["True"], done.stderr
