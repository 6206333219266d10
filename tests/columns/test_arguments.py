"""The argument `columns`: ranks that rise, or an estimator that has columns."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import polysparse
import reference
from checks import assert_is_restricted, bits
from column_kinds import SPACES, X
from polysparse import ObservedPolynomialFeatures


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            [3, 1],
            r"columns must increase, but columns\[1\] is 1, after 3: sort them",
        ),
        ([3, 3], r"columns must increase, but columns\[1\] is 3, after 3"),
        ([0, 36], r"column 36 is not in the basis, which has columns \[0, 36\)"),
        ([-1, 0], "column -1 is not in the basis"),
        ([2**70], "is not in the basis"),
        ([0.5], "columns must be integers"),
        ([True, False], "columns must be integers"),
        ("x0", "columns must be .*increasing column numbers"),
        ([[0, 1]], "one-dimensional"),
    ],
)
@pytest.mark.parametrize("call", [polysparse.expand, polysparse.iter_expand, polysparse.plan])
def test_ranks_that_cannot_be_right(call, columns, message):
    with pytest.raises(ValueError, match=message):
        call(X, columns=columns)


def test_ranks_are_not_changed_and_may_be_read_only():
    columns = np.array([0, 3, 9], dtype=np.int64)
    columns.flags.writeable = False
    assert polysparse.expand(X, columns=columns).shape == (60, 3)
    assert polysparse.expand(X, columns=columns.astype(np.uint8)).shape == (60, 3)
    assert polysparse.expand(X, columns=np.repeat(columns, 2)[::2]).shape == (60, 3)


def test_observed_is_its_ranks_and_its_transform():
    poly = SPACES["observed"]()
    result = polysparse.expand(X, columns=poly)
    assert bits(result) == bits(poly.transform(X))
    assert bits(result) == bits(polysparse.expand(X, columns=poly.columns_))


def test_hashed_is_its_transform():
    poly = SPACES["hashed"]()
    assert bits(polysparse.expand(X, columns=poly)) == bits(poly.transform(X))


def test_observed_with_other_degrees_than_the_default():
    poly = ObservedPolynomialFeatures((2, 3), interaction_only=True, include_bias=False).fit(X)
    result = polysparse.expand(X, columns=poly)
    law = reference.expand(X.toarray(), (2, 3), True, False)
    assert_is_restricted(result, law, poly.columns_)
    again = polysparse.expand(X, (2, 3), interaction_only=True, include_bias=False, columns=poly)
    assert bits(again) == bits(result)


@pytest.mark.parametrize("space", ["observed", "hashed"])
@pytest.mark.parametrize(
    "given", [{"degree": 3}, {"interaction_only": True}, {"include_bias": False}], ids=str
)
@pytest.mark.parametrize("call", [polysparse.expand, polysparse.iter_expand, polysparse.plan])
def test_what_contradicts_the_estimator_is_refused(call, space, given):
    name = next(iter(given))
    message = f"{name}=.* contradicts columns, .*: leave {name} out, or set it in columns"
    with pytest.raises(ValueError, match=message):
        call(X, columns=SPACES[space](), **given)


def test_an_estimator_of_other_features_is_refused():
    poly = ObservedPolynomialFeatures().fit(np.eye(3))
    with pytest.raises(ValueError, match=r"X has 7 features, but .* was fitted with 3 features"):
        polysparse.expand(X, columns=poly)


def test_an_estimator_that_was_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        polysparse.expand(X, columns=ObservedPolynomialFeatures())


def test_what_has_no_columns_is_refused():
    with pytest.raises(TypeError, match=r"columns must be .* or a PolynomialFeatures.* got"):
        polysparse.expand(np.eye(2), columns=ObservedPolynomialFeatures)
