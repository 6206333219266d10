"""How much each tuple of variables contributes to a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.basis.groups import FeatureGroups, as_groups
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ChosenColumns, ColumnSpace
from polysparse.expansion.by_blocks import iter_expand_columns
from polysparse.matrix.canonical import CanonicalCsr

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
        basis = columns.basis
        groups = basis.groups or as_groups([None] * basis.n_features, basis.n_features)
        assert groups is not None
        over_groups = MonomialBasis(
            groups.n_groups, (0, max(1, basis.highest)), include_bias=basis.include_bias
        )
        ranks = columns.ranks if isinstance(columns, ChosenColumns) else None
        codes = np.empty(columns.n_columns, np.int64)
        for start in range(0, len(codes), _AT_A_TIME):
            part = slice(start, min(start + _AT_A_TIME, len(codes)))
            features = basis.unrank(
                np.arange(part.start, part.stop) if ranks is None else ranks[part]
            )
            of_groups = np.where(features >= 0, groups.group_of[features], -1)
            codes[part] = over_groups.rank(of_groups)
        found, number_of = np.unique(codes, return_inverse=True)
        tuples = [tuple(g for g in row if g >= 0) for row in over_groups.unrank(found).tolist()]
        return cls(groups, number_of.reshape(-1), tuples)

    def names(self, features: Sequence[str] | None) -> list[tuple[str, ...]]:
        """Return the labels of each tuple; a feature of its own is called by its name."""
        return [tuple(self.groups.name_of(g, features) for g in each) for each in self.tuples]

    def number(self, within: Any, features: Sequence[str] | None) -> int:
        """Return the number of a tuple, given its labels in any order, or joined by colons."""
        names = self.names(features)
        by_name = {":".join(each): number for number, each in enumerate(names)}
        if isinstance(within, str) and within in by_name:
            return by_name[within]
        labels = within.split(":") if isinstance(within, str) else map(str, within)
        by_labels = {tuple(sorted(each)): number for number, each in enumerate(names)}
        number = by_labels.get(tuple(sorted(label.strip() for label in labels)))
        if number is None:
            raise ValueError(
                f"within={within!r} is not a tuple of groups that the model has; importance() "
                "lists them."
            )
        return number


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows of the contributions of tuples, and of their squares.

    `sums` and `squares` have the shape (n_scores, n_tuples).
    """

    weight: float
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]

    @property
    def variances(self) -> NDArray[np.float64]:
        """Variance of the contribution of each tuple, for each score."""
        means = self.sums / self.weight
        return np.maximum(self.squares / self.weight - means**2, 0.0)


def moments_of(
    columns: ColumnSpace,
    x: CanonicalCsr,
    weights: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    number_of: NDArray[np.int64],
    n_tuples: int,
    n_jobs: int | None,
) -> Moments:
    """Return the moments of some rows, which are expanded a few at a time.

    `coefficients` are of shape (n_scores, n_columns).
    """
    sums, squares = (np.zeros((len(coefficients), n_tuples)) for _ in range(2))
    blocks = iter_expand_columns(columns, x, n_jobs=n_jobs, max_bytes=_BLOCK_BYTES, reuse=True)
    for rows, block in blocks:
        numbers = number_of[block.indices]
        for c, of_score in enumerate(coefficients):
            terms = block.data * of_score[block.indices]
            shape = block.shape[0], n_tuples
            by_tuple = sparse.csr_array((terms, numbers, block.indptr), shape=shape, copy=True)
            by_tuple.sum_duplicates()
            sums[c] += weights[rows] @ by_tuple
            by_tuple.data **= 2
            squares[c] += weights[rows] @ by_tuple
    return Moments(float(weights.sum()), sums, squares)


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
        "name": [":".join(names[i]) for i in order],
        "groups": [names[i] for i in order],
        "variance": total[order].tolist(),
        "share": shares[order].tolist(),
    }
