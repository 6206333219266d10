"""Groups and terms against other libraries: scikit-learn; others where they are installed.

pip install formulaic glum vowpalwabbit
"""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn import preprocessing

import polysparse
from csr_zoo import random_dense
from groupings import GROUPINGS, all_terms, labels_of
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
    groups = grouping(7)
    how = {"degree": degree, "interaction_only": interaction_only}
    theirs = preprocessing.PolynomialFeatures(**how).fit(dense)
    ours = polysparse.PolynomialFeatures(**how, groups=groups)
    result = ours.fit_transform(as_input(dense))
    result = result.toarray() if sparse.issparse(result) else result
    allowed = {
        tuple(p): c for c, p in enumerate(theirs.powers_) if is_allowed(p, labels_of(groups))
    }
    columns = [allowed.pop(tuple(exponents)) for exponents in ours.powers_]
    assert not allowed
    np.testing.assert_array_equal(result, theirs.transform(dense)[:, columns])
    if polysparse.MonomialBasis(7, groups=groups).groups.order is None:
        assert columns == sorted(columns)  # the order is theirs, too


@pytest.fixture(scope="module")
def formulaic():
    return pytest.importorskip("formulaic", reason="formulaic is not installed")


@pytest.fixture(scope="module")
def glum():
    return pytest.importorskip("glum", reason="glum is not installed")


@pytest.fixture(scope="module")
def vowpalwabbit():
    return pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed")


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


GLUM_ALPHA = 0.01  # of the mean loss, where our penalties are of the sum


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("formula", ["color:size", "color + size + color:size", "color:size:city"])
@pytest.mark.parametrize("family", ["normal", "binomial"])
def test_models_have_the_coefficients_of_glum(glum, people, family, formula):
    """The same penalized likelihood, with a coefficient for every combination of levels."""
    y = people["age"] / 10 if family == "normal" else (people["age"] > 40).astype(int)
    theirs = glum.GeneralizedLinearRegressor(
        family=family,
        formula=formula,
        alpha=GLUM_ALPHA,
        drop_first=False,
        gradient_tol=1e-10,
        fit_intercept=True,
    ).fit(people.astype(dict.fromkeys(("color", "size", "city"), "category")), y)
    if family == "normal":
        ours = polysparse.PolynomialRidge(alpha=GLUM_ALPHA * len(people), tol=1e-14)
    else:
        ours = polysparse.PolynomialLogisticRegression(C=1 / (GLUM_ALPHA * len(people)), tol=1e-14)
    encoder = preprocessing.OneHotEncoder().fit(people[["color", "size", "city"]])
    groups = polysparse.groups_from(encoder)
    X = encoder.transform(people[["color", "size", "city"]])
    ours.set_params(groups=groups, terms=[formula]).fit(X, y)
    names = ours.column_space_.basis.names(None, encoder.get_feature_names_out())
    as_ours = [re.sub(r"\[(?:T\.)?(\w+)\]", r"_\1", name) for name in theirs.feature_names_]
    columns = {frozenset(name.split(":")): column for column, name in enumerate(as_ours)}
    order = [columns.pop(frozenset(name.split(" "))) for name in names]
    assert not columns
    np.testing.assert_allclose(ours.coef_.ravel(), theirs.coef_[order], atol=1e-5)
    np.testing.assert_allclose(np.ravel(ours.intercept_), theirs.intercept_, atol=1e-5)


VW_INTERACTIONS = {
    "-q ab": ["a:b"],
    "-q ab -q bc": ["a:b", "b:c"],
    "--interactions abc": ["a:b:c"],
    "-q ab --interactions abc": ["a:b", "a:b:c"],
}


@pytest.mark.parametrize("options", VW_INTERACTIONS)
def test_rows_have_as_many_features_as_in_vowpal_wabbit(vowpalwabbit, options):
    """Namespaces are groups of which a row has up to three members; VW keeps main effects."""
    sizes = {"a": 5, "b": 4, "c": 3}
    X = sparse.csr_array(random_dense(40, 12, 0.5))
    terms = [*sizes, *VW_INTERACTIONS[options]]
    ours = polysparse.expand(X, groups=sizes, terms=terms, include_bias=False)
    labels = [f"{name}{j}" for name, size in sizes.items() for j in range(size)]
    workspace = vowpalwabbit.Workspace(f"{options} --noconstant --quiet -b 24")
    counts = []
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        present = [labels[j] for j in X.indices[start:stop]]
        spaces = (" ".join([name, *(x for x in present if x[0] == name)]) for name in sizes)
        example = workspace.example(f"1 |{' |'.join(spaces)}")
        workspace.learn(example)
        counts.append(example.get_feature_number())
        workspace.finish_example(example)
    workspace.finish()
    np.testing.assert_array_equal(np.diff(ours.indptr), counts)


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
