"""Assertions on results of a GPU that several tests share."""

import numpy as np

import polysparse
from gpu_matrices import as_cupy, assert_same_bits
from polysparse import PolynomialOperator
from products import assert_close, built, weights


def assert_expands_alike(X, as_container=as_cupy, **parameters):
    """The expansion of a container has the bits of that of X."""
    assert_same_bits(
        polysparse.expand(as_container(X), **parameters),
        polysparse.expand(X, **parameters),
    )


def assert_multiplies_alike(X, ks=(1, 3, 4), **parameters):
    """Products are those with the expansion, up to rounding, with the same bits each time."""
    import cupy

    A, size = built(X, **parameters)
    on_gpu = PolynomialOperator(as_cupy(X), **parameters)
    assert on_gpu.shape == A.shape
    for k in ks:
        W, R = (weights(n, k, seed=k).astype(X.dtype) for n in A.shape[::-1])
        found = on_gpu.matmat(cupy.asarray(W)), on_gpu.rmatmat(cupy.asarray(R))
        again = on_gpu @ cupy.asarray(W), on_gpu.T @ cupy.asarray(R)
        assert_close(found[0].get(), A @ W.astype(float), size @ np.abs(W), X.dtype)
        assert_close(found[1].get(), A.T @ R.astype(float), size.T @ np.abs(R), X.dtype)
        assert all((a == b).all() for a, b in zip(found, again, strict=True))
    assert_close(
        on_gpu.matvec(cupy.asarray(W[:, 0])).get(),
        A @ W[:, 0].astype(float),
        size @ np.abs(W[:, 0]),
        X.dtype,
    )
