import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference
from csr_zoo import FITTABLE, ZOO
from looping import loop_over
from polysparse import MonomialBasis, top_interactions
from search_checks import (
    SCORES,
    all_scores,
    as_csr,
    columns_of,
    random_rows,
    require_best,
)

KINDS = "binary", "positive", "signed"


def cases():
    for kind in KINDS:
        for score in SCORES:
            for degree in ((1, 1), 2, (1, 3), 5):
                yield kind, score, degree


@loop_over("case", list(cases()))
def test_the_best_are_those_of_brute_force(case):
    kind, score, degree = case
    rng = np.random.default_rng(len(kind) + 10 * len(score))
    X = random_rows(rng, 40, 7, kind)
    degrees = degree if isinstance(degree, tuple) else (2, degree)
    for interaction_only in (True, False):
        of_basis = {"degree": degrees, "interaction_only": interaction_only}
        for target in (rng.normal(size=40), rng.normal(size=(40, 3))):
            for weights in (None, rng.integers(0, 4, 40), rng.uniform(0.2, 3, 40)):
                found = all_scores(X, target, weights, score, **of_basis)
                for k, min_count in ((1, 1), (10, 2), (10**9, 4)):
                    top = top_interactions(
                        as_csr(X),
                        target,
                        k,
                        degree=degree,
                        interaction_only=interaction_only,
                        score=score,
                        min_count=min_count,
                        sample_weight=weights,
                    )
                    require_best(top, found, k, min_count)


GROUPS = ["a", None, "b", "a", "b", None, "c", "a", "c"]


@loop_over("kind", KINDS)
@loop_over("score", SCORES)
def test_groups(kind, score):
    rng = np.random.default_rng(3)
    X = random_rows(rng, 50, 9, kind)
    target = rng.normal(size=50)
    for groups in (GROUPS, sorted(GROUPS, key=str)):
        for interaction_only in (True, False):
            of_basis = {"degree": (1, 4), "interaction_only": interaction_only, "groups": groups}
            found = all_scores(X, target, None, score, **of_basis)
            for k in (5, 40):
                top = top_interactions(as_csr(X), target, k, score=score, **of_basis)
                require_best(top, found, k)
                tuples = reference.monomials(9, include_bias=False, **of_basis)
                for column, row in zip(top.columns, top.tuples, strict=True):
                    assert tuple(j for j in row if j >= 0) == tuples[column]


@loop_over("build", ZOO)
@loop_over("score", SCORES)
def test_the_zoo(build, score):
    X, dense = build()
    rng = np.random.default_rng(0)
    target = rng.normal(size=len(dense))
    if not np.isfinite(dense).all():
        with pytest.raises(ValueError, match="NaN or infinite"):
            top_interactions(X, target, score=score)
        return
    if score == "correlation" and len(dense) == 1:
        with pytest.raises(ValueError, match="constant"):
            top_interactions(X, target, score=score)
        return
    dense = dense.astype(np.float64)
    of_basis = {"degree": (1, 3), "interaction_only": False}
    found = all_scores(dense, target, None, score, **of_basis) if dense.size else ([], [])
    top = top_interactions(X, target, 7, score=score, **of_basis)
    if dense.size:
        require_best(top, found, 7)
    else:
        assert len(top) == 0


@given(st.data())
@settings(max_examples=60)
def test_random_cases(data):
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows, n_features = draw(st.integers(2, 30)), draw(st.integers(1, 8))
    X = random_rows(rng, n_rows, n_features, draw(st.sampled_from(KINDS)), draw(st.floats(0, 1)))
    if draw(st.booleans()):
        X = np.round(X)  # ties, duplicates and cancellation
    score = draw(st.sampled_from(SCORES))
    target = rng.normal(size=(n_rows, draw(st.integers(1, 2))))
    if draw(st.booleans()) and score != "correlation":
        target = np.round(target)
    low = draw(st.integers(1, 3))
    of_basis = {
        "degree": (low, draw(st.integers(low, 5))),
        "interaction_only": draw(st.booleans()),
        "groups": draw(
            st.none()
            | st.lists(st.sampled_from([None, "a", "b"]), min_size=n_features, max_size=n_features)
        ),
    }
    weights = draw(st.none() | st.just(rng.uniform(0.1, 5, n_rows)))
    k, min_count = draw(st.integers(1, 50)), draw(st.integers(1, 3))
    top = top_interactions(
        as_csr(X), target, k, score=score, min_count=min_count, sample_weight=weights, **of_basis
    )
    require_best(top, all_scores(X, target, weights, score, **of_basis), k, min_count)


