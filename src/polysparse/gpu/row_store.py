"""DeviceRows: the rows of a fit on a GPU, and predictions of rows there.

The solver runs in main memory and sees sums over rows. What the rows contribute to them is computed
on the GPU, by the functions of `models.contributions` with arrays of CuPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace, HashedColumns
from polysparse.gpu.canonical import DeviceCsr
from polysparse.gpu.containers import Array, container_of
from polysparse.gpu.losses import on_device
from polysparse.gpu.memory import explaining_memory_errors
from polysparse.gpu.products import products_of
from polysparse.gpu.transformers import read_finite, zeros_like
from polysparse.models.local_rows import Block, LocalRows
from polysparse.models.losses.interface import Loss, LossSums
from polysparse.models.row_store import Function
from polysparse.models.sample_weight import as_offset, as_weights
from polysparse.models.weights import sums_by_class
from polysparse.observation.tally import ColumnTally, Counted, count_columns

FLOAT64 = np.dtype(np.float64)
N_TOGETHER = 8  # directions that are multiplied together
WAY_OUT = "Pass fewer rows of X, or a transformer with fewer columns."


class DeviceDesign:
    """Matrix-vector products on a GPU: rows are CuPy arrays, coefficients NumPy arrays."""

    n_jobs = 1  # what is left to the processor is little

    def __init__(self, columns: ColumnSpace, x: DeviceCsr) -> None:
        self.products = self.of_squares = products_of(columns, x)
        if isinstance(columns, HashedColumns):  # as `models.design` has it
            self.of_squares = products_of(replace(columns, alternate_sign=False), x)

    def apply(self, coefficients: Array) -> Array:
        """Return the expansion times coefficients, of shape (n_columns,) or (n_columns, k)."""
        out = self.products.apply(_as_table(cupy.asarray(coefficients)))
        return out.reshape(len(out), *coefficients.shape[1:])

    def apply_transposed(self, weights: Array, out: Any = None) -> NDArray[Any]:
        """Return the transposed expansion times weights of the rows; `out` is not used."""
        return _sum(self.products, weights)

    def sum_squares(self, weights: Array) -> NDArray[Any]:
        """Return the weighted sum of squares of each column.

        For hashed columns that is true only if no products of the same row share a column.
        """
        return _sum(self.of_squares, weights, cupy.square(self.products.x.data))

    def count_rows(self) -> NDArray[np.int64]:
        """Return in how many rows each column occurs."""
        x = self.products.x
        counts = _sum(self.products, cupy.ones(x.shape[0]), cupy.ones_like(x.data))
        return counts.astype(np.int64)

    def gram(self, weights: Array, directions: Array) -> NDArray[Any]:
        """Return the transposed expansion times weights times the expansion times directions.

        Directions are taken a few at a time, so that their scores need not all be kept.
        """
        out = np.empty(directions.shape)
        for start in range(0, directions.shape[1], N_TOGETHER):
            some = slice(start, start + N_TOGETHER)
            scores = self.products.apply(cupy.ascontiguousarray(directions[:, some]))
            scores *= weights[:, None]
            out[:, some] = self.products.apply_transposed(scores).get()
        return out


def _sum(products: Any, weights: Array, data: Array | None = None) -> NDArray[Any]:
    product = products.apply_transposed(_as_table(weights), data)
    sums: NDArray[Any] = product.reshape(len(product), *weights.shape[1:]).get()
    return sums


def _as_table(vectors: Array) -> Array:
    return cupy.ascontiguousarray(vectors.reshape(len(vectors), -1))


class DeviceBlock(Block):
    """A block of rows whose arrays are on a GPU."""

    def weighted_sum(self, rows: Array) -> float:
        return float(np.einsum("i,i->", self.weights, rows))

    def weighted_squares(self, rows: Array, shift: float) -> float:
        own = rows - shift
        return float((self.weights * own * own).sum())

    def weighted(self, rows: Array, shift: float) -> Array:
        return np.multiply(self.weights, rows - shift)


class DeviceRows(LocalRows):
    """Rows whose data are on a GPU. Targets and weights are in main memory until they are encoded.

    Sums are returned in main memory.
    """

    def count_columns(self, columns: Counted) -> ColumnTally:
        """Count in how many rows each column of a basis occurs, in main memory."""
        return count_columns(columns, self.x.get(), self.n_jobs)  # type: ignore[attr-defined]

    def set_targets(self, columns: ColumnSpace, loss: Loss) -> None:
        """Encode y for a loss, and send it to the GPU."""
        self._encoded = loss.encode(self.y, self.weights, self.offset)
        design = DeviceDesign(columns, self.x)  # type: ignore[arg-type]
        self.block = DeviceBlock(design, *map(cupy.asarray, self._encoded))

    def weights_by_class(self, n_classes: int) -> NDArray[np.float64]:
        return sums_by_class(*self._encoded, n_classes)

    def keep(self, function: Function, *kept: Any, once: bool = False, **shared: Any) -> Any:
        """Return the result itself, on the GPU."""
        return super().keep(function, *kept, once=once, **_sent(shared))

    def total(self, function: Function, *kept: Any, out: Any = None, **shared: Any) -> Any:
        """Return what the function returns, in main memory; `out` is not used."""
        return tuple(_fetched(each) for each in super().total(function, *kept, **_sent(shared)))

    def add(self, rows: Array, step: float, change: Array, shift: float = 0.0) -> None:
        rows += step * (change - shift)


def _sent(shared: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with arrays and the loss on the GPU."""
    sent = {k: cupy.asarray(v) if isinstance(v, np.ndarray) else v for k, v in shared.items()}
    return sent | ({"loss": on_device(sent["loss"])} if "loss" in sent else {})


