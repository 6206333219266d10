"""The arrays of CSR, read from every format of SciPy.

Nothing is summed and nothing is lost: entries of a row keep the order in which they are stored.
Indices are checked before compiled code follows them. What SciPy converts are arrays of our own,
which no other thread can change.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.matrix.checking import (
    Arrays,
    as_index,
    as_values,
    compressed_arrays,
    inspect_arrays,
    require_within,
)


def csr_arrays(X: Any, dtype: np.dtype[Any]) -> Arrays:
    """Return indptr, indices and data, converted to `dtype`. Indices are not yet inspected."""
    if X.format == "csr":
        return compressed_arrays(X, X.shape[0], "row", dtype)
    if X.format == "csc":
        return _from_csc(X, dtype)
    return _sort_by_row(X.shape[0], *_TRIPLES[X.format](X, dtype))


def _from_csc(X: Any, dtype: np.dtype[Any]) -> Arrays:
    indptr, indices, data = compressed_arrays(X, X.shape[1], "column", dtype)
    indices = indices.copy()
    inspect_arrays(indptr, indices, data, X.shape[0], "row")
    csr = sparse.csc_matrix((data, indices, indptr), shape=X.shape).tocsr()
    return csr.indptr, csr.indices, csr.data


def _sort_by_row(n_rows: int, row: NDArray[Any], col: NDArray[Any], data: NDArray[Any]) -> Arrays:
    """Sort triples by row. Triples of the same row keep their order.

    SciPy's own conversion would sum entries, in whatever order its sorting leaves them. A matrix
    with a column per triple has nothing to sum.
    """
    each = np.arange(len(data) + 1)
    by_row = sparse.csc_matrix((data, row, each), shape=(n_rows, len(data))).tocsr()
    return by_row.indptr, col[by_row.indices], by_row.data


# ---------------------------------------------- the other formats, as triples of row, column, value


def _from_coo(X: Any, dtype: np.dtype[Any]) -> Arrays:
    row, col, data = as_index(X.row, "X.row"), as_index(X.col, "X.col"), as_values(X.data, dtype)
    for index, name in ((row, "row"), (col, "col")):
        if len(index) != len(data):
            raise ValueError(
                f"X.{name} has {len(index)} entries, X.data has {len(data)}: "
                "the matrix is malformed."
            )
    row = row.copy()
    require_within(row, X.shape[0], "X.row", "row")
    require_within(col, X.shape[1], "X.col", "column")
    return row, col, data


def _from_bsr(X: Any, dtype: np.dtype[Any]) -> Arrays:
    shape = np.shape(X.data)
    if len(shape) != 3 or 0 in shape[1:] or X.shape[0] % shape[1] or X.shape[1] % shape[2]:
        raise ValueError(
            f"X.data has shape {shape}, which is not that of blocks of a matrix of shape "
            f"{X.shape}: the matrix is malformed."
        )
    height, width = shape[1:]
    arrays = compressed_arrays(X, X.shape[0] // height, "block row", dtype, n_dimensions=3)
    indptr, indices, data = arrays
    inspect_arrays(indptr, indices, data[:, 0, 0].copy(), X.shape[1] // width, "block column")
    n = int(indptr[-1])
    at_row = height * np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    at_column = width * indices[:n].astype(np.int64)
    row = at_row[:, None, None] + np.arange(height)[:, None]
    col = at_column[:, None, None] + np.arange(width)
    row, col = (np.broadcast_to(index, (n, height, width)).ravel() for index in (row, col))
    return row, col, data[:n].ravel()


def _from_dia(X: Any, dtype: np.dtype[Any]) -> Arrays:
    offsets, data = as_index(X.offsets, "X.offsets"), as_values(X.data, dtype, n_dimensions=2)
    if len(offsets) != len(data):
        raise ValueError("X.offsets and X.data differ in length: the matrix is malformed.")
    if len(np.unique(offsets)) < len(offsets):
        raise ValueError("X.offsets has an entry twice: the matrix is malformed.")
    data = data[:, : X.shape[1]]
    col = np.arange(data.shape[1])
    row = col - offsets[:, None].astype(np.int64)
    inside = (row >= 0) & (row < X.shape[0])
    return row[inside], np.broadcast_to(col, row.shape)[inside], data[inside]


def _from_lil(X: Any, dtype: np.dtype[Any]) -> Arrays:
    for lists, name in ((X.rows, "rows"), (X.data, "data")):
        if len(lists) != X.shape[0] or not all(isinstance(each, list) for each in lists):
            raise ValueError(
                f"X.{name} must hold {X.shape[0]} lists, one for each row: the matrix is malformed."
            )
    lengths = [len(columns) for columns in X.rows]
    if lengths != [len(values) for values in X.data]:
        raise ValueError("X.rows and X.data differ in length: the matrix is malformed.")
    if lengths != [len(set(columns)) for columns in X.rows]:
        raise ValueError("X.rows has a column twice in a row: the matrix is malformed.")
    col = as_index(_gather(chain.from_iterable(X.rows)), "X.rows")
    require_within(col, X.shape[1], "X.rows", "column")
    data = as_values(_gather(chain.from_iterable(X.data)), dtype)
    return np.repeat(np.arange(X.shape[0]), lengths), col, data


def _from_dok(X: Any, dtype: np.dtype[Any]) -> Arrays:
    keys = list(X.keys())
    if not all(isinstance(key, tuple) and len(key) == 2 for key in keys):
        raise ValueError("X has a key that is not (row, column): the matrix is malformed.")
    row = as_index(_gather(key[0] for key in keys), "the rows of X")
    col = as_index(_gather(key[1] for key in keys), "the columns of X")
    require_within(row, X.shape[0], "the rows of X", "row")
    require_within(col, X.shape[1], "the columns of X", "column")
    return row, col, as_values(_gather(X.values()), dtype)


def _gather(values: Any) -> NDArray[Any]:
    """Return an array of an iterable; integers if it is empty."""
    found = list(values)
    return np.array(found) if found else np.empty(0, dtype=np.int64)


_TRIPLES: dict[str, Callable[[Any, np.dtype[Any]], Arrays]] = {
    "coo": _from_coo,
    "bsr": _from_bsr,
    "dia": _from_dia,
    "lil": _from_lil,
    "dok": _from_dok,
}
