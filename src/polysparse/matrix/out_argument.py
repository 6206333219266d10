"""Read the argument `out`: memory of the caller for a result, as in NumPy."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.matrix.output import CsrBuffers

CSR_ARRAYS = ("indptr", "indices", "data")

# Attributes of SciPy's matrices that are arrays.
_ARRAYS = (*CSR_ARRAYS, "row", "col", "offsets")


def as_dense_out(out: Any, shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return `out`, if a dense result can be written to it."""
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype:
        raise ValueError(f"out must be an array of shape {shape} and dtype {dtype}; got {_of(out)}")
    _require_writable(out, "out")
    if not (out.flags.c_contiguous or out.flags.f_contiguous):
        raise ValueError("out must be contiguous, in C or Fortran order.")
    return out


def as_csr_out(
    out: Any, n_rows: int, nnz: int, index_dtype: np.dtype[Any], dtype: np.dtype[Any]
) -> CsrBuffers:
    """Return the arrays of `out`, if a CSR result fits into them.

    Those of a matrix may be the beginning of larger ones, which were given for a larger result
    before: then all of these can be written to.
    """
    if sparse.issparse(out) and out.format == "csr":
        arrays = [_whole(getattr(out, name)) for name in CSR_ARRAYS]
    elif isinstance(out, tuple) and len(out) == 3:
        arrays = list(out)
    else:
        raise ValueError(
            f"out must be a CSR matrix, or arrays (indptr, indices, data), because the result is "
            f"sparse; got {_of(out)}"
        )
    lengths, dtypes = (n_rows + 1, nnz, nnz), (index_dtype, index_dtype, dtype)
    for name, array, length, wanted in zip(CSR_ARRAYS, arrays, lengths, dtypes, strict=True):
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != wanted:
            raise ValueError(
                f"{name} of out must be an array of one dimension and of dtype {wanted} for this "
                f"result; got {_of(array)}"
            )
        if len(array) < length:
            raise ValueError(
                f"{name} of out has {len(array):,} entries, and the result needs {length:,}. Pass "
                "longer arrays, or no out."
            )
        _require_writable(array, f"{name} of out")
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} of out must be contiguous.")
    for first, second in combinations(arrays, 2):
        _require_apart(first, second, "another array of out")
    return CsrBuffers(*arrays)


def require_apart_from(out: Any, X: Any) -> None:
    """Raise ValueError if `out` shares memory with X, which is never changed."""
    is_tuple = isinstance(out, tuple)
    for array in _arrays_of(out):
        for read in _arrays_of(X):
            _require_apart(array if is_tuple else _whole(array), read, "X")


def _arrays_of(X: Any) -> list[NDArray[Any]]:
    found = X if isinstance(X, tuple) else [X, *(getattr(X, name, None) for name in _ARRAYS)]
    return [array for array in found if isinstance(array, np.ndarray)]


def _whole(array: Any) -> Any:
    """Return the array that this one is the beginning of, or else this one itself."""
    base = getattr(array, "base", None)
    is_beginning = (
        isinstance(base, np.ndarray)
        and base.ndim == array.ndim == 1
        and base.dtype == array.dtype
        and base.flags.c_contiguous
        and base.__array_interface__["data"] == array.__array_interface__["data"]
    )
    return base if is_beginning else array


def _require_apart(written: NDArray[Any], read: NDArray[Any], what: str) -> None:
    if np.may_share_memory(written, read):
        raise ValueError(f"out shares memory with {what}: pass separate memory.")


def _require_writable(array: NDArray[Any], name: str) -> None:
    if not (array.flags.writeable and array.flags.aligned):
        raise ValueError(f"{name} must be writable and aligned.")


def _of(found: Any) -> str:
    """Describe what was given instead."""
    if isinstance(found, np.ndarray):
        return f"one of shape {found.shape} and dtype {found.dtype}."
    return f"{type(found).__name__}."
