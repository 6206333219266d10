"""What the products of an operator are: those of SciPy with the built matrix, up to rounding."""

import numpy as np
from scipy import sparse
from sklearn.base import clone

import polysparse

# Rounding, relative to the product of absolute values: a few units for each term of a short sum.
TOLERANCE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}


def built(X, *degree, columns=None, **parameters):
    """The expansion as float64, and the same with absolute values and no signs that cancel."""
    unsigned = columns
    if hasattr(columns, "alternate_sign"):
        unsigned = clone(columns).set_params(alternate_sign=False)
    whole = polysparse.expand(X, *degree, columns=columns, **parameters)
    size = polysparse.expand(abs(X), *degree, columns=unsigned, **parameters)
    return tuple(sparse.csr_array(each).astype(np.float64) for each in (whole, size))


def law_of(law, columns=slice(None)):
    """The same two for some columns of the reference, given as (values, pattern)."""
    values, stored = (array[:, columns] for array in law)
    whole = sparse.csr_array(np.where(stored, values, 0).astype(np.float64))
    return whole, abs(whole)


def weights(n, k, seed=0):
    """Vectors without structure, as columns."""
    return np.random.default_rng(seed).uniform(-1, 1, (n, k))


def assert_close(result, expected, size, dtype):
    """Equal up to rounding; what is infinite or undefined in one is so in the other."""
    assert result.shape == expected.shape
    assert result.dtype == dtype
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(result), finite)
    error = np.abs(result[finite].astype(np.float64) - expected[finite])
    # The second term is for results below the smallest normal number.
    bound = TOLERANCE[dtype] * size[finite] + np.finfo(dtype).tiny
    assert (error <= bound).all(), (error / bound).max()


def assert_multiplies_like(operator, expansion, ks=(1, 2, 3, 10)):
    """Every product of the operator is that of the expansion, given as (itself, its size)."""
    A, size = expansion
    dtype, (n_rows, n_columns) = operator.dtype, A.shape
    assert operator.shape == A.shape
    for k in ks:
        W, R = (weights(n, k, seed=k).astype(dtype) for n in (n_columns, n_rows))
        AW, AR = A @ W.astype(np.float64), A.T @ R.astype(np.float64)
        AW_size, AR_size = size @ np.abs(W), size.T @ np.abs(R)
        results = {"matmat": operator.matmat(W), "rmatmat": operator.rmatmat(R)}
        assert_close(results["matmat"], AW, AW_size, dtype)
        assert_close(results["rmatmat"], AR, AR_size, dtype)
        assert_close(operator @ W, AW, AW_size, dtype)
        assert_close(operator.T @ R, AR, AR_size, dtype)
    w, r = W[:, 0], R[:, 0]  # the first of many, alone
    assert_close(operator.matvec(w), AW[:, 0], AW_size[:, 0], dtype)
    assert_close(operator.rmatvec(r), AR[:, 0], AR_size[:, 0], dtype)
    assert_close(operator @ w, AW[:, 0], AW_size[:, 0], dtype)
    assert_close(operator.T @ r, AR[:, 0], AR_size[:, 0], dtype)
    assert_close(operator.H.matvec(r), AR[:, 0], AR_size[:, 0], dtype)


def product_bits(operator, k=3):
    """All products with some vectors, to be compared bit for bit."""
    n_rows, n_columns = operator.shape
    w, r = weights(n_columns, 1)[:, 0], weights(n_rows, 1)[:, 0]
    W, R = weights(n_columns, k), weights(n_rows, k)
    results = operator @ w, operator.T @ r, operator @ W, operator.T @ R
    return [(result.shape, result.dtype, result.tobytes()) for result in results]
