"""The class that operators are of."""

import cupy


class LinearOperator:
    """As much of it as is used."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, shape

    def matvec(self, v):
        return cupy.asarray(self._matvec(v))

    def rmatvec(self, v):
        return cupy.asarray(self._rmatvec(v))

    def matmat(self, v):
        return cupy.asarray(self._matmat(v))

    def rmatmat(self, v):
        return cupy.asarray(self._rmatmat(v))

    def __matmul__(self, v):
        return self.matvec(v) if v.ndim == 1 else self.matmat(v)

    @property
    def T(self):
        transposed = LinearOperator(self.dtype, self.shape[::-1])
        transposed._matvec, transposed._matmat = self.rmatvec, self.rmatmat
        return transposed
