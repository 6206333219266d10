"""What a cluster keeps of a block of rows for a fit, and what it counts there before.

Functions are pure: of what is kept of a block, and of what all blocks share. A worker of Spark
imports this module for its first task, without scikit-learn, which would take it seconds.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ColumnSpace
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.blocks import Block, Function
from polysparse.models.design import Design
from polysparse.models.weights import Extent, sums_by_class
from polysparse.observation.tally import ColumnTally


@dataclass(frozen=True)
class Rows:
    """The rows of a block, as they were given.

    Attributes
    ----------
    x : CanonicalCsr
        The data, in float64.
    y : ndarray of shape (n_rows,)
        The targets, or the classes themselves.
    weights : ndarray of float64 of shape (n_rows,)
        Weights of the rows.
    """

    x: CanonicalCsr
    y: NDArray[Any]
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Aims:
    """What a model is fitted to, as a Block has it."""

    targets: NDArray[Any]
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class ClassSums:
    """The classes that occur, sorted, and the sum of weights of each; they add up over blocks.

    `fault` says why y has no classes, if it has none.
    """

    classes: NDArray[Any]
    sums: NDArray[np.float64]
    fault: str | None = None

    def __add__(self, other: ClassSums) -> ClassSums:
        if self.fault or len(other.classes) == 0:  # whose dtype may be another
            return self
        if other.fault or len(self.classes) == 0:
            return other
        classes = np.unique(np.concatenate([self.classes, other.classes]))
        sums = np.zeros(len(classes))
        for each in (self, other):
            sums[np.searchsorted(classes, each.classes)] += each.sums
        return ClassSums(classes, sums)


@dataclass(frozen=True)
class Counts:
    """A tally that adds up over blocks, and is not changed by it."""

    tally: ColumnTally

    def __add__(self, other: Counts) -> Counts:
        total = ColumnTally(self.tally.basis)
        total.merge(self.tally)
        total.merge(other.tally)
        total.settle()
        return Counts(total)


def describe(rows: Rows) -> tuple[Any, ...]:
    """Return how many rows there are, and their weights."""
    return rows.x.shape[0], Extent.of(rows.weights)


def count_columns(rows: Rows, basis: MonomialBasis, n_jobs: int) -> tuple[Any, ...]:
    """Return which columns of a basis occur."""
    tally = ColumnTally(basis)
    tally.count(rows.x, n_jobs)
    return (Counts(tally),)


def count_classes(rows: Rows) -> tuple[Any, ...]:
    """Return the classes that occur and their weights, or why y has none."""
    classes, numbers = np.unique(rows.y, return_inverse=True)
    sums = sums_by_class(numbers, rows.weights, len(classes))
    fault = _fault_of(classes)
    if fault is not None:
        return (ClassSums(classes[:1], sums[:1], fault),)
    return (ClassSums(classes, sums),)


def _fault_of(classes: NDArray[Any]) -> str | None:
    """Return why scikit-learn does not take numbers or names for classes, if it does not."""
    if classes.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # of numbers that no integer is equal to
            is_whole = classes == classes.astype(np.int64)
        if is_whole.all():
            return None
    from polysparse.models.classes import require_classes

    try:
        with warnings.catch_warnings():  # of many classes among few rows
            warnings.simplefilter("ignore")
            require_classes(classes)
    except ValueError as error:
        return str(error)
    return None


def numbers_as_aims(rows: Rows) -> Aims:
    """Return the targets of a regression."""
    return Aims(rows.y.astype(np.float64, copy=False), rows.weights)


def classes_as_aims(rows: Rows, classes: NDArray[Any], factors: NDArray[np.float64]) -> Aims:
    """Return the classes of rows, counted from 0, with their factors in the weights."""
    numbers = np.searchsorted(classes, rows.y)
    return Aims(numbers, rows.weights * factors[numbers])


def class_shares(rows: Rows, aims: Aims, n_classes: int) -> tuple[Any, ...]:
    """Return the sum of weights of each class."""
    return (sums_by_class(aims.targets, aims.weights, n_classes),)


def contribute(
    rows: Rows,
    aims: Aims,
    *kept: Any,
    contribution: Function,
    columns: ColumnSpace,
    n_jobs: int,
    **shared: Any,
) -> Any:
    """Return what a block contributes: that of `models.contributions`."""
    block = Block(Design(columns, rows.x, n_jobs), aims.targets, aims.weights)
    return contribution(block, *kept, **shared)
