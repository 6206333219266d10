"""Hashed products with groups are counted by the features that occur."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import reference
from csr_zoo import random_csr
from groupings import GROUPINGS, all_terms
from polysparse import HashedPolynomialFeatures


@pytest.mark.parametrize("with_terms", [False, True])
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_candidates_are_the_products_that_occur(grouping, with_terms):
    labels = grouping(12)
    terms = all_terms(labels, 3) if with_terms else None
    x = random_csr(4, 12, density=0.3, seed=3)
    poly = HashedPolynomialFeatures(
        2 if with_terms else 3, groups=labels, terms=terms, n_columns=64
    ).fit(x)
    found = {each.features: each.n_rows for each in poly.candidates(x, np.arange(64))}
    how = {"groups": labels} | ({"terms": terms} if with_terms else {"degree": 3})
    dense, expected = x.toarray() != 0, {}
    for features in reference.monomials(12, **how):
        n_rows = int(dense[:, list(features)].all(axis=1).sum())
        if n_rows:
            expected[tuple(sorted(features))] = n_rows
    assert {tuple(sorted(features)): n for features, n in found.items()} == expected
    assert all(
        poly.column_of(each.features) == each.column for each in poly.candidates(x, np.arange(64))
    )


def test_features_that_do_not_occur_do_not_count():
    n = 40_000
    x = csr_array((np.ones(4), ([0, 0, 0, 0], [5, 9, 30_001, 39_999])), shape=(1, n))
    poly = HashedPolynomialFeatures(5, groups=[2] * (n // 2)).fit(x)
    assert poly.collisions(x).n_monomials == 16
