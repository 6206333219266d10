"""The importance of groups and interactions of groups in a fitted model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.basis.groups import FeatureGroups, as_groups
from polysparse.columns.spaces import ChosenColumns, ColumnSpace
from polysparse.expansion.by_blocks import iter_expand_columns
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.operator.products import Products

MAX_TUPLES = 10**6  # of groups, whose moments a fit computes
_AT_A_TIME = 2**20  # columns that are decoded together
_BLOCK_BYTES = 2**26  # of the expansion, at a time


@dataclass(frozen=True)
class GroupTuples:
    """The tuple of groups that each column belongs to.

    Attributes
    ----------
    groups : FeatureGroups
        The groups; of one feature each, if the basis has none.
    number_of : ndarray of int64 of shape (n_columns,)
        The number of each column's tuple.
    tuples : list of tuple of int
        The groups of each tuple, in increasing order; one that occurs twice stands for a power.
    """

    groups: FeatureGroups
    number_of: NDArray[np.int64]
    tuples: list[tuple[int, ...]]

    @classmethod
    def of(cls, columns: ColumnSpace) -> GroupTuples:
        """Return the tuples of all or chosen columns."""
        found = cls.at_most(columns.n_columns + len(columns.basis.terms or ()), columns)
        assert found is not None
        return found

    @classmethod
    def at_most(cls, n: int, columns: ColumnSpace) -> GroupTuples | None:
        """Return the tuples of all or chosen columns; None if there are more than n."""
        basis = columns.basis
        groups = basis.groups or as_groups([None] * basis.n_features, basis.n_features)
        assert groups is not None
        if basis.terms is not None:
            return None if len(basis.terms) > n else cls(groups, *_numbers_of_terms(columns))
        if groups.are_single and columns.n_columns > n:  # each column has a tuple of its own
            return None
        numbers: dict[tuple[int, ...], int] = {}
        number_of = np.empty(columns.n_columns, np.int64)
        for start in range(0, len(number_of), _AT_A_TIME):
            part = slice(start, min(start + _AT_A_TIME, len(number_of)))
            features = basis.unrank(_ranks(columns, part))
            of_groups = np.where(features >= 0, groups.group_of[features], -1)
            distinct, which = _distinct_rows(of_groups, groups.n_groups)
            rows = (tuple(g for g in row if g >= 0) for row in distinct.tolist())
            own = [numbers.setdefault(row, len(numbers)) for row in rows]
            if len(numbers) > n:
                return None
            number_of[part] = np.array(own, np.int64)[which]
        return cls(groups, number_of, list(numbers))

    def names(self, features: Sequence[str] | None) -> list[tuple[str, ...]]:
        """Return the labels of each tuple; a feature of its own is called by its name.

        ValueError is raised if two groups have the same name.
        """
        names: dict[int, str] = {}
        for group in sorted({g for each in self.tuples for g in each}):
            names[group] = self.groups.name_of(group, features)
        if len(set(names.values())) < len(names):
            twice = next(name for name, n in Counter(names.values()).items() if n > 1)
            raise ValueError(
                f"two groups are named {twice!r}: give each its own label, or pass other "
                "feature_names."
            )
        return [tuple(names[g] for g in each) for each in self.tuples]

    def number(self, within: Any, features: Sequence[str] | None) -> int:
        """Return the number of a tuple, given its labels in any order, or its name."""
        if not isinstance(within, Iterable):
            raise TypeError(
                "within must be a tuple of labels, or a string of labels joined by colons; got "
                f"{within!r}."
            )
        found = self.numbers(within, features)
        if not found:
            raise ValueError(
                f"within={within!r} is not a combination of groups in the model; importance() "
                "lists them."
            )
        if len(found) > 1:
            names = self.names(features)
            either = " or ".join(repr(names[i]) for i in found)
            raise ValueError(f"within={within!r} is ambiguous: pass a tuple, {either}.")
        return found[0]

    def numbers(self, within: Iterable[str], features: Sequence[str] | None) -> list[int]:
        """Return the numbers of all tuples that labels may mean. A power is "a^2" or "a:a"."""
        names, found = self.names(features), []
        if isinstance(within, str):
            found = [i for i, each in enumerate(names) if within in (name_of(each), ":".join(each))]
            parts = [label.strip() for label in within.split(":")]
            wanted = sorted(_without_powers(parts, {label for each in names for label in each}))
        else:
            wanted = sorted(map(str, within))
        return found or [i for i, each in enumerate(names) if sorted(each) == wanted]


def name_of(labels: Sequence[str]) -> str:
    """Return the name of a tuple of groups, such as "age:hours", or "hours^2" for a power."""
    runs = ((label, len(list(run))) for label, run in groupby(labels))
    return ":".join(label if n == 1 else f"{label}^{n}" for label, n in runs)


def _without_powers(parts: Iterable[str], labels: Collection[str]) -> Iterator[str]:
    """Yield labels; that of a power, such as "hours^2", is repeated, unless it is itself one."""
    for part in parts:
        label, _, exponent = part.rpartition("^")
        is_power = part not in labels and label in labels and re.fullmatch("[1-9]", exponent)
        yield from [label] * int(exponent) if is_power else [part]


def _ranks(columns: ColumnSpace, part: slice) -> NDArray[np.int64]:
    """Return the columns of the basis that some columns are."""
    if isinstance(columns, ChosenColumns):
        return columns.ranks[part]
    return np.arange(part.start, part.stop)


def _numbers_of_terms(
    columns: ColumnSpace,
) -> tuple[NDArray[np.int64], list[tuple[int, ...]]]:
    """Return the number of each column's term, and the terms. Nothing is decoded."""
    basis = columns.basis
    assert basis.terms is not None
    assert basis.groups is not None
    tuples = [()] * basis.include_bias + list(basis.terms)
    sizes = [prod(int(basis.groups.sizes[g]) for g in each) for each in tuples]
    ranks = _ranks(columns, slice(0, columns.n_columns))
    return np.searchsorted(np.cumsum(sizes), ranks, side="right"), tuples


