"""ColumnTally: in how many rows each column of an expansion occurs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from threading import RLock
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from polysparse import machine, thresholds
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ChosenColumns
from polysparse.engine import cpu
from polysparse.machine import format_bytes, threads_for
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.matrix.row_profile import require_countable

# A counted column takes 12 bytes for its number and its count, and 12 more while batches merge.
ENTRY_BYTES = 24

Counted = MonomialBasis | ChosenColumns  # the columns that are counted: all of a basis, or some

MOST = 2**63 - 1
MOST_AT_ONCE = 2**32  # rows and stored values that the kernels count together are fewer

# Guards all tallies, because the kernels release the GIL. Counting itself does not hold it. A fork
# waits for it, so that no child inherits a half-merged tally or a lock that is never released.
LOCK = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release
    )


class ColumnTally:
    """Counts of the columns that occur, over any number of matrices.

    It takes about 24 bytes per distinct column, whatever the size of the expansion. `is_whole` is
    False if columns of few rows were left out.
    """

    def __init__(self, basis: MonomialBasis) -> None:
        self.basis = basis
        self.native = cpu.Tally()
        self.is_whole = True

    def __getstate__(self) -> dict[str, Any]:
        return {"basis": self.basis, "entries": self.chosen(1, None)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["basis"])  # type: ignore[misc]
        self.add(*state["entries"])

    def count(
        self,
        x: CanonicalCsr,
        n_jobs: int | None = None,
        max_bytes: int | None = None,
        least: int = 1,
    ) -> None:
        """Count the rows of one more matrix: all of them, or none if that fails.

        Columns in fewer than `least` rows may be left out, which needs less time and memory. To
        know them takes all rows at once: 28 bytes or more per stored value of x.

        Raises MemoryError if there is not enough memory for all columns, or if max_bytes is too
        small.
        """
        self.basis.require_indexable()
        x = x.sorted_by_group(self.basis)
        n_outputs = x.profile_for(self.basis).outputs(self.basis)
        require_countable(n_outputs)
        n_threads = threads_for(n_jobs, n_outputs)
        needed = cpu.observing_bytes(self.basis, x.indices.itemsize, n_threads)
        fresh = cpu.Tally()
        batches = batches_of_rows(x.indptr, _stored_at_once(*needed, x.shape[1]))
        is_pruned = least > 1 and len(x.data) < MOST_AT_ONCE and x.shape[0] < MOST_AT_ONCE
        if is_pruned:
            batches = [slice(0, x.shape[0])]
        for rows in batches:
            limit = machine.available_bytes()
            if max_bytes is not None:
                limit = max_bytes - ENTRY_BYTES * (self.n_entries + fresh.n_entries)
            most = MOST if limit is None else max(0, limit) // ENTRY_BYTES
            part = least if is_pruned else 1
            if not cpu.observe(fresh, self.basis, x, rows, part, most, n_threads):
                self._refuse(None if limit is None else self.n_entries + fresh.n_entries + most)
        with LOCK:
            self.native.take_all_of(fresh)
            self.is_whole = self.is_whole and not is_pruned

    def _refuse(self, most: int | None) -> NoReturn:
        basis, room = self.basis, "the available memory"
        if most is not None:
            room = f"{format_bytes(ENTRY_BYTES * most)} of memory, {most:,} columns"
        raise MemoryError(
            f"More columns occur than fit into {room}, at {ENTRY_BYTES} bytes each. Lower the "
            f"degree, now ({basis.min_degree}, {basis.max_degree}), set interaction_only=True, "
            "raise min_count with remember_rejected=False, or use HashedPolynomialFeatures, which "
            "counts nothing."
        )

    def add(self, columns: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Add counts of increasing columns."""
        with LOCK:
            self.native.add(columns, counts)

    def merge(self, other: ColumnTally) -> None:
        """Add the counts of another tally, which is left unchanged."""
        with LOCK:
            self.native.add_all_of(other.native)
            self.is_whole = self.is_whole and other.is_whole

    def take(self, other: ColumnTally) -> None:
        """Add the counts of another tally and leave it empty."""
        with LOCK:
            self.native.take_all_of(other.native)
            self.is_whole = self.is_whole and other.is_whole

    @classmethod
    def sum(cls, tallies: Iterable[ColumnTally]) -> ColumnTally:
        """Return the counts of one or more tallies, which are left unchanged."""
        first, *others = tallies
        total = copy(first)
        for each in others:
            total.merge(each)
        total.settle()
        return total

    def __add__(self, other: ColumnTally) -> ColumnTally:
        return self.sum([self, other])

    def __copy__(self) -> ColumnTally:
        """Return a tally that shares memory with this one until either is merged further."""
        same = ColumnTally(self.basis)
        same.merge(self)
        return same

    def settle(self) -> None:
        """Merge batches, so that every column is held once."""
        with LOCK:
            self.native.settle()

    def chosen(
        self, min_count: int, max_columns: int | None, n_jobs: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the columns in at least `min_count` rows, and their counts.

        If there are more than `max_columns`, only the most frequent of them are returned.
        """
        most = MOST if max_columns is None else min(max_columns, MOST)
        with LOCK:
            self.native.settle()
            n_threads = threads_for(n_jobs, self.native.n_entries)
            least, n_ties, n = self.native.choose(min(min_count, MOST), most, n_threads)
            columns, counts = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
            self.native.write(least, n_ties, columns, counts, n_threads)
        return columns, counts

    @property
    def n_entries(self) -> int:
        """Number of columns held; a column may count twice until batches are merged."""
        with LOCK:
            return self.native.n_entries


def count_columns(
    columns: Counted, x: CanonicalCsr, n_jobs: int | None, least: int = 1
) -> ColumnTally:
    """Return in how many rows of x each column occurs.

    Columns in fewer than `least` rows may be left out.
    """
    if isinstance(columns, ChosenColumns):
        return _count_chosen(columns, x, n_jobs)
    tally = ColumnTally(columns)
    tally.count(x, n_jobs, None, least)
    return tally


def _count_chosen(columns: ChosenColumns, x: CanonicalCsr, n_jobs: int | None) -> ColumnTally:
    """Count chosen columns only: the transposed expansion of ones, times ones."""
    x = replace(x.sorted_by_group(columns.basis), data=np.ones(len(x.data)))
    n_outputs = x.profile_for(columns.basis).outputs(columns.basis)
    require_countable(n_outputs)
    counts = np.zeros(columns.n_columns)
    n_threads = threads_for(n_jobs, n_outputs)
    cpu.Expansion(columns, x).apply_transposed(np.ones(x.shape[0]), counts, n_outputs, n_threads)
    occurs = counts > 0
    tally = ColumnTally(columns.basis)
    tally.add(columns.ranks[occurs], counts[occurs].astype(np.int64))
    return tally


def observed_columns(
    basis: MonomialBasis, x: CanonicalCsr, n_jobs: int | None
) -> NDArray[np.int64]:
    """Return the columns of a basis that occur in x, in increasing order."""
    return count_columns(basis, x, n_jobs).chosen(1, None, n_jobs)[0]


def _stored_at_once(value_bytes: int, column_bytes: int, n_features: int) -> int:
    """Return how many stored values can be counted in COUNTING_BYTES."""
    for_columns = column_bytes * n_features
    if for_columns <= thresholds.COUNTING_BYTES // 2:
        return max(1, (thresholds.COUNTING_BYTES - for_columns) // value_bytes)
    return max(1, thresholds.COUNTING_BYTES // (value_bytes + column_bytes))  # no more columns


def batches_of_rows(row_offsets: NDArray[Any], n_stored: int) -> list[slice]:
    """Return slices of rows with at most `n_stored` stored values, or of a single longer row."""
    batches, start, n_rows = [], 0, len(row_offsets) - 1
    while start < n_rows:
        reach = min(int(row_offsets[start]) + n_stored, int(row_offsets[-1]))
        # Of the dtype of the offsets: otherwise all of them would be converted.
        own = row_offsets.dtype.type(reach)
        stop = int(np.searchsorted(row_offsets, own, side="right")) - 1
        batches.append(slice(start, max(start + 1, min(stop, start + 2**31))))
        start = batches[-1].stop
    return batches
