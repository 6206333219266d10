"""Online models in files: an archive of plain arrays, no pickles.

description.npy    JSON: format, version, kind, basis, columns, digest, and what the model adds
columns.npy        int64, increasing; only for chosen columns
and the arrays of the learner, by their names
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ChosenColumns, ColumnSpace
from polysparse.files.archive import ArchiveFormat, array_of, damage_to, encoding_in, require_names
from polysparse.files.atomic import replacing
from polysparse.files.model_file import columns_of, digest_of
from polysparse.files.vocabulary import BASE
from polysparse.tables.encoding import TableEncoding

# The dtype and the number of dimensions of each.
ARRAYS: dict[str, tuple[type[np.generic], int]] = {
    "state": (np.float32, 4),
    "rates": (np.float64, 1),
    "losses": (np.float64, 1),
    "largest": (np.float64, 1),
    "sums": (np.float64, 1),
    "history": (np.float64, 2),
    "last": (np.float64, 2),
    "pending_indptr": (np.int64, 1),
    "pending_indices": (np.int64, 1),
    "pending_data": (np.float64, 1),
    "pending_targets": (np.float64, 1),
    "pending_weights": (np.float64, 1),
    "sample_numbers": (np.int64, 1),
    "sample_indptr": (np.int64, 1),
    "sample_indices": (np.int64, 1),
}

FORMAT = ArchiveFormat(
    "online_model",
    version=1,
    arrays=("columns", *ARRAYS),
    way_out="learn with fewer columns",
)


@dataclass(frozen=True, eq=False)
class OnlineFile:
    """What a file holds of an online model."""

    kind: str
    columns: ColumnSpace
    arrays: dict[str, NDArray[Any]]  # of the learner
    more: dict[str, Any]  # other entries of the description

    variances = None  # of tuples of groups

    @property
    def zero_based(self) -> bool | None:
        """Whether the text that it was learned from is 0-based; None for other formats."""
        base = self.more.get(BASE)
        return base == 0 if base in (0, 1) else None

    @cached_property
    def table(self) -> TableEncoding | None:
        """How the table it was learned from was encoded; None if that was not a table."""
        return encoding_in(self.more, self.columns.basis)

    @property
    def n_scores(self) -> int:
        """Number of scores of a row."""
        return int(self.arrays["state"].shape[2])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write or replace a file atomically."""
        arrays = dict(self.arrays)
        if isinstance(self.columns, ChosenColumns):
            arrays["columns"] = self.columns.ranks
        description = {
            "kind": self.kind,
            "basis": self.columns.basis.as_dict(),
            "columns": self.columns.describe(),
            "sha256": digest_of(arrays),
        }
        with replacing(Path(path)) as file:
            FORMAT.write(file, self.more | description, arrays)

    @classmethod
    def read(cls, path: str | os.PathLike[str], max_memory: int | None = None) -> OnlineFile:
        """Read a file; raise ValueError if it is damaged or not an online model."""
        description, arrays = FORMAT.read(path, max_memory)
        with damage_to(path):
            if description["sha256"] != digest_of(arrays):
                raise ValueError("its arrays do not match their digest")
            columns = columns_of(description, arrays)
            require_names(description, columns.basis.n_features)
            encoding_in(description, columns.basis)
            own = {
                name: array_of(arrays, name, dtype, (dimensions,))
                for name, (dtype, dimensions) in ARRAYS.items()
                if name in arrays
            }
            return cls(description["kind"], columns, own, description)
