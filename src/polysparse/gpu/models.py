"""Models on a GPU: fitted to a matrix there, and predictions of its rows.

The solver runs in main memory and sees sums over rows; what all rows contribute to them is made on
the card, by the functions of `models.contributions` on arrays of CuPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace, HashedColumns
from polysparse.gpu.canonical import DeviceCsr
from polysparse.gpu.containers import Array, container_of
from polysparse.gpu.memory import saying_what
from polysparse.gpu.products import products_of
from polysparse.gpu.transformers import read_finite, zeros_like
from polysparse.models.blocks import Block, Function, OneBlock
from polysparse.models.classes import find_classes
from polysparse.models.logistic import (
    PolynomialLogisticRegression,
    count_outputs,
    log_probabilities,
    probabilities,
)
from polysparse.models.losses import Sums
from polysparse.models.shared import as_weights, counter_of
from polysparse.models.weights import Extent, sums_by_class

FLOAT64 = np.dtype(np.float64)
TOGETHER = 8  # directions
WAY_OUT = "Give fewer rows of X, or a transformer with fewer columns."


class DeviceDesign:
    """Products with an expansion on a GPU: rows are arrays of CuPy, coefficients of NumPy."""

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
        for start in range(0, directions.shape[1], TOGETHER):
            some = slice(start, start + TOGETHER)
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


class DeviceBlock(OneBlock):
    """All rows, on a GPU. What the solver is told of them is in main memory."""

    def keep(self, function: Function, *kept: Any, once: bool = False, **shared: Any) -> Any:
        """Return the rows themselves."""
        return super().keep(function, *kept, once=once, **_sent(shared))

    def total(self, function: Function, *kept: Any, out: Any = None, **shared: Any) -> Any:
        """Return what the function returns, in main memory."""
        return tuple(_fetched(each) for each in super().total(function, *kept, **_sent(shared)))


def _sent(shared: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with arrays on the card."""
    return {k: cupy.asarray(v) if isinstance(v, np.ndarray) else v for k, v in shared.items()}


def _fetched(value: Any) -> Any:
    """Return a sum in main memory."""
    if isinstance(value, Sums):
        return replace(value, **{name: _fetched(each) for name, each in vars(value).items()})
    if isinstance(value, cupy.ndarray):
        return value.get() if value.ndim else float(value)
    return value


def fit(model: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Fit a model to a matrix on a GPU."""
    container = container_of(X)
    model.require_parameters()
    last = model.forget()
    n_rows, is_classifier = container.shape[0], isinstance(model, PolynomialLogisticRegression)
    model.read(zeros_like(container), reset=True)  # scikit-learn's checks
    y, sample_weight = _here(y), _here(sample_weight)
    rows = np.zeros((n_rows, 1))
    _, y = type(model)().read(rows, y=y, reset=True, y_numeric=not is_classifier)
    weights = as_weights(sample_weight, n_rows)
    Extent.of(weights).require_valid()
    with container.at_home(), saying_what("The fit", WAY_OUT):
        x = read_finite(container, FLOAT64)
        columns = model.make_columns(x.shape[1], lambda b: counter_of(x.get(), model.n_jobs)(b))
        if not is_classifier:
            model.require_room(columns)
            targets = y.astype(np.float64, copy=False)
            model.fit_blocks(columns, _block(columns, x, targets, weights))
            return model
        classes, numbers = find_classes(y)
        factors = model.class_factors(classes, sums_by_class(numbers, weights, len(classes)))
        with np.errstate(over="ignore"):
            weights = weights * factors[numbers]
        model.require_room(columns, count_outputs(classes))
        shares = sums_by_class(numbers, weights, len(classes))
        block = _block(columns, x, numbers, weights)
        model.fit_blocks(columns, block, classes, shares, last)
    return model


def _block(
    columns: ColumnSpace, x: DeviceCsr, targets: NDArray[Any], weights: NDArray[Any]
) -> DeviceBlock:
    design: Any = DeviceDesign(columns, x)
    return DeviceBlock(Block(design, cupy.asarray(targets), cupy.asarray(weights)))


def _here(values: Any) -> Any:
    """Return a column in main memory, if it is on a GPU."""
    if hasattr(values, "__cuda_array_interface__"):
        return cupy.asarray(values).get()
    return values


def predict(model: Any, X: Any, method: str) -> Any:
    """Return what a method of a fitted model gives, in main memory."""
    container = container_of(X)
    getattr(model, method)(zeros_like(container))  # scikit-learn's checks
    with container.at_home(), saying_what("The prediction", WAY_OUT):
        x = read_finite(container, FLOAT64)
        products = products_of(model.column_space_, x)
        scores = products.apply(_as_table(cupy.asarray(model.coef_.T))).get()
    scores = scores.reshape(len(scores), *model.coef_.shape[:-1]) + model.intercept_
    if not isinstance(model, PolynomialLogisticRegression):
        return scores
    scores = scores[:, 0] if scores.shape[1] == 1 else scores
    made_of: dict[str, Callable[..., Any]] = {
        "decision_function": lambda scores: scores,
        "predict": model.classes_of,
        "predict_proba": lambda scores: probabilities(scores, model.n_jobs),
        "predict_log_proba": log_probabilities,
    }
    return made_of[method](scores)
