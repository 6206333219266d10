"""CSR without a fault is not validated by scikit-learn; what has one is, in its words."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures as SklearnPolynomialFeatures

from checks import bits
from column_kinds import X
from inside import forbid_validation
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
)

KINDS = (PolynomialFeatures, ObservedPolynomialFeatures, HashedPolynomialFeatures)
every_kind = pytest.mark.parametrize("kind", KINDS)


def with_value(value, dtype=np.float64):
    matrix = X.astype(dtype)
    matrix.data[5] = value
    return matrix


@every_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_csr_without_a_fault_is_not_validated_again(kind, container, dtype, monkeypatch):
    matrix = container(X.astype(dtype))
    poly = kind(2).fit(matrix)
    coo = matrix.tocoo()
    with sklearn.config_context(assume_finite=True):
        expected = poly.transform(coo)  # is validated
    with monkeypatch.context() as patch:
        forbid_validation(patch)
        found = poly.transform(matrix)
        with pytest.raises(AssertionError, match="scikit-learn validates"):
            poly.transform(coo)
    assert bits(found) == bits(expected)
    assert type(found) is type(expected)


@every_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_in_the_words_of_scikit_learn(kind, value, dtype):
    peer, poly = SklearnPolynomialFeatures(2).fit(X), kind(2).fit(X)
    bad = with_value(value, dtype)
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)") as theirs:
        peer.transform(bad)
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)") as ours:
        poly.transform(bad)
    first = str(theirs.value).splitlines()[0]
    assert str(ours.value).splitlines()[0] == first


@every_kind
def test_values_that_are_not_finite_pass_where_scikit_learn_lets_them(kind):
    poly = kind(2).fit(X)
    with sklearn.config_context(assume_finite=True):
        assert np.isnan(poly.transform(with_value(np.nan)).data).any()


def test_large_values_are_finite():
    """The sum of the values is not, which is where scikit-learn looks first."""
    large = sparse.csr_array([[1e308, 1e308, 1e-300]])
    assert PolynomialFeatures(1).fit(large).transform(large).data.tolist() == [1, *large.data]


@every_kind
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (X[:, :5], "X has 5 features, but .* is expecting 7 features as input"),
        (X[:0], r"Found array with 0 sample\(s\)"),
        (sparse.csr_array((3, 0)), "0 feature"),
        (X.astype(complex), "Complex data not supported|real numbers"),
    ],
    ids=["features", "rows", "no features", "complex"],
)
def test_shapes_and_types_are_refused_in_the_words_of_scikit_learn(kind, matrix, message):
    with pytest.raises(ValueError, match=message):
        kind(2).fit(X).transform(matrix)


@every_kind
def test_missing_names_are_warned_of(kind):
    frame = pd.DataFrame(X.toarray(), columns=list("abcdefg"))
    poly = kind(2).fit(frame)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        poly.transform(X)


@every_kind
def test_malformed_arrays_are_refused(kind):
    bad = X.copy()
    bad.indices[3] = 7
    with pytest.raises(ValueError, match=r"X\.indices\[3\] is 7, but X has 7 columns"):
        kind(2).fit(X).transform(bad)
