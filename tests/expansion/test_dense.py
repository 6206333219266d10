"""Dense input: Algorithm 1, in both orders."""

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures as SklearnPolynomialFeatures

import polysparse
import reference
from checks import DEGREES
from csr_zoo import random_dense
from looping import loop_over

LAYOUTS = {
    "C": lambda X: X,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda X: np.broadcast_to(X, X.shape),
    "unaligned": lambda X: (
        np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(X.dtype).reshape(X.shape)
    ),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("degree", DEGREES, ids=str)
@loop_over("layout", LAYOUTS)
def test_dense_obeys_the_law(layout, degree, interaction_only, dtype, order):
    X = random_dense(5, 4, 0.8, dtype=dtype)
    poly = polysparse.PolynomialFeatures(degree, interaction_only=interaction_only, order=order)
    result = poly.fit_transform(LAYOUTS[layout](X))
    expected, _ = reference.expand(X, degree, interaction_only)
    assert result.dtype == dtype
    assert result.flags.f_contiguous if order == "F" else result.flags.c_contiguous
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 6), (700, 1), (1300, 9)])
@pytest.mark.parametrize("degree", [1, 3, (2, 3), (3, 3)], ids=str)
def test_panels_of_rows_join_seamlessly(degree, shape, order):
    X = random_dense(*shape, 0.7)
    basis = polysparse.MonomialBasis(shape[1], degree)
    peer = SklearnPolynomialFeatures(degree, order=order)
    expected = peer.fit_transform(X) if shape[0] else np.empty((0, basis.n_columns))
    for n_jobs in (1, 2, 5):
        if shape[0]:
            poly = polysparse.PolynomialFeatures(degree, order=order, n_jobs=n_jobs)
            np.testing.assert_array_equal(poly.fit_transform(X), expected)
        result = polysparse.expand(X, degree, n_jobs=n_jobs)
        np.testing.assert_array_equal(result, expected)


def test_expand_takes_anything_array_like():
    expected = [[1.0, 2.0, 3.0, 4.0, 6.0, 9.0]]
    assert polysparse.expand([[2, 3]]).tolist() == expected
    assert polysparse.expand(np.array([[2, 3]], dtype=np.int8)).tolist() == expected
    assert polysparse.expand(np.array([[2, 3]], dtype=">f4")).dtype == np.float32
    assert polysparse.expand(np.array([[2, 3]], dtype=np.float16)).dtype == np.float32


def test_no_features_and_no_columns():
    assert polysparse.expand(np.zeros((3, 0)), 2).tolist() == [[1.0]] * 3
    none = polysparse.expand(np.ones((3, 2)), (3, 3), interaction_only=True, include_bias=False)
    assert none.shape == (3, 0)
