"""The rows that are searched, wherever they are; RowsInMemory walks through their prefixes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.machine import require_memory, threads_for
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.search.arguments import SCORES
from polysparse.search.question import Question

MOST_STORED = 2**31  # values, rows and columns that the kernels search are fewer
MOST_TIES = 2**22  # columns beyond k whose scores are the same but for rounding
BYTES_PER_VALUE = 52  # of working memory, besides X


class Found(NamedTuple):
    """The columns with the largest scores, the best first."""

    columns: NDArray[np.int64]
    counts: NDArray[np.int64]
    targets: NDArray[np.int64]  # which column of the target each score is for
    scores: NDArray[np.float64]


@dataclass(frozen=True)
class ValueRange:
    """The range of the values that are stored, and the smallest of their sizes.

    If there are none, the range is 0 and the size infinite.
    """

    least: float
    largest: float
    smallest_size: float

    @classmethod
    def of(cls, data: Any) -> ValueRange:
        """Return the range of an array."""
        if len(data) == 0:
            return cls(0.0, 0.0, float("inf"))
        least, largest = float(data.min()), float(data.max())
        smallest_size = least if least > 0 else -largest if largest < 0 else abs(data).min()
        return cls(least, largest, float(smallest_size))

    def __add__(self, other: ValueRange) -> ValueRange:
        return ValueRange(
            min(self.least, other.least),
            max(self.largest, other.largest),
            min(self.smallest_size, other.smallest_size),
        )

    @property
    def largest_size(self) -> float:
        """The largest absolute value."""
        return max(-self.least, self.largest)


class SearchedRows(Protocol):
    """Rows with finite values of float64."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        ...

    def value_range(self) -> ValueRange:
        """Return the range of the values."""
        ...

    def best(self, question: Question) -> Found:
        """Return the columns with the largest scores."""
        ...


class RowsInMemory:
    """Rows in memory, which are searched depth-first by prefixes of columns.

    Parameters
    ----------
    x : CanonicalCsr
        The rows.
    n_jobs : int or None
        Number of threads.
    progress : callable
        Called with the share of the work that is done.
    """

    def __init__(
        self, x: CanonicalCsr, n_jobs: int | None, progress: Callable[[float], object]
    ) -> None:
        self.x, self.n_jobs, self.progress = x, n_jobs, progress
        self.shape = x.shape
        self._range = ValueRange.of(x.data)

    def value_range(self) -> ValueRange:
        return self._range

    def best(self, question: Question) -> Found:
        basis, targets = question.basis, question.targets
        x = self.x if targets.kept is None else self.x.take(targets.kept)
        x = x.sorted_by_group(basis)
        n_stored = len(x.data)
        require_searchable(x)
        features, indices = stored_features(x)
        uses = question.restriction.uses_of(features)
        n_targets = targets.values.shape[1]
        n_threads = threads_for(self.n_jobs, n_stored * 2 ** min(basis.highest, 10))
        require_memory(
            working_bytes(n_stored, len(features), n_targets, n_threads),
            "the search",
            "Drop rare features, use fewer columns of the target, or fewer threads.",
        )
        is_unit = self._range.least == self._range.largest == 1
        is_signed = self._range.least < 0
        found = cpu.search(
            basis,
            (x.indptr, indices, np.empty(0) if is_unit else x.data),
            (features, uses),
            (targets.values, targets.weights, targets.total_and_largest),
            (SCORES.index(question.score), is_signed, question.restriction.needs_among),
            (question.k, question.min_count, MOST_TIES, n_threads),
            self.progress,
        )
        if found is None:
            raise too_many_ties()
        return Found(*found)


def too_many_ties() -> MemoryError:
    """Return the error for more candidates than are held."""
    return MemoryError(
        f"More than {MOST_TIES:,} interactions cannot be told from the k-th best, or memory "
        "ran out: raise min_count, or lower k."
    )


def working_bytes(n_stored: int, n_features: int, n_targets: int, n_threads: int) -> int:
    """Return the memory that a search takes besides X, whose features all occur."""
    return n_stored * BYTES_PER_VALUE + n_threads * n_features * (8 + 24 * (n_targets + 2))


def require_searchable(x: CanonicalCsr) -> None:
    """Raise ValueError if the kernels cannot search so many values."""
    n_stored = len(x.data)
    if max(n_stored, x.shape[0]) >= MOST_STORED:
        raise ValueError(
            f"X has {x.shape[0]:,} rows and {n_stored:,} stored values; fewer than "
            f"{MOST_STORED:,} can be searched. Search a part of the rows, or drop rare features."
        )


def stored_features(x: CanonicalCsr) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return features, and indices into them: all, unless far more exist than values are stored."""
    if x.shape[1] <= max(2**20, 4 * len(x.data)):
        return np.arange(x.shape[1]), x.indices
    features, indices = np.unique(x.indices, return_inverse=True)
    return features.astype(np.int64), indices.astype(x.indices.dtype)
