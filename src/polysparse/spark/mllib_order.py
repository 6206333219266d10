"""The order of columns of MLlib's PolynomialExpansion.

MLlib takes the exponent of the last feature first, then that of the one before, and so on. So the
factors f_0 >= f_1 >= ... of a product, numbered from 0 and repeated as often as they occur, are in
column C(f_0 + D, D) + C(f_1 + D - 1, D - 1) + ... - 1, where D is the degree of the expansion.
There is no bias. Values are the same to the last bit: both multiply by the last factor first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ColumnSpace
from polysparse.expansion.whole import expand_columns
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.matrix.output import as_csr
from polysparse.spark.vectors import as_vectors

MOST_TOGETHER = 2**19  # values of rows that are made at a time, unless a single row has more


def expand_rows_as_mllib(space: ColumnSpace, x: CanonicalCsr) -> Iterator[pa.Array]:
    """Yield the expansion of rows, without a bias, as MLlib's vectors."""
    n_rows, most = x.shape[0], x.profile.largest_row(space.basis)
    step = max(1, MOST_TOGETHER // max(1, most))
    for start in range(0, n_rows, step):
        rows = x.rows(slice(start, min(start + step, n_rows)))
        order = np.argsort(np.diff(rows.indptr), kind="stable")
        by_length = _taken(rows, order)
        expanded = expand_columns(space, by_length, n_jobs=None, max_bytes=None)
        made = in_mllib_order(by_length, expanded, space.basis.max_degree)
        yield as_vectors(made[np.argsort(order)])


def _taken(x: CanonicalCsr, order: NDArray[np.int64]) -> CanonicalCsr:
    """Return the rows in another order."""
    taken = as_csr(x.shape, x.indptr, x.indices, x.data, is_array=True)[order]
    return replace(x, indptr=taken.indptr, indices=taken.indices, data=taken.data)


def in_mllib_order(x: CanonicalCsr, expanded: Any, degree: int) -> Any:
    """Return the expansion of x, made without a bias, in MLlib's columns and without zeros.

    The rows of x must be sorted by how many values they store.
    """
    indices, data = np.empty_like(expanded.indices), np.empty_like(expanded.data)
    lengths = np.diff(x.indptr)
    for n in np.unique(lengths[lengths > 0]).tolist():
        # The position of a product in its row depends on the length of the row alone.
        positions, factors = mllib_products(n, degree)
        first, last = np.searchsorted(lengths, n), np.searchsorted(lengths, n, side="right")
        features = x.indices[x.indptr[first] : x.indptr[last]].reshape(-1, n)
        made = slice(expanded.indptr[first], expanded.indptr[last])
        shape = int(last - first), len(positions)
        _fill_columns(features, factors, degree, indices[made].reshape(shape))
        values, out = expanded.data[made].reshape(shape), data[made].reshape(shape)
        values.take(positions, axis=1, out=out, mode="clip")  # the fastest mode
    return _without_zeros(expanded, indices, data)


@lru_cache(maxsize=32)
def mllib_products(n: int, degree: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the products of n features in MLlib's order.

    They are given by their positions in scikit-learn's order, and by their factors: a row for
    each, of decreasing features, with n at the end.
    """
    basis = MonomialBasis(n, degree, include_bias=False)
    factors = np.sort(basis.unrank(np.arange(basis.n_columns)))[:, ::-1]
    factors[factors < 0] = n
    columns = np.empty((1, len(factors)), np.int64)
    _fill_columns(np.arange(n)[None], factors, degree, columns)
    positions = np.argsort(columns[0])
    return positions, factors[positions]


def _fill_columns(
    features: NDArray[Any], factors: NDArray[np.int64], degree: int, columns: NDArray[Any]
) -> None:
    """Write MLlib's columns of products, for each row of features that the factors number."""
    columns[:] = -1
    for s in range(degree):
        terms = np.zeros((len(features), features.shape[1] + 1), columns.dtype)
        terms[:, :-1] = _binomial(features.astype(np.int64), degree - s)
        # The last term is 0, for products that have no such factor.
        columns += terms.take(factors[:, s], axis=1, mode="clip")


def _binomial(n: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return C(n + k, k). Every division is exact, and k times the result does not overflow."""
    result = np.ones_like(n)
    for i in range(1, k + 1):
        result = result * (n + i) // i
    return result


def _without_zeros(expanded: Any, indices: NDArray[Any], data: NDArray[Any]) -> Any:
    indptr, stored = expanded.indptr, data != 0
    if not stored.all():
        kept = np.concatenate([[0], np.cumsum(stored)])
        indptr, indices, data = kept[indptr].astype(indptr.dtype), indices[stored], data[stored]
    return as_csr(expanded.shape, indptr, indices, data, is_array=True)
