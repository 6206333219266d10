"""FeatureGroups: a partition of the features into groups."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.machine import require_memory

Int64s = NDArray[np.int64]

MAX_FEATURES = 2**63 - 1  # the limit of an int64
_NAME = re.compile(r"x(0|[1-9][0-9]{0,18})")  # of a feature without a name


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """A partition of the features into groups; a monomial uses at most one feature per group.

    Groups are ordered by their first feature. The members of a group need not be contiguous:
    `order` sorts the features by group, and columns of the expansion follow that order.

    Attributes
    ----------
    sizes : ndarray of int64
        Number of features of each group.
    labels : tuple of (str or None)
        Label of each group; None for a feature that is not in a group.
    order : ndarray of int64, or None
        Permutation that sorts the features by group; None if already sorted.
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
        """Whether every group has one feature, so no interaction is excluded."""
        return self.order is None and bool((self.sizes == 1).all())

    @cached_property
    def are_unlabeled(self) -> bool:
        """Whether no feature is in a group."""
        return not any(label is not None for label in self.labels)

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

    def labels_of_features(self) -> list[str | None]:
        """Return the label of the group of each feature."""
        return [self.labels[group] for group in self.group_of.tolist()]

    def name_of(self, group: int, feature_names: Sequence[str] | None = None) -> str:
        """Return the label of a group, or the name of its only feature if it has no label."""
        label = self.labels[group]
        if label is not None:
            return label
        feature = int(self.members(group)[0])
        return f"x{feature}" if feature_names is None else str(feature_names[feature])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {label: g for g, label in enumerate(self.labels) if label is not None}

    def find(self, name: str) -> int | None:
        """Return the group of a label, or of a feature "x0", "x1", ... without one; else None."""
        group = self._numbers.get(name)
        return self._find_feature(name) if group is None else group

    def _find_feature(self, name: str) -> int | None:
        found = _NAME.fullmatch(name)
        if found is None or int(found[1]) >= self.n_features:
            return None
        feature = int(found[1])
        place = feature if self.order is None else int(self.places[feature])
        group = int(np.searchsorted(self.starts, place, side="right")) - 1
        return group if self.labels[group] is None else None

    def require_distinct_names(self) -> None:
        """Raise ValueError if a label is also the name of a feature that is not in a group."""
        for label in self._numbers:
            if self._find_feature(label) is not None:
                raise ValueError(f"two groups are named {label!r}: give each its own label.")

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
                factor = [comb(n, d) * s**d for d in range(min(n, highest) + 1)]
            counts = [
                sum(counts[d - i] * factor[i] for i in range(min(d + 1, len(factor))))
                for d in degrees
            ]
        return counts

    def as_argument(self) -> list[Any]:
        """Return a JSON-serializable value from which `as_groups` rebuilds the groups.

        It has pairs [label, size] instead of a mapping, because equal mappings may have another
        order.
        """
        labels, sizes = self.labels, self.sizes.tolist()
        if self.order is None and None not in labels:
            return [[label, size] for label, size in zip(labels, sizes, strict=True)]
        return self.labels_of_features()


def as_groups(groups: Any, n_features: int) -> FeatureGroups | None:
    """Read the argument `groups`.

    It is None, a mapping of labels to sizes, a label for each feature (None for a feature that is
    not in a group), a list of sizes of contiguous groups, or what `as_argument` returns.
    """
    if groups is None:
        return None
    _require_few_features(n_features)
    if isinstance(groups, FeatureGroups):
        _require_total(groups.n_features, n_features, groups)
        return groups
    if isinstance(groups, str | bytes | Iterator) or not isinstance(groups, Iterable):
        raise TypeError(
            "groups must be a label for each feature, a mapping of labels to sizes, or a list of "
            f"sizes; got {shown(groups)}."
            + " Pass list(groups): it is read more than once."
            * isinstance(groups, Iterator)
        )
    shape = getattr(groups, "shape", (0,))
    if len(shape) != 1:
        raise ValueError(f"groups must be one-dimensional; got shape {shape}.")
    if isinstance(groups, Mapping):
        return _from_sizes(list(groups.values()), n_features, [*groups])
    values = list(groups)
    if values and all(_is_pair(value) for value in values):
        return _from_sizes([size for _, size in values], n_features, [label for label, _ in values])
    if values and all(_is_integer(value) for value in values):
        return _from_integers([int(value) for value in values], n_features)
    return _from_labels(values, n_features)


