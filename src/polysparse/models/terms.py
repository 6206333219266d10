"""The terms of a fitted linear model: which are the heaviest, what they are called, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.names import as_printable, members_of_tuples, names_of_tuples
from polysparse.columns.spaces import ChosenColumns, ColumnSpace, HashedColumns
from polysparse.estimators.hashed_products import HashedProducts, as_candidates, find_products
from polysparse.files.atomic import replacing
from polysparse.matrix.canonical import CanonicalCsr, ranges

AT_A_TIME = 2**14  # terms that are named and written together
NAMED_CANDIDATES = 3  # products of a hashed column that are named; others are counted


@dataclass(frozen=True)
class Terms:
    """The weights of a fitted model and the columns that they belong to.

    Attributes
    ----------
    columns : ColumnSpace
        The columns.
    weights : ndarray of shape (n, n_columns)
        A row for each class or target that has coefficients of its own.
    intercept : ndarray of shape (n,)
        What each row adds.
    counts : ndarray of int64 of shape (n_columns,), or None
        Number of rows of data in which each column occurs.
    features : sequence of str or None
        Names of the input features.
    rows : tuple of str and sequence, or None
        What the rows of weights are for, and what each of them is; None if there is only one.
    """

    columns: ColumnSpace
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    counts: NDArray[np.int64] | None
    features: Sequence[str] | None
    rows: tuple[str, Sequence[Any]] | None

    def heaviest(
        self, n: int | None = None, among: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows and columns of the n heaviest weights, or of all that are not zero.

        `among` are the columns to choose from; by default all.
        """
        weights = self.weights if among is None else self.weights[:, among]
        row, column = np.divmod(heaviest(weights.reshape(-1), n), max(1, weights.shape[1]))
        return row, column if among is None else among[column]

    def names(self, columns: NDArray[np.int64], sep: str = " ") -> list[str]:
        """Return the names of columns. A hashed one has none, and is called by its number."""
        if isinstance(self.columns, HashedColumns):
            return [f"column {column}" for column in columns.tolist()]
        return names_of_tuples(self.tuples(columns), self.features, sep)

    def tuples(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the features of columns that are not hashed, as rows padded with -1."""
        ranks = self.columns.ranks[columns] if isinstance(self.columns, ChosenColumns) else columns
        return self.columns.basis.unrank(ranks)

    def members(self, columns: NDArray[np.int64]) -> list[tuple[str, ...]]:
        """Return the names of the features in columns that are not hashed."""
        return members_of_tuples(self.tuples(columns), self.features)

    def top(
        self,
        n: int,
        x: CanonicalCsr | None = None,
        n_jobs: int | None = None,
        *,
        among: NDArray[np.int64] | None = None,
        sep: str = " ",
    ) -> dict[str, list[Any]]:
        """Return the columns of a table of the n heaviest terms.

        x has the candidates of hashed columns.
        """
        row, column = self.heaviest(n, among)
        weights = self.weights[row, column]
        names, counts = self.names(column, sep), None
        members = None if isinstance(self.columns, HashedColumns) else self.members(column)
        if self.counts is not None:
            counts = self.counts[column]
        elif x is not None and isinstance(self.columns, HashedColumns):
            found = find_products(self.columns, x, column, n_jobs)
            names, first, signs, counts = self._describe(column, found, sep)
            members = [members_of_tuples(np.array([f], np.int64), self.features)[0] for f in first]
            weights = weights * signs
        table = self.rows_of(row) | {"name": names, "weight": weights.tolist()}
        if counts is not None:
            table["rows"] = counts.tolist()
        return table if members is None else table | {"features": members}

    def _describe(
        self, columns: NDArray[np.int64], found: HashedProducts, sep: str = " "
    ) -> tuple[list[str], list[tuple[int, ...]], NDArray[np.int64], NDArray[np.int64]]:
        """Name columns by their terms, with features, sign and count of the most frequent one.

        A minus marks a term of the other sign. A column without terms keeps its name.
        """
        wanted = np.unique(columns)
        starts = np.searchsorted(found.columns, wanted)
        n_found = np.searchsorted(found.columns, wanted, side="right") - starts
        n_more = dict(zip(wanted.tolist(), (n_found - NAMED_CANDIDATES).tolist(), strict=True))
        own = found.take(ranges(starts, np.minimum(n_found, NAMED_CANDIDATES)))
        candidates = as_candidates(own, self.features, sep)
        by_column = {k: list(group) for k, group in groupby(candidates, key=attrgetter("column"))}
        named, first, signs, counts = [], [], [], []
        for name, column in zip(self.names(columns), columns.tolist(), strict=True):
            candidates = by_column.get(column, [])
            sign = candidates[0].sign if candidates else 1
            parts = [("" if c.sign == sign else "-") + c.name for c in candidates]
            if n_more[column] > 0:
                parts.append(f"{n_more[column]:,} more")
            named.append(" | ".join(parts) or name)
            first.append(candidates[0].features if candidates else ())
            signs.append(sign)
            counts.append(candidates[0].n_rows if candidates else 0)
        return named, first, np.array(signs, np.int64), np.array(counts, np.int64)

    def rows_of(self, row: NDArray[np.int64]) -> dict[str, list[Any]]:
        """Return the class or target column of a table; none if there is only one."""
        if self.rows is None:
            return {}
        return {self.rows[0]: [self.rows[1][i] for i in row.tolist()]}

    def write(self, path: Path, x: CanonicalCsr | None = None, n_jobs: int | None = None) -> None:
        """Write a line for each intercept, then for each weight that is not zero, heaviest first.

        The file is written atomically. x has the candidates of hashed columns.
        """
        row, column = self.heaviest()
        found: HashedProducts | None = None
        if x is not None and isinstance(self.columns, HashedColumns):
            found = find_products(self.columns, x, np.unique(column), n_jobs)
        with replacing(path) as file:
            every = np.arange(len(self.intercept))
            self._write_lines(file, ["1"] * len(every), self.intercept, every)
            for first in range(0, len(column), AT_A_TIME):
                part = slice(first, first + AT_A_TIME)
                names, weights = self.names(column[part]), self.weights[row[part], column[part]]
                if found is not None:
                    names, _, signs, _ = self._describe(column[part], found)
                    weights = weights * signs
                self._write_lines(file, names, weights, row[part])

    def _write_lines(
        self, file: IO[bytes], names: list[str], weights: NDArray[Any], row: NDArray[np.int64]
    ) -> None:
        ends = [""] * len(names)
        if self.rows is not None:
            ends = [f"\t{as_printable(str(self.rows[1][i]))}" for i in row.tolist()]
        lines = zip(names, weights.tolist(), ends, strict=True)
        text = "".join(f"{as_printable(name)}\t{w!r}{end}\n" for name, w, end in lines)
        file.write(text.encode())


def heaviest(weights: NDArray[np.float64], n: int | None = None) -> NDArray[np.int64]:
    """Return the places of the n heaviest weights, or of all, that are not zero, heaviest first.

    Of equal ones, those that come first are taken first.
    """
    sizes = np.abs(weights)
    n_all = int(np.count_nonzero(sizes))
    n = n_all if n is None else min(n, n_all)
    if n == 0:
        return np.empty(0, dtype=np.int64)
    least = np.partition(sizes, len(sizes) - n)[len(sizes) - n]
    heavier = np.flatnonzero(sizes > least)
    as_heavy = np.flatnonzero(sizes == least)[: n - len(heavier)]
    places = np.concatenate([heavier, as_heavy])
    return places[np.argsort(-sizes[places], kind="stable")]
