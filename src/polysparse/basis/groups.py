"""FeatureGroups: features of which a monomial takes at most one, as the levels of a variable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """A division of features into groups.

    Groups are ordered by their first feature. The members of a group need not be contiguous:
    `order` sorts the features by group, and columns of the expansion follow that order.

    Attributes
    ----------
    sizes : ndarray of int64
        Number of features of each group.
    labels : tuple of (str or None)
        Label of each group. A feature of its own has None.
    order : ndarray of int64, or None
        Feature at each place, if features are sorted by group; None if they are already.
    """

    sizes: Int64s
    labels: tuple[str | None, ...]
    order: Int64s | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, FeatureGroups)
            and self.labels == other.labels
            and np.array_equal(self.sizes, other.sizes)
            and np.array_equal(self._order_or_empty, other._order_or_empty)
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.sizes.tobytes(), self._order_or_empty.tobytes()))

    @property
    def _order_or_empty(self) -> Int64s:
        return np.empty(0, np.int64) if self.order is None else self.order

    @property
    def n_features(self) -> int:
        """Number of features in all groups."""
        return int(self.sizes.sum())

    @property
    def n_groups(self) -> int:
        """Number of groups, including empty ones."""
        return len(self.sizes)

    @cached_property
    def are_single(self) -> bool:
        """Whether every feature is a group of its own, so that groups exclude nothing."""
        return self.order is None and bool((self.sizes == 1).all())

    @cached_property
    def places(self) -> Int64s:
        """Place of each feature if features are sorted by group."""
        if self.order is None:
            return np.arange(self.n_features)
        places = np.empty_like(self.order)
        places[self.order] = np.arange(len(places))
        return places

    @cached_property
    def starts(self) -> Int64s:
        """Place of the first feature of each group, and then the number of features."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def group_of(self) -> Int64s:
        """Group of each feature."""
        return np.repeat(np.arange(self.n_groups), self.sizes)[self.places]

    def members(self, group: int) -> Int64s:
        """Return the features of a group, in increasing order."""
        places = np.arange(self.starts[group], self.starts[group + 1])
        return places if self.order is None else self.order[places]

    def name_of(self, group: int, feature_names: Sequence[str] | None = None) -> str:
        """Return the label of a group, or the name of its only feature if it has no label."""
        label = self.labels[group]
        if label is not None:
            return label
        feature = int(self.members(group)[0])
        return f"x{feature}" if feature_names is None else str(feature_names[feature])

    def count_monomials(self, highest: int, has_powers: bool) -> list[int]:
        """Return the number of monomials of each degree from 0 to `highest`, exactly.

        They are symmetric polynomials of the sizes s: the coefficients of the product of 1 + s*t
        over all groups, as a polynomial in t. With powers, 1 / (1 - t) takes the place of 1 + t.
        """
        counts, degrees = [1] + [0] * highest, range(highest + 1)
        sizes, numbers = np.unique(self.sizes, return_counts=True)
        for s, n in zip(sizes.tolist(), numbers.tolist(), strict=True):
            if s == 1 and has_powers:
                factor = [comb(n + d - 1, d) for d in degrees]
            else:
                factor = [comb(n, d) * s**d for d in degrees]
            counts = [sum(counts[i] * factor[d - i] for i in range(d + 1)) for d in degrees]
        return counts

    def as_argument(self) -> dict[str, int] | list[str | None]:
        """Return what `as_groups` turns into equal groups, ready for JSON."""
        labels, sizes = self.labels, self.sizes.tolist()
        if self.order is None and None not in labels:
            return {str(label): size for label, size in zip(labels, sizes, strict=True)}
        return [labels[group] for group in self.group_of.tolist()]


def as_groups(groups: Any, n_features: int) -> FeatureGroups | None:
    """Read the argument `groups`.

    It is None, a mapping of labels to sizes, a label for each feature (None for a feature of its
    own), or the sizes of contiguous groups.
    """
    if groups is None:
        return None
    if isinstance(groups, FeatureGroups):
        _require_total(groups.n_features, n_features, groups)
        return groups
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise TypeError(
            "groups must be a label for each feature, a mapping of labels to sizes, or sizes; got "
            f"{groups!r}."
        )
    if isinstance(groups, Mapping):
        return _from_sizes(list(groups.values()), n_features, [*groups])
    values = list(groups)
    if values and all(_is_integer(value) for value in values):
        return _from_integers([int(value) for value in values], n_features)
    return _from_labels(values, n_features)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _from_integers(values: list[int], n_features: int) -> FeatureGroups:
    """Read integers: sizes, or a label for each feature if they cannot be sizes."""
    can_be_sizes = min(values) >= 0 and sum(values) == n_features
    if len(values) != n_features:
        return _from_sizes(values, n_features, None)
    if not can_be_sizes:
        return _from_labels([str(value) for value in values], n_features)
    raise ValueError(
        f"groups has {n_features} integers that add up to {n_features}: they may be labels of the "
        "features, or sizes. Give labels as strings, or sizes as a mapping {label: size}."
    )


def _from_sizes(sizes: list[Any], n_features: int, labels: list[Any] | None) -> FeatureGroups:
    for g, size in enumerate(sizes):
        if not _is_integer(size) or size < 0:
            raise ValueError(
                f"sizes of groups must be non-negative integers; group {g} has {size!r}."
            )
    _require_total(sum(map(int, sizes)), n_features, sizes)
    if labels is None:
        labels = [f"g{g}" for g in range(len(sizes))]
    _require_labels(labels)
    array = np.array(sizes, dtype=np.int64)
    array.flags.writeable = False
    return FeatureGroups(array, tuple(map(str, labels)))


def _from_labels(labels: list[Any], n_features: int) -> FeatureGroups:
    if len(labels) != n_features:
        raise ValueError(
            f"groups has {len(labels):,} labels, but there are {n_features:,} features: give one "
            "for each feature (None for a feature of its own), or the sizes of the groups."
        )
    _require_labels([label for label in labels if label is not None])
    numbers: dict[str, int] = {}
    of_group: list[str | None] = []
    codes = np.empty(n_features, dtype=np.int64)
    for j, label in enumerate(labels):
        code = len(of_group) if label is None else numbers.setdefault(str(label), len(of_group))
        if code == len(of_group):
            of_group.append(None if label is None else str(label))
        codes[j] = code
    sizes = np.bincount(codes, minlength=len(of_group)).astype(np.int64)
    order = None
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        order.flags.writeable = False
    sizes.flags.writeable = False
    return FeatureGroups(sizes, tuple(of_group), order)


def _require_labels(labels: Iterable[Any]) -> None:
    for label in labels:
        if not isinstance(label, str):
            raise TypeError(f"labels of groups must be strings (or None); got {label!r}.")


def _require_total(total: int, n_features: int, groups: Any) -> None:
    if total != n_features:
        shown = f" (groups={groups!r})" if not isinstance(groups, FeatureGroups) else ""
        shown = shown if len(shown) < 200 else ""
        raise ValueError(
            f"groups have {total:,} features in all, but there are {n_features:,}{shown}: give "
            "sizes that add up to the number of features, or a label for each feature."
        )
