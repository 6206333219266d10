"""Matrices of SciPy as containers on a GPU, with exactly the same arrays; and back."""

import warnings
from types import SimpleNamespace

import numpy as np


def _arrays(X):
    import cupy

    native = (
        np.asarray(a).astype(a.dtype.newbyteorder("=")) for a in (X.indptr, X.indices, X.data)
    )
    return [cupy.asarray(np.ascontiguousarray(a)) for a in native]


def as_cupy(X, kind="csr_matrix"):
    from cupyx.scipy import sparse

    out = getattr(sparse, kind)((0, 0))
    out.indptr, out.indices, out.data = _arrays(X)
    out._shape = X.shape
    return out


def as_torch(X):
    import torch

    indptr, indices, data = _arrays(X)
    parts = (torch.from_dlpack(a) for a in (indptr, indices.astype(indptr.dtype), data))
    with warnings.catch_warnings():  # that nothing is checked
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(*parts, size=X.shape, check_invariants=False)


def as_plain(X):
    indptr, indices, data = _arrays(X)
    return SimpleNamespace(indptr=indptr, indices=indices, data=data, shape=X.shape)


def arrays_of(X):
    """indptr, indices and data in main memory."""
    if hasattr(X, "crow_indices"):
        return [a.cpu().numpy() for a in (X.crow_indices(), X.col_indices(), X.values())]
    return [a.get() if hasattr(a, "get") else a for a in (X.indptr, X.indices, X.data)]


def assert_same_bits(on_gpu, here):
    """The same shape, dtypes and bits; NaN is NaN, whatever its bits."""
    assert tuple(on_gpu.shape) == here.shape
    for name, a, b in zip(
        ("indptr", "indices", "data"), arrays_of(on_gpu), arrays_of(here), strict=True
    ):
        assert a.dtype == b.dtype, (name, a.dtype, b.dtype)
        assert a.shape == b.shape, (name, a.shape, b.shape)
        if name == "data":
            np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
            a, b = (np.where(np.isnan(each), 0, each) for each in (a, b))
        if a.tobytes() != b.tobytes():
            where = np.flatnonzero(a.view(f"i{a.itemsize}") != b.view(f"i{b.itemsize}"))
            raise AssertionError((name, len(where), where[:5], a[where[:5]], b[where[:5]]))
