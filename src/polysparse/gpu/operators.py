"""The expanded matrix on a GPU as a LinearOperator of CuPy."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cupyx.scipy.sparse.linalg import LinearOperator

from polysparse.basis.degrees import Degree
from polysparse.columns.arguments import (
    DEGREE,
    INCLUDE_BIAS,
    INTERACTION_ONLY,
    as_column_space,
)
from polysparse.gpu.canonical import as_canonical
from polysparse.gpu.containers import Array, container_of
from polysparse.gpu.products import Products


def operator(
    X: Any,
    degree: Degree = DEGREE,
    *,
    interaction_only: bool = INTERACTION_ONLY,
    include_bias: bool = INCLUDE_BIAS,
    columns: Any = None,
    dtype: Any = None,
    n_jobs: int | None = None,
) -> DeviceOperator:
    """Return the operator of a matrix on a GPU, with the parameters of PolynomialOperator."""
    container = container_of(X)
    space = as_column_space(
        columns,
        container.shape[1],
        degree=degree,
        interaction_only=interaction_only,
        include_bias=include_bias,
    )
    wanted = None if dtype is None else np.dtype(dtype)
    with container.at_home():
        return DeviceOperator(Products(space, as_canonical(container, wanted)))


class DeviceOperator(LinearOperator):  # type: ignore[misc]
    """The polynomial features of a matrix on a GPU as a linear operator, which is never built.

    Vectors and results are arrays of CuPy. Solvers of CuPy that take a LinearOperator run on it.
    Results have the same bits every time.

    Parameters
    ----------
    products : Products
        Products with the expansion.
    """

    def __init__(self, products: Products) -> None:
        self.columns = products.columns
        self._products = products
        x = products.x
        super().__init__(x.dtype, (x.shape[0], products.columns.n_columns))

    def _matvec(self, v: Array) -> Array:
        return self._matmat(v.reshape(-1, 1)).ravel()

    def _rmatvec(self, v: Array) -> Array:
        return self._rmatmat(v.reshape(-1, 1)).ravel()

    def _matmat(self, v: Array) -> Array:
        return self._products.apply(self._as_table(v))

    def _rmatmat(self, v: Array) -> Array:
        return self._products.apply_transposed(self._as_table(v))

    def _as_table(self, v: Array) -> Array:
        if v.dtype.kind == "c":
            raise TypeError("Vectors must be real: multiply v.real and v.imag one after the other.")
        return cupy.ascontiguousarray(v, dtype=self.dtype)
