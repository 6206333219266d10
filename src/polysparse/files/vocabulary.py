"""Vocabularies: files of chosen columns and their counts, as an .npz of plain arrays, no pickles.

description.npy   JSON: format, version, basis, n_columns, and what the writer adds
columns.npy       int64, increasing
counts.npy        int64, one per column
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ChosenColumns
from polysparse.files.archive import (
    ArchiveFormat,
    array_of,
    damage_to,
    encoding_in,
    read_ranks,
    require_names,
)
from polysparse.files.atomic import beside, put, replacing, sync
from polysparse.files.errors import UnwritableTarget
from polysparse.files.paths import vocabulary_of
from polysparse.tables.encoding import TableEncoding

FORMAT = ArchiveFormat(
    "vocabulary",
    version=1,
    arrays=("columns", "counts"),
    way_out="choose fewer columns, with max_columns or min_count",
)

# Key under which a vocabulary stores how columns were numbered in its svmlight file.
BASE = "first_svmlight_index"


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Columns that occurred and were kept."""

    columns: ChosenColumns
    counts: NDArray[np.int64]  # of the rows in which each was seen
    more: dict[str, Any]  # other entries: limits, feature names, the first index of svmlight

    @property
    def zero_based(self) -> bool | None:
        """Whether the svmlight file it was learned from is 0-based; None for other formats."""
        base = self.more.get(BASE)
        return base == 0 if base in (0, 1) else None

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the input features, if it was learned from data with names."""
        table = self.table
        return self.more.get("feature_names_in") if table is None else table.feature_names

    @cached_property
    def table(self) -> TableEncoding | None:
        """How the table it was learned from was encoded; None if that was not a table."""
        return encoding_in(self.more, self.columns.basis)

    # ------------------------------------------------------------------------------- reading

    @classmethod
    def read(cls, path: str | os.PathLike[str], max_memory: int | None = None) -> Vocabulary:
        """Read a file; raise ValueError if it is damaged or not a vocabulary.

        MemoryError is raised before reading it if that takes more than `max_memory` bytes, or more
        than are available.
        """
        description, arrays = FORMAT.read(path, max_memory)
        with damage_to(path):
            basis = MonomialBasis(**description["basis"])
            basis.require_indexable()
            ranks, counts = read_ranks(arrays, basis), array_of(arrays, "counts", np.int64)
            if not len(ranks) == len(counts) == description["n_columns"]:
                raise ValueError(f"it should have {description['n_columns']} columns")
            if np.any(counts < 1):
                raise ValueError("a count is not positive")
            require_names(description, basis.n_features)
            found = cls(ChosenColumns(basis, ranks), counts, description)
            found.table  # noqa: B018 - raises if it is damaged
            return found

    def is_in(self, path: Path) -> bool:
        """Return whether a file holds exactly this vocabulary."""
        try:
            other = Vocabulary.read(path)
        except (OSError, ValueError):
            return False
        return (
            other.columns == self.columns
            and np.array_equal(other.counts, self.counts)
            and all(other.more.get(name) == value for name, value in self.more.items())
        )

    # ------------------------------------------------------------------------------- writing

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write or replace a file atomically. Of several at once, the last one to end wins."""
        with replacing(Path(path)) as file:
            self._write_to(file)

    def write_aside(self, path: Path) -> None:
        """Write a file directly, under a temporary name."""
        with open(path, "wb") as file:
            self._write_to(file)
            sync(file)

    def _write_to(self, file: IO[bytes]) -> None:
        columns = self.columns
        described = {"basis": columns.basis.as_dict(), "n_columns": columns.n_columns}
        arrays = {"columns": columns.ranks, "counts": self.counts}
        FORMAT.write(file, described | self.more, arrays)


class VocabularySink:
    """Writes a vocabulary aside; `put` renames it, just before its output is renamed.

    Raises UnwritableTarget if a different vocabulary exists, unless `force` allows replacing it.
    """

    def __init__(self, output: Path, vocabulary: Vocabulary, *, force: bool) -> None:
        self.path = vocabulary_of(output)
        self.aside, self.old = beside(self.path, "partial"), beside(self.path, "old")
        self.has_old = self.path.exists()
        if self.has_old and not force and not vocabulary.is_in(self.path):
            raise UnwritableTarget(
                f"{self.path} is a different vocabulary: give force=True to overwrite it."
            )
        try:
            vocabulary.write_aside(self.aside)
        except BaseException:
            self.aside.unlink(missing_ok=True)
            raise

    def put(self) -> None:
        """Give the vocabulary its final name, keeping an old one aside."""
        if self.has_old:
            _copy(self.path, self.old)
        put(self.aside, self.path)

    def take_back(self) -> None:
        """Undo `put`, as far as it got."""
        if self.aside.exists():
            return
        if self.has_old:
            self.old.replace(self.path)
        else:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> VocabularySink:
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for aside in (self.aside, self.old):
            with suppress(OSError):  # what has its name has it, whether or not this can be removed
                aside.unlink(missing_ok=True)


def _copy(path: Path, to: Path) -> None:
    with open(path, "rb") as old, open(to, "wb") as new:
        shutil.copyfileobj(old, new)
        sync(new)
