"""A sample of the rows of a stream, in which to look for the terms of hashed columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polysparse.matrix.canonical import CanonicalCsr, ranges

# The limits of a sample. A row that exceeds one of them is never sampled.
MOST_ROWS = 1000
MOST_VALUES = 100_000  # stored values of its rows
MOST_TERMS = 2**21  # terms of its rows, so that looking for terms takes about a second


@dataclass(frozen=True)
class SampledRows:
    """Some rows of a stream: their numbers, how many terms each has, and their features."""

    numbers: NDArray[np.int64]
    n_terms: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]

    @classmethod
    def empty(cls) -> SampledRows:
        """Return no rows."""
        none = np.empty(0, np.int64)
        return cls(none, none, np.zeros(1, np.int64), none)

    @classmethod
    def joined(cls, parts: list[SampledRows]) -> SampledRows:
        """Return the rows of several parts."""
        numbers, n_terms, lengths, indices = (
            np.concatenate(arrays)
            for arrays in zip(
                *((p.numbers, p.n_terms, np.diff(p.indptr), p.indices) for p in parts), strict=True
            )
        )
        return cls(numbers, n_terms, np.concatenate([[0], np.cumsum(lengths)]), indices)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: NDArray[np.intp]) -> SampledRows:
        """Return some of the rows, in the given order."""
        indptr, indices = _rows_of(self.indptr, self.indices, rows)
        return SampledRows(self.numbers[rows], self.n_terms[rows], indptr, indices)

    def are_within_limits(self) -> bool:
        """Whether all rows fit into a sample together."""
        return len(_fitting(self.numbers, np.diff(self.indptr), self.n_terms)[0]) == len(self)


class RowSample:
    """A sample of bounded size that does not depend on how rows are divided.

    The priority of a row is a hash of its number. The sample has the rows with the lowest
    priorities: as many as fit within the limits. Only their features are kept, not their values.

    Attributes
    ----------
    n_rows : int
        Number of rows that the sample was taken from.
    bound : int or None
        The number of the row with the lowest priority that did not fit. Rows of higher priorities
        are left out.
    """

    def __init__(
        self, n_rows: int = 0, bound: int | None = None, rows: SampledRows | None = None
    ) -> None:
        self.n_rows, self.bound = n_rows, bound
        self._limit = _limit_of(bound)
        # The sample, followed by rows that may replace others: they are sorted out now and then.
        self._parts = [SampledRows.empty() if rows is None else rows]
        self._n_more_rows = self._n_more_values = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def rows(self) -> SampledRows:
        """The rows, in the order of their priorities."""
        if len(self._parts) > 1:
            rows = SampledRows.joined(self._parts)
            fitting, bound = _fitting(rows.numbers, np.diff(rows.indptr), rows.n_terms)
            self._lower_bound(bound)
            self._parts = [rows.take(fitting)]
            self._n_more_rows = self._n_more_values = 0
        return self._parts[0]

    def as_matrix(self, n_features: int) -> CanonicalCsr:
        """Return the rows, with 1 for each value."""
        rows = self.rows
        ones = np.ones(len(rows.indices))
        shape = len(rows), n_features
        return CanonicalCsr(shape, rows.indptr, rows.indices, ones, is_array=True)

    def add(
        self, x: CanonicalCsr, are_learned: NDArray[np.bool_], n_terms: NDArray[np.int64]
    ) -> None:
        """Sample the next rows; those that are not learned from are only counted."""
        numbers = np.arange(self.n_rows, self.n_rows + x.shape[0])
        self.n_rows += x.shape[0]
        places = np.flatnonzero(priorities_of(numbers) < self._limit)
        if not len(places):
            return
        lengths = x.indptr[places + 1] - x.indptr[places]
        are_short = (lengths <= MOST_VALUES) & (n_terms[places] <= MOST_TERMS)
        places = places[are_learned[places] & are_short]
        if not len(places):
            return
        if len(places) > MOST_ROWS:
            lengths = x.indptr[places + 1] - x.indptr[places]
            fitting, bound = _fitting(numbers[places], lengths, n_terms[places])
            self._lower_bound(bound)
            places = places[fitting]
        indptr, indices = _rows_of(x.indptr, x.indices, places)
        self._parts.append(SampledRows(numbers[places], n_terms[places], indptr, indices))
        self._n_more_rows += len(places)
        self._n_more_values += len(indices)
        if self._n_more_rows > MOST_ROWS or self._n_more_values > MOST_VALUES:
            _ = self.rows

    def _lower_bound(self, bound: int | None) -> None:
        """Leave out rows from the priority of a row on, given by its number."""
        if bound is not None and _limit_of(bound) < self._limit:
            self.bound, self._limit = bound, _limit_of(bound)


def _limit_of(bound: int | None) -> np.uint64:
    """Return the priority of a row, or the highest one."""
    return np.uint64(2**64 - 1) if bound is None else priorities_of(np.array([bound]))[0]


def priorities_of(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the priorities of rows: those of two rows differ (the finalizer of splitmix64)."""
    z = numbers.astype(np.uint64) + np.uint64(1)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed


def _fitting(
    numbers: NDArray[np.int64], lengths: NDArray[np.int64], n_terms: NDArray[np.int64]
) -> tuple[NDArray[np.intp], int | None]:
    """Return the rows of the lowest priorities that fit together, and the number of the next."""
    priorities = priorities_of(numbers)
    order = np.arange(len(numbers))
    if len(order) > MOST_ROWS + 1:  # no more than that matter
        order = np.argpartition(priorities, MOST_ROWS)[: MOST_ROWS + 1]
    order = order[np.argsort(priorities[order])]
    fits = np.arange(len(order)) < MOST_ROWS
    fits &= np.cumsum(lengths[order]) <= MOST_VALUES
    fits &= np.cumsum(n_terms[order]) <= MOST_TERMS
    n = int(np.count_nonzero(fits))
    return order[:n], int(numbers[order[n]]) if n < len(order) else None


def _rows_of(
    indptr: NDArray[np.int64], indices: NDArray[np.int64], rows: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return copies of the arrays of some rows."""
    starts = indptr[rows].astype(np.int64)
    lengths = indptr[rows + 1] - starts
    own = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return own, indices[ranges(starts, lengths)].astype(np.int64)
