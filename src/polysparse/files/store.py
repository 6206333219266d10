"""Stores: expansions on disk as a directory of .npy files that opens as a memory-mapped CSR array.

DIR/manifest.json   shape, dtypes, basis, columns, where the parts end, and their checksums
DIR/indptr.npy      of all rows; likewise indices.npy, data.npy and, if there are labels, labels.npy
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.files.archive import format_name_in
from polysparse.files.description import VERSION, columns_in, n_columns_in, parse_json
from polysparse.files.errors import FileFault
from polysparse.files.npy import open_array
from polysparse.files.parts import Parts
from polysparse.files.paths import MANIFEST, require_on_disk, version_of
from polysparse.matrix.canonical import VALUE_DTYPES
from polysparse.matrix.checking import INDEX_DTYPES, inspect_arrays
from polysparse.matrix.output import as_csr

ROWS_TOGETHER = 2**20  # of which offsets are checked at a time


def reason_of(error: Exception) -> str:
    """Return the message of an error as a part of a sentence."""
    return (str(error) if isinstance(error, ValueError) else repr(error)).rstrip(".")


_READERS = {
    "polysparse.model": "polysparse.load_model",
    "polysparse.vocabulary": "ObservedPolynomialFeatures.load",
}


def _hint(path: Path) -> str:
    """Return which function reads a file, as the end of a sentence; empty if that is not known."""
    reader = _READERS.get(format_name_in(path))
    return f": use {reader}" if reader else ""


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the manifest of a directory, checking the entries that decide what is opened."""
    folder = version_of(Path(path))
    if folder.is_file():
        raise FileFault(f"{folder} is a file, not a directory of polysparse expand{_hint(folder)}.")
    require_on_disk(folder / MANIFEST)
    try:
        manifest = parse_json((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{folder} is not a directory of polysparse expand: it has no {MANIFEST}."
        ) from None
    except ValueError as error:
        raise FileFault(f"{folder / MANIFEST} is damaged: {error}.") from None
    if not isinstance(manifest, dict) or manifest.get("format") != "polysparse.store":
        raise FileFault(f"{folder / MANIFEST} is not a manifest of polysparse.")
    if manifest.get("version") != VERSION:
        raise FileFault(
            f"{folder} has version {manifest.get('version')}; this polysparse reads {VERSION}."
        )
    try:
        MonomialBasis(**manifest["basis"])
    except (KeyError, TypeError, ValueError) as error:
        raise FileFault(f"{folder / MANIFEST} is damaged: basis: {reason_of(error)}.") from None
    try:
        columns_in(manifest)
    except ValueError as error:
        raise FileFault(f"{folder / MANIFEST} is damaged: columns: {reason_of(error)}.") from None
    return manifest


@dataclass(frozen=True)
class Store:
    """A directory that polysparse has written: its manifest, and its memory-mapped arrays."""

    folder: Path
    manifest: dict[str, Any]
    parts: Parts
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Store:
        """Open a directory, checking it as far as possible without reading the arrays."""
        folder = version_of(Path(path))
        manifest = read_manifest(folder)
        try:
            parts = _require_consistent(manifest)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FileFault(f"{folder / MANIFEST} is damaged: {reason_of(error)}.") from None
        wanted = wanted_arrays(manifest, parts)
        arrays = {name: open_array(folder / f"{name}.npy", *wanted[name]) for name in wanted}
        ends = [int(arrays["indptr"][i]) for i in (0, -1)]
        if ends != [0, parts.nnz]:
            raise FileFault(
                f"{folder / 'indptr.npy'} goes from {ends[0]} to {ends[1]}; it must go from 0 to "
                f"{parts.nnz}. The directory is damaged."
            )
        return cls(folder, manifest, parts, arrays)

    def iter_parts(
        self, *, verify: bool
    ) -> Iterator[tuple[slice, Any, NDArray[np.float64] | None]]:
        """Read the parts into memory one by one, as `iter_load` yields them."""
        return (self.read_part(i, verify=verify) for i in range(len(self.parts.ends)))

    def read_part(
        self, number: int, *, verify: bool
    ) -> tuple[slice, Any, NDArray[np.float64] | None]:
        """Read a part into memory, as `iter_load` yields it."""
        folder, arrays, n_columns = self.folder, self.arrays, self.manifest["shape"][1]
        rows, stored = self.parts.span(number)
        indptr = np.array(arrays["indptr"][rows.start : rows.stop + 1])
        own = {name: np.array(arrays[name][stored]) for name in ("indices", "data")}
        own |= {"labels": np.array(arrays["labels"][rows])} if "labels" in arrays else {}
        offsets = indptr - stored.start
        try:
            seen = inspect_arrays(offsets, own["indices"], own["data"], n_columns, "column")
        except ValueError as error:
            raise FileFault(f"{folder} is damaged from row {rows.start} on: {error}") from None
        if not seen.increasing:
            raise FileFault(
                f"{folder / 'indices.npy'} is damaged: the columns of a row do not increase."
            )
        if verify:
            self.parts.require_checksums(folder, number, {"indptr": indptr[1:], **own})
        shape = rows.stop - rows.start, n_columns
        part = as_csr(shape, offsets, own["indices"], own["data"], is_array=True)
        return rows, part, own.get("labels")


def _require_consistent(manifest: dict[str, Any]) -> Parts:
    """Return the parts that a manifest lists; raise if it contradicts itself."""
    (n_rows, n_columns), nnz = manifest["shape"], manifest["nnz"]
    if not all(type(n) is int and n >= 0 for n in (n_rows, n_columns, nnz)):
        raise ValueError("shape and nnz must be integers")
    if n_columns != n_columns_in(manifest):
        raise ValueError(f"shape has {n_columns} columns, but there are {n_columns_in(manifest)}")
    parts = Parts.read(manifest, [n_rows, nnz])
    names = manifest["index_dtype"], manifest["dtype"]
    if not all(isinstance(name, str) and name.isascii() and len(name) < 10 for name in names):
        raise ValueError(f"{names} are not dtypes")
    index_dtype, dtype = map(np.dtype, names)
    if index_dtype not in INDEX_DTYPES or dtype not in VALUE_DTYPES:
        raise ValueError(f"an expansion cannot have values of {dtype} and indices of {index_dtype}")
    return parts


def wanted_arrays(
    description: dict[str, Any], parts: Parts
) -> dict[str, tuple[np.dtype[Any], int]]:
    """Return the dtype and the length of each array of a store with these parts."""
    index_dtype, dtype = (np.dtype(description[key]) for key in ("index_dtype", "dtype"))
    wanted = {
        "indptr": (index_dtype, parts.n_rows + 1),
        "indices": (index_dtype, parts.nnz),
        "data": (dtype, parts.nnz),
    }
    return wanted | ({"labels": (np.dtype(float), parts.n_rows)} if description["labels"] else {})


@overload
def load(
    path: str | os.PathLike[str], *, labels: Literal[False] = False, verify: bool = True
) -> Any: ...
@overload
def load(
    path: str | os.PathLike[str], *, labels: Literal[True], verify: bool = True
) -> tuple[Any, NDArray[np.float64] | None]: ...
def load(path: str | os.PathLike[str], *, labels: bool = False, verify: bool = True) -> Any:
    """Open an expansion that was written to a directory, memory-mapped.

    Parameters
    ----------
    path : path-like
        Directory written by the command ``polysparse expand IN DIR``.
    labels : bool, default=False
        If True, also return the labels.
    verify : bool, default=True
        If True, all arrays are read once and compared with their checksums; ValueError is raised
        if the directory was changed. If False, only headers, sizes and row offsets are
        checked, and neither indices nor values are read.

    Returns
    -------
    X : csr_array
        The expansion. Its arrays are memory-mapped and read-only.
    labels : ndarray of float64, or None
        The labels, or None if there are none. Only returned if `labels` is True.

    See Also
    --------
    iter_load : Read the parts one by one.

    Notes
    -----
    SciPy does not check indices. If an index was changed on the disk, ``X @ w`` may read outside of
    `w` and crash. If a value was changed, results are wrong. `verify=True` detects both. A
    memory-mapped matrix is not protected from later changes to its files. `iter_load` reads parts
    into memory and checks them.

    Examples
    --------
    >>> import polysparse
    >>> X = polysparse.load("expanded")  # doctest: +SKIP
    """
    store = Store.open(path)
    _require_increasing_offsets(store.folder, store.arrays["indptr"])
    if verify:
        deque(store.iter_parts(verify=True), maxlen=0)
    arrays = (store.arrays[name] for name in ("indptr", "indices", "data"))
    X = as_csr(tuple(store.manifest["shape"]), *arrays, is_array=True)
    return (X, store.arrays.get("labels")) if labels else X


def iter_load(
    path: str | os.PathLike[str], *, verify: bool = True
) -> Iterator[tuple[slice, Any, NDArray[np.float64] | None]]:
    """Iterate over the parts of an expansion that was written to a directory.

    Parameters
    ----------
    path : path-like
        Directory written by the command ``polysparse expand IN DIR``.
    verify : bool, default=True
        If True, every part is compared with its checksums; ValueError is raised if it was changed.
        If False, only indices and offsets are checked.

    Yields
    ------
    rows : slice
        The rows of the part.
    part : csr_array
        Those rows, in memory.
    labels : ndarray of float64, or None
        Their labels, or None if there are none.

    See Also
    --------
    load : Open the whole expansion, memory-mapped.

    Notes
    -----
    Directories written by polysparse 0.1.0 have no checksums: only indices and offsets are checked.

    Examples
    --------
    >>> import polysparse
    >>> for rows, part, labels in polysparse.iter_load("expanded"):  # doctest: +SKIP
    ...     model.partial_fit(part, labels, classes=[0, 1])
    """
    return Store.open(path).iter_parts(verify=verify)


def _require_increasing_offsets(folder: Path, indptr: NDArray[Any]) -> None:
    """Raise ValueError if a row would end before it begins. Reads the offsets, a few at a time."""
    for start in range(0, len(indptr) - 1, ROWS_TOGETHER):
        offsets = indptr[start : start + ROWS_TOGETHER + 1]
        drops = np.flatnonzero(offsets[1:] < offsets[:-1])
        if len(drops):
            row = int(drops[0])
            raise FileFault(
                f"{folder / 'indptr.npy'} is damaged: it decreases from {offsets[row]} to "
                f"{offsets[row + 1]} in row {start + row}."
            )
