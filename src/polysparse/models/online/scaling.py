"""Scales of features and rates of learning, which the first rows of a stream decide."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace, HashedColumns
from polysparse.engine import cpu
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.operator.products import Products

FIRST_ROWS = 256  # that decide
NORM_FACTOR = 2.0  # a rate is a multiple of it, divided by the mean norm of expanded rows


@dataclass
class Scaling:
    """What features are divided by, and what rates are multiplied with.

    Both follow the first rows: before each block, they are those of all rows up to its end. Later,
    they stay, but for features that occur for the first time.

    Attributes
    ----------
    largest : ndarray of float64 of shape (n_features,)
        The largest absolute value of each feature, 0 before the feature occurs.
    n_rows : int
        Number of rows that were seen, up to `FIRST_ROWS`.
    norms : float
        Sum of the L1 norms of these rows, scaled and expanded.
    squares : float
        Sum of the squares of their targets.
    """

    largest: NDArray[np.float64]
    has_targets: bool  # whether rates follow the size of targets
    n_rows: int = 0
    norms: float = 0.0
    squares: float = 0.0

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
        norm = self.norms / self.n_rows if self.norms > 0 else 1.0
        return NORM_FACTOR / norm

    @property
    def size(self) -> float:
        """The root of the mean square of targets, if rates follow it."""
        if not self.has_targets or self.squares == 0:
            return 1.0
        return float(np.sqrt(self.squares / self.n_rows))

    def learn(
        self,
        columns: ColumnSpace,
        x: CanonicalCsr,
        targets: NDArray[np.float64],
        ends: NDArray[np.int64],
    ) -> tuple[CanonicalCsr, NDArray[np.float64], NDArray[np.float64]]:
        """Learn from blocks of rows; return `step` and `size` for each block, and scaled rows.

        Their values are float32.
        """
        steps, sizes = np.empty(len(ends)), np.empty(len(ends))
        n_first, begin = 0, 0
        data = np.empty(len(x.data), np.float32)
        while n_first < len(ends) and self.n_rows + begin < FIRST_ROWS:
            stored = slice(int(x.indptr[begin]), int(x.indptr[ends[n_first]]))
            indices, values = x.indices[stored], x.data[stored]
            np.maximum.at(self.largest, indices, np.abs(values))
            data[stored] = values / self.largest[indices]
            begin = int(ends[n_first])
            n_first += 1
        first = replace(x, data=data).rows(slice(0, begin))
        norms = l1_norms(columns, first) if n_first else np.empty(0)
        self._learn_rates(norms, targets, ends[:n_first], steps, sizes)
        later = slice(int(x.indptr[begin]), int(x.indptr[ends[-1]]))
        cpu.scale_values(x.indices[later], x.data[later], self.largest, data[later])
        steps[n_first:], sizes[n_first:] = self.step, self.size
        return replace(x, data=data), steps, sizes

    def _learn_rates(
        self,
        norms: NDArray[np.float64],
        targets: NDArray[np.float64],
        ends: NDArray[np.int64],
        steps: NDArray[np.float64],
        sizes: NDArray[np.float64],
    ) -> None:
        """Learn from the first rows, given their norms; write `step` and `size` of their blocks."""
        begin = 0
        for b, end in enumerate(ends.tolist()):
            sizes[b] = self.size  # of earlier targets: these are yet to be predicted
            for r in range(begin, end):  # in order, so that sums do not depend on the division
                self.norms += float(norms[r])
                self.squares += float(targets[r]) ** 2
            self.n_rows += end - begin
            steps[b] = self.step
            begin = end


def l1_norms(columns: ColumnSpace, x: CanonicalCsr) -> NDArray[np.float64]:
    """Return the L1 norm of each expanded row; those of hashed columns before they are merged."""
    if columns.kind != "chosen":
        columns = HashedColumns(columns.basis, 1, alternate_sign=False, seed=0)
    sizes = replace(x, data=np.abs(x.data, dtype=np.float64))
    return Products(columns, sizes, 1).apply(np.ones(columns.n_columns))