def test_ties_are_taken_in_the_order_of_columns():
    rng = np.random.default_rng(1)
    X = random_rows(rng, 60, 12, "binary", 0.3)
    X[:, 5] = X[:, 9] = X[:, 2]
    target = rng.integers(-1, 2, 60)
    for degree in (2, 3, 4):
        sums, counts = all_scores(X, target, None, "dot", degree=(2, degree), interaction_only=True)
        sizes = np.where(counts > 0, np.abs(sums[:, 0]), -1)
        order = np.lexsort([np.arange(len(sizes)), -sizes])
        for k in (1, 7, 30, 100):
            top = top_interactions(as_csr(X), target, k, degree=degree)
            np.testing.assert_array_equal(top.columns, order[: min(k, (counts > 0).sum())])


@loop_over("kind", KINDS)
def test_scores_have_the_bits_of_the_expansion(kind):
    """So equal columns tie exactly, although the search multiplies in another order."""
    rng = np.random.default_rng(2)
    X = random_rows(rng, 80, 5, kind, 0.6)[:, [0, 1, 2, 0, 1, 3, 4, 1]]
    target = rng.normal(size=80)
    of_basis = {"degree": (1, 4), "interaction_only": False}
    expanded, stored = columns_of(X, **of_basis)
    sums = np.cumsum(expanded * target[:, None], axis=0)[-1]
    sizes = np.where(stored.any(axis=0), np.abs(sums), -1)
    order = np.lexsort([np.arange(len(sizes)), -sizes])
    for k in (1, 10, 50, 200):
        top = top_interactions(as_csr(X), target, k, **of_basis)
        np.testing.assert_array_equal(top.columns, order[:k])
        assert top.scores.tobytes() == sums[order[:k]].tobytes()


@loop_over("kind", KINDS)
@loop_over("score", SCORES)
def test_results_do_not_depend_on_threads(kind, score, small_tasks):
    rng = np.random.default_rng(4)
    X = as_csr(random_rows(rng, 300, 40, kind, 0.2))
    target = rng.normal(size=(300, 2))
    results = [
        top_interactions(X, target, 50, degree=3, score=score, n_jobs=n) for n in (1, 2, 3, 8)
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].columns, other.columns)
        assert results[0].scores.tobytes() == other.scores.tobytes()
        np.testing.assert_array_equal(results[0].targets, other.targets)


@loop_over("score", SCORES)
def test_the_order_of_features_does_not_matter(score):
    """The search has an order of its own, in which rare features come first."""
    rng = np.random.default_rng(5)
    X = random_rows(rng, 200, 15, "positive", 0.3) * (rng.random(15) < 0.7)
    target = rng.normal(size=200)
    top = top_interactions(as_csr(X), target, 25, degree=4, score=score)
    order = rng.permutation(15)
    other = top_interactions(as_csr(X[:, order]), target, 25, degree=4, score=score)
    mine = [tuple(sorted(row[row >= 0])) for row in top.tuples]
    theirs = [tuple(sorted(order[row[row >= 0]])) for row in other.tuples]
    assert mine == theirs
    np.testing.assert_allclose(top.scores, other.scores, rtol=1e-12)


