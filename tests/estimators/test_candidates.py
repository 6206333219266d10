"""Reading hashed columns back: products by name, and the products that a column may stand for."""

import numpy as np
import pytest
from scipy import sparse

import reference
from csr_zoo import random_dense
from groupings import GROUPINGS, all_terms
from polysparse import HashedPolynomialFeatures

X = sparse.csr_array(random_dense(25, 6, 0.3))
NAMES = ["age", "dose", "sex", "site", "week", "arm"]


def fitted_with_names(**parameters):
    pandas = pytest.importorskip("pandas")
    return HashedPolynomialFeatures(**parameters).fit(pandas.DataFrame(X.toarray(), columns=NAMES))


# ------------------------------------------------------------------------------------- candidates


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", [2, 3, (2, 3)], ids=str)
@pytest.mark.parametrize("n_columns", [1, 5, 2**20])
def test_all_columns_have_all_products_that_occur(n_columns, degree, interaction_only):
    poly = HashedPolynomialFeatures(degree, interaction_only=interaction_only, n_columns=n_columns)
    _, stored = reference.expand(X.toarray(), degree, interaction_only, True)
    tuples = reference.monomials(6, degree, interaction_only, True)
    expected = {t: n for t, n in zip(map(tuple, tuples), stored.sum(axis=0), strict=True) if n}
    found = poly.candidates(
        X, np.unique(poly.transform(X).indices) if n_columns > 5 else np.arange(n_columns)
    )
    assert {each.features: each.n_rows for each in found} == expected
    assert len(found) == len(expected)
    for each in found:
        assert poly.column_of(each.features, return_sign=True) == (each.column, each.sign)


def test_candidates_are_those_of_the_columns_asked_for_and_sorted():
    poly = HashedPolynomialFeatures(n_columns=6)
    every = poly.candidates(X, range(6))
    some = poly.candidates(X, [4, 1, 4])
    assert some == [each for each in every if each.column in (1, 4)]
    assert [(e.column, -e.n_rows) for e in some] == sorted((e.column, -e.n_rows) for e in some)
    assert poly.candidates(X, 4) == [each for each in every if each.column == 4]


def test_the_candidates_of_a_column_explain_its_values():
    poly = HashedPolynomialFeatures(n_columns=6)
    result, dense = poly.transform(X).toarray(), X.toarray()
    for column in range(6):
        parts = [e.sign * dense[:, e.features].prod(axis=1) for e in poly.candidates(X, column)]
        np.testing.assert_allclose(result[:, column], np.sum(parts, axis=0), atol=1e-12)


def test_candidates_have_the_names_of_their_features():
    poly = HashedPolynomialFeatures(n_columns=1)
    full = np.ones((1, 6))
    names = {each.features: each.name for each in poly.candidates(full, 0)}
    assert (names[()], names[0,], names[2, 2], names[0, 1]) == ("1", "x0", "x2^2", "x0 x1")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(full, columns=NAMES)
    names = {e.features: e.name for e in fitted_with_names(n_columns=1).candidates(frame, 0)}
    assert (names[2, 2], names[0, 1]) == ("sex^2", "age dose")


def test_candidates_among_very_many_features():
    wide = sparse.csr_array(([1.0, 2.0], [5, 10**12], [0, 2]), shape=(1, 2**40))
    poly = HashedPolynomialFeatures(3)
    (found,) = poly.candidates(wide, poly.column_of((5, 10**12, 10**12)))
    assert (found.features, found.n_rows) == ((5, 10**12, 10**12), 1)


def test_a_column_without_candidates():
    poly = HashedPolynomialFeatures(2, include_bias=False)
    assert poly.candidates(X, poly.column_of((0, 1)) ^ 1) == []
    assert poly.candidates(sparse.csr_array((3, 4)), [0, 1]) == []


@pytest.mark.parametrize("columns", [8, -1, [0, 8]])
def test_columns_that_do_not_exist_are_refused(columns):
    with pytest.raises(ValueError, match=r"column -?\d is not in .*columns \[0, 8\)"):
        HashedPolynomialFeatures(n_columns=8).candidates(X, columns)


def test_candidates_of_other_features_than_the_fitted_are_refused():
    with pytest.raises(ValueError, match="X has 6 features"):
        HashedPolynomialFeatures().fit(np.eye(3)).candidates(X, 0)


# ------------------------------------------------------------------------------------------ names


def test_a_product_can_be_given_by_the_names_of_its_features():
    poly = fitted_with_names()
    assert poly.column_of(("age", "dose")) == poly.column_of((0, 1))
    assert poly.column_of(("dose", "age"), return_sign=True) == poly.column_of(
        (1, 0), return_sign=True
    )
    several = poly.column_of([("age", "dose"), ("sex",), (), (0, "arm")])
    assert several.tolist() == poly.column_of([(0, 1), (2,), (), (0, 5)]).tolist()
    array = np.array([["age", "dose"], ["sex", "sex"]])
    for names in (array, array.astype(object)):
        assert poly.column_of(names).tolist() == poly.column_of([[0, 1], [2, 2]]).tolist()
    assert poly.column_of(np.array([[3, 1], [2, -1]])).tolist() == [
        poly.column_of((3, 1)),
        poly.column_of((2,)),
    ]


def test_names_that_are_not_features_are_refused():
    poly = fitted_with_names()
    with pytest.raises(
        ValueError, match="'weight' names no single feature: feature_names_in_ has 6"
    ):
        poly.column_of(("age", "weight"))
    with pytest.raises(ValueError, match=r"for one feature, pass \('age',\)"):
        poly.column_of("age")


def test_names_are_not_known_without_a_fit_on_names():
    for poly in (HashedPolynomialFeatures(), HashedPolynomialFeatures().fit(X)):
        with pytest.raises(ValueError, match="'age' names no single feature: names are known only"):
            poly.column_of(("age", "dose"))


def test_a_name_of_two_features_is_refused():
    poly = HashedPolynomialFeatures().fit(X)
    poly.feature_names_in_ = np.array(["a", "b", "a", "c", "d", "e"], dtype=object)
    with pytest.raises(ValueError, match=r"'a' names no single feature: .* has it more than once"):
        poly.column_of(("a", "b"))


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("terms", [False, True], ids=["groups", "terms"])
def test_candidates_with_groups_are_the_products_that_occur(grouping, terms):
    groups = grouping(6)
    how = {"groups": groups, "terms": (all_terms(groups, 2) or None) if terms else None}
    poly = HashedPolynomialFeatures(n_columns=2**20, **how).fit(X)
    tuples = reference.monomials(6, **how)
    stored = reference.expand(X.toarray(), **how)[1]
    expected = {t: n for t, n in zip(tuples, stored.sum(axis=0).tolist(), strict=True) if n}
    columns = np.unique(poly.column_of([t for t in tuples if t] or [()]))
    every = np.union1d(columns, poly.column_of(()))
    found = poly.candidates(X, every)
    assert {c.features: c.n_rows for c in found} == expected
    assert all((c.column, c.sign) == poly.column_of(c.features, return_sign=True) for c in found)
    assert poly.collisions(X).n_monomials == len(expected)
