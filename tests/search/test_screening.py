"""Pairs are screened by a product with the expansion, which changes no result."""

import numpy as np

from looping import loop_over
from polysparse import top_interactions
from polysparse.search import rows as searched
from polysparse.search.screening import promising_features
from search_checks import as_csr, random_rows, require_same


def without_screening(monkeypatch, *arguments, **how):
    with monkeypatch.context() as patch:
        patch.setattr(searched, "promising_features", lambda *_: None)
        return top_interactions(*arguments, **how)


@loop_over("kind", ["binary", "positive", "signed"])
def test_results_are_those_of_a_walk_through_all_features(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = as_csr(random_rows(rng, 200, 20, kind, 0.3))
    for target in (rng.normal(size=200), rng.integers(-1, 2, (200, 2)), np.zeros(200)):
        for weights in (None, rng.integers(0, 3, 200)):
            for k in (1, 5, 60, 10**9):
                for more in ({}, {"degree": (1, 2), "interaction_only": False}):
                    how = {"sample_weight": weights, **more}
                    found = top_interactions(X, target, k, **how)
                    require_same(found, without_screening(monkeypatch, X, target, k, **how))


def test_few_features_are_searched(monkeypatch):
    seen = []

    def watched(*arguments):
        seen.append(promising_features(*arguments))
        return seen[-1]

    monkeypatch.setattr(searched, "promising_features", watched)
    rng = np.random.default_rng(1)
    X = random_rows(rng, 400, 30, "binary", 0.3)
    target = rng.normal(size=400) + 5 * X[:, 4] * X[:, 21]
    top = top_interactions(as_csr(X), target - target.mean(), 1)
    assert top.tuples.tolist() == [[4, 21]]
    assert np.flatnonzero(seen.pop()).tolist() == [4, 21]
    for how in ({"min_count": 2}, {"score": "normalized"}, {"degree": 3}, {"groups": [2] * 15}):
        top_interactions(as_csr(X), target, 1, **how)
        assert seen.pop() is None
    top_interactions(as_csr(X), np.zeros(400), 1)
    assert seen.pop() is None
