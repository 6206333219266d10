"""A directory that polysparse has written, as input."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.files.errors import faults_of
from polysparse.files.parts import Parts
from polysparse.files.paths import MANIFEST, version_of
from polysparse.files.source import Source, Summary
from polysparse.files.store import open_arrays
from polysparse.matrix.output import as_csr
from polysparse.matrix.row_profile import RowProfile


class StoreSource(Source):
    """An expansion in a directory, read a few rows at a time."""

    is_upper_bound = True  # a product that is too small for its dtype is stored as zero

    OFFSETS = 2**16  # row offsets that are read at a time

    @cached_property
    def _opened(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return open_arrays(self.path)

    @cached_property
    def summary(self) -> Summary:
        """Size and row lengths of the matrix, all of which is compared with its checksums."""
        manifest, arrays = self._opened
        dtypes = {name: array.dtype for name, array in arrays.items()}
        Parts.read(manifest).require_files(version_of(self.path), dtypes)
        profile = RowProfile()
        for first in range(0, manifest["shape"][0], self.OFFSETS):
            offsets = _read(arrays["indptr"], first, first + self.OFFSETS + 1)
            with faults_of(self.path):
                _require_increasing(offsets)
            profile += RowProfile(cpu.count_row_lengths(offsets))
        n_features = manifest["shape"][1]
        if self.given_features is not None:
            n_features = self.width(self._largest())
        return Summary(n_features, profile, bool(manifest["labels"]))

    def _largest(self) -> int:
        """Return the largest column that occurs, or -1."""
        indices = self._opened[1]["indices"]
        starts = range(0, len(indices), self.OFFSETS)
        return max((int(_read(indices, i, i + self.OFFSETS).max()) for i in starts), default=-1)

    def identity(self) -> dict[str, Any]:
        """Return what must stay the same for an interrupted run to be resumed."""
        state = (version_of(self.path) / MANIFEST).stat()
        return {"name": self.path.resolve().name, "modified": state.st_mtime_ns, "zero_based": None}

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        """Yield CSR blocks of rows, each with its labels or None, after the first `skip_rows`."""
        summary, arrays = self.summary, self._opened[1]
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


def _require_increasing(offsets: NDArray[Any]) -> None:
    if np.any(np.diff(offsets) < 0):
        raise ValueError("is damaged: the offsets in indptr.npy decrease.")
