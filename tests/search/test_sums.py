"""Searches by sums over rows, which are somewhere else, find what a walk through rows finds."""

from dataclasses import replace

import numpy as np
import pytest

from inside import lower, set_available_memory
from looping import loop_over
from polysparse import top_interactions
from polysparse.columns.spaces import AllColumns
from polysparse.expansion.whole import expand_columns
from polysparse.operator.products import Products
from polysparse.search.arguments import as_rows
from polysparse.search.functions import search_rows
from polysparse.search.rows import ValueRange
from polysparse.search.sums import TRANSFORMS, SummedRows, vectors_of
from search_checks import SCORES, random_rows, require_same
from search_checks import as_csr as as_scipy


class ReversedRows(SummedRows):
    """Rows in memory, whose sums are added up from the last row to the first."""

    def __init__(self, X):
        self.x = as_rows(X, 1)
        self.shape = self.x.shape

    def value_range(self):
        return ValueRange.of(self.x.data)

    def set_targets(self, targets, weights):
        self.of_rows = targets[::-1], weights[::-1]

    def sums(self, columns, products):
        assert isinstance(columns, AllColumns)
        x = self.x.take(np.arange(self.shape[0])[::-1])
        sums = {}
        for transform, names in products.items():
            vectors = np.hstack(vectors_of(names, *self.of_rows))
            changed = replace(x, data=TRANSFORMS[transform](x.data))
            sums[transform] = Products(columns, changed, 1).apply_transposed(vectors)
        self.products = products
        return sums

    def build(self, columns):
        self.n_built = columns.n_columns
        return expand_columns(columns, self.x, n_jobs=1, max_bytes=None)


DEFAULTS = {"degree": 2, "interaction_only": True, "score": "dot", "min_count": 1}


def assert_same(X, target, k, **how):
    expected = top_interactions(X, target, k, **how)
    rows = ReversedRows(X)
    found = search_rows(rows, target, k, **(DEFAULTS | how))
    require_same(found, expected)
    return rows


@loop_over("kind", ["binary", "positive", "signed"])
@loop_over("score", SCORES)
def test_scores_have_the_bits_of_rows_in_memory(kind, score):
    rng = np.random.default_rng(0)
    X = as_scipy(random_rows(rng, 70, 9, kind))
    for target in (rng.normal(size=70), rng.normal(size=(70, 3))):
        for weights in (None, rng.integers(0, 3, 70), rng.uniform(0.1, 2, 70)):
            for degree in ((1, 1), 2, (1, 2)):
                for k, min_count in ((1, 1), (7, 5), (1000, 1)):
                    how = {"degree": degree, "score": score, "min_count": min_count}
                    assert_same(X, target, k, sample_weight=weights, **how)
    assert_same(X, rng.normal(size=70), 5, score=score, interaction_only=False)


@loop_over("score", SCORES)
def test_groups_and_hierarchies(score):
    rng = np.random.default_rng(1)
    X, target = as_scipy(random_rows(rng, 60, 8, "positive")), rng.normal(size=60)
    for groups in (None, ["b", "a", None, "b", "c", "c", "a", None]):
        for hierarchy in ("weak", "strong"):
            for degree in (2, (1, 2)):
                how = {"hierarchy": hierarchy, "among": [1, 4, 5], "groups": groups}
                assert_same(X, target, 6, score=score, degree=degree, **how)


@loop_over("score", SCORES)
def test_ties_and_constant_columns(score):
    rng = np.random.default_rng(2)
    X = random_rows(rng, 50, 8, "binary")
    X[:, 5] = X[:, 2]
    X[:, 6] = X[:, 7] = 1.0
    X[:, 0] = 0
    X[3, 0] = 1
    target = rng.integers(-1, 2, 50)
    for k in (1, 3, 10, 40):
        assert_same(as_scipy(X), target, k, score=score, degree=(1, 2))
    if score == "dot":
        assert_same(as_scipy(X), np.zeros(50), 4)
    assert_same(as_scipy(X[:, :1]), target, 4, score=score)
    assert_same(as_scipy(np.zeros((50, 3))), target, 4, score=score)


@loop_over("score", SCORES)
def test_values_of_all_sizes(score):
    rng = np.random.default_rng(3)
    X = random_rows(rng, 80, 10, "signed") * 10.0 ** rng.integers(-9, 9, 10)
    target = rng.normal(size=80) * 1e-3
    rows = assert_same(as_scipy(X), target, 6, score=score)
    assert rows.n_built < 12


def test_few_columns_are_built_and_few_products_computed():
    rng = np.random.default_rng(4)
    X, target = random_rows(rng, 300, 40, "positive", 0.2), rng.normal(size=300)
    rows = assert_same(as_scipy(X), target, 10, score="correlation")
    assert rows.n_built == 10
    assert sorted(rows.products) == ["one", "square", "value"]
    rows = assert_same(as_scipy(X != 0), target, 10, score="correlation")
    assert list(rows.products) == ["value"]
    assert len(rows.products["value"]) == 4


def test_columns_are_bounded_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr("polysparse.search.sums.AT_A_TIME", 7)
    rng = np.random.default_rng(5)
    X = as_scipy(random_rows(rng, 60, 12, "signed"))
    for score in SCORES:
        assert_same(X, rng.normal(size=60), 9, score=score, among=[3, 4], hierarchy="weak")


def test_what_does_not_fit_is_refused(monkeypatch):
    rng = np.random.default_rng(6)
    X, target = as_scipy(random_rows(rng, 60, 12, "binary")), rng.normal(size=60)
    lower(monkeypatch, ALWAYS_GRANTED=0)
    set_available_memory(monkeypatch, 100)
    with pytest.raises(MemoryError, match=r"scores of all 66 columns would need .* Drop rare"):
        search_rows(ReversedRows(X), target, 3, **DEFAULTS)
    set_available_memory(monkeypatch, 8 * 66 * 10)
    with pytest.raises(MemoryError, match="the 66 columns that may be among the best would need"):
        search_rows(ReversedRows(X), target, 1000, **DEFAULTS)
    monkeypatch.setattr("polysparse.search.sums.MOST_TIES", 3)
    with pytest.raises(MemoryError, match="cannot be told from the k-th best"):
        search_rows(ReversedRows(X), np.zeros(60), 5, **DEFAULTS)
