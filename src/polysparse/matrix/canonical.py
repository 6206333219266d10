"""The single entry point for input: turn any matrix into arrays that an engine can trust."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.engine import cpu
from polysparse.machine import threads_for
from polysparse.matrix.row_profile import RowProfile

VALUE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
INDEX_DTYPES = (np.dtype(np.int32), np.dtype(np.int64))


@dataclass(frozen=True)
class CanonicalCsr:
    """A checked CSR matrix: columns increase within every row, and no zero is stored.

    The arrays may be the caller's own; they are only read.
    """

    shape: tuple[int, int]
    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    is_array: bool  # whether X is of SciPy's array family (csr_array), not its matrix family

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the values."""
        return self.data.dtype

    @property
    def profile(self) -> RowProfile:
        """Row lengths, on which the size of the expansion depends."""
        return RowProfile(cpu.count_row_lengths(self.indptr))

    def as_sparse(self) -> CanonicalCsr:
        """Return self."""
        return self

    def rows(self, rows: slice) -> CanonicalCsr:
        """Return some of the rows. Values and indices are views, not copies."""
        offsets = self.indptr[rows.start : rows.stop + 1]
        stored = slice(int(offsets[0]), int(offsets[-1]))
        return replace(
            self,
            shape=(rows.stop - rows.start, self.shape[1]),
            indptr=offsets - offsets[0],
            indices=self.indices[stored],
            data=self.data[stored],
        )


@dataclass(frozen=True)
class CanonicalDense:
    """A two-dimensional float array, aligned, with any strides."""

    values: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the values."""
        return self.values.dtype

    @property
    def profile(self) -> RowProfile:
        """Row lengths, on which the size of the expansion depends."""
        return RowProfile.of_dense(self.shape)

    def as_sparse(self) -> CanonicalCsr:
        """Return the matrix as CSR, without its zeros."""
        return as_canonical_csr(sparse.csr_matrix(self.values))


Canonical = CanonicalCsr | CanonicalDense


def value_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the floating-point dtype in which values of `dtype` are expanded."""
    dtype = dtype.newbyteorder("=")
    if dtype in VALUE_DTYPES:
        return dtype
    if dtype.kind in "biu" or dtype == np.longdouble:
        return np.dtype(np.float64)
    if dtype == np.float16:
        return np.dtype(np.float32)
    raise ValueError(
        f"X has dtype {dtype}, which cannot be expanded: real numbers are needed. "
        "Convert it first, with X.astype(float) or X.real."
    )


def as_canonical(X: Any, n_jobs: int | None = None) -> Canonical:
    """Read a matrix of any kind; the result is sparse if X is sparse."""
    if _is_sparse_frame(X):
        X = X.sparse.to_coo()
    return as_canonical_csr(X, n_jobs) if sparse.issparse(X) else as_canonical_dense(X)


def _is_sparse_frame(X: Any) -> bool:
    """Return whether X is a pandas DataFrame whose columns are all sparse with fill value 0."""
    dtypes = list(getattr(X, "dtypes", [])) if hasattr(X, "sparse") else []
    return bool(dtypes) and all(getattr(dtype, "fill_value", None) == 0 for dtype in dtypes)


def as_canonical_dense(X: Any) -> CanonicalDense:
    """Read anything array-like as a dense matrix."""
    if isinstance(X, np.ma.MaskedArray):
        raise ValueError("X is a masked array: give X.filled(value), with the value you mean.")
    array = np.asarray(X)
    _require_two_dimensions(array)
    array = array.astype(value_dtype(array.dtype), copy=False)
    itemsize = array.itemsize
    if not array.flags.aligned or any(stride % itemsize for stride in array.strides):
        array = array.copy()
    return CanonicalDense(array)


def as_canonical_csr(X: Any, n_jobs: int | None = None) -> CanonicalCsr:
    """Read any SciPy sparse matrix or array. X itself is never changed."""
    if not sparse.issparse(X):
        raise TypeError(
            f"X must be a SciPy sparse matrix or array; got {type(X).__name__}. "
            "Convert it with scipy.sparse.csr_array(X)."
        )
    _require_two_dimensions(X)
    is_array = not sparse.isspmatrix(X)
    dtype = value_dtype(X.dtype)
    n_rows, n_columns = map(int, X.shape)
    if X.format != "csr":
        X = as_checked_csr(X)
    indptr, indices, data = _compressed_arrays(X, n_rows, "row")
    data = data.astype(dtype, copy=False)
    rising, stored_zeros = inspect_arrays(indptr, indices, data, n_columns, "column", n_jobs)
    if not rising or stored_zeros:
        own = sparse.csr_matrix((data, indices, indptr), shape=(n_rows, n_columns), copy=True)
        own.sum_duplicates()
        own.eliminate_zeros()
        indptr, indices, data = own.indptr, own.indices, own.data
    return CanonicalCsr((n_rows, n_columns), indptr, indices, data, is_array)


