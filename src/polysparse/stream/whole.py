"""Read a file as a whole, with room for it once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.files.errors import FileFault
from polysparse.files.source import Source
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.matrix.output import CsrBuffers, as_csr, index_dtype_for
from polysparse.stream.resources import Resources
from polysparse.stream.rows import read_rows, require_unchanged

DTYPE = np.dtype(np.float64)


def bytes_of_whole(source: Source) -> int:
    """Return the bytes of a matrix that is read as a whole, with its labels."""
    n_rows, n_stored = source.summary.n_rows, source.summary.profile.n_stored
    itemsize = _index_dtype(source).itemsize
    return n_stored * (itemsize + DTYPE.itemsize) + (n_rows + 1) * itemsize + 8 * n_rows


def read_whole(source: Source, resources: Resources) -> tuple[Any, NDArray[np.float64] | None]:
    """Return all rows as a csr_array of float64, and their labels or None."""
    summary, index_dtype = source.summary, _index_dtype(source)
    most_rows, most = summary.n_rows, summary.profile.n_stored
    room = CsrBuffers.fresh(most_rows, most, index_dtype, index_dtype, DTYPE)
    labels = np.empty(most_rows) if summary.has_labels else None
    n_rows = nnz = room.indptr[0] = 0
    resources.progress.start(0, "reading")
    for x, block_labels in read_rows(source, 0, resources.memory, DTYPE, resources.n_jobs):
        rows = slice(n_rows, n_rows + x.shape[0])
        if rows.stop > most_rows or nnz + len(x.data) > most:
            raise FileFault(f"{source.path} changed while it was read.")
        resources.progress.advance_to(rows.stop, f"{nnz + len(x.data):,} values")
        if labels is not None:
            labels[rows] = block_labels
        if rows == slice(0, most_rows):  # it came in one piece, and need not be copied
            return as_csr(x.shape, x.indptr, x.indices, x.data, is_array=True), labels
        nnz = _append(room, x, rows, nnz)
        n_rows = rows.stop
    require_unchanged(source, n_rows)
    room.trim(nnz)
    return room.wrap((n_rows, summary.n_features), nnz, index_dtype, is_array=True), labels


def _index_dtype(source: Source) -> np.dtype[Any]:
    return index_dtype_for(max(source.summary.profile.n_stored, source.summary.n_features))


def _append(room: CsrBuffers, x: CanonicalCsr, rows: slice, nnz: int) -> int:
    """Copy rows behind those that are there, and return the number of stored values."""
    stop = nnz + len(x.data)
    offsets = room.indptr[rows.start + 1 : rows.stop + 1]
    np.add(x.indptr[1:], nnz, out=offsets, dtype=offsets.dtype, casting="same_kind")
    room.indices[nnz:stop] = x.indices
    room.data[nnz:stop] = x.data
    return stop
