"""The format of a directory that polysparse has written; its pieces are the parts of the store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.files.description import fits_description
from polysparse.files.errors import FileFault
from polysparse.files.format import Format
from polysparse.files.paths import MANIFEST, version_of
from polysparse.files.pieces import CutFile, Piece, RowArrays, joined, state_of
from polysparse.files.source import Source, Summary
from polysparse.files.store import Store, read_manifest
from polysparse.files.store_writer import StoreWriter
from polysparse.matrix.output import as_csr
from polysparse.matrix.row_profile import RowProfile


class StoreSource(Source):
    """An expansion in a directory, read a few rows at a time."""

    is_upper_bound = True  # a product that is too small for its dtype is stored as zero

    OFFSETS = 2**16  # row offsets that are read at a time

    @cached_property
    def _store(self) -> Store:
        return Store.open(self.path)

    @cached_property
    def summary(self) -> Summary:
        """Size and row lengths of the matrix, all of which is compared with its checksums."""
        store, profile = self._store, RowProfile()
        dtypes = {name: array.dtype for name, array in store.arrays.items()}
        store.parts.require_files(store.folder, dtypes)
        for first in range(0, store.parts.n_rows, self.OFFSETS):
            offsets = _read(store.arrays["indptr"], first, first + self.OFFSETS + 1)
            if np.any(np.diff(offsets) < 0):
                raise FileFault(f"{self.path}: is damaged: the offsets in indptr.npy decrease.")
            profile += RowProfile(cpu.count_row_lengths(offsets))
        n_features = store.manifest["shape"][1]
        if self.given_features is not None:
            n_features = self.width(self._largest())
        return Summary(n_features, profile, bool(store.manifest["labels"]))

    def _largest(self) -> int:
        """Return the largest column that occurs, or -1."""
        indices = self._store.arrays["indices"]
        starts = range(0, len(indices), self.OFFSETS)
        return max((int(_read(indices, i, i + self.OFFSETS).max()) for i in starts), default=-1)

    def identity(self) -> dict[str, Any]:
        state = (version_of(self.path) / MANIFEST).stat()
        return {"name": self.path.resolve().name, "modified": state.st_mtime_ns, "zero_based": None}

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        summary, arrays = self.summary, self._store.arrays
        each = arrays["indices"].itemsize + arrays["data"].itemsize
        most = max(1, block_bytes // each)
        start = skip_rows
        while start < summary.n_rows:
            offsets = _read(arrays["indptr"], start, start + min(most, self.OFFSETS) + 1)
            n_rows = int(np.searchsorted(offsets, offsets[0] + most, side="right")) - 1
            n_rows = max(1, min(n_rows, len(offsets) - 1))
            stored = int(offsets[0]), int(offsets[n_rows])
            indices, data = (_read(arrays[name], *stored) for name in ("indices", "data"))
            indptr = offsets[: n_rows + 1] - offsets[0]
            block = as_csr((n_rows, summary.n_features), indptr, indices, data, is_array=True)
            block.has_canonical_format = block.has_sorted_indices = False
            labels = None
            if summary.has_labels:
                labels = _read(arrays["labels"], start, start + n_rows)
            yield block, labels
            start += n_rows


def _read(array: NDArray[Any], start: int, stop: int) -> NDArray[Any]:
    """Return a part of a memory-mapped array, read from its file.

    Pages that were read through the mapping would stay in memory with it.
    """
    stop = min(stop, len(array))
    if not isinstance(array, np.memmap):  # an empty one
        return array[start:stop]
    where = array.offset + start * array.itemsize
    return np.fromfile(array.filename, array.dtype, stop - start, offset=where)  # type: ignore[arg-type]


@dataclass(frozen=True)
class StorePiece(Piece):
    """A part of a directory that polysparse wrote."""

    number: int

    def rows(self) -> RowArrays:
        store = Store.open(self.path)
        if not store.parts.ends:
            return joined(())
        _, part, labels = store.read_part(self.number, verify=True)
        return part.indptr, part.indices, part.data, labels


class StoreFormat(Format):
    """A directory of .npy files, written and read a few rows at a time."""

    noun = "a directory of .npy files (written by polysparse; a name without an ending)"
    source, sink = StoreSource, StoreWriter
    written_endings = ("",)
    is_directory = True
    is_resumable = True
    has_pieces = True
    has_description = True

    def read_description(self, path: Path) -> Any:
        return read_manifest(path)

    def is_written(self, path: Path, description: dict[str, Any]) -> bool:
        """Return whether a directory has this description, and arrays of the right sizes."""
        return fits_description(Store.open(path).manifest, description)

    def cut(self, path: Path, block_bytes: int) -> CutFile:
        """Cut a directory into its parts."""
        state, store = state_of(path), Store.open(path)
        sizes = [rows.stop - rows.start for rows, _ in store.parts] or [0]
        pieces = [StorePiece(path, state, n_rows, number) for number, n_rows in enumerate(sizes)]
        manifest = store.manifest
        dtype = np.dtype(manifest["dtype"])
        return CutFile(pieces, manifest["shape"][1], dtype, bool(manifest["labels"]))