def _require_two_dimensions(X: Any) -> None:
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, rows and features; got {X.ndim} (shape {X.shape})."
        )


def as_checked_csr(X: Any) -> Any:
    """Convert another sparse format to CSR after checking its indices, which SciPy trusts."""
    _require_two_dimensions(X)
    if X.format == "csc":
        indptr, indices, data = _compressed_arrays(X, X.shape[1], "column")
        inspect_arrays(indptr, indices, np.zeros(len(data), np.float32), X.shape[0], "row")
    elif X.format == "bsr":
        block = X.data.shape[1:]
        if len(block) != 2 or 0 in block:
            raise ValueError(f"X.data has shape {X.data.shape}: the matrix is malformed.")
        n_block_rows, n_block_columns = X.shape[0] // block[0], X.shape[1] // block[1]
        indptr, indices, data = _compressed_arrays(X, n_block_rows, "block row")
        zeros = np.zeros(len(data), np.float32)
        inspect_arrays(indptr, indices, zeros, n_block_columns, "block column")
    else:
        if X.format == "lil" and list(map(len, X.rows)) != list(map(len, X.data)):
            raise ValueError("X.rows and X.data differ in length: the matrix is malformed.")
        if X.format == "dia" and len(X.offsets) != len(X.data):
            raise ValueError("X.offsets and X.data differ in length: the matrix is malformed.")
        X = X.tocoo()
        for axis, name, index in ((0, "row", X.row), (1, "column", X.col)):
            index = _as_index(index, f"X.{name[:3]}")
            if len(index) != len(X.data):
                raise ValueError(
                    f"X.{name[:3]} has {len(index)} entries, X.data has {len(X.data)}: "
                    "the matrix is malformed."
                )
            outside = (index < 0) | (index >= X.shape[axis])
            if outside.any():
                _refuse_index(index, int(outside.argmax()), X.shape[axis], f"X.{name[:3]}", name)
    return X.tocsr()


def _compressed_arrays(X: Any, n_major: int, major: str) -> tuple[NDArray[Any], ...]:
    """Return indptr, indices and data as contiguous arrays whose lengths are consistent."""
    indptr, indices = _as_index(X.indptr, "X.indptr"), _as_index(X.indices, "X.indices")
    data = np.ascontiguousarray(X.data)
    if len(indptr) != n_major + 1:
        raise ValueError(
            f"X.indptr has {len(indptr)} entries for {n_major} {major}s: it must have "
            f"{n_major + 1}. The matrix is malformed."
        )
    if data.ndim != (3 if X.format == "bsr" else 1):
        raise ValueError(f"X.data has {data.ndim} dimensions: the matrix is malformed.")
    if len(indices) != len(data):
        raise ValueError(
            f"X.indices has {len(indices)} entries, X.data has {len(data)}: they must be as many. "
            "The matrix is malformed."
        )
    return indptr, indices, data


def _as_index(array: Any, argument: str) -> NDArray[Any]:
    array = np.asarray(array)
    if array.ndim != 1:
        raise ValueError(f"{argument} has {array.ndim} dimensions: the matrix is malformed.")
    if array.dtype not in INDEX_DTYPES:
        if array.dtype.kind not in "iu":
            raise ValueError(f"{argument} has dtype {array.dtype}: it must hold integers.")
        array = array.astype(np.int64)
    return np.ascontiguousarray(array)


def inspect_arrays(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
    n_minor: int,
    minor: str,
    n_jobs: int | None = None,
) -> tuple[bool, int]:
    """Return whether indices increase and how many zeros are stored; raise if malformed."""
    n_threads = threads_for(n_jobs, len(data))
    fault, where, rising, stored_zeros = cpu.inspect(indptr, indices, data, n_minor, n_threads)
    if fault == cpu.CsrFault.none:
        return rising, stored_zeros
    if fault == cpu.CsrFault.first_offset:
        problem = f"X.indptr begins with {indptr[0]}: it must begin with 0."
    elif fault == cpu.CsrFault.falling_offset:
        problem = (
            f"X.indptr falls from {indptr[where]} to {indptr[where + 1]} at entry {where + 1}."
        )
    elif fault == cpu.CsrFault.last_offset:
        problem = f"X.indptr ends with {indptr[where]}, but only {len(data)} values are stored."
    else:
        _refuse_index(indices, where, n_minor, "X.indices", minor)
    raise ValueError(f"{problem} The matrix is malformed.")


def _refuse_index(index: NDArray[Any], where: int, limit: int, argument: str, axis: str) -> None:
    raise ValueError(
        f"{argument}[{where}] is {index[where]}, but X has {limit} {axis}s, numbered from 0. "
        "The matrix is malformed."
    )
