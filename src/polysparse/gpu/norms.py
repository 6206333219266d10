"""Euclidean norms of the columns and rows of an expansion on a GPU: those of `operator.norms`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import cupy

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns
from polysparse.gpu import engine
from polysparse.gpu.arguments import basis_struct, grouping_struct, kind_of
from polysparse.gpu.canonical import DeviceCsr
from polysparse.gpu.compiling import kernel, launch
from polysparse.gpu.containers import Array
from polysparse.gpu.expansion import expanded_rows
from polysparse.gpu.products import Products, products_of
from polysparse.gpu.tuple_products import TupleProducts


def column_norms(products: Products | TupleProducts, weights: Array) -> Array:
    """Return the norms of the columns, with weights of the rows of shape (n_rows, k)."""
    x, columns = products.x, products.columns
    if columns.kind == "hashed":
        sums = cupy.zeros((columns.n_columns, weights.shape[1]), dtype=x.dtype)
        for rows, squares in _squares(products):
            sums += squares.apply_transposed(weights[rows])
    else:
        sums = products.apply_transposed(weights, cupy.square(x.data))
    return cupy.sqrt(sums)


def row_norms(products: Products | TupleProducts) -> Array:
    """Return the norms of the rows; in closed form for all columns of a basis."""
    x, columns, basis = products.x, products.columns, products.basis
    if columns.kind == "all":
        norms = engine.allocate(x.shape[0], x.dtype)
        kinds = x.dtype, x.indices.dtype, basis.highest, kind_of(basis)
        arguments = x.as_struct, basis_struct(basis), grouping_struct(basis), norms
        launch(kernel("fill_row_norms", *kinds), x.shape[0], *arguments)
        return norms
    ones = cupy.ones((columns.n_columns, 1), dtype=x.dtype)
    if columns.kind == "hashed":
        sums = [squares.apply(ones) for _, squares in _squares(products)]
        return cupy.sqrt(cupy.concatenate(sums).ravel())
    squared = replace(x, data=cupy.square(x.data))
    return cupy.sqrt(products_of(columns, squared).apply(ones).ravel())


def _squares(products: Products | TupleProducts) -> Iterator[tuple[slice, TupleProducts]]:
    """Yield products with the squares of what the expansion stores, a few rows at a time."""
    columns = AllColumns(MonomialBasis(products.columns.n_columns, 1, include_bias=False))
    for rows, (indptr, indices, data) in expanded_rows(products.columns, products.x):
        shape = rows.stop - rows.start, columns.n_columns
        squares = DeviceCsr(shape, indptr, indices, cupy.square(data), False, False)
        yield rows, TupleProducts(columns, squares)