def single_groups(n_features: int) -> FeatureGroups:
    """Return groups of one feature each, without labels."""
    _require_few_features(n_features)
    require_memory(
        16 * n_features,
        f"terms of n_features={n_features} features without groups",
        "Pass groups as a mapping of labels to sizes, or fewer features.",
    )
    sizes = np.ones(n_features, dtype=np.int64)
    sizes.flags.writeable = False
    return FeatureGroups(sizes, (None,) * n_features)


def shown(value: Any) -> str:
    """Return the repr of a value, shortened for a message."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _require_few_features(n_features: int) -> None:
    if n_features > MAX_FEATURES:
        raise ValueError(
            f"n_features={n_features} is too large: with groups or terms, at most 2**63 - 1 "
            "features are supported."
        )


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _is_pair(value: Any) -> bool:
    """Return whether a value is a label with a size, as `as_argument` writes it."""
    return isinstance(value, list | tuple) and len(value) == 2 and _is_integer(value[1])


def _from_integers(values: list[int], n_features: int) -> FeatureGroups:
    """Read integers: sizes, or a label for each feature if they cannot be sizes."""
    can_be_sizes = min(values) >= 0 and sum(values) == n_features
    if len(values) != n_features:
        return _from_sizes(values, n_features, None)
    if not can_be_sizes:
        return _from_labels([str(value) for value in values], n_features)
    raise ValueError(
        f"groups has {n_features} integers that add up to {n_features}: they may be labels of the "
        "features, or sizes. Pass labels as strings, or sizes as a mapping {label: size}."
    )


def _from_sizes(sizes: list[Any], n_features: int, labels: list[Any] | None) -> FeatureGroups:
    if labels is None:
        labels = [f"g{g}" for g in range(len(sizes))]
    for label, size in zip(labels, sizes, strict=True):
        _require_label(label)
        if not _is_integer(size) or size < 0:
            hint = ", not its members" if isinstance(size, Iterable) else ""
            raise ValueError(
                "sizes of groups must be non-negative integers: the number of features of each "
                f"group{hint}; group {label!r} has {shown(size)}."
            )
    given = dict(zip(labels, map(int, sizes), strict=True))
    if len(given) < len(labels):
        raise ValueError("groups has a label twice: give each group its own label.")
    _require_total(sum(given.values()), n_features, given)
    array = np.array(sizes, dtype=np.int64)
    array.flags.writeable = False
    return FeatureGroups(array, tuple(map(str, labels)))


def _from_labels(labels: list[Any], n_features: int) -> FeatureGroups:
    if len(labels) != n_features and any(isinstance(label, float) for label in labels):
        raise TypeError(f"sizes of groups must be ints, and labels strings; got {shown(labels)}.")
    if len(labels) != n_features:
        raise ValueError(
            f"groups has {len(labels):,} labels, but there are {n_features:,} features: pass one "
            "for each feature (None for a feature that is not in a group), or a list of sizes."
        )
    numbers: dict[str, int] = {}
    of_group: list[str | None] = []
    codes = np.empty(n_features, dtype=np.int64)
    for j, label in enumerate(labels):
        if label is not None:
            _require_label(label, j)
        code = len(of_group) if label is None else numbers.setdefault(str(label), len(of_group))
        if code == len(of_group):
            of_group.append(None if label is None else str(label))
        codes[j] = code
    return groups_of_codes(codes, tuple(of_group))


def groups_of_codes(codes: Int64s, labels: tuple[str | None, ...]) -> FeatureGroups:
    """Return the groups of features, given the number of each feature's group."""
    sizes = np.bincount(codes, minlength=len(labels)).astype(np.int64)
    order = None
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        order.flags.writeable = False
    sizes.flags.writeable = False
    return FeatureGroups(sizes, labels, order)


def _require_label(label: Any, feature: int | None = None) -> None:
    if not isinstance(label, str):
        where = "" if feature is None else f" for feature {feature}"
        raise TypeError(
            f"labels of groups must be strings; got {shown(label)}{where}. Use None for a feature "
            "that is not in a group."
        )


def _require_total(total: int, n_features: int, groups: Any) -> None:
    if total != n_features:
        given = "" if isinstance(groups, FeatureGroups) else f" (groups={shown(groups)})"
        raise ValueError(
            f"groups have {total:,} features in all, but there are {n_features:,}{given}: pass "
            "sizes that add up to the number of features, or a label for each feature."
        )
