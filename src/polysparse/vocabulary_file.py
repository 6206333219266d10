"""The vocabulary of an output: the columns that it has, in a file beside it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns import ChosenColumns
from polysparse.planning import ExpansionPlan
from polysparse.targets import UnwritableTarget, beside, vocabulary_of
from polysparse.vocabulary import read_vocabulary, write_vocabulary_file

BASE = "first_svmlight_index"  # where a vocabulary says how the file that it is of was numbered


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Columns that occur.

    Attributes
    ----------
    columns : ChosenColumns
    counts : ndarray of int64
        In how many rows each was seen.
    more : dict
        What else its file says, or will say.
    """

    columns: ChosenColumns
    counts: NDArray[np.int64]
    more: dict[str, Any]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read what ObservedPolynomialFeatures.save or `polysparse expand --observed` wrote."""
        if not os.path.exists(path):
            raise FileNotFoundError(f"{os.fspath(path)}: there is no such vocabulary.")
        try:
            description, basis, ranks, counts = read_vocabulary(path)
        except (OSError, ValueError, MemoryError):
            raise
        except Exception as error:  # whatever else a reader trips over
            raise ValueError(
                f"{os.fspath(path)} is no vocabulary of polysparse, or damaged: "
                f"{type(error).__name__}."
            ) from None
        return cls(ChosenColumns(basis, ranks), counts, description)

    @property
    def zero_based(self) -> bool | None:
        """Whether the svmlight file that it was learnt from begins at 0; None if there was none."""
        base = self.more.get(BASE)
        return base == 0 if base in (0, 1) else None

    @property
    def feature_names(self) -> list[str] | None:
        """Of the input, if the vocabulary was learnt in Python from data that had any."""
        names = self.more.get("feature_names_in")
        is_right = isinstance(names, list) and len(names) == self.columns.basis.n_features
        return list(map(str, names)) if is_right and names else None

    def plan_own_rows(self, planned: ExpansionPlan) -> ExpansionPlan:
        """The exact plan of the rows that it was learnt from."""
        counts = self.counts
        below = {d: int(counts[:end].sum()) for d, end in self.columns.degree_ends.items()}
        return planned.with_found(below, int(counts.sum()))

    def is_in(self, path: Path) -> bool:
        """Whether a file holds just this."""
        try:
            other = Vocabulary.read(path)
        except (OSError, ValueError):
            return False
        return (
            other.columns.basis == self.columns.basis
            and np.array_equal(other.columns.ranks, self.columns.ranks)
            and np.array_equal(other.counts, self.counts)
            and all(other.more.get(name) == value for name, value in self.more.items())
        )


class VocabularySink:
    """Writes a vocabulary aside; `put` gives it its name, just before its output gets its own.

    Raises UnwritableTarget if there is another, unless `force` allows to replace it.
    """

    def __init__(self, output: Path, vocabulary: Vocabulary, *, force: bool) -> None:
        self.path = vocabulary_of(output)
        self.aside, self.old = beside(self.path, "partial"), beside(self.path, "old")
        self.has_old = self.path.exists()
        if self.has_old and not force and not vocabulary.is_in(self.path):
            raise UnwritableTarget(
                f"{self.path} exists already, and is another: give --force to overwrite it."
            )
        columns = vocabulary.columns
        try:
            write_vocabulary_file(
                self.aside, columns.basis, columns.ranks, vocabulary.counts, vocabulary.more
            )
        except BaseException:
            self.aside.unlink(missing_ok=True)
            raise

    def put(self) -> None:
        """Give it its name; an old one is kept aside."""
        if self.has_old:
            shutil.copyfile(self.path, self.old)
        self.aside.replace(self.path)

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
            aside.unlink(missing_ok=True)
