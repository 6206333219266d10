"""A fit to rows that a cluster holds: a pass is a job, which sums what the blocks contribute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.clusters import rows as of_rows
from polysparse.clusters.calls import threads_in_task
from polysparse.columns.spaces import ColumnSpace
from polysparse.models.blocks import Function
from polysparse.models.logistic import PolynomialLogisticRegression, count_outputs
from polysparse.models.ridge import PolynomialRidge
from polysparse.observation.tally import ColumnTally


class Cluster(Protocol):
    """Who holds blocks of rows, calls functions of them, and adds up what these return."""

    def share(self, value: Any) -> Any:
        """Send a value to all workers once; what is returned stands for it in later calls."""

    def keep(self, function: Function, /, *kept: Any, once: bool = False, **shared: Any) -> Any:
        """Keep function(*kept, **shared) of every block, as `Blocks.keep` does."""

    def total(self, function: Function, /, *kept: Any, **shared: Any) -> tuple[Any, ...]:
        """Return the sums over all blocks, in their order, as `Blocks.total` does."""


class ClusterBlocks:
    """Rows that a cluster holds, as a solver's Blocks.

    Parameters
    ----------
    cluster : Cluster
        Who holds them.
    rows, aims : object
        What it keeps: Rows and Aims of every block.
    columns : ColumnSpace
        The columns of the model.
    n_jobs : int
        Number of threads of a task.
    """

    are_here = False

    def __init__(
        self, cluster: Cluster, rows: Any, aims: Any, columns: ColumnSpace, n_jobs: int
    ) -> None:
        self.cluster = cluster
        self.base = rows, aims
        self.same = {"columns": cluster.share(columns), "n_jobs": n_jobs}

    def keep(self, function: Function, *kept: Any, once: bool = False, **shared: Any) -> Any:
        """Keep function(block, *kept, **shared) of every block."""
        more = {"contribution": function, **self.same, **shared}
        return self.cluster.keep(of_rows.contribute, *self.base, *kept, once=once, **more)

    def total(self, function: Function, *kept: Any, out: Any = None, **shared: Any) -> Any:
        """Return the sums over all blocks; `out` is not used."""
        more = {"contribution": function, **self.same, **shared}
        return self.cluster.total(of_rows.contribute, *self.base, *kept, **more)


def fit(model: Any, cluster: Cluster, rows: Any, n_features: int) -> None:
    """Fit a model to rows that a cluster keeps.

    Parameters
    ----------
    model : PolynomialRidge or PolynomialLogisticRegression
        The model.
    cluster : Cluster
        Who holds the rows.
    rows : object
        What it keeps: Rows of every block.
    n_features : int
        Number of features.
    """
    model.require_parameters()
    last = model.forget()
    n_rows, extent = cluster.total(of_rows.describe, rows)
    if n_rows == 0:
        raise ValueError("X has no rows; at least one is needed to fit a model.")
    extent.require_valid()
    model.n_features_in_ = n_features
    how = cluster, rows, n_features
    if isinstance(model, PolynomialLogisticRegression):
        _fit_classes(model, *how, last)
    else:
        _fit_numbers(model, *how)


def _fit_numbers(model: PolynomialRidge, cluster: Cluster, rows: Any, n_features: int) -> None:
    columns = model.make_columns(n_features, _counter(model, cluster, rows))
    model.require_room(columns)
    aims = cluster.keep(of_rows.numbers_as_aims, rows)
    model.fit_blocks(
        columns, ClusterBlocks(cluster, rows, aims, columns, threads_in_task(model.n_jobs))
    )


def _fit_classes(
    model: PolynomialLogisticRegression,
    cluster: Cluster,
    rows: Any,
    n_features: int,
    last: dict[str, Any],
) -> None:
    (found,) = cluster.total(of_rows.count_classes, rows)
    if found.fault is not None:
        raise ValueError(found.fault)
    classes = found.classes
    factors = model.class_factors(classes, found.sums)
    columns = model.make_columns(n_features, _counter(model, cluster, rows))
    model.require_room(columns, count_outputs(classes))
    aims = cluster.keep(of_rows.classes_as_aims, rows, classes=classes, factors=factors)
    (shares,) = cluster.total(of_rows.class_shares, rows, aims, n_classes=len(classes))
    blocks = ClusterBlocks(cluster, rows, aims, columns, threads_in_task(model.n_jobs))
    model.fit_blocks(columns, blocks, classes, shares, last)


def _counter(model: Any, cluster: Cluster, rows: Any) -> Callable[[MonomialBasis], ColumnTally]:
    """Return a function that counts which columns of a basis occur in all blocks."""

    def count(basis: MonomialBasis) -> ColumnTally:
        n_jobs = threads_in_task(model.n_jobs)
        (counts,) = cluster.total(of_rows.count_columns, rows, basis=basis, n_jobs=n_jobs)
        tally: ColumnTally = counts.tally
        return tally

    return count
