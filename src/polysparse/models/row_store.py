"""RowStore: the rows of a fit, wherever they are.

A solver sees sums over rows and nothing else. `local_rows` has the rows in the memory of this
process, `clusters/row_store.py` those of a cluster, `gpu/row_store.py` those of a GPU. To fit
models to rows that are held somewhere else, write another RowStore.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.models.classes import ClassWeights
from polysparse.models.weights import TargetRange, WeightRange
from polysparse.observation.tally import ColumnTally, Counted

Function = Callable[..., Any]  # of a block, of what is kept of it, and of what all blocks share


class RowStore(Protocol):
    """All rows of a fit: X, the targets, the weights, and offsets of the scores if there are any.

    `models.fitting` calls `describe`, `count_classes` or `describe_targets`, `count_columns` and
    `set_targets`, in this order; then a solver calls `keep` and `total` with the functions of
    `models.contributions`. Those are pure: what they return depends on their arguments alone, so
    that a block, or what is kept of it, may be lost and computed again.
    """

    @property
    def n_features(self) -> int:
        """Number of features of X."""

    def describe(self) -> tuple[int, WeightRange]:
        """Return the number of rows and the range of their weights."""

    def count_classes(self) -> ClassWeights:
        """Return the classes in y, and their weights; raise ValueError if y has no classes."""

    def count_targets(self) -> int | None:
        """Return the number of columns of y; None if it has one dimension."""

    def describe_targets(self) -> TargetRange:
        """Return the range of y, which are numbers."""

    def count_columns(self, columns: Counted) -> ColumnTally:
        """Count in how many rows each column of a basis, or each chosen one, occurs."""

    def set_targets(self, columns: ColumnSpace, loss: Any) -> None:
        """Encode y for a `losses.interface.Loss`, and prepare the expansion to these columns.

        An offset, if there is one, is passed to `loss.encode`.
        """

    def weights_by_class(self, n_classes: int) -> NDArray[np.float64]:
        """Return the sum of the encoded weights of each class."""

    def keep(self, function: Function, *kept: Any, once: bool = False, **shared: Any) -> Any:
        """Keep function(block, *kept of the block, **shared) of every block, where the block is.

        Parameters
        ----------
        function : callable
            The function.
        *kept : object
            What was kept before.
        once : bool, default=False
            Whether only the next call of `total` needs it.
        **shared : object
            Arguments for all blocks. Arrays may be changed after the call.

        Returns
        -------
        object
            A reference for later calls. The result is dropped with the last reference to it.
        """

    def total(self, function: Function, *kept: Any, out: Any = None, **shared: Any) -> Any:
        """Return the tuple of sums over blocks, in their order, of what the function returns.

        `out` is an earlier result that is not needed any more; it may be overwritten.
        """

    def losses(self, loss: Any, intercept: Any, n_jobs: int | None) -> Any:
        """Return the objective of a loss over these rows: an `objectives.Losses`."""

    def squared_errors(self, has_intercept: bool, n_jobs: int | None) -> Any:
        """Return the objective of least squares: an `objectives.SquaredErrors`."""

    def run(self, function: Function, *arguments: Any) -> Any:
        """Call a function that calls `keep` and `total` many times."""
