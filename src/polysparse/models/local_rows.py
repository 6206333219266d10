"""LocalRows: the rows of a fit in the memory of this process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import cpu
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.classes import ClassWeights, find_classes
from polysparse.models.design import Design
from polysparse.models.losses.interface import Loss, RowArray
from polysparse.models.objectives import Losses, SquaredErrors
from polysparse.models.row_store import Function
from polysparse.models.updated_rows import UpdatedLosses, UpdatedResiduals
from polysparse.models.vectors import combine, dot, multiply, weighted_squares
from polysparse.models.weights import TargetRange, WeightRange, sums_by_class
from polysparse.observation.tally import ColumnTally, Counted, count_columns


@dataclass(frozen=True)
class Block:
    """A block of rows: their expansion, which is never built, and what to fit it to.

    Attributes
    ----------
    design : Design
        Matrix-vector products with the expansion.
    targets : ndarray of shape (n_rows, ...)
        What the loss makes of the targets: numbers, or the number of each row's class.
    weights : ndarray of float64 of shape (n_rows,)
        Non-negative weights of the rows.
    """

    design: Any
    targets: Any
    weights: Any

    def weighted_sum(self, rows: RowArray) -> float:
        """Return the sum of `weights * rows`."""
        return dot(self.weights, rows, self.design.n_jobs)

    def weighted_squares(self, rows: RowArray, shift: float) -> float:
        """Return the sum of `weights * (rows - shift)**2`."""
        return weighted_squares(self.weights, rows, shift, self.design.n_jobs)

    def weighted(self, rows: RowArray, shift: float) -> RowArray:
        """Return `weights * (rows - shift)`."""
        return multiply(self.weights, rows, shift, self.design.n_jobs)


class LocalRows:
    """Rows in the memory of this process, as one block.

    Parameters
    ----------
    x : CanonicalCsr
        The data, in float64.
    y : ndarray of shape (n_rows,)
        The targets, or the classes.
    weights : ndarray of float64 of shape (n_rows,)
        Weights of the rows.
    n_jobs : int or None
        Number of threads.
    offset : ndarray of float64 of shape (n_rows,), optional
        What is added to the scores of rows.
    """

    def __init__(
        self,
        x: CanonicalCsr,
        y: NDArray[Any],
        weights: NDArray[np.float64],
        n_jobs: int | None,
        offset: NDArray[np.float64] | None = None,
    ) -> None:
        self.x = x
        self.y = y
        self.weights = weights
        self.n_jobs = n_jobs
        self.offset = offset
        self.block: Block
        self._design: Design | None = None  # to the columns of the last `set_targets`

    @property
    def n_features(self) -> int:
        return self.x.shape[1]

    def describe(self) -> tuple[int, WeightRange]:
        return self.x.shape[0], WeightRange.of(self.weights)

    def count_classes(self) -> ClassWeights:
        classes, numbers = find_classes(self.y)
        return ClassWeights(classes, sums_by_class(numbers, self.weights, len(classes)))

    def count_targets(self) -> int | None:
        return None if self.y.ndim == 1 else self.y.shape[1]

    def describe_targets(self) -> TargetRange:
        return TargetRange.of(self.y, self.weights)

    def count_columns(self, columns: Counted) -> ColumnTally:
        return count_columns(columns, self.x, self.n_jobs)

    def set_targets(self, columns: ColumnSpace, loss: Loss) -> None:
        encoded = loss.encode(self.y, self.weights, self.offset)
        if self._design is None or self._design.columns is not columns:
            self._design = Design(columns, self.x, self.n_jobs)
        self.block = Block(self._design, *encoded)

    @property
    def n_outputs(self) -> int:
        """Number of outputs in a matrix-vector product with the expansion."""
        return self.block.design.products.n_outputs  # type: ignore[no-any-return]

    def take(self, numbers: NDArray[np.intp]) -> LocalRows:
        """Return copies of rows, by their numbers."""
        offset = None if self.offset is None else self.offset[numbers]
        own = self.x.take(numbers), self.y[numbers], self.weights[numbers]
        return LocalRows(*own, self.n_jobs, offset)

    def reweighted(self, factors: NDArray[np.float64]) -> LocalRows:
        """Return the same rows, which are shared, with their weights times factors."""
        weights = self.weights * factors
        return LocalRows(self.x, self.y, weights, self.n_jobs, self.offset)

    def weights_by_class(self, n_classes: int) -> NDArray[np.float64]:
        return sums_by_class(self.block.targets, self.block.weights, n_classes)

    def keep(self, function: Function, *kept: Any, once: bool = False, **shared: Any) -> Any:
        return function(self.block, *kept, **shared)

    def total(self, function: Function, *kept: Any, out: Any = None, **shared: Any) -> Any:
        more = {} if out is None else {"out": out}
        return function(self.block, *kept, **shared, **more)

    def add(self, rows: Any, step: float, change: Any, shift: float = 0.0) -> None:
        """Add `step * (change - shift)` to rows, in place."""
        combine(1.0, rows.reshape(-1), step, change.reshape(-1), self.n_jobs, shift)

    def losses(self, loss: Loss, intercept: Any, n_jobs: int | None) -> Losses:
        return UpdatedLosses(self, loss, intercept, n_jobs)

    def squared_errors(self, has_intercept: bool, n_jobs: int | None) -> SquaredErrors:
        return UpdatedResiduals(self, has_intercept, n_jobs)

    def run(self, function: Function, *arguments: Any) -> Any:
        """Call a function with threads that wait between products instead of being restarted."""
        with cpu.keeping_threads() as call:
            return call(function, *arguments)


def add_in_order(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the sums of tuples, from the first to the last. The tuples are not changed."""
    parts = iter(parts)
    out, are_own = list(next(parts)), False
    for part in parts:
        for i, each in enumerate(part):
            if are_own and isinstance(each, np.ndarray) and each.ndim:
                out[i] += each
            else:
                out[i] = out[i] + each
        are_own = True
    return tuple(out)
