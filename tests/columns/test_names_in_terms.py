"""Terms may name the features of a DataFrame, also in a transformer that was not fitted."""

import numpy as np
import pandas as pd
import pytest

from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialRidge,
    expand,
)

FRAME = pd.DataFrame({"v": [1.0, 2.0, 0.0], "w": [3.0, 0.0, 5.0], "x": [2.0, 7.0, 1.0]})
Y = np.array([1.0, 2.0, 4.0])


@pytest.mark.parametrize("kind", [PolynomialFeatures, HashedPolynomialFeatures])
def test_expand_with_a_transformer_that_was_not_fitted(kind):
    poly = kind(terms=["w:x"], include_bias=False)
    found = expand(FRAME, columns=poly)
    assert sorted(np.abs(found.sum(axis=1))) == [0.0, 5.0, 6.0]
    assert poly.groups is None
    fitted = kind(terms=["w:x"], include_bias=False).fit(FRAME)
    np.testing.assert_array_equal(
        expand(FRAME, columns=fitted).sum(axis=1), np.asarray(found.sum(axis=1))
    )


@pytest.mark.parametrize(
    "kind", [PolynomialFeatures, ObservedPolynomialFeatures, HashedPolynomialFeatures]
)
def test_a_model_with_a_transformer_that_was_not_fitted(kind):
    model = PolynomialRidge(columns=kind(terms=["w:x"])).fit(FRAME, Y)
    expected = PolynomialRidge(terms=["w:x"]).fit(FRAME, Y)
    np.testing.assert_allclose(model.predict(FRAME), expected.predict(FRAME))


def test_features_of_the_same_name_are_refused():
    frame = pd.DataFrame(np.ones((2, 3)), columns=["w", "x", "w"])
    with pytest.raises(ValueError, match="two features are named 'w'"):
        expand(frame, terms=["w:x"])
    with pytest.raises(ValueError, match="two features are named 'w'"):
        expand(frame, groups=[None, "a", None], terms=["a"])
    assert expand(frame, groups=["a", "b", "a"], terms=["a:b"]).shape == (2, 3)


def test_names_of_many_features_are_read_quickly():
    n = 100_000
    frame = pd.DataFrame(np.ones((1, n)), columns=[f"f{j}" for j in range(n)])
    assert expand(frame, groups=["a"] + [None] * (n - 1), terms=["a:f7"]).shape == (1, 2)


def test_groups_that_contradict_columns_are_shown():
    poly = PolynomialFeatures(groups=["a", "a", "b"]).fit(FRAME)
    with pytest.raises(ValueError, match=r"groups=.*'b', 'b'.* contradicts columns, which has"):
        expand(FRAME, groups=["a", "b", "b"], columns=poly)
    with pytest.raises(ValueError, match=r"terms=.*'w:x'.* contradicts columns, which has terms="):
        expand(FRAME, terms=["w:x"], columns=PolynomialFeatures(terms=["v:x"]).fit(FRAME))


def test_an_int_degree_is_the_maximum_of_the_terms_of_columns():
    poly = PolynomialFeatures(terms=["v:w", "v:w:x"])
    assert expand(FRAME, degree=3, columns=poly).shape == (3, 3)
    with pytest.raises(ValueError, match="degree=4 contradicts columns"):
        expand(FRAME, degree=4, columns=poly)


@pytest.mark.parametrize(
    "how",
    [
        {"groups": ["b", "a", "a"]},
        {"groups": {"a": 2, "b": 1}},
        {"terms": ["a:b"]},
        {"include_bias": False},
    ],
)
def test_what_changed_after_partial_fit_is_named(how):
    poly = ObservedPolynomialFeatures(groups=["a", "b", "b"], terms=None).partial_fit(FRAME)
    poly.set_params(**how)
    (name,) = how
    with pytest.raises(ValueError, match=f"{name} is different"):
        poly.partial_fit(FRAME)
