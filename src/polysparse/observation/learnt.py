"""What an estimator has learnt of columns: their counts, and which of them it keeps."""

from __future__ import annotations

from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ChosenColumns
from polysparse.observation.tally import ColumnTally


class Learnt:
    """What was counted and, once somebody asks, what was chosen of it.

    Never added to: partial_fit and merge swap in a new one, in one step.
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
        self.tallies = tallies  # all counts; none if all of them were chosen, or if forgotten
        self.limits = limits  # min_count and max_columns
        self.is_all = is_all  # whether what was chosen is all that was counted
        self.chosen = None if chosen is None else self._as_columns(*chosen)
        self.lock = RLock()  # two threads may ask first at once

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
        """Columns and counts that are kept."""
        with self.lock:
            if self.chosen is None:
                (tally,) = self.reopen()
                columns, counts = tally.chosen(*self.limits, n_jobs)
                self.is_all = len(columns) == tally.n_entries
                self.chosen = self._as_columns(columns, counts)
                if self.is_all:  # they need not be held twice
                    self.tallies = ()
            return self.chosen

    def reopen(self) -> tuple[ColumnTally]:
        """The counts of all columns in one tally, for the object that takes this one's place."""
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
                self.tallies, self.chosen = (tally,), None  # chosen again when asked for
            first, *others = self.tallies
            for other in others:
                first.take(other)  # which empties it, so that nothing counts twice
            self.tallies = (first,)
            return self.tallies

    def forget_rejected(self) -> None:
        """Keep only what was chosen."""
        with self.lock:
            self.choose(None)
            self.tallies = ()
