"""Rows with targets as they arrive from files and pipes, each block with the place after it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse.files.arriving import ArrivingText, TextPlace, as_matrix
from polysparse.files.errors import FileFault
from polysparse.files.field_table import FieldTable
from polysparse.files.source import MOST_FEATURES, Source
from polysparse.files.text import TextBlock
from polysparse.matrix.output import as_csr
from polysparse.stream.memory import bytes_to_read

LOOKED_AT = 2**16  # bytes of a text that are compared before it is read on
SHOWN_CLASSES = 10
LEAST_GROWTH = 2**20  # features that a stream may have if their number was not given ...
GROWTH = 4  # ... or so many for each hashed column


@dataclass(frozen=True)
class Head:
    """What must be known of a stream before its first row.

    Attributes
    ----------
    n_features : int
        Number of features.
    grows : bool
        Whether more features may occur.
    base : int or None
        Index of the first feature in text; None in other formats.
    classes : ndarray or None
        All labels that may occur, sorted; None if labels are numbers to predict.
    is_count : bool
        Whether labels are counts, which are not negative.
    groups : list of (str or None), or None
        Label of the group of each feature, of libffm text.
    most_features : int
        How many features there may be, if `grows`: a model has a scale of 8 bytes for each.
    """

    n_features: int
    grows: bool = False
    base: int | None = None
    classes: NDArray[Any] | None = None
    is_count: bool = False
    groups: list[str | None] | None = None
    most_features: int = MOST_FEATURES


class ArrivingRows(Protocol):
    """One input of a stream."""

    path: Path

    def identity(self, place: dict[str, Any] | None) -> dict[str, Any]:
        """Return what must stay the same for reading to go on at a place, for JSON."""
        ...

    def blocks(
        self, place: dict[str, Any] | None, most_rows: Callable[[], int]
    ) -> Iterator[tuple[Any, NDArray[Any], dict[str, Any]]]:
        """Yield rows, their labels and the place after them; by default from the beginning.

        `most_rows()` is how many rows the next block may have.
        """
        ...


# -------------------------------------------------------------------------------------------- text


@dataclass
class TextRows:
    """Rows of svmlight or libffm text."""

    text: ArrivingText
    head: Head

    def __post_init__(self) -> None:
        self.path = self.text.path
        self.n_features = self.head.n_features

    def identity(self, place: dict[str, Any] | None) -> dict[str, Any]:
        """Return what must stay the same: the whole file, or what was read of one that grows."""
        if self.text.is_standard_input:
            return {"name": self.path.name}
        if not self.text.follows:
            state = self.path.stat()
            return {
                "name": self.path.name,
                "bytes": state.st_size,
                "modified": state.st_mtime_ns,
            }
        end = 0 if place is None else TextPlace.from_dict(place).byte
        digest = hashlib.sha256()
        with open(self.path, "rb") as file:
            digest.update(file.read(min(LOOKED_AT, end)))
            file.seek(max(0, end - LOOKED_AT))
            digest.update(file.read(min(LOOKED_AT, end)))
        return {"name": self.path.name, "sha256": digest.hexdigest()}

    def blocks(
        self, place: dict[str, Any] | None, most_rows: Callable[[], int]
    ) -> Iterator[tuple[Any, NDArray[Any], dict[str, Any]]]:
        """Yield rows as they arrive."""
        first = TextPlace() if place is None else TextPlace.from_dict(place)
        classes, base = self.head.classes, self.head.base or 0
        for block, after in self.text.blocks(first, self._check, most_rows):
            assert block.labels is not None
            largest = int(block.indices.max(initial=-1)) - base
            self.n_features = max(self.n_features, largest + 1)
            labels = block.labels if classes is None else block.labels.astype(classes.dtype)
            yield as_matrix(block, base, self.n_features), labels, asdict(after)

    def _check(self, block: TextBlock) -> tuple[NDArray[np.bool_], Callable[[int], str]]:
        """Return which rows cannot be learned from, and why one of them cannot."""
        head = self.head
        assert block.labels is not None
        assert head.base is not None
        is_bad = ~np.isfinite(block.labels)
        if head.classes is not None:
            is_bad |= ~np.isin(block.labels, head.classes)
        if head.is_count:
            is_bad |= block.labels < 0
        most = head.most_features if head.grows else head.n_features
        lowest, highest = block.indices.min(initial=head.base), block.indices.max(initial=head.base)
        is_finite = np.isfinite(block.data)
        if lowest < head.base or highest - head.base >= most or not is_finite.all():
            is_out = (block.indices < head.base) | (block.indices - head.base >= most)
            where = np.flatnonzero(is_out | ~is_finite)
            is_bad[np.searchsorted(block.indptr, where, side="right") - 1] = True
        return is_bad, lambda row: self._explain(block, row)

    def _explain(self, block: TextBlock, row: int) -> str:
        """Return why a row cannot be learned from."""
        head, label = self.head, block.labels[row]  # type: ignore[index]
        if not np.isfinite(label):
            return f"label {label} is not a finite number."
        if head.classes is not None and label not in head.classes:
            shown = ", ".join(map(str, head.classes[:SHOWN_CLASSES].tolist()))
            more = ", ..." * (len(head.classes) > SHOWN_CLASSES)
            return (
                f"label {label:g} is not one of the classes, {shown}{more}: pass all that may "
                "occur with classes=."
            )
        if head.is_count and label < 0:
            return f'label {label:g} is negative, but loss="poisson" needs counts.'
        stored = slice(int(block.indptr[row]), int(block.indptr[row + 1]))
        for index, value in zip(
            block.indices[stored].tolist(), block.data[stored].tolist(), strict=True
        ):
            if index < (head.base or 0):
                return "index 0 occurs, but indices are 1-based: pass zero_based=True."
            if not np.isfinite(value):
                return f"value {value} of index {index} is not finite."
            if index - (head.base or 0) >= (head.most_features if head.grows else head.n_features):
                break
        if head.grows:
            return (
                f"index {index} occurs, but a stream whose number of features is not given may "
                f"have {head.most_features:,}: give n_features= a number that is large enough."
            )
        return (
            f"index {index} occurs, but there are n_features={head.n_features}: pass n_features="
            "a number that is large enough."
        )


@dataclass
class Survey:
    """What a first pass over text has found."""

    lowest: int = -1  # index; -1 if there is none
    highest: int = -1
    n_rows: int = 0
    labels: NDArray[np.float64] | None = None  # those that occur
    fields: FieldTable | None = None  # of libffm text


def survey_text(texts: list[ArrivingText], *, keeps_labels: bool) -> Survey:
    """Read texts once, as far as they go now, for what must be known before the first row."""
    found, labels = Survey(), np.empty(0)
    found.fields = FieldTable() if any(text.has_fields for text in texts) else None
    for text in texts:
        now = replace(text, follows=False)
        for block, _ in now.blocks(TextPlace(), _any_row, lambda: 2**62):
            if len(block.indices):
                lowest = int(block.indices.min())
                found.lowest = lowest if found.lowest < 0 else min(lowest, found.lowest)
                found.highest = max(found.highest, int(block.indices.max()))
            found.n_rows += len(block.indptr) - 1
            if keeps_labels:
                labels = np.union1d(labels, block.labels)  # type: ignore[arg-type]
            if found.fields is not None and block.fields is not None:
                _learn_fields(found.fields, block, text.path)
    found.labels = labels
    return found


def _learn_fields(table: FieldTable, block: TextBlock, path: Path) -> None:
    where = table.add(block.indices, block.fields)  # type: ignore[arg-type]
    if where is not None:
        row = int(np.searchsorted(block.indptr, where, side="right")) - 1
        field = int(block.fields[where])  # type: ignore[index]
        conflict = table.describe_conflict(int(block.indices[where]), field)
        raise FileFault(f"{path}: line {block.line_of(row)}: {conflict}")


def _any_row(block: TextBlock) -> tuple[NDArray[np.bool_], Callable[[int], str]]:
    labels: Any = block.labels
    return ~np.isfinite(labels), lambda row: f"label {labels[row]} is not a finite number."


# -------------------------------------------------------------------------------- other formats


@dataclass
class SourceRows:
    """Rows of a file that was looked through before: a table, a matrix."""

    source: Source
    head: Head
    max_memory: int

    def __post_init__(self) -> None:
        self.path = self.source.path

    def identity(self, place: dict[str, Any] | None) -> dict[str, Any]:
        """Return what must stay the same: the file, and how it is read."""
        return self.source.identity()

    def blocks(
        self, place: dict[str, Any] | None, most_rows: Callable[[], int]
    ) -> Iterator[tuple[Any, NDArray[Any], dict[str, Any]]]:
        """Yield rows of the file."""
        n_rows = 0 if place is None else int(place["row"])
        for X, labels in self.source.blocks(n_rows, bytes_to_read(self.max_memory)):
            wide = as_csr(
                (X.shape[0], self.head.n_features), X.indptr, X.indices, X.data, is_array=True
            )
            y, begin = self._targets(labels), 0
            while begin < X.shape[0]:
                end = min(begin + most_rows(), X.shape[0])
                n_rows += end - begin
                yield wide[begin:end], y[begin:end], {"row": n_rows}
                begin = end

    def _targets(self, labels: NDArray[Any]) -> NDArray[Any]:
        classes = self.head.classes
        if classes is None:
            return labels
        if self.source.classes is not None:
            return self.source.classes[labels.astype(np.int64)]
        return labels.astype(classes.dtype)