def _distinct_rows(rows: NDArray[np.int64], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows of integers in [-1, n), and which of them each row is."""
    codes, n_codes = np.zeros(len(rows), np.int64), 1
    for place in rows.T:
        if n_codes * (n + 1) > np.iinfo(np.int64).max:  # number the codes that occur
            found, codes = np.unique(codes, return_inverse=True)
            codes, n_codes = codes.reshape(-1), len(found)
        codes, n_codes = codes * (n + 1) + place + 1, n_codes * (n + 1)
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    return rows[first], which.reshape(-1)


# --------------------------------------------------------------------------------------- moments


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows of the contributions of tuples less a shift, and of their squares.

    `sums` and `squares` have the shape (n_scores, n_tuples).
    """

    weight: float
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]

    @property
    def variances(self) -> NDArray[np.float64]:
        """Variance of the contribution of each tuple, for each score.

        It is accurate if the shift is close to the mean.
        """
        means = self.sums / self.weight
        return np.maximum(self.squares / self.weight - means**2, 0.0)


def moments_of(
    columns: ColumnSpace,
    x: CanonicalCsr,
    weights: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    number_of: NDArray[np.int64],
    shift: NDArray[np.float64],
    n_jobs: int | None,
) -> Moments:
    """Return the moments of some rows.

    `coefficients` are of shape (n_scores, n_columns), `shift` is of shape (n_scores, n_tuples).
    """
    x = x.sorted_by_group(columns.basis)
    if x.has_distinct_groups and bool(np.all(x.data == 1)):
        return _moments_of_indicators(columns, x, weights, coefficients, number_of, shift, n_jobs)
    sums, squares = np.zeros_like(shift), np.zeros_like(shift)
    # One thread: what is summed at a time, and so its last bits, would depend on their number.
    blocks = iter_expand_columns(columns, x, n_jobs=1, max_bytes=_BLOCK_BYTES, reuse=True)
    for rows, block in blocks:
        for c, of_score in enumerate(coefficients):
            terms = block.data * of_score[block.indices]
            entries = block.indptr, number_of[block.indices], terms
            if not x.has_distinct_groups:
                entries = _by_tuple(*entries, shift.shape[1])
            block_sums, block_squares = _moments_of_entries(*entries, weights[rows], shift[c])
            sums[c] += block_sums
            squares[c] += block_squares
    return Moments(float(weights.sum()), sums, squares)


