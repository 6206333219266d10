"""top_interactions of matrices on a GPU: what is found in main memory, bit for bit."""

import numpy as np
import pytest
from scipy import sparse

from csr_zoo import random_csr
from gpu_matrices import as_cupy
from polysparse import top_interactions
from search_checks import SCORES, require_same

pytestmark = pytest.mark.gpu

X = random_csr(90, 8, 0.4)
BINARY = sparse.csr_array((X != 0).astype(float))
RNG = np.random.default_rng(0)
Y = RNG.normal(size=90)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("rows", ["signed", "binary", "float32"])
def test_searches_have_the_bits_of_main_memory(rows, score):
    x = {"signed": X, "binary": BINARY, "float32": X.astype(np.float32)}[rows]
    for degree in (2, (1, 2)):
        for target in (Y, np.column_stack([Y, Y**2])):
            for more in ({}, {"sample_weight": RNG.integers(0, 3, 90), "min_count": 5}):
                how = {"degree": degree, "score": score, **more}
                found = top_interactions(as_cupy(x), target, 6, **how)
                require_same(found, top_interactions(x, target, 6, **how))


def test_search_of_groups_and_powers():
    groups = ["a", "b", "a", None, "b", "c", "c", None]
    for interaction_only in (True, False):
        how = {"groups": groups, "interaction_only": interaction_only}
        found = top_interactions(as_cupy(X), Y, 5, **how)
        require_same(found, top_interactions(X, Y, 5, **how))


def test_targets_of_a_search_may_be_on_the_gpu():
    import cupy

    weights = cupy.asarray(np.abs(Y))
    found = top_interactions(as_cupy(X), cupy.asarray(Y), 5, sample_weight=weights)
    require_same(found, top_interactions(X, Y, 5, sample_weight=np.abs(Y)))


def test_what_a_search_on_a_gpu_refuses():
    with pytest.raises(
        ValueError, match=r"degree=\(2, 3\) is searched .* X is on a GPU.*; or call X\.get\(\)"
    ):
        top_interactions(as_cupy(X), Y, degree=3)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        top_interactions(as_cupy(sparse.csr_array([[np.nan, 1.0]])), [1.0])
