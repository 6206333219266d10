"""Vocabularies: files of chosen columns and their counts, as an .npz of plain arrays, no pickles.

description.npy   JSON: format, version, basis, n_columns, and what the writer adds
columns.npy       int64, increasing
counts.npy        int64, one per column
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.arguments import require_rising
from polysparse.columns.spaces import ChosenColumns
from polysparse.files.paths import UnwritableTarget, beside, vocabulary_of

FORMAT, VERSION = "polysparse.vocabulary", 1

# Key under which a vocabulary stores how columns were numbered in its svmlight file.
BASE = "first_svmlight_index"


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Columns that occurred and were kept.

    Attributes
    ----------
    columns : ChosenColumns
        The columns.
    counts : ndarray of int64
        Number of rows in which each was seen.
    more : dict
        Other entries of the file: limits, feature names, the first index of svmlight.
    """

    columns: ChosenColumns
    counts: NDArray[np.int64]
    more: dict[str, Any]

    @property
    def zero_based(self) -> bool | None:
        """Whether the svmlight file it was learnt from begins at 0; None if it was no such file."""
        base = self.more.get(BASE)
        return base == 0 if base in (0, 1) else None

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the input features, if it was learnt in Python from data with names."""
        return self.more.get("feature_names_in")

    # ------------------------------------------------------------------------------- reading

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read a file; raise ValueError if it is damaged or not a vocabulary."""
        if not os.path.exists(path):
            raise FileNotFoundError(f"{os.fspath(path)}: there is no such vocabulary.")
        try:
            with open(path, "rb") as file:
                archive = np.load(file, allow_pickle=False)
                if not isinstance(archive, np.lib.npyio.NpzFile):
                    raise ValueError("it is no .npz archive")
                description = _read_description(archive)
                ranks, counts = (_read_integers(archive, name) for name in ("columns", "counts"))
        except Exception as error:  # NumPy and zipfile raise many types for a damaged file
            if isinstance(error, OSError) and error.filename is not None:
                raise  # the file cannot be opened
            reason = str(error).strip("'\".") or type(error).__name__
            raise ValueError(
                f"{os.fspath(path)} is no vocabulary of polysparse, or damaged: {reason}."
            ) from None
        try:
            basis = _require_consistent(description, ranks, counts)
        except (KeyError, TypeError, ValueError) as error:
            raise damage(path, error) from None
        return cls(ChosenColumns(basis, ranks), counts, description)

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
        """Write or replace a file atomically."""
        target = Path(path)
        aside = beside(target, "partial")
        try:
            self.write_aside(aside)
            aside.replace(target)
        finally:
            aside.unlink(missing_ok=True)

    def write_aside(self, path: Path) -> None:
        """Write a file directly, under a name that nobody reads yet."""
        columns = self.columns
        description = {
            "format": FORMAT,
            "version": VERSION,
            "basis": columns.basis.as_dict(),
            "n_columns": columns.n_columns,
            **self.more,
        }
        text = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
        arrays: dict[str, NDArray[Any]] = {
            "description": text,
            "columns": columns.ranks,
            "counts": self.counts,
        }
        with open(path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                little = array.astype(array.dtype.newbyteorder("<"), copy=False)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, little, allow_pickle=False)


def damage(path: str | os.PathLike[str], error: Exception) -> ValueError:
    """Return an error that says why a vocabulary is damaged."""
    return ValueError(f"{os.fspath(path)} is damaged: {str(error).rstrip('.')}.")


def _read_description(archive: Any) -> dict[str, Any]:
    description = json.loads(archive["description"].tobytes())
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ValueError("it has another format")
    if description.get("version") != VERSION:
        raise ValueError(
            f"it has version {description.get('version')}, and this polysparse reads {VERSION}"
        )
    return description


def _read_integers(archive: Any, name: str) -> NDArray[np.int64]:
    array = archive[name]
    if array.dtype != np.dtype("<i8") or array.ndim != 1:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not int64")
    return np.ascontiguousarray(array, dtype=np.int64)


def _require_consistent(
    description: dict[str, Any], ranks: NDArray[np.int64], counts: NDArray[np.int64]
) -> MonomialBasis:
    """Return the basis of a vocabulary; raise if parts of the file contradict each other."""
    basis = MonomialBasis(**description["basis"])
    basis.require_indexable()
    if not len(ranks) == len(counts) == description["n_columns"]:
        raise ValueError(f"it should have {description['n_columns']} columns")
    require_rising(ranks)
    for column in (*ranks[:1], *ranks[-1:]):
        if not 0 <= column < basis.n_columns:
            raise ValueError(f"column {column} is not in the basis")
    if np.any(counts < 1):
        raise ValueError("a count is not positive")
    names = description.get("feature_names_in")
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("the names of features are no strings")
        if len(names) != basis.n_features:
            raise ValueError(f"there are {len(names)} names of features")
    return basis


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
                f"{self.path} exists already, and is another: give force=True to overwrite it."
            )
        try:
            vocabulary.write_aside(self.aside)
        except BaseException:
            self.aside.unlink(missing_ok=True)
            raise

    def put(self) -> None:
        """Give the vocabulary its final name, keeping an old one aside."""
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