def _moments_of_indicators(
    columns: ColumnSpace,
    x: CanonicalCsr,
    weights: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    number_of: NDArray[np.int64],
    shift: NDArray[np.float64],
    n_jobs: int | None,
) -> Moments:
    """Return the moments of rows of ones that have at most one column of each tuple.

    What a tuple contributes is the coefficient of that column: rows need not be expanded.
    """
    products, n = Products(columns, x, n_jobs), shift.shape[1]
    of_column = products.apply_transposed(weights)
    n_of_column = products.apply_transposed((weights > 0).astype(np.float64))
    present, n_present = (np.bincount(number_of, each, n) for each in (of_column, n_of_column))
    absent = _absent_weight(present, n_present, weights)
    sums, squares = np.empty_like(shift), np.empty_like(shift)
    for c, of_score in enumerate(coefficients):
        change = of_score - shift[c, number_of]
        weighted = of_column * change
        sums[c] = np.bincount(number_of, weighted, n) - absent * shift[c]
        squares[c] = np.bincount(number_of, weighted * change, n) + absent * shift[c] ** 2
    return Moments(float(weights.sum()), sums, squares)


def _by_tuple(
    indptr: NDArray[Any], numbers: NDArray[np.int64], terms: NDArray[np.float64], n_tuples: int
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float64]]:
    """Return one entry for each tuple of a row: the sum of its terms."""
    size = len(indptr) - 1, n_tuples
    by_tuple = sparse.csr_array((terms, numbers, indptr), shape=size, copy=True)
    by_tuple.sum_duplicates()
    return by_tuple.indptr, by_tuple.indices, by_tuple.data


def _moments_of_entries(
    indptr: NDArray[Any],
    numbers: NDArray[np.int64],
    terms: NDArray[np.float64],
    weights: NDArray[np.float64],
    shift: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return sums and squares of rows, given their CSR entries, one for each tuple at most."""
    n_tuples = len(shift)
    of_entry = np.repeat(weights, np.diff(indptr))
    present = np.bincount(numbers, of_entry, n_tuples)
    n_present = np.bincount(numbers[of_entry > 0], minlength=n_tuples)
    absent = _absent_weight(present, n_present, weights)
    change = terms - shift[numbers]
    of_entry *= change
    sums = np.bincount(numbers, of_entry, n_tuples) - absent * shift
    of_entry *= change
    return sums, np.bincount(numbers, of_entry, n_tuples) + absent * shift**2


def _absent_weight(
    present: NDArray[Any], n_present: NDArray[Any], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weight of the rows without each tuple; exactly zero if there are none.

    The square of a large shift would multiply a rounding error.
    """
    absent = np.maximum(weights.sum() - present, 0.0)
    return np.where(n_present == np.count_nonzero(weights), 0.0, absent)


def importance_table(
    tuples: GroupTuples, variances: NDArray[np.float64], features: Sequence[str] | None
) -> dict[str, list[Any]]:
    """Return the columns of a table of tuples, the most important first."""
    total = variances.sum(axis=0)
    order = np.argsort(-total, kind="stable")
    names = tuples.names(features)
    everything = total.sum()
    shares = total / everything if everything > 0 else total
    return {
        "name": [name_of(names[i]) for i in order],
        "groups": [names[i] for i in order],
        "variance": total[order].tolist(),
        "share": shares[order].tolist(),
    }
