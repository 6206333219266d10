"""What a block of rows contributes to a fit: pure functions of the block and of shared arguments.

Functions that return rows are for `RowStore.keep`, those that return a tuple of sums for
`RowStore.total`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models.importance import moments_of
from polysparse.models.losses.interface import Loss, RowArray


def scores(block: Any, coefficients: NDArray[Any]) -> RowArray:
    """Return the expansion times coefficients."""
    out: RowArray = block.design.apply(coefficients)
    return out


def no_scores(block: Any, shape: tuple[int, ...]) -> RowArray:
    """Return the scores of coefficients that are 0; each row's are of this shape."""
    out: RowArray = np.zeros_like(block.weights, shape=(len(block.weights), *shape))
    return out


def count_rows(block: Any) -> tuple[Any, ...]:
    """Return in how many rows each column occurs."""
    return (block.design.count_rows(),)


def weighted_columns(block: Any) -> tuple[Any, ...]:
    """Return the weight of the rows, and the weighted sums of columns."""
    return float(block.weights.sum()), block.design.apply_transposed(block.weights)


def group_moments(
    block: Any, coefficients: NDArray[Any], number_of: NDArray[Any], shift: NDArray[Any]
) -> tuple[Any, ...]:
    """Return the weight of the rows, and moments of what each tuple of groups contributes."""
    design = block.design
    moments = moments_of(
        design.columns, design.x, block.weights, coefficients, number_of, shift, design.n_jobs
    )
    return moments.weight, moments.sums, moments.squares


# ---------------------------------------------------------------------------------------- losses


def loss_sums(block: Any, z: RowArray, loss: Loss, intercept: Any) -> tuple[Any, ...]:
    """Return sums of the losses at scores z."""
    return (_row_losses(block, loss).sums(z, intercept),)


def loss_sums_along(
    block: Any, z: RowArray, change: RowArray, old: Any, loss: Loss, **at: Any
) -> tuple[Any, ...]:
    """Return sums of the losses at `z + step * (change - shift)`, and derivatives along it."""
    return (_row_losses(block, loss).sums(z, change=change, old=old, **at),)


def point(block: Any, z: RowArray, loss: Loss, intercept: Any) -> Any:
    """Return the gradients and curvatures of rows at scores z."""
    return _row_losses(block, loss).point(z, intercept)


def _row_losses(block: Any, loss: Loss) -> Any:
    return loss.of_rows(block.targets, block.weights, block.design.n_jobs)


def gradient(block: Any, at: Any) -> tuple[Any, ...]:
    """Return the gradient of coefficients, and that of the intercept."""
    return block.design.apply_transposed(at.gradient), at.gradient.sum(axis=0)


def gradient_and_diagonal(block: Any, at: Any, is_centered: bool) -> tuple[Any, ...]:
    """Return the gradient of coefficients, the diagonal of the Hessian, and what centers it.

    The latter are the sums of columns and of rows, weighted by the curvatures, and the gradient of
    the intercept.
    """
    gradient = block.design.apply_transposed(at.gradient)
    squares = block.design.sum_squares(at.curvature)
    sums = block.design.apply_transposed(at.curvature) if is_centered else 0.0
    return gradient, squares, sums, at.curvature.sum(axis=0), at.gradient.sum(axis=0)


def rounding_sums(block: Any, z: RowArray, at: Any, intercept: Any) -> tuple[Any, ...]:
    """Return sums that bound how rounding errors of scores z change the losses.

    The weighted sums of squares of columns, the sum of absolute gradients, and that of squared
    scores, where a row has the weight of its absolute gradient plus its curvature.
    """
    steepness = np.abs(at.gradient)
    weights = steepness + at.curvature
    own = z + intercept
    of_scores = weights * (own * own + intercept * intercept)
    return block.design.sum_squares(weights), steepness.sum(), of_scores.sum()


def eighth_powers(block: Any, change: RowArray, shift: Any) -> tuple[Any, ...]:
    """Return the sum of `change - shift` to the eighth, of rows that have a weight.

    Of several scores, what is the same for all of them does not count: it changes no probability.
    """
    own = change - shift
    if own.ndim == 2:
        own = own - own.mean(axis=1)[:, None]
    has_weight = block.weights > 0 if own.ndim == 1 else block.weights[:, None] > 0
    return ((own**8 * has_weight).sum(),)


def total_curvature(block: Any, at: Any) -> tuple[Any, ...]:
    """Return the sum of curvatures."""
    return (at.curvature.sum(axis=0),)


def gram(block: Any, at: Any, directions: NDArray[Any], is_centered: bool) -> tuple[Any, ...]:
    """Return the Hessian, averaged over classes, times directions, and what centers it."""
    weights = at.curvature if at.curvature.ndim == 1 else at.curvature.mean(axis=1)
    return _gram(block, weights, directions, is_centered)


def intercept_cross(block: Any, at: Any, change: RowArray) -> tuple[Any, ...]:
    """Return the derivative of the intercept's gradient along a change of scores."""
    return (at.intercept_cross(change, block.design.n_jobs),)


def hessian_product(
    block: Any, at: Any, change: RowArray, shift: Any, out: NDArray[Any] | None = None
) -> tuple[Any, ...]:
    """Return the Hessian of coefficients times a direction, whose scores are `change - shift`."""
    rows = at.hessian_product(change, shift, block.design.n_jobs)
    return (block.design.apply_transposed(rows, out),)


# ------------------------------------------------------------------------------- squared errors


def residuals(block: Any, z: RowArray) -> RowArray:
    """Return targets less scores z."""
    out: RowArray = block.targets - z
    return out


def targets(block: Any) -> RowArray:
    """Return a copy of the targets."""
    out: RowArray = block.targets.astype(np.float64)
    return out


def weighted_sum(block: Any, rows: RowArray) -> tuple[Any, ...]:
    """Return the sum of `weights * rows`."""
    return (block.weighted_sum(rows),)


def squares(block: Any, rows: RowArray, shift: float = 0.0) -> tuple[Any, ...]:
    """Return the sum of `weights * (rows - shift)**2`."""
    return (block.weighted_squares(rows, shift),)


def column_sums(block: Any, is_centered: bool) -> tuple[Any, ...]:
    """Return the weighted sums of squares of columns and of columns, and the sum of weights."""
    squares = block.design.sum_squares(block.weights)
    sums = block.design.apply_transposed(block.weights) if is_centered else 0.0
    return squares, sums, float(block.weights.sum())


def transposed(
    block: Any, rows: RowArray, shift: float = 0.0, out: NDArray[Any] | None = None
) -> tuple[Any, ...]:
    """Return the transposed expansion times `weights * (rows - shift)`."""
    return (block.design.apply_transposed(block.weighted(rows, shift), out),)


def gram_of_columns(block: Any, directions: NDArray[Any], is_centered: bool) -> tuple[Any, ...]:
    """Return weighted inner products of columns times directions, and what centers them."""
    return _gram(block, block.weights, directions, is_centered)


def _gram(
    block: Any, weights: RowArray, directions: NDArray[Any], is_centered: bool
) -> tuple[Any, ...]:
    """Return the products, and the weighted sums of columns and of rows if they are centered."""
    sums = block.design.apply_transposed(weights) if is_centered else 0.0
    return block.design.gram(weights, directions), sums, float(weights.sum())


def squares_and_transposed(block: Any, rows: RowArray, shift: float) -> tuple[Any, ...]:
    """Return the results of `squares` and `transposed`, and the sum of the weighted rows."""
    own = block.weighted(rows, shift)
    return *squares(block, rows, shift), block.design.apply_transposed(own), float(own.sum())
