"""top_interactions on dask arrays: what is found in memory, bit for bit."""

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

from csr_zoo import random_csr
from dask_blocks import lazily
from polysparse import top_interactions
from search_checks import SCORES, require_same

X = random_csr(120, 9, 0.4)
SIZES = [0, 1, 0, 40, 78, 0, 1, 0]
RNG = np.random.default_rng(0)
Y = RNG.normal(size=120)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("degree", [(1, 1), 2, (1, 2)])
def test_blocks_are_searched_as_the_whole_is(degree, score):
    rows = lazily(X, SIZES)
    weights = RNG.integers(0, 3, 120)
    for target in (Y, np.column_stack([Y, Y**2])):
        for more in ({}, {"sample_weight": weights}, {"min_count": 20, "interaction_only": False}):
            how = {"degree": degree, "score": score, **more}
            expected = top_interactions(X, target, 7, **how)
            require_same(top_interactions(rows, target, 7, **how), expected)


def test_groups_names_and_hierarchies():
    how = {
        "groups": ["a", "b", "a", None, "b", "c", "c", None, "a"],
        "hierarchy": "weak",
        "among": ["c", 4],
        "feature_names": list("abcdefghi"),
    }
    found = top_interactions(lazily(X.toarray(), SIZES), Y, 5, **how)
    require_same(found, top_interactions(X, Y, 5, **how))
    assert found.features == top_interactions(X, Y, 5, **how).features


def test_targets_may_be_dask_arrays():
    rows = lazily(X, SIZES)
    target, weights = da.from_array(Y, chunks=13), da.from_array(np.abs(Y), chunks=50)
    found = top_interactions(rows, target, 4, sample_weight=weights)
    require_same(found, top_interactions(X, Y, 4, sample_weight=np.abs(Y)))


def test_numbers_of_rows_need_not_be_known():
    rows = lazily(X, SIZES, known=False)
    require_same(top_interactions(rows, Y, 4), top_interactions(X, Y, 4))


def test_workers_compute_the_sums(client):
    rows = lazily(X, [30, 50, 40], known=False)
    for score in SCORES:
        found = top_interactions(rows, Y, 6, score=score)
        require_same(found, top_interactions(X, Y, 6, score=score))


def test_what_a_search_of_blocks_cannot_do():
    rows = lazily(X, SIZES)
    with pytest.raises(
        ValueError,
        match=r"degree=\(2, 3\) is searched prefix by prefix, which needs X in memory, but X is a "
        r"Dask array. Search up to degree=2 there, .*; or call X\.compute\(\)",
    ):
        top_interactions(rows, Y, degree=3)
    with pytest.raises(ValueError, match="k must be a positive int"):
        top_interactions(rows, Y, 0)
    with pytest.raises(ValueError, match="target must have shape"):
        top_interactions(rows, Y[1:])
    infinite = sparse.csr_array([[np.inf, 1.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match="NaN or infinite") as caught:
        top_interactions(lazily(infinite, [1, 1]), [1.0, 2.0])
    assert caught.value.__notes__ == ["X is X.blocks[0] of a dask array here."]
