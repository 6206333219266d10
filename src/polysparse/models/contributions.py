"""What a block of rows contributes to a fit: functions of the block and of what all blocks share.

Those that return rows are for `Blocks.keep`, those that return a tuple of sums for `Blocks.total`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.array_losses import array_losses_for
from polysparse.models.blocks import Block
from polysparse.models.losses import RowLosses, Rows
from polysparse.models.vectors import are_here, dot, multiply, weighted_squares


def scores(block: Block, coefficients: NDArray[Any]) -> Rows:
    """Return the expansion times coefficients."""
    return block.design.apply(coefficients)


def count_rows(block: Block) -> tuple[Any, ...]:
    """Return in how many rows each column occurs."""
    return (block.design.count_rows(),)


# ------------------------------------------------------------------------------- logistic losses


def log_losses(block: Block, z: Rows, n_classes: int, **at: Any) -> tuple[Any, ...]:
    """Return sums of the losses at scores z."""
    return (_loss(block, n_classes).sums(z, **at),)


def log_losses_along(
    block: Block, z: Rows, change: Rows, old: Any, n_classes: int, **at: Any
) -> tuple[Any, ...]:
    """Return sums of the losses at a change of scores z, and how they change along it."""
    return (_loss(block, n_classes).sums(z, change=change, old=old, **at),)


def point(block: Block, z: Rows, n_classes: int, intercept: Any) -> Any:
    """Return the gradients and curvatures of rows at scores z."""
    return _loss(block, n_classes).point(z, intercept)


def _loss(block: Block, n_classes: int) -> Any:
    if not are_here(block.weights):
        return array_losses_for(block.targets, block.weights, n_classes)
    return RowLosses(block.targets, block.weights, n_classes, block.design.n_jobs)


def model(block: Block, at: Any, is_centred: bool) -> tuple[Any, ...]:
    """Return the gradient at a point, the weighted sums of squares and of columns, and of rows."""
    gradient = block.design.apply_transposed(at.residuals)
    squares = block.design.sum_squares(at.weights)
    sums = block.design.apply_transposed(at.weights) if is_centred else 0.0
    return gradient, squares, sums, at.weights.sum(axis=0)


def gram(block: Block, at: Any, directions: NDArray[Any], is_centred: bool) -> tuple[Any, ...]:
    """Return the Hessian of a mean class times directions, and what `centred` needs to know."""
    weights = at.weights if at.weights.ndim == 1 else at.weights.mean(axis=1)
    return _gram(block, weights, directions, is_centred)


def cross(block: Block, at: Any, change: Rows) -> tuple[Any, ...]:
    """Return how the slopes of intercepts change along a change of scores."""
    return (at.cross(change, block.design.n_jobs),)


def curve(
    block: Block, at: Any, change: Rows, shift: Any, out: NDArray[Any] | None = None
) -> tuple[Any, ...]:
    """Return the Hessian at a point times the direction that makes a change of scores."""
    curved = at.curve(change, shift, block.design.n_jobs)
    return (block.design.apply_transposed(curved, out),)


# ------------------------------------------------------------------------------- squared errors


def errors(block: Block, z: Rows) -> Rows:
    """Return targets less scores z."""
    out: Rows = block.targets - z
    return out


def targets(block: Block) -> Rows:
    """Return a copy of the targets."""
    return block.targets.astype(np.float64)


def weighted_sum(block: Block, rows: Rows) -> tuple[Any, ...]:
    """Return the sum of weights times rows."""
    return (dot(block.weights, rows, block.design.n_jobs),)


def squares(block: Block, rows: Rows, shift: float = 0.0) -> tuple[Any, ...]:
    """Return the weighted sum of squares of rows less a shift."""
    return (weighted_squares(block.weights, rows, shift, block.design.n_jobs),)


def column_sums(block: Block, is_centred: bool) -> tuple[Any, ...]:
    """Return the weighted sums of squares of columns and of columns, and the sum of weights."""
    squares = block.design.sum_squares(block.weights)
    sums = block.design.apply_transposed(block.weights) if is_centred else 0.0
    return squares, sums, float(block.weights.sum())


def transposed(
    block: Block, rows: Rows, shift: float = 0.0, out: NDArray[Any] | None = None
) -> tuple[Any, ...]:
    """Return the transposed expansion times weighted rows less a shift."""
    weighted = multiply(block.weights, rows, shift, block.design.n_jobs)
    return (block.design.apply_transposed(weighted, out),)


def gram_of_columns(block: Block, directions: NDArray[Any], is_centred: bool) -> tuple[Any, ...]:
    """Return weighted inner products of columns times directions, as `gram` does."""
    return _gram(block, block.weights, directions, is_centred)


def _gram(
    block: Block, weights: Rows, directions: NDArray[Any], is_centred: bool
) -> tuple[Any, ...]:
    """Return products, and if they are to be centred weighted sums of columns and of rows."""
    sums = block.design.apply_transposed(weights) if is_centred else 0.0
    return block.design.gram(weights, directions), sums, float(weights.sum())


def squares_and_transposed(block: Block, rows: Rows, shift: float) -> tuple[Any, ...]:
    """Return what `squares` and `transposed` do."""
    return squares(block, rows, shift) + transposed(block, rows, shift)