def _fetched(value: Any) -> Any:
    """Return a sum in main memory."""
    if isinstance(value, LossSums):
        return replace(value, **{name: _fetched(each) for name, each in vars(value).items()})
    if isinstance(value, cupy.ndarray):
        return value.get() if value.ndim else float(value)
    return value


@contextmanager
def open_rows(
    model: Any, X: Any, y: Any, sample_weight: Any, offset: Any = None
) -> Iterator[DeviceRows]:
    """Read the rows of a matrix on a GPU."""
    container = container_of(X)
    n_rows = container.shape[0]
    model._read(zeros_like(container), reset=True)  # scikit-learn's checks
    y, sample_weight, offset = map(_in_main_memory, (y, sample_weight, offset))
    rows = np.zeros((n_rows, 1))
    how = {"y_numeric": model._y_numeric, "multi_output": model._multi_output}
    _, y = type(model)()._read(rows, y=y, reset=True, **how)
    weights, offset = as_weights(sample_weight, n_rows), as_offset(offset, n_rows)
    with container.on_its_device(), explaining_memory_errors("The fit", WAY_OUT):
        x: Any = read_finite(container, FLOAT64)
        yield DeviceRows(x, y, weights, model.n_jobs, offset)


def _in_main_memory(values: Any) -> Any:
    """Return a column in main memory, if it is on a GPU."""
    if hasattr(values, "__cuda_array_interface__"):
        return cupy.asarray(values).get()
    return values


def predict(model: Any, X: Any, offset: Any = None, *, method: str) -> Any:
    """Return what a method of a fitted model returns, in main memory."""
    container = container_of(X)
    offset = as_offset(_in_main_memory(offset), container.shape[0])
    getattr(model, method)(zeros_like(container))  # scikit-learn's checks
    with container.on_its_device(), explaining_memory_errors("The prediction", WAY_OUT):
        x = read_finite(container, FLOAT64)
        products = products_of(model.column_space_, x)
        scores = products.apply(_as_table(cupy.asarray(model.coef_.T))).get()
    scores = scores.reshape(len(scores), *model.coef_.shape[:-1]) + model.intercept_
    return model._response(scores if offset is None else scores + offset, method)
