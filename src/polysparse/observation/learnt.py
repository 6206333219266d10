"""What an estimator has learnt about columns: their counts, and which of them it keeps."""

from __future__ import annotations

from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ChosenColumns
from polysparse.observation.tally import ColumnTally


class Learnt:
    """The counts of columns and, once requested, the columns chosen from them.

    Counts are never added to it: partial_fit and merge swap in a new object, in one step.
    """

    def __init__(
        self,
        basis: MonomialBasis,
        tallies: tuple[ColumnTally, ...],
        limits: tuple[int, int | None],
        chosen: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
        is_all: bool = False,
    ) -> None:
        self.basis = basis
        self.tallies = tallies  # all counts; empty if all columns were chosen, or after forgetting
        self.limits = limits  # min_count and max_columns
        self.is_all = is_all  # whether all counted columns were chosen
        self.chosen = None if chosen is None else self._as_columns(*chosen)
        self.lock = RLock()  # two threads may be the first to call choose

    def __getstate__(self) -> dict[str, Any]:
        self.choose(None)
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=RLock())

    def _as_columns(
        self, columns: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> tuple[ChosenColumns, NDArray[np.int64]]:
        columns.flags.writeable = counts.flags.writeable = False
        return ChosenColumns(self.basis, columns), counts

    def choose(self, n_jobs: int | None) -> tuple[ChosenColumns, NDArray[np.int64]]:
        """Return the columns that are kept, and their counts."""
        with self.lock:
            if self.chosen is None:
                (tally,) = self.reopen()
                columns, counts = tally.chosen(*self.limits, n_jobs)
                self.is_all = len(columns) == tally.n_entries
                self.chosen = self._as_columns(columns, counts)
                if self.is_all:  # the tally would hold the same counts a second time
                    self.tallies = ()
            return self.chosen

    def reopen(self) -> tuple[ColumnTally]:
        """Return all counts in a single tally, for the object that replaces this one."""
        with self.lock:
            if not self.tallies:
                if not self.is_all or self.chosen is None:
                    raise ValueError(
                        "The counts of columns that were not kept are gone, by forget_rejected or "
                        "by save and load: partial_fit and merge would not be exact. Call fit to "
                        "begin anew."
                    )
                tally = ColumnTally(self.basis)
                tally.add(self.chosen[0].ranks, self.chosen[1])
                self.tallies, self.chosen = (tally,), None  # chosen again on request
            first, *others = self.tallies
            for other in others:
                first.take(other)  # empties `other`, so that nothing is counted twice
            self.tallies = (first,)
            return self.tallies

    def forget_rejected(self) -> None:
        """Discard the counts of columns that were not chosen."""
        with self.lock:
            self.choose(None)
            self.tallies = ()
