"""Pairs are scored by passes over the rows or by a walk, which find the same."""

import numpy as np

from looping import loop_over
from polysparse import top_interactions
from search_checks import SCORES, as_csr, random_rows


def with_rare_features(X, target, n):
    """The same with n features more than pairs of values are worth a pass, in rows of their own."""
    rows = np.zeros((2 * n, X.shape[1] + n))
    rows[np.arange(2 * n), X.shape[1] + np.arange(2 * n) % n] = 1
    padded = np.zeros((len(X), n))
    return (
        np.vstack([np.hstack([X, padded]), rows]),
        np.concatenate([target, np.zeros((2 * n, *target.shape[1:]))]),
    )


@loop_over("kind", ["binary", "positive", "signed"])
@loop_over("score", SCORES)
def test_a_walk_finds_the_same(kind, score):
    rng = np.random.default_rng(0)
    X = random_rows(rng, 150, 12, kind, 0.3)
    X[:, 7] = X[:, 3]  # ties
    for target in (rng.normal(size=150), rng.integers(-1, 2, (150, 2))):
        wide, wide_target = with_rare_features(X, target, 120)
        high = np.vstack([X, np.zeros((240, 12))])
        for weights in (None, rng.integers(1, 3, 390)):
            for how in (
                {"k": 9},
                {"k": 30, "degree": (1, 2), "interaction_only": False},
                {"k": 30, "min_count": 15},
                {"k": 20, "hierarchy": "weak", "among": [0, 3, 8]},
            ):
                how |= {"score": score, "sample_weight": weights}
                passed = top_interactions(as_csr(high), wide_target, n_jobs=2, **how)
                walked = top_interactions(as_csr(wide), wide_target, n_jobs=1, **how)
                assert passed.scores.tolist() == walked.scores.tolist()
                assert passed.counts.tolist() == walked.counts.tolist()
                assert [row.tolist() for row in passed.tuples] == [
                    row.tolist() for row in walked.tuples
                ]


@loop_over("n_jobs", [1, 2])
def test_many_strips_are_passed_through(n_jobs):
    """More pairs of features than one pass over the rows has sums of."""
    rng = np.random.default_rng(1)
    X = (rng.random((700, 800)) < 0.1).astype(float)
    target = rng.integers(-9, 10, 700).astype(float)
    sums, counts = X.T @ (X * target[:, np.newaxis]), X.T @ X
    first, second = np.triu_indices(800, 1)
    order = np.lexsort([np.arange(len(first)), -np.abs(sums[first, second])])[:50]
    top = top_interactions(as_csr(X), target, 50, n_jobs=n_jobs)
    assert top.columns.tolist() == order.tolist()
    assert top.scores.tolist() == sums[first, second][order].tolist()
    assert top.counts.tolist() == counts[first, second][order].tolist()
