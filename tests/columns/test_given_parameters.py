"""Parameters beside `columns`: what was given counts, what was left out does not."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures as ScikitLearns

import polysparse
from checks import bits
from csr_zoo import random_dense
from inside import before, lower
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures, PolynomialFeatures

X = sparse.csr_array(random_dense(20, 5, 0.5))
CALLS = [polysparse.expand, polysparse.iter_expand, polysparse.plan]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("own", "given", "message"),
    [
        ({"degree": 3}, {"degree": 2}, "degree=2 contradicts columns, which has degree=3"),
        ({"degree": (2, 3)}, {"degree": 3}, r"degree=3 .*, which has degree=\(2, 3\)"),
        ({"interaction_only": True}, {"interaction_only": False}, "interaction_only=False contra"),
        ({"include_bias": False}, {"include_bias": True}, "include_bias=True contradicts"),
    ],
)
@pytest.mark.parametrize(
    "estimator", [PolynomialFeatures, ObservedPolynomialFeatures, HashedPolynomialFeatures]
)
def test_a_contradiction_is_refused_even_if_it_is_the_default(estimator, own, given, message, call):
    with pytest.raises(ValueError, match=message):
        call(X, columns=estimator(**own).fit(X), **given)


@pytest.mark.parametrize("call", CALLS)
def test_the_same_parameters_may_be_given_and_may_be_left_out(call):
    own = {"degree": 3, "interaction_only": True, "include_bias": False}
    poly = HashedPolynomialFeatures(**own, n_columns=16)
    call(X, columns=poly)
    call(X, columns=poly, **own)
    call(X, columns=poly, degree=(1, 3))  # the bias is a parameter of its own


@pytest.mark.parametrize("call", CALLS)
def test_the_defaults_are_shown_as_they_are(call):
    shown = str(inspect.signature(call))
    assert "degree: 'Degree' = 2," in shown
    assert "interaction_only: 'bool' = False, include_bias: 'bool' = True" in shown


@pytest.mark.parametrize("is_fitted", [False, True])
def test_an_estimator_of_all_columns_means_all_its_columns(is_fitted):
    poly = PolynomialFeatures((2, 3), interaction_only=True)
    if is_fitted:
        poly.fit(X)
    expected = polysparse.expand(X, (2, 3), interaction_only=True)
    assert bits(polysparse.expand(X, columns=poly)) == bits(expected)
    assert polysparse.plan(X, columns=poly).nnz == expected.nnz
    ((_, block),) = polysparse.iter_expand(X, columns=poly)
    assert bits(block) == bits(expected)
    dense = polysparse.expand(X.toarray(), columns=poly)
    np.testing.assert_array_equal(dense, expected.toarray())


def test_an_estimator_of_all_columns_of_other_features_is_refused():
    poly = PolynomialFeatures().fit(np.eye(3))
    with pytest.raises(
        ValueError, match=r"X has 5 features, but Poly.* was fitted with 3 features"
    ):
        polysparse.expand(X, columns=poly)


def test_an_estimator_of_scikit_learn_is_refused():
    with pytest.raises(
        TypeError, match=r"columns must be .* HashedPolynomialFeatures of polysparse"
    ):
        polysparse.expand(X, columns=ScikitLearns())


@pytest.mark.parametrize("n_jobs", [1, 2, None])
def test_a_plan_takes_a_number_of_threads(n_jobs):
    poly = HashedPolynomialFeatures(n_columns=16)
    assert polysparse.plan(X, columns=poly, n_jobs=n_jobs).nnz == poly.transform(X).nnz
    assert polysparse.plan(X, n_jobs=n_jobs).nnz == polysparse.expand(X).nnz


def test_the_threads_of_a_plan_are_those_that_count(monkeypatch):
    used = set()
    before(monkeypatch, "fill rows", lambda *arguments: used.add(arguments[-1]))
    lower(monkeypatch, OUTPUTS_PER_THREAD=1)
    polysparse.plan(X, columns=[0, 1], n_jobs=3)
    assert used == {3}
    with pytest.raises(ValueError, match="n_jobs=0 has no meaning"):
        polysparse.plan(X, n_jobs=0)


KINDS = {
    "all": PolynomialFeatures,
    "observed": ObservedPolynomialFeatures,
    "hashed": HashedPolynomialFeatures,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_name_of_a_kind_is_a_transformer_with_its_defaults(kind):
    poly = KINDS[kind](3, interaction_only=True, include_bias=False).fit(X)
    given = {"degree": 3, "interaction_only": True, "include_bias": False, "columns": kind}
    expected = poly.transform(X)
    assert bits(polysparse.expand(X, **given)) == bits(expected)
    ((_, block),) = polysparse.iter_expand(X, **given)
    assert bits(block) == bits(expected)
    planned = polysparse.plan(X, **given)
    assert (planned.shape, planned.nnz) == (expected.shape, expected.nnz)
    operator = polysparse.PolynomialOperator(X, **given)
    assert operator.columns == poly.column_space(5)
    assert bits(operator.tocsr()) == bits(expected)


def test_observed_columns_of_a_dense_matrix():
    expected = ObservedPolynomialFeatures().fit_transform(X)
    result = polysparse.expand(X.toarray(), columns="observed")
    np.testing.assert_array_equal(result.toarray(), expected.toarray())


@pytest.mark.parametrize("call", [*CALLS, polysparse.PolynomialOperator])
def test_an_unknown_kind_is_refused(call):
    with pytest.raises(ValueError, match=r"columns must be .*\"observed\", .* got .some.."):
        call(X, columns="some")