def test_planted_interactions_are_found_first():
    rng = np.random.default_rng(6)
    n_rows, n_features = 5000, 3000
    X = sparse.random(n_rows, n_features, density=0.004, random_state=rng, data_rvs=np.ones).tolil()
    planted = [(11, 500, 2900), (40, 41, 42)]
    target = rng.normal(size=n_rows)
    for triple in planted:
        rows = rng.choice(n_rows, 60, replace=False)
        for j in triple:
            X[rows, j] = 1
        target[rows] += 3
    for score in ("dot", "normalized", "correlation"):
        top = top_interactions(X.tocsr(), target, 5, degree=(3, 3), score=score, min_count=10)
        assert {tuple(row) for row in top.tuples[:2]} == set(planted)


def test_hierarchy():
    rng = np.random.default_rng(7)
    X = random_rows(rng, 60, 9, "positive")
    target = rng.normal(size=60)
    among = [1, 4, 8]
    for groups in (None, GROUPS):
        of_basis = {"degree": (1, 3), "interaction_only": True, "groups": groups}
        tuples = reference.monomials(9, include_bias=False, **of_basis)
        for hierarchy, decide in (("weak", any), ("strong", all)):
            allowed = np.array([decide(j in among for j in each) for each in tuples])
            for score in SCORES:
                found = all_scores(X, target, None, score, **of_basis)
                for k in (3, 1000):
                    top = top_interactions(
                        as_csr(X),
                        target,
                        k,
                        hierarchy=hierarchy,
                        among=among,
                        score=score,
                        **of_basis,
                    )
                    require_best(top, found, k, allowed=allowed)


def test_wide_input():
    """Memory follows what is stored, not the number of features."""
    rows = [[(3, 1.0), (10**6, 2.0), (2 * 10**9, 3.0)], [(3, 1.0), (2 * 10**9, 5.0)]]
    indices = np.array([j for row in rows for j, _ in row])
    data = np.array([value for row in rows for _, value in row])
    X = sparse.csr_array((data, indices, [0, 3, 5]), shape=(2, 2 * 10**9 + 1))
    top = top_interactions(X, [1.0, 1.0], k=2)
    assert top.tuples.tolist() == [[3, 2 * 10**9], [10**6, 2 * 10**9]]
    assert top.scores.tolist() == [8.0, 6.0]
    assert top.columns.tolist() == [
        int(MonomialBasis(2 * 10**9 + 1, (2, 2), interaction_only=True, include_bias=False).rank(t))
        for t in top.tuples.tolist()
    ]


def test_scores_of_zero_are_found_in_the_order_of_columns():
    X = random_rows(np.random.default_rng(8), 30, 6, "binary", 0.7)
    top = top_interactions(as_csr(X), np.zeros(30), 4)
    assert top.columns.tolist() == [0, 1, 2, 3]
    assert not top.scores.any()


def test_constant_columns_have_no_correlation():
    rng = np.random.default_rng(9)
    X = np.hstack([np.full((50, 3), 0.1), random_rows(rng, 50, 3, "positive")])
    top = top_interactions(X, rng.normal(size=50), 100, degree=(1, 2), score="correlation")
    scores = dict(zip(map(tuple, top.tuples.tolist()), top.scores, strict=True))
    assert scores[0, 1] == scores[1, 2] == scores[0, -1] == 0
    assert abs(scores[3, -1]) > 0


def test_a_column_in_one_row_scores_its_target():
    """By normalized scores and correlations, whatever its value is: so ties are exact."""
    rng = np.random.default_rng(10)
    X = np.zeros((20, 12))
    X[3, :8] = rng.normal(size=8)
    X[7:, 8:] = rng.normal(size=(13, 4))
    target = rng.normal(size=20)
    target[3] = 50.0
    for score in ("normalized", "correlation"):
        top = top_interactions(as_csr(X), target, 10, score=score)
        assert len(set(np.abs(top.scores))) == 1
        assert top.tuples.tolist() == [[0, j] for j in range(1, 8)] + [[1, 2], [1, 3], [1, 4]]


@loop_over("build", FITTABLE)
def test_input_is_not_changed(build):
    X, dense = build()
    before = X.toarray().copy()
    top_interactions(X, np.arange(len(dense), dtype=float), 5)
    np.testing.assert_array_equal(X.toarray(), before)
