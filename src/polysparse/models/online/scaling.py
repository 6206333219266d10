"""Scales of features and rates of learning, which follow the rows of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace, HashedColumns
from polysparse.engine import cpu
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.operator.products import Products

FIRST_ROWS = 256  # whose largest values are the scales
RATE_ROWS = 2048  # that decide about rates
LARGEST_SCALED = 2.0  # of the size of a scaled value, after the first rows
NORM_FACTOR = 2.0  # a rate is a multiple of it, divided by the mean norm of expanded rows

# What to undo if rows are not learned from: features, and what their scales were, in order.
Changes = tuple[NDArray[np.int64], NDArray[np.float64]]
NO_CHANGES: Changes = np.empty(0, np.int64), np.empty(0)


@dataclass
class Scaling:
    """What features are divided by, and what rates are multiplied with.

    Before each block, both include the rows of this block, whose features are known before their
    targets. A scale never decreases. It is the largest value in the first rows; later, a scale
    grows if a value is more than twice as large, to half of this value. A feature that occurs
    later for the first time begins with its largest value in that block.

    Attributes
    ----------
    largest : ndarray of float64 of shape (n_features,)
        The scale of each feature, 0 before the feature occurs.
    n_rows : int
        Number of rows with weights above 0 that were seen, up to about `rate_rows`.
    norms : float
        Sum of the L1 norms of these rows, scaled and expanded.
    targets : float
        Sum of the squares of their targets; of counts, the sum of targets.
    """

    largest: NDArray[np.float64]
    loss: str
    n_rows: int = 0
    norms: float = 0.0
    targets: float = 0.0
    _changes: Changes = field(default=NO_CHANGES, repr=False, compare=False)
    _before: tuple[int, float, float] = (0, 0.0, 0.0)

    def scale(self, x: CanonicalCsr) -> CanonicalCsr:
        """Return rows with scaled values. Features that have not occurred stay as they are."""
        return replace(x, data=x.data / self.scales[x.indices])

    @property
    def scales(self) -> NDArray[np.float64]:
        """What features are divided by: 1 for those that have not occurred."""
        return np.where(self.largest > 0, self.largest, 1.0)

    @property
    def step(self) -> float:
        """What rates are multiplied with, for the rows up to now."""
        return float(_steps(np.float64(self.norms), self.n_rows))

    @property
    def size(self) -> float:
        """The root of the mean square of targets, if the loss is squared."""
        return float(self._sizes(np.float64(self.targets), self.n_rows))

    @property
    def mean(self) -> float:
        """The mean of counts, which is above 0 whatever they are."""
        return (self.targets + 0.5) / (self.n_rows + 1)

    @property
    def rate_rows(self) -> int:
        """How many rows decide about rates."""
        return FIRST_ROWS if self.loss == "poisson" else RATE_ROWS

    def learn(
        self,
        columns: ColumnSpace,
        x: CanonicalCsr,
        targets: NDArray[np.float64],
        counts: NDArray[np.bool_],
        ends: NDArray[np.int64],
    ) -> tuple[CanonicalCsr, NDArray[np.float64], NDArray[np.float64]]:
        """Learn from blocks of rows; return `step` and `size` for each block, and scaled rows.

        Their values are float32. Rows that do not count have no weight.
        """
        self._before = self.n_rows, self.norms, self.targets
        scaled = replace(x, data=self._learn_scales(x, counts, ends))
        steps, sizes = np.empty(len(ends)), np.empty(len(ends))
        n_counted = np.cumsum(counts)[ends - 1]
        n_first = 0
        if self.n_rows < self.rate_rows:
            n_first = int(np.searchsorted(n_counted, self.rate_rows - self.n_rows)) + 1
            n_first = min(n_first, len(ends))
            end = int(ends[n_first - 1])
            norms = l1_norms(columns, scaled.rows(slice(0, end)))
            rates = self._learn_rates(norms, targets, counts, ends[:n_first])
            steps[:n_first], sizes[:n_first] = rates
        steps[n_first:], sizes[n_first:] = self.step, self.size
        return scaled, steps, sizes

    def undo(self) -> None:
        """Go back to before the last call of `learn`."""
        features, before = self._changes
        self.largest[features[::-1]] = before[::-1]  # the first one of a feature counts
        self.n_rows, self.norms, self.targets = self._before

    def _learn_scales(
        self, x: CanonicalCsr, counts: NDArray[np.bool_], ends: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Learn the scales of the features of each block, and return scaled values."""
        data = np.empty(len(x.data), np.float32)
        starts = np.concatenate([[0], ends])
        n_before = np.concatenate([[0], np.cumsum(counts)])[starts[:-1]] + self.n_rows
        limits = np.where(n_before < FIRST_ROWS, 1.0, LARGEST_SCALED)
        at = x.indptr[starts].astype(np.int64, copy=False)  # where the values of a block begin
        self._changes = cpu.scale_blocks(x, at, limits, self.largest, data)
        return data

    def _learn_rates(
        self,
        norms: NDArray[np.float64],
        targets: NDArray[np.float64],
        counts: NDArray[np.bool_],
        ends: NDArray[np.int64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Learn from the first rows, given their norms; return `step` and `size` of their blocks.

        Sums are added in the order of rows, so that they do not depend on the division.
        """
        n = int(ends[-1])
        sizes = targets[:n] ** 2 if self.loss == "squared" else targets[:n]
        own_norms, own_targets = (
            np.cumsum(np.concatenate([[first], np.where(counts[:n], each, 0.0)]))
            for first, each in ((self.norms, norms), (self.targets, sizes))
        )
        n_rows = self.n_rows + np.concatenate([[0], np.cumsum(counts[:n])])
        starts = np.concatenate([[0], ends[:-1]])
        self.n_rows = int(n_rows[n])
        self.norms, self.targets = float(own_norms[n]), float(own_targets[n])
        # Targets of a block are yet to be predicted.
        return _steps(own_norms[ends], n_rows[ends]), self._sizes(
            own_targets[starts], n_rows[starts]
        )

    def _sizes(self, targets: Any, n_rows: Any) -> NDArray[np.float64]:
        """Return `size` for sums of targets of some rows."""
        if self.loss != "squared":
            return np.ones_like(targets)
        means = np.divide(targets, n_rows, out=np.ones_like(targets), where=targets > 0)
        sizes: NDArray[np.float64] = np.sqrt(means)
        return sizes


def _steps(norms: Any, n_rows: Any) -> NDArray[np.float64]:
    """Return `step` for sums of norms of some rows."""
    means = np.divide(norms, n_rows, out=np.ones_like(norms), where=norms > 0)
    steps: NDArray[np.float64] = NORM_FACTOR / means
    return steps


def l1_norms(columns: ColumnSpace, x: CanonicalCsr) -> NDArray[np.float64]:
    """Return the L1 norm of each expanded row; those of hashed columns before they are merged."""
    if columns.kind != "chosen":
        columns = HashedColumns(columns.basis, 1, alternate_sign=False, seed=0)
    sizes = replace(x, data=np.abs(x.data, dtype=np.float64))
    return Products(columns, sizes, 1).apply(np.ones(columns.n_columns))
