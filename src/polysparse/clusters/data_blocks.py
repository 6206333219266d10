"""The blocks of rows that a cluster holds for a fit, and the functions that count in them.

These are pure functions of what is held of a block and of shared arguments. A Spark worker imports
this module for its first task, so it does not import scikit-learn, which takes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ColumnSpace
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.classes import ClassWeights, fault_in_classes
from polysparse.models.design import Design
from polysparse.models.local_rows import Block
from polysparse.models.losses.interface import Loss
from polysparse.models.row_store import Function
from polysparse.models.weights import TargetRange, WeightRange, sums_by_class
from polysparse.observation import tally


@dataclass(frozen=True)
class DataBlock:
    """The rows of a block as they were given.

    Attributes
    ----------
    x : CanonicalCsr
        The data, in float64.
    y : ndarray of shape (n_rows,)
        The targets, or the classes.
    weights : ndarray of float64 of shape (n_rows,)
        Weights of the rows.
    offset : ndarray of float64 of shape (n_rows,), or None
        What is added to the scores of rows.
    """

    x: CanonicalCsr
    y: NDArray[Any]
    weights: NDArray[np.float64]
    offset: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class EncodedTargets:
    """The targets and weights of a block as a loss takes them."""

    targets: NDArray[Any]
    weights: NDArray[np.float64]


def describe(data: DataBlock) -> tuple[Any, ...]:
    """Return the number of rows and the range of their weights."""
    return data.x.shape[0], WeightRange.of(data.weights)


def count_columns(data: DataBlock, columns: tally.Counted, n_jobs: int) -> tuple[Any, ...]:
    """Return in how many rows each column of a basis occurs."""
    return (tally.count_columns(columns, data.x, n_jobs),)


def count_classes(data: DataBlock) -> tuple[Any, ...]:
    """Return the classes that occur and their weights, or why y has no classes."""
    classes, numbers = np.unique(data.y, return_inverse=True)
    sums = sums_by_class(numbers, data.weights, len(classes))
    fault = fault_in_classes(classes)
    if fault is not None:
        return (ClassWeights(classes[:1], sums[:1], fault),)
    return (ClassWeights(classes, sums),)


def describe_targets(data: DataBlock) -> tuple[Any, ...]:
    """Return the range of the targets."""
    return (TargetRange.of(data.y, data.weights),)


def sort_features(data: DataBlock, basis: MonomialBasis) -> DataBlock:
    """Return the rows with the features of a basis sorted by group."""
    return replace(data, x=data.x.sorted_by_group(basis))


def encode_targets(data: DataBlock, loss: Loss) -> EncodedTargets:
    """Return the targets and weights for a loss."""
    return EncodedTargets(*loss.encode(data.y, data.weights, data.offset))


def weights_by_class(_: DataBlock, encoded: EncodedTargets, n_classes: int) -> tuple[Any, ...]:
    """Return the sum of the encoded weights of each class."""
    return (sums_by_class(encoded.targets, encoded.weights, n_classes),)


def contribute(
    data: DataBlock,
    encoded: EncodedTargets,
    *kept: Any,
    contribution: Function,
    columns: ColumnSpace,
    n_jobs: int,
    **shared: Any,
) -> Any:
    """Return what a block contributes: the result of a function of `models.contributions`."""
    block = Block(Design(columns, data.x, n_jobs), encoded.targets, encoded.weights)
    return contribution(block, *kept, **shared)
