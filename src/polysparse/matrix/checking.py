"""Checks of index arrays, which SciPy's compiled code and ours would follow anywhere."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.engine.contiguous import as_contiguous_aligned
from polysparse.machine import threads_for

INDEX_DTYPES = (np.dtype(np.int32), np.dtype(np.int64))


class Inspected(NamedTuple):
    """What the look at CSR arrays has shown, if they are not malformed."""

    increasing: bool  # indices strictly increase within every row
    stored_zeros: int
    finite: bool


Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # indptr, indices, data; or row, col, data


def as_index(array: Any, argument: str) -> NDArray[Any]:
    """Read a contiguous and aligned array of int32 or int64; a copy only if it must be one."""
    array = np.asarray(array)
    return as_contiguous_aligned(array, index_dtype_of(array, argument))


def index_dtype_of(array: Any, argument: str) -> np.dtype[Any]:
    """Return the dtype in which indices are read; raise ValueError if they cannot be indices."""
    if array.ndim != 1:
        raise ValueError(f"{argument} has {array.ndim} dimensions: the matrix is malformed.")
    if array.dtype in INDEX_DTYPES:
        found: np.dtype[Any] = array.dtype
        return found
    if array.dtype.kind not in "iu":
        raise ValueError(f"{argument} has dtype {array.dtype}: it must hold integers.")
    return np.dtype(np.int64)


def as_values(array: Any, dtype: np.dtype[Any], n_dimensions: int = 1) -> NDArray[Any]:
    """Read a contiguous and aligned array of values; a copy only if it must be one."""
    values = np.asarray(array, dtype)
    if values.ndim != n_dimensions:
        raise ValueError(f"X.data has {values.ndim} dimensions: the matrix is malformed.")
    return as_contiguous_aligned(values)


def compressed_arrays(
    X: Any, n_major: int, major: str, dtype: np.dtype[Any], n_dimensions: int = 1
) -> Arrays:
    """Return indptr, indices and data of CSR, CSC or BSR, with consistent lengths.

    indptr is a copy: it says where to write, so nobody may change it after it was inspected.
    """
    indptr, indices = as_index(X.indptr, "X.indptr").copy(), as_index(X.indices, "X.indices")
    data = as_values(X.data, dtype, n_dimensions)
    require_lengths(indptr, indices, data, n_major, major)
    return indptr, indices, data


def require_lengths(indptr: Any, indices: Any, data: Any, n_major: int, major: str) -> None:
    """Raise ValueError unless arrays are as long as their matrix says."""
    if len(indptr) != n_major + 1:
        raise ValueError(
            f"X.indptr has {len(indptr)} entries for {n_major} {major}s: it must have "
            f"{n_major + 1}. The matrix is malformed."
        )
    if len(indices) != len(data):
        raise ValueError(
            f"X.indices has {len(indices)} entries, X.data has {len(data)}: they must be as many. "
            "The matrix is malformed."
        )


def inspect_arrays(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
    n_minor: int,
    minor: str,
    n_jobs: int | None = None,
) -> Inspected:
    """Look at CSR arrays, every one once; raise ValueError if they are malformed."""
    n_threads = threads_for(n_jobs, len(data))
    seen = cpu.inspect(indptr, indices, data, n_minor, n_threads)
    fault, where = seen[:2]
    if fault != cpu.CsrFault.none:
        refuse_fault(fault, where, indptr, indices, len(data), n_minor, minor)
    return Inspected(*seen[2:])


def refuse_fault(
    fault: cpu.CsrFault,
    where: int,
    indptr: Any,
    indices: Any,
    n_stored: int,
    n_minor: int,
    minor: str,
) -> NoReturn:
    """Raise ValueError for the first fault of arrays."""
    if fault == cpu.CsrFault.first_offset:
        problem = f"X.indptr begins with {indptr[0]}: it must begin with 0."
    elif fault == cpu.CsrFault.falling_offset:
        problem = (
            f"X.indptr falls from {indptr[where]} to {indptr[where + 1]} at entry {where + 1}."
        )
    elif fault == cpu.CsrFault.last_offset:
        problem = f"X.indptr ends with {indptr[where]}, but only {n_stored} values are stored."
    else:
        _refuse_index(indices, where, n_minor, "X.indices", minor)
    raise ValueError(f"{problem} The matrix is malformed.")


def require_within(index: NDArray[Any], limit: int, argument: str, axis: str) -> None:
    """Raise ValueError for an index that is not in [0, limit)."""
    outside = (index < 0) | (index >= limit)
    if outside.any():
        _refuse_index(index, int(outside.argmax()), limit, argument, axis)


def _refuse_index(index: Any, where: int, limit: int, argument: str, axis: str) -> NoReturn:
    raise ValueError(
        f"{argument}[{where}] is {index[where]}, but X has {limit} {axis}s, numbered from 0. "
        "The matrix is malformed."
    )
