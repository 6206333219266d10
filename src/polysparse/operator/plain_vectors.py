"""LinearOperators of SciPy with a fast path for contiguous vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator


class PlainVectorOperator(LinearOperator):  # type: ignore[misc]
    """A LinearOperator that multiplies plain vectors at once.

    Those are contiguous arrays of one dimension, of the dtype of the operator. Anything else is
    left to SciPy, whose type checks take longer than a small matrix-vector product.
    """

    def matvec(self, x: Any) -> Any:
        """Return the matrix-vector product with a vector.

        Parameters
        ----------
        x : array-like of shape (n_columns,) or (n_columns, 1)
            The vector.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, 1)
            The matrix-vector product.
        """
        return self._matvec(x) if self._is_plain(x, self.shape[1]) else super().matvec(x)

    def rmatvec(self, x: Any) -> Any:
        """Return the matrix-vector product of the transpose with a vector.

        Parameters
        ----------
        x : array-like of shape (n_rows,) or (n_rows, 1)
            The vector.

        Returns
        -------
        ndarray of shape (n_columns,) or (n_columns, 1)
            The matrix-vector product.
        """
        return self._rmatvec(x) if self._is_plain(x, self.shape[0]) else super().rmatvec(x)

    def dot(self, x: Any) -> Any:
        """Multiply with one or several vectors, a number or an operator.

        Parameters
        ----------
        x : array-like of shape (n_columns,) or (n_columns, k), number or LinearOperator
            What to multiply with.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, k), or LinearOperator
            The matrix-vector product, or the scaled or composed operator.
        """
        return self._matvec(x) if self._is_plain(x, self.shape[1]) else super().dot(x)

    def __matmul__(self, x: Any) -> Any:
        return self._matvec(x) if self._is_plain(x, self.shape[1]) else super().__matmul__(x)

    def _is_plain(self, x: Any, n: int) -> bool:
        return (
            type(x) is np.ndarray
            and x.dtype == self.dtype
            and x.shape == (n,)
            and x.flags.c_contiguous
        )


class Transposed(PlainVectorOperator):
    """The transpose of an operator of real numbers."""

    def __init__(self, operator: PlainVectorOperator) -> None:
        super().__init__(operator.dtype, operator.shape[::-1])
        self.args = (operator,)

    def _matvec(self, v: NDArray[Any]) -> Any:
        return self.args[0]._rmatvec(v)

    def _rmatvec(self, v: NDArray[Any]) -> Any:
        return self.args[0]._matvec(v)

    def _matmat(self, v: NDArray[Any]) -> Any:
        return self.args[0]._rmatmat(v)

    def _rmatmat(self, v: NDArray[Any]) -> Any:
        return self.args[0]._matmat(v)

    def _adjoint(self) -> Any:
        return self.args[0]

    _transpose = _adjoint
