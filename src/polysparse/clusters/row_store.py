"""ClusterRows: the rows of a fit as blocks on a cluster. Each sum over them is one job."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse.clusters import data_blocks
from polysparse.clusters.calls import threads_in_task
from polysparse.columns.spaces import ColumnSpace
from polysparse.models.classes import ClassWeights
from polysparse.models.losses.interface import Loss
from polysparse.models.objectives import Losses, SquaredErrors
from polysparse.models.recomputed_rows import RecomputedLosses, RecomputedResiduals
from polysparse.models.row_store import Function
from polysparse.models.weights import TargetRange, WeightRange
from polysparse.observation.tally import ColumnTally, Counted


class Cluster(Protocol):
    """Holds blocks of rows, calls functions with them, and adds up the results."""

    def share(self, value: Any) -> Any:
        """Send a value to all workers once; return a reference to it for later calls."""

    def keep(self, function: Function, /, *kept: Any, once: bool = False, **shared: Any) -> Any:
        """Keep function(*kept, **shared) of every block, as `RowStore.keep` does."""

    def total(self, function: Function, /, *kept: Any, **shared: Any) -> tuple[Any, ...]:
        """Return the sums over all blocks, in their order, as `RowStore.total` does."""


class ClusterRows:
    """Rows that a cluster holds, as a RowStore.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    data : object
        Its reference to the DataBlock of every block.
    n_features : int
        Number of features.
    n_jobs : int or None
        Number of threads of a task; by default one.
    """

    def __init__(self, cluster: Cluster, data: Any, n_features: int, n_jobs: int | None) -> None:
        self.cluster = cluster
        self.data = data
        self.n_features = n_features
        self.n_jobs = threads_in_task(n_jobs)

    def describe(self) -> tuple[int, WeightRange]:
        n_rows, weights = self.cluster.total(data_blocks.describe, self.data)
        return n_rows, weights

    def count_classes(self) -> ClassWeights:
        (found,) = self.cluster.total(data_blocks.count_classes, self.data)
        if found.fault is not None:
            raise ValueError(found.fault)
        return found  # type: ignore[no-any-return]

    def count_targets(self) -> int | None:
        """Return None: blocks have one target."""
        return None

    def describe_targets(self) -> TargetRange:
        (found,) = self.cluster.total(data_blocks.describe_targets, self.data)
        return found  # type: ignore[no-any-return]

    def count_columns(self, columns: Counted) -> ColumnTally:
        (tally,) = self.cluster.total(
            data_blocks.count_columns, self.data, columns=columns, n_jobs=self.n_jobs
        )
        return tally  # type: ignore[no-any-return]

    def set_targets(self, columns: ColumnSpace, loss: Loss) -> None:
        """Encode y for a loss, and send the columns to the workers.

        If groups of features are not contiguous, features are sorted once, not in every pass.
        """
        groups = columns.basis.groups
        if groups is not None and groups.order is not None:
            self.data = self.cluster.keep(data_blocks.sort_features, self.data, basis=columns.basis)
        self._encoded = self.cluster.keep(data_blocks.encode_targets, self.data, loss=loss)
        self._shared = {"columns": self.cluster.share(columns), "n_jobs": self.n_jobs}

    def weights_by_class(self, n_classes: int) -> NDArray[np.float64]:
        (sums,) = self.cluster.total(
            data_blocks.weights_by_class, self.data, self._encoded, n_classes=n_classes
        )
        return sums  # type: ignore[no-any-return]

    def keep(self, function: Function, *kept: Any, once: bool = False, **shared: Any) -> Any:
        more = {"contribution": function, **self._shared, **shared}
        blocks = self.data, self._encoded
        return self.cluster.keep(data_blocks.contribute, *blocks, *kept, once=once, **more)

    def total(self, function: Function, *kept: Any, out: Any = None, **shared: Any) -> Any:
        """Return the sums over all blocks; `out` is not used."""
        more = {"contribution": function, **self._shared, **shared}
        return self.cluster.total(data_blocks.contribute, self.data, self._encoded, *kept, **more)

    def losses(self, loss: Loss, intercept: Any, n_jobs: int | None) -> Losses:
        return RecomputedLosses(self, loss, intercept, n_jobs)

    def squared_errors(self, has_intercept: bool, n_jobs: int | None) -> SquaredErrors:
        return RecomputedResiduals(self, has_intercept, n_jobs)

    def run(self, function: Function, *arguments: Any) -> Any:
        return function(*arguments)
