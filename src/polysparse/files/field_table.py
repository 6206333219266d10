"""FieldTable: the field of each index of libffm text; fields as labels of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.groups import FeatureGroups
from polysparse.machine import require_memory

# Key under which vocabularies and models store the labels of fields that are their groups.
FIELDS = "fields"

FIELD_BYTES = 24  # of an index: its field, and those of the table that a longer one replaces


class FieldTable:
    """The field of each index that has occurred.

    Attributes
    ----------
    fields : ndarray of int64
        Field of each index, up to the largest one that occurred or further; -1 for one that did
        not occur.
    """

    def __init__(self) -> None:
        self.fields = np.empty(0, np.int64)

    def add(self, indices: NDArray[np.int64], fields: NDArray[np.int64]) -> int | None:
        """Learn the fields of indices; return the first place that contradicts an earlier one."""
        self._reach(int(indices.max(initial=-1)) + 1)
        unknown = np.flatnonzero(self.fields[indices] < 0)[::-1]  # so that the first one stays
        self.fields[indices[unknown]] = fields[unknown]
        wrong = np.flatnonzero(self.fields[indices] != fields)
        return int(wrong[0]) if len(wrong) else None

    def describe_conflict(self, index: int, field: int) -> str:
        """Return the message for an index that is in another field than before."""
        return (
            f"index {index} is in field {field}, but was in field {self.fields[index]} before: an "
            "index must be in one field only. Number features so that each field has its own "
            "indices."
        )

    def _reach(self, size: int) -> None:
        """Make room for indices below `size`."""
        have = len(self.fields)
        if size <= have:
            return
        require_memory(
            FIELD_BYTES * size,
            f"The fields of indices up to {size - 1:,}",
            "Number the features without gaps.",
        )
        longer = np.full(max(size, min(2 * have, size + 2**20)), -1, np.int64)
        longer[:have] = self.fields
        self.fields = longer


def labels_of(fields: NDArray[np.int64], base: int, n_features: int) -> list[str | None]:
    """Return the label of the group of each feature, given the field of each index or -1.

    `base` is the index of the first feature. A feature that does not occur has the label None.
    """
    labels = np.full(n_features, None, dtype=object)
    own = fields[base:][:n_features]
    occurs = np.flatnonzero(own >= 0)
    names, numbers = np.unique(own[occurs], return_inverse=True)
    labels[occurs] = np.array([f"f{name}" for name in names], dtype=object)[numbers]
    return list(labels)


def moved_feature(earlier: Sequence[str | None], now: Sequence[str | None]) -> int | None:
    """Return the first feature that is in another field than earlier; None if there is none.

    A feature with the label None did not occur, and so contradicts nothing.
    """
    pairs = enumerate(zip(earlier, now, strict=False))
    return next((j for j, (was, is_) in pairs if None not in (was, is_) and was != is_), None)


def fields_in(groups: FeatureGroups | None, labels: Sequence[str | None] | None) -> list[str]:
    """Return the labels of a file's fields if they are the groups of a basis; otherwise none."""
    if groups is None or labels is None:
        return []
    known = groups.labels_of_features()
    if any(label is not None and label != own for label, own in zip(labels, known, strict=True)):
        return []
    return sorted({label for label in labels if label is not None})


def earlier_fields(groups: FeatureGroups | None, found: Any) -> list[str | None] | None:
    """Return the field of each feature in training, given what `fields_in` returned then."""
    fields = {each for each in found if isinstance(each, str)} if isinstance(found, list) else set()
    if groups is None or not fields:
        return None
    return [label if label in fields else None for label in groups.labels_of_features()]
