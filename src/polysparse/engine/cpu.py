"""The processor's engine: every verb as a call of the compiled module, on every core."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from polysparse import thresholds
from polysparse.engine.descriptions import (
    Basis,
    Columns,
    CsrArrays,
    CsrRows,
    HashFunction,
    Int64s,
)

try:
    from polysparse import _kernels
    from polysparse._kernels import (
        SVMLIGHT_BYTES_PER_ROW,
        SVMLIGHT_BYTES_PER_VALUE,
        CsrFault,
        SvmlightFault,
        SvmlightText,
        Tally,
        svmlight_layout,
        svmlight_skip,
        write_svmlight,
    )
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "polysparse's compiled module is missing: was the package built? "
        "Install it with 'pip install .' from its source folder."
    ) from error

__all__ = [
    "SVMLIGHT_BYTES_PER_ROW",
    "SVMLIGHT_BYTES_PER_VALUE",
    "CsrFault",
    "SvmlightFault",
    "SvmlightText",
    "Tally",
    "count",
    "count_row_lengths",
    "fill",
    "fill_dense",
    "hash_tuples",
    "inspect",
    "observe",
    "observing_bytes",
    "rank",
    "svmlight_layout",
    "svmlight_skip",
    "unrank",
    "write_svmlight",
]


# -------------------------------------------------------------------------------- descriptions


@lru_cache(maxsize=16)
def _native_basis(basis: Basis, has_columns: bool = True) -> _kernels.Basis:
    """The kernels' twin of a basis. Without columns, only the sizes of rows can be asked for."""
    ends = basis.degree_ends() if has_columns else [0] * (basis.highest + 1)
    return _kernels.Basis(
        basis.n_features,
        basis.lowest,
        basis.highest,
        basis.interaction_only,
        basis.include_bias,
        ends,
    )


def _sizing_basis(columns: Columns) -> _kernels.Basis:
    """The basis as far as sizes depend on it. Hashed columns may have one that no index reaches."""
    return _native_basis(columns.basis, has_columns=columns.kind != "hashed")


# Look-ups are as large as the columns they are for, so they must not outlive them.
_lookups: WeakKeyDictionary[Any, _kernels.Lookup] = WeakKeyDictionary()


def _lookup(columns: Any) -> _kernels.Lookup:
    """Where a column of the basis stands among the chosen ones."""
    found = _lookups.get(columns)
    if found is None:
        found = _lookups[columns] = _kernels.Lookup(_native_basis(columns.basis), columns.ranks)
    return found


def _hasher(function: HashFunction) -> _kernels.Hasher:
    return _kernels.Hasher(function.n_columns, function.alternate_sign, function.seed)


# ------------------------------------------------------------------------------------- on tuples


def rank(basis: Basis, tuples: Int64s) -> Int64s:
    """Columns of rising tuples, given as rows that are filled up with -1."""
    out = np.empty(len(tuples), dtype=np.int64)
    _native_basis(basis).rank(tuples, out)
    return out


def unrank(basis: Basis, columns: Int64s) -> Int64s:
    """The tuples of columns, as rows that are filled up with -1."""
    out = np.empty((len(columns), basis.highest), dtype=np.int64)
    _native_basis(basis).unrank(columns, out)
    return out


def hash_tuples(function: HashFunction, tuples: Int64s) -> tuple[Int64s, Int64s]:
    """Columns that rising tuples are hashed to, and the signs of their values."""
    columns, signs = (np.empty(len(tuples), dtype=np.int64) for _ in range(2))
    _hasher(function).hash(tuples, columns, signs)
    return columns, signs


# ----------------------------------------------------------------------------------- on matrices


def inspect(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
    n_minor: int,
    n_threads: int,
) -> tuple[CsrFault, int, bool, int]:
    """The first fault of CSR arrays and where it is; whether indices rise; zeros that are stored.

    Nothing is read past the end of an array, whatever the arrays hold.
    """
    return _kernels.inspect(indptr, indices, data, n_minor, n_threads)


def count_row_lengths(indptr: NDArray[Any]) -> tuple[tuple[int, int], ...]:
    """The distinct numbers of stored values in a row, rising, each with how many rows have it."""
    return tuple(_kernels.count_row_lengths(indptr))


def count(columns: Columns, x: CsrRows) -> Int64s:
    """Outputs of all rows before each row, and in all, before columns fall away or together."""
    offsets = np.empty(x.shape[0] + 1, dtype=np.int64)
    _kernels.fill_row_offsets(_sizing_basis(columns), x.indptr, offsets)
    return offsets


def fill(columns: Columns, x: CsrRows, rows: slice, out: CsrArrays, n_threads: int) -> int:
    """Write indptr, indices and data of some rows.

    Returns the number of stored values, or -1 if the arrays are too short for them. If all columns
    of the basis are filled, indptr and indices have one dtype; else indices are int32.
    """
    row_offsets = x.indptr[rows.start : rows.stop + 1]
    return _FILLS[columns.kind](columns, row_offsets, x, out, n_threads, thresholds.TASK_OUTPUTS)


def _fill_all(
    columns: Columns, offsets: NDArray[Any], x: CsrRows, out: CsrArrays, *how: int
) -> int:
    basis, (indptr, indices, data) = _native_basis(columns.basis), out
    _kernels.fill_row_offsets(basis, offsets, indptr)
    nnz = int(indptr[-1])
    filled = indptr, indices[:nnz], data[:nnz]
    _kernels.fill(basis, offsets, x.indices, x.data, x.shape[1], *filled, *how)
    return nnz


def _fill_chosen(
    columns: Columns, offsets: NDArray[Any], x: CsrRows, out: CsrArrays, *how: int
) -> int:
    basis = _native_basis(columns.basis)
    return _kernels.fill_chosen(basis, _lookup(columns), offsets, x.indices, x.data, *out, *how)


def _fill_hashed(columns: Any, offsets: NDArray[Any], x: CsrRows, out: CsrArrays, *how: int) -> int:
    basis = _sizing_basis(columns)
    return _kernels.fill_hashed(basis, _hasher(columns), offsets, x.indices, x.data, *out, *how)


_FILLS: dict[str, Callable[..., int]] = {
    "all": _fill_all,
    "chosen": _fill_chosen,
    "hashed": _fill_hashed,
}


def fill_dense(columns: Columns, x: NDArray[Any], out: NDArray[Any], n_threads: int) -> None:
    """Write every element of a dense expansion with all columns."""
    _kernels.fill_dense(_native_basis(columns.basis), x, out, n_threads)


# --------------------------------------------------------------------------------- what occurs


def observe(tally: Tally, basis: Basis, x: CsrRows, rows: slice, most: int, n_threads: int) -> bool:
    """Add the columns that occur in some rows to a tally.

    Returns False, and leaves the tally as it was, if more than `most` columns are found or memory
    runs out.
    """
    row_offsets = x.indptr[rows.start : rows.stop + 1]
    native, task = _native_basis(basis), thresholds.TASK_OUTPUTS
    return tally.observe(native, row_offsets, x.indices, most, n_threads, task)


def observing_bytes(basis: Basis, index_size: int, n_threads: int) -> int:
    """Bytes that `observe` may need for each stored value, beside what it finds."""
    return _kernels.observing_bytes(_native_basis(basis), index_size, n_threads)
