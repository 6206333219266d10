"""The expanded matrix on a GPU as a LinearOperator of CuPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from cupyx.scipy.sparse.linalg import LinearOperator

from polysparse.basis.degrees import Degree
from polysparse.columns.spaces import ColumnSpace
from polysparse.dispatch import backend_of
from polysparse.gpu import inner_products, norms
from polysparse.gpu.canonical import DeviceCsr, as_canonical, as_contiguous_aligned
from polysparse.gpu.containers import Array, Container, container_of
from polysparse.gpu.expansion import column_space, expand_columns
from polysparse.gpu.memory import explaining_memory_errors, require_dense_room, require_free
from polysparse.gpu.products import products_of
from polysparse.operator.arguments import (
    WAY_OUT_OF_DENSE,
    WAY_OUT_OF_VECTORS,
    WAYS_OUT,
    as_row_range,
    as_value_dtype,
    name_vectors,
    require_features,
    require_numbers,
    require_weights,
)


def operator(
    cls: type,
    X: Any,
    degree: Degree,
    *,
    columns: Any,
    dtype: Any,
    n_jobs: int | None,
    **flags: Any,
) -> DeviceOperator:
    """Return the operator of a matrix on a GPU, with the parameters of PolynomialOperator."""
    container = container_of(X)
    space = column_space(container, columns, degree, n_jobs, flags)
    wanted = None if dtype is None else as_value_dtype(dtype)
    return DeviceOperator(space, _read(container, wanted), container)


def _read(container: Container, dtype: np.dtype[Any] | None) -> DeviceCsr:
    """Read a container, and wait for it: products run on CuPy's stream, not on its library's."""
    with container.on_its_device():
        x = as_canonical(container, dtype)
        cupy.cuda.get_current_stream().synchronize()
    return x


class DeviceOperator(LinearOperator):  # type: ignore[misc]
    """The expanded matrix on a GPU as a linear operator, without building it.

    Its methods are those of PolynomialOperator. Vectors and results are arrays of CuPy; built rows
    are of the kind of X. Solvers of CuPy that take a LinearOperator run on it. Results have the
    same bits every time.

    Parameters
    ----------
    columns : ColumnSpace
        The columns of the expansion.
    x : DeviceCsr
        The matrix.
    container : Container
        What it was given as.
    """

    def __init__(self, columns: ColumnSpace, x: DeviceCsr, container: Container) -> None:
        self.columns = columns
        self._x = x = x.for_basis(columns.basis)
        self._products = products_of(columns, x)
        self._container = container
        super().__init__(x.dtype, (x.shape[0], columns.n_columns))

    # ----------------------------------------------------------------------- products, for CuPy

    def _matvec(self, v: Array) -> Array:
        return self._matmat(v.reshape(-1, 1)).ravel()

    def _rmatvec(self, v: Array) -> Array:
        return self._rmatmat(v.reshape(-1, 1)).ravel()

    def _matmat(self, v: Array) -> Array:
        return self._multiply(self._products.apply, v)

    def _rmatmat(self, v: Array) -> Array:
        with self._x.data.device:
            self._require_room_for_coefficients(v.shape[1])
            return self._multiply(self._products.apply_transposed, v)

    def _multiply(self, apply: Callable[[Array], Array], v: Array) -> Array:
        """Return a product with several vectors of any dtype; complex ones part by part."""
        what = f"A matrix-vector product of {self.shape[0]:,} rows and {self.shape[1]:,} columns"
        way_out = "Pass fewer vectors, or fewer rows of X, at a time."
        with self._x.data.device, explaining_memory_errors(what, way_out):
            own = cupy.asarray(v)  # a copy of what is on another device
            require_numbers(own, "the vector", may_be_complex=True)
            if own.dtype.kind == "c":
                return self._multiply(apply, own.real) + 1j * self._multiply(apply, own.imag)
            return apply(as_contiguous_aligned(own, self.dtype))

    def _require_room_for_coefficients(self, k: int) -> None:
        """Raise MemoryError if k vectors with an entry for each column do not fit."""
        n_columns = self.shape[1]
        n_bytes = n_columns * k * self.dtype.itemsize
        require_free(n_bytes, name_vectors(n_columns, k), WAY_OUT_OF_VECTORS)

    # --------------------------------------------------------------------------- sums and norms

    def column_sums(self) -> Array:
        """Return the sum of each column."""
        with self._x.data.device:
            return self.rmatvec(cupy.ones(self.shape[0], self.dtype))

    def column_norms(self, weights: Any = None) -> Array:
        """Return the Euclidean norm of each column, with weights of the rows if they are given.

        They are of shape (n_rows,) or (n_rows, k), and none of them is negative.
        """
        with self._x.data.device:
            if weights is None:
                weights = cupy.ones(self.shape[0], self.dtype)
            weights = cupy.asarray(weights)
            require_numbers(weights, "weights")
            weights = as_contiguous_aligned(weights, self.dtype)
            require_weights(weights, self.shape[0])
            several = weights[:, None] if weights.ndim == 1 else weights
            self._require_room_for_coefficients(several.shape[1])
            found = norms.column_norms(self._products, several)
            return found if weights.ndim == 2 else found.ravel()

    def row_norms(self) -> Array:
        """Return the Euclidean norm of each row."""
        with self._x.data.device:
            return norms.row_norms(self._products)

    def gram(self, Z: Any = None) -> Array:
        """Return the inner products of expanded rows with those of Z, or with each other."""
        z = self._x if Z is None else self._read_others(Z)
        with self._x.data.device:
            return inner_products.gram(self.columns, self._x, z)

    def _read_others(self, Z: Any) -> DeviceCsr:
        if backend_of(Z) is None:
            raise TypeError(
                f"Z is a {type(Z).__name__} in main memory, and X is on a GPU: pass "
                "cupyx.scipy.sparse.csr_matrix(Z)."
            )
        container = container_of(Z)
        require_features(container.shape[1], self._x.shape[1])
        return _read(container, np.dtype(self.dtype))

    # ------------------------------------------------------------------------------- for a look

    def rows(self, rows: slice) -> Any:
        """Build some rows of the expansion, of the kind of X."""
        return self._built(self._x.rows(as_row_range(rows, self.shape[0])))

    def tocsr(self) -> Any:
        """Build the whole expansion, as `expand` does."""
        return self._built(self._x)

    def toarray(self) -> Array:
        """Build the whole expansion as a dense array, zeros included."""
        with self._x.data.device:
            require_dense_room(self.shape, self._x.dtype, WAY_OUT_OF_DENSE)
            return inner_products.dense_rows(self.columns, self._x)

    def _built(self, x: DeviceCsr) -> Any:
        with self._container.on_its_device():
            arrays = expand_columns(self.columns, x, max_bytes="available", ways_out=WAYS_OUT)
            return self._container.wrap((x.shape[0], self.columns.n_columns), *arrays)
