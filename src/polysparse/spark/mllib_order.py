"""The order of columns of MLlib's PolynomialExpansion.

MLlib takes the exponent of the last feature first, then that of the one before, and so on. So the
factors f_0 >= f_1 >= ... of a product, numbered from 0 and repeated as often as they occur, are in
column C(f_0 + D, D) + C(f_1 + D - 1, D - 1) + ... - 1, where D is the degree of the expansion.
There is no bias. Values are the same to the last bit: both multiply by the last factor first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.matrix.output import as_csr


def in_mllib_order(x: CanonicalCsr, block: Any, degree: int) -> Any:
    """Return the expansion of x, made without a bias, in MLlib's columns and without zeros."""
    indices, data = np.empty_like(block.indices), np.empty_like(block.data)
    lengths = np.diff(x.indptr)
    for n in np.unique(lengths[lengths > 0]).tolist():
        # Where a product stands in its row depends on the length of the row alone.
        places, factors = mllib_products(n, degree)
        rows = np.flatnonzero(lengths == n)
        features = x.indices[x.indptr[rows][:, None] + np.arange(n)]
        first = block.indptr[rows][:, None]
        there = first + np.arange(len(places))
        indices[there] = _columns(features.astype(np.int64), factors, degree)
        data[there] = block.data[first + places]
    return _without_zeros(block, indices, data)


@lru_cache(maxsize=32)
def mllib_products(n: int, degree: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the products of n features in MLlib's order.

    They are given by their places in scikit-learn's order, and by their factors: a row for each, of
    falling features, with -1 at the end.
    """
    basis = MonomialBasis(n, degree, include_bias=False)
    factors = np.sort(basis.unrank(np.arange(basis.n_columns)))[:, ::-1]
    places = np.argsort(_columns(np.arange(n)[None], factors, degree)[0])
    return places.astype(np.int32), factors[places].astype(np.int32)


def _columns(features: NDArray[np.int64], factors: NDArray[Any], degree: int) -> NDArray[np.int64]:
    """Return MLlib's columns of products, for each row of features that the factors number."""
    columns = np.full((len(features), len(factors)), -1)
    for s in range(degree):
        terms = np.zeros((len(features), features.shape[1] + 1), np.int64)  # the last for no factor
        terms[:, :-1] = _binomial(features, degree - s)
        columns += terms[:, factors[:, s]]
    return columns


def _binomial(n: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return C(n + k, k). Every division is exact, and k times the result does not overflow."""
    result = np.ones_like(n)
    for i in range(1, k + 1):
        result = result * (n + i) // i
    return result


def _without_zeros(block: Any, indices: NDArray[Any], data: NDArray[Any]) -> Any:
    indptr, stored = block.indptr, data != 0
    if not stored.all():
        kept = np.concatenate([[0], np.cumsum(stored)])
        indptr, indices, data = kept[indptr].astype(indptr.dtype), indices[stored], data[stored]
    return as_csr(block.shape, indptr, indices, data, is_array=True)
