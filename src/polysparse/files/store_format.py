"""The format of a directory that polysparse wrote; its pieces are the parts of the store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.description import fits_description
from polysparse.files.format import Format
from polysparse.files.parts import Parts
from polysparse.files.paths import version_of
from polysparse.files.pieces import CutFile, Piece, RowArrays, joined, state_of
from polysparse.files.sink import Sink
from polysparse.files.store import open_arrays, read_manifest, read_part
from polysparse.files.store_source import StoreSource
from polysparse.files.store_writer import StoreWriter


@dataclass(frozen=True)
class StorePiece(Piece):
    """A part of a directory that polysparse wrote."""

    number: int

    def rows(self) -> RowArrays:
        """Read indptr, indices, data and labels or None, as they are in the file."""
        folder = version_of(self.path)
        manifest, arrays = open_arrays(folder)
        parts, n_columns = Parts.read(manifest), manifest["shape"][1]
        if not parts.ends:
            return joined(())
        _, part, labels = read_part(folder, arrays, n_columns, parts, self.number, verify=True)
        return part.indptr, part.indices, part.data, labels


class StoreFormat(Format):
    """A directory of .npy files, written and read a few rows at a time."""

    noun = "a directory of .npy files (written by polysparse; a name without an ending)"
    source = StoreSource
    written_endings = ("",)
    is_directory = True
    is_resumable = True
    has_pieces = True

    def open_sink(self, path: Path, description: dict[str, Any], *, resume: bool) -> Sink:
        """Open a directory for writing."""
        return StoreWriter(path, description, resume=resume)

    def least_bytes(self, plan: ExpansionPlan, *, has_labels: bool) -> int:
        """Return the bytes of the arrays."""
        return bytes_of_arrays(plan, has_labels=has_labels)

    def read_description(self, path: Path) -> Any:
        """Return the manifest."""
        return read_manifest(path)

    def is_written(self, path: Path, description: dict[str, Any]) -> bool:
        """Return whether a directory has this description, and arrays of the right sizes."""
        return fits_description(open_arrays(path)[0], description)

    def cut(self, path: Path, block_bytes: int) -> CutFile:
        """Cut a directory into its parts."""
        state, (manifest, _) = state_of(path), open_arrays(version_of(path))
        sizes = [rows.stop - rows.start for rows, _ in Parts.read(manifest)] or [0]
        pieces = [StorePiece(path, state, n_rows, number) for number, n_rows in enumerate(sizes)]
        dtype = np.dtype(manifest["dtype"])
        return CutFile(pieces, manifest["shape"][1], dtype, bool(manifest["labels"]))


def bytes_of_arrays(plan: ExpansionPlan, *, has_labels: bool) -> int:
    """Return the bytes of an expansion and its labels."""
    return plan.nbytes + 8 * plan.n_rows * has_labels
