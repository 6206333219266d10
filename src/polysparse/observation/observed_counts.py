"""ObservedCounts: in how many rows columns occur, and which of them are kept."""

from __future__ import annotations

from copy import copy
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ChosenColumns
from polysparse.observation.tally import LOCK, ColumnTally


class ObservedCounts:
    """The counts of columns and, once requested, the columns chosen from them.

    Counts are never added to it: partial_fit and merge swap in a new object, in one step. So copies
    of an estimator may share one, and a thread may go on using the one that it has.
    """

    def __init__(
        self,
        basis: MonomialBasis,
        tally: ColumnTally | None,
        limits: tuple[int, int | None],
        chosen: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
        is_all: bool = False,
    ) -> None:
        self.basis = basis
        self.tally = tally  # all counts; None if all columns were chosen, or after forgetting
        self.limits = limits  # min_count and max_columns
        self.is_all = is_all  # whether all counted columns were chosen
        self.chosen = None if chosen is None else self._as_columns(*chosen)

    def __getstate__(self) -> dict[str, Any]:
        self.choose(None)
        return self.__dict__.copy()

    def _as_columns(
        self, columns: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> tuple[ChosenColumns, NDArray[np.int64]]:
        columns.flags.writeable = counts.flags.writeable = False
        return ChosenColumns(self.basis, columns), counts

    def choose(self, n_jobs: int | None) -> tuple[ChosenColumns, NDArray[np.int64]]:
        """Return the columns that are kept, and their counts."""
        with LOCK:
            if self.chosen is None and self.tally is not None:
                columns, counts = self.tally.chosen(*self.limits, n_jobs)
                self.is_all = self.tally.is_whole and len(columns) == self.tally.n_entries
                self.chosen = self._as_columns(columns, counts)
                if self.is_all:  # the tally would hold the same counts a second time
                    self.tally = None
            return cast(tuple[ChosenColumns, NDArray[np.int64]], self.chosen)

    def counts(self) -> ColumnTally:
        """Return a tally with the counts of all columns, for an object that replaces this one."""
        with LOCK:
            self.require_counts()
            if self.tally is not None:
                return copy(self.tally)
            columns, counts = self.choose(None)
            tally = ColumnTally(self.basis)
            tally.add(columns.ranks, counts)
            return tally

    def require_counts(self) -> None:
        """Raise if the counts of columns that were not chosen are gone."""
        if self.tally is None and not self.is_all:
            raise ValueError(
                "The counts of columns that were not kept are gone, by forget_rejected or "
                "remember_rejected=False or by save and load: partial_fit and merge would not be "
                "exact. Call fit to start over."
            )

    def without_rejected(self) -> ObservedCounts:
        """Return the same without the counts of columns that were not chosen."""
        with LOCK:
            columns, counts = self.choose(None)
            return ObservedCounts(
                self.basis, None, self.limits, (columns.ranks, counts), self.is_all
            )
