"""Groups and terms on dask arrays: the results of the whole matrix."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import polysparse
from csr_zoo import random_dense
from dask_blocks import everything, lazily
from groupings import GROUPINGS, all_terms, interleaved
from polysparse import (
    HashedPolynomialFeatures,
    MonomialBasis,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialRidge,
)

X = sparse.csr_array(random_dense(60, 7, 0.4))
SIZES = [0, 1, 0, 40, 18, 0, 1, 0]
Y = np.arange(60) % 7 + X.sum(axis=1)
KINDS = ["all", "observed", "hashed"]
GROUPED = {each.__name__: {"groups": each(7)} for each in GROUPINGS}
GROUPED["terms"] = {"groups": interleaved(7), "terms": all_terms(interleaved(7), 2)}
GROUPED["features as terms"] = {"terms": ["x0*x3", "x1:x2:x6"]}
every_grouping = pytest.mark.parametrize("grouping", GROUPED)


@pytest.mark.parametrize("kind", KINDS)
@every_grouping
def test_expand(grouping, kind):
    how = GROUPED[grouping] | {"columns": kind}
    whole = polysparse.expand(X, **how)
    for x in (X, X.toarray()):
        lazy = lazily(x, SIZES)
        found = polysparse.expand(lazy, **how)
        assert found.shape == whole.shape
        result = sparse.csr_array(found.compute(scheduler="threads"))
        assert everything(result) == everything(whole)
        blocks = [sparse.csr_array(block) for _, block in polysparse.iter_expand(lazy, **how)]
        stacked = sparse.vstack(blocks, format="csr")
        assert stacked.shape == whole.shape
        assert (stacked != whole).nnz == 0


@pytest.mark.parametrize(
    "transformer",
    [PolynomialFeatures(), ObservedPolynomialFeatures(), HashedPolynomialFeatures(n_columns=50)],
    ids=KINDS,
)
@every_grouping
def test_transformers(grouping, transformer):
    here, away = (clone(transformer).set_params(**GROUPED[grouping]) for _ in range(2))
    whole, rows = here.fit_transform(X), lazily(X, SIZES)
    result = away.fit(rows).transform(rows)
    assert everything(result.compute(scheduler="threads")) == everything(whole)
    if hasattr(here, "counts_"):
        np.testing.assert_array_equal(away.columns_, here.columns_)
        np.testing.assert_array_equal(away.counts_, here.counts_)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("transformer", [PolynomialFeatures(), HashedPolynomialFeatures()])
def test_terms_may_use_the_names_that_a_transformer_has(transformer):
    names = list("abcdefg")
    fitted = transformer.set_params(terms=["a:c", "b"]).fit(
        pd.DataFrame(X.toarray(), columns=names)
    )
    wanted = clone(transformer).set_params(terms=["x0:x2", "x1"]).fit_transform(X)
    found = fitted.transform(lazily(X, SIZES)).compute(scheduler="threads")
    assert everything(found) == everything(wanted)


@pytest.mark.parametrize(
    "kind", [PolynomialFeatures, ObservedPolynomialFeatures, HashedPolynomialFeatures]
)
def test_a_model_with_a_transformer_that_was_not_fitted_and_terms_by_name(kind):
    """A dask array has no names; feature_names of the model are those that terms use."""
    poly = kind(terms=["a:c", "b"])
    make = {"columns": poly, "feature_names": list("abcdefg"), "tol": 1e-14}
    found = PolynomialRidge(**make).fit(lazily(X, SIZES), Y)
    wanted = PolynomialRidge(terms=["x0:x2", "x1"], tol=1e-14).fit(X, Y)
    np.testing.assert_allclose(found.predict(X), wanted.predict(X), rtol=1e-6)
    assert poly.groups is None


def test_two_fits_with_groups_at_once_on_one_cluster(client):
    groupings = [{"groups": interleaved(7)}, {"groups": interleaved(7), "terms": ["g0*g1"]}]
    rows = lazily(X, SIZES)

    def fit(how):
        with client.as_current():
            return PolynomialRidge(tol=1e-14, **how).fit(rows, Y)

    with ThreadPoolExecutor(2) as pool:
        models = [*pool.map(fit, groupings)]
    for found, how in zip(models, groupings, strict=True):
        wanted = PolynomialRidge(tol=1e-14, **how).fit(X, Y)
        assert found.column_space_ == wanted.column_space_
        np.testing.assert_allclose(found.predict(X), wanted.predict(X), rtol=1e-6)


def test_other_groups_have_another_name():
    rows = lazily(X, SIZES)
    names = {polysparse.expand(rows, **how).name for how in GROUPED.values()}
    assert len(names) == len(GROUPED)
    model = PolynomialRidge(columns="all", groups=["a", "a", *"bcdef"]).fit(X, Y)
    first = model.predict(rows).name
    basis = MonomialBasis(7, groups=[*"abcde", "f", "f"], include_bias=False)
    model.column_space_ = type(model.column_space_)(basis)
    assert model.predict(rows).name != first


def test_groups_that_do_not_fit_are_refused_at_once():
    with pytest.raises(ValueError, match="groups has 6 labels, but there are 7 features"):
        polysparse.expand(lazily(X, SIZES), groups=list("aabbcc"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grouping", ["interleaved", "terms", "some_alone"])
def test_fits_and_importance(grouping, kind):
    make = {"tol": 1e-14, "columns": kind} | GROUPED[grouping]
    found = PolynomialRidge(**make).fit(lazily(X, SIZES), Y)
    wanted = PolynomialRidge(**make).fit(X, Y)
    assert found.column_space_ == wanted.column_space_
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(found.column_counts_, wanted.column_counts_)
    predicted = found.predict(lazily(X, SIZES)).compute(scheduler="threads")
    np.testing.assert_array_equal(predicted, found.predict(X))
    if kind != "hashed":
        ours, theirs = (model.importance() for model in (found, wanted))
        assert list(ours["name"]) == list(theirs["name"])
        np.testing.assert_allclose(ours["variance"], theirs["variance"], rtol=1e-5)


def test_classes_on_a_cluster(client):
    y, rows = (Y.mean() < Y).astype(int), lazily(X, SIZES)
    make = {"groups": interleaved(7), "terms": ["g0*g1"], "tol": 1e-10}
    wanted = PolynomialLogisticRegression(**make).fit(X, y)
    with client.as_current():
        found = PolynomialLogisticRegression(**make).fit(rows, y)
        probabilities = found.predict_proba(rows).compute()
    np.testing.assert_allclose(probabilities, wanted.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(
        found.importance()["variance"], wanted.importance()["variance"], rtol=1e-3
    )
