"""Inner products of the rows of two expansions on a GPU."""

from __future__ import annotations

import cupy

from polysparse.columns.spaces import ColumnSpace
from polysparse.gpu import engine
from polysparse.gpu.arguments import basis_struct, grouping_struct, kind_of
from polysparse.gpu.canonical import DeviceCsr, rows_of
from polysparse.gpu.compiling import kernel, launch
from polysparse.gpu.containers import Array
from polysparse.gpu.expansion import expand_columns
from polysparse.gpu.memory import require_free
from polysparse.gpu.tuple_products import TupleProducts
from polysparse.operator.arguments import WAYS_OUT
from polysparse.operator.inner_products import WAY_OUT

# Bytes of expanded rows that are multiplied together, as dense vectors, and of their products.
GRAM_BYTES = 2**28


def gram(columns: ColumnSpace, x: DeviceCsr, z: DeviceCsr) -> Array:
    """Return the expansion of x times the transposed expansion of z."""
    x, z = x.for_basis(columns.basis), z.for_basis(columns.basis)
    basis, shape = columns.basis, (x.shape[0], z.shape[0])
    what = f"A Gram matrix of shape {shape[0]:,} x {shape[1]:,}"
    require_free(shape[0] * shape[1] * x.dtype.itemsize, what, WAY_OUT)
    out = engine.allocate(shape[0] * shape[1], x.dtype).reshape(shape)
    if out.size == 0:
        return out
    if columns.kind == "all":
        kinds = x.dtype, x.indices.dtype, z.indices.dtype, basis.highest, kind_of(basis)
        arguments = x.as_struct, z.as_struct, basis_struct(basis), grouping_struct(basis), out
        launch(kernel("fill_gram", *kinds), out.size, *arguments)
        return out
    products = TupleProducts(columns, x)
    step = max(1, GRAM_BYTES // (max(columns.n_columns, x.shape[0]) * x.dtype.itemsize))
    for start in range(0, z.shape[0], step):
        rows = slice(start, min(start + step, z.shape[0]))
        vectors = cupy.ascontiguousarray(dense_rows(columns, z.rows(rows)).T)
        out[:, rows] = products.apply(vectors)
    return out


def dense_rows(columns: ColumnSpace, x: DeviceCsr) -> Array:
    """Return the expansion of rows with its zeros."""
    arrays = expand_columns(columns, x, max_bytes="available", ways_out=WAYS_OUT)
    indptr, indices, data = arrays
    out = cupy.zeros((x.shape[0], columns.n_columns), dtype=x.dtype)
    out[rows_of(indptr, len(data)), indices] = data
    return out
