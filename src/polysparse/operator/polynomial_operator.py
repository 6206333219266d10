"""PolynomialOperator: the expanded matrix as a LinearOperator of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from polysparse.basis.degrees import Degree
from polysparse.columns.arguments import (
    DEGREE,
    INCLUDE_BIAS,
    INTERACTION_ONLY,
    as_column_space,
)
from polysparse.columns.spaces import ColumnSpace
from polysparse.matrix.canonical import CanonicalCsr, as_canonical
from polysparse.operator import products


class PolynomialOperator(LinearOperator):  # type: ignore[misc]
    """The expansion of a matrix as a linear operator, which is never built."""

    def __init__(
        self,
        X: Any,
        degree: Degree = DEGREE,
        *,
        interaction_only: bool = INTERACTION_ONLY,
        include_bias: bool = INCLUDE_BIAS,
        columns: Any = None,
        dtype: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        x = as_canonical(X, n_jobs).as_sparse()
        space = as_column_space(
            columns,
            x.shape[1],
            degree=degree,
            interaction_only=interaction_only,
            include_bias=include_bias,
        )
        self._set(space, x, n_jobs)

    @classmethod
    def of(cls, columns: ColumnSpace, x: CanonicalCsr, *, n_jobs: int | None) -> PolynomialOperator:
        """Return the operator of canonical input, with given columns."""
        self = cls.__new__(cls)
        self._set(columns, x, n_jobs)
        return self

    def _set(self, columns: ColumnSpace, x: CanonicalCsr, n_jobs: int | None) -> None:
        columns.require_indexable()
        self.columns = columns
        self.n_jobs = n_jobs
        self._x = x
        super().__init__(x.dtype, (x.shape[0], columns.n_columns))

    def _matvec(self, v: NDArray[Any]) -> NDArray[Any]:
        return self._matmat(np.reshape(v, (-1, 1))).ravel()

    def _rmatvec(self, v: NDArray[Any]) -> NDArray[Any]:
        return self._rmatmat(np.reshape(v, (-1, 1))).ravel()

    def _matmat(self, v: NDArray[Any]) -> NDArray[Any]:
        return self._multiply(products.apply, v)

    def _rmatmat(self, v: NDArray[Any]) -> NDArray[Any]:
        return self._multiply(products.apply_transposed, v)

    def _transpose(self) -> LinearOperator:
        return self._adjoint()  # which SciPy's own would call, between two conjugations

    def _multiply(self, apply: Callable[..., NDArray[Any]], v: NDArray[Any]) -> NDArray[Any]:
        """Return a product with columns of any dtype; complex ones part by part."""
        if np.iscomplexobj(v):
            parts = self._multiply(apply, np.hstack([np.real(v), np.imag(v)]))
            real, imaginary = np.hsplit(parts, 2)
            return real + 1j * imaginary
        v = np.ascontiguousarray(v, dtype=self.dtype)
        return apply(self.columns, self._x, v, self.n_jobs)
