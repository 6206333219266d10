"""Groups and terms against other libraries: scikit-learn, and formulaic where it is installed."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn import preprocessing

import polysparse
from csr_zoo import random_dense
from groupings import GROUPINGS, all_terms
from looping import loop_over


def is_allowed(exponents, labels):
    """Whether a monomial has at most one member of each group of several, and to the power of 1."""
    members = {label: [j for j, other in enumerate(labels) if other == label] for label in labels}
    of_several = (group for label, group in members.items() if label and len(group) > 1)
    return all(exponents[group].sum() <= 1 for group in of_several)


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", [2, 3, (2, 3)], ids=str)
@pytest.mark.parametrize("as_input", [sparse.csr_array, np.asarray])
@loop_over("grouping", GROUPINGS)
def test_sklearn_with_forbidden_columns_dropped(grouping, as_input, degree, interaction_only):
    dense = np.round(64 * random_dense(30, 7, 0.5)) / 64  # exact in any order of multiplication
    labels = grouping(7)
    how = {"degree": degree, "interaction_only": interaction_only}
    theirs = preprocessing.PolynomialFeatures(**how).fit(dense)
    ours = polysparse.PolynomialFeatures(**how, groups=labels)
    result = ours.fit_transform(as_input(dense))
    result = result.toarray() if sparse.issparse(result) else result
    allowed = {tuple(p): c for c, p in enumerate(theirs.powers_) if is_allowed(p, labels)}
    columns = [allowed.pop(tuple(exponents)) for exponents in ours.powers_]
    assert not allowed
    np.testing.assert_array_equal(result, theirs.transform(dense)[:, columns])
    if polysparse.MonomialBasis(7, groups=labels).groups.order is None:
        assert columns == sorted(columns)  # the order is theirs, too


@pytest.fixture(scope="module")
def formulaic():
    return pytest.importorskip("formulaic", reason="formulaic is not installed")


@pytest.fixture(scope="module")
def people():
    """Three variables with levels of which all occur, and a number."""
    import pandas as pd

    rng = np.random.default_rng(0)
    levels = {"color": ["blue", "green", "red"], "size": list("LMS"), "city": ["Oslo", "Rome"]}
    frame = {name: rng.choice(each, 200) for name, each in levels.items()}
    return pd.DataFrame({**frame, "age": rng.integers(18, 80, 200).astype(float)})


def interactions(terms):
    encoder = preprocessing.OneHotEncoder()
    transformers = [
        ("levels", encoder, ["color", "size", "city"]),
        ("as is", "passthrough", ["age"]),
    ]
    return polysparse.InteractionTransformer(transformers, terms=terms)


FORMULAS = [
    "color:size",
    "size:color",
    "color:size:city",
    "color*size",
    "color + city:age",
    "(color + size + city)**2",
    "(color + size + city + age)**3",
    "color:(size + age)",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_have_the_columns_of_formulaic(formulaic, people, formula):
    theirs = formulaic.model_matrix(
        f"0 + {formula}", people, output="sparse", ensure_full_rank=False
    )
    as_ours = [
        re.sub(r"\[(?:T\.)?(\w+)\]", r"_\1", name) for name in theirs.model_spec.column_names
    ]
    columns = {frozenset(name.split(":")): column for column, name in enumerate(as_ours)}
    ours = interactions([formula])
    result = ours.fit_transform(people)
    names = [frozenset(name.split(" ")) for name in ours.get_feature_names_out()]
    assert sorted(map(sorted, names)) == sorted(map(sorted, columns))
    expected = theirs.__wrapped__.toarray()[:, [columns[name] for name in names]]
    np.testing.assert_array_equal(result.toarray(), expected)


def test_all_terms_are_all_products_of_groups():
    """Terms of every tuple of groups have the columns that groups without terms have."""
    labels = ["a"] * 3 + ["b"] * 2 + ["c"] * 4
    X = sparse.csr_array(random_dense(50, 9, 0.4))
    how = {"groups": labels, "include_bias": False}
    every = polysparse.MonomialBasis(9, 3, interaction_only=True, **how)
    named = polysparse.MonomialBasis(9, terms=all_terms(labels, 3), **how)
    assert named.n_columns == every.n_columns
    tuples = named.unrank(np.arange(named.n_columns))
    expected = polysparse.expand(X, 3, interaction_only=True, **how).toarray()
    result = polysparse.expand(X, terms=all_terms(labels, 3), **how).toarray()
    np.testing.assert_array_equal(result, expected[:, every.rank(tuples)])
