"""Stores: expansions on disk as a directory of .npy files that opens as a memory-mapped CSR array.

DIR/manifest.json   shape, dtypes, basis, columns, and where the parts end
DIR/indptr.npy      of all rows; likewise indices.npy, data.npy and, if there are labels, labels.npy
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.files.description import VERSION, columns_in, n_columns_in
from polysparse.files.paths import MANIFEST
from polysparse.matrix.canonical import VALUE_DTYPES
from polysparse.matrix.checking import INDEX_DTYPES, inspect_arrays
from polysparse.matrix.output import as_csr


def reason_of(error: Exception) -> str:
    """Return the message of an error as a part of a sentence."""
    return (str(error) if isinstance(error, ValueError) else repr(error)).rstrip(".")


def require_part_ends(part_ends: Any) -> None:
    """Raise ValueError unless they are increasing pairs of rows and stored values."""
    if not isinstance(part_ends, list) or not all(
        isinstance(end, list) and len(end) == 2 and all(type(n) is int for n in end)
        for end in part_ends
    ):
        raise ValueError("part_ends must be pairs of integers")
    for before, after in pairwise([[0, 0], *part_ends]):
        if before[0] >= after[0] or before[1] > after[1]:
            raise ValueError(f"part_ends must rise, but {after} follows {before}")


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the manifest of a directory, checking the entries that decide what is opened."""
    folder = Path(path)
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{folder} is no expansion written by polysparse: it has no {MANIFEST}."
        ) from None
    except ValueError as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: {error}.") from None
    if not isinstance(manifest, dict) or manifest.get("format") != "polysparse.store":
        raise ValueError(f"{folder / MANIFEST} is not a manifest of polysparse.")
    if manifest.get("version") != VERSION:
        raise ValueError(
            f"{folder} has version {manifest.get('version')}; this polysparse reads {VERSION}."
        )
    try:
        MonomialBasis(**manifest["basis"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: basis: {reason_of(error)}.") from None
    try:
        columns_in(manifest)
    except ValueError as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: columns: {reason_of(error)}.") from None
    return manifest


def open_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the manifest and the memory-mapped arrays, checked as far as possible unread."""
    manifest, folder = read_manifest(path), Path(path)
    try:
        wanted = _wanted_arrays(manifest)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: {reason_of(error)}.") from None
    arrays = {name: _open_array(folder / f"{name}.npy", *wanted[name]) for name in wanted}
    ends = [int(arrays["indptr"][i]) for i in (0, -1)]
    if ends != [0, manifest["nnz"]]:
        raise ValueError(
            f"{folder / 'indptr.npy'} goes from {ends[0]} to {ends[1]}; it must go from 0 to "
            f"{manifest['nnz']}. The directory is damaged."
        )
    return manifest, arrays


def _wanted_arrays(manifest: dict[str, Any]) -> dict[str, tuple[np.dtype[Any], int]]:
    """Return dtypes and lengths of the arrays; raise if the manifest contradicts itself."""
    (n_rows, n_columns), nnz = manifest["shape"], manifest["nnz"]
    if not all(type(n) is int and n >= 0 for n in (n_rows, n_columns, nnz)):
        raise ValueError("shape and nnz must be integers")
    if n_columns != n_columns_in(manifest):
        raise ValueError(f"shape has {n_columns} columns, the basis has another number")
    require_part_ends(manifest["part_ends"])
    if [[0, 0], *manifest["part_ends"]][-1] != [n_rows, nnz]:
        raise ValueError(f"part_ends must end at {[n_rows, nnz]}")
    index_dtype, dtype = np.dtype(manifest["index_dtype"]), np.dtype(manifest["dtype"])
    if index_dtype not in INDEX_DTYPES or dtype not in VALUE_DTYPES:
        raise ValueError(f"there are no expansions of {dtype} with indices of {index_dtype}")
    wanted = {"indptr": (index_dtype, n_rows + 1), "indices": (index_dtype, nnz)}
    wanted["data"] = (dtype, nnz)
    if manifest["labels"]:
        wanted["labels"] = (np.dtype(np.float64), n_rows)
    return wanted


def _open_array(file: Path, dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    """Memory-map a .npy file, or read it if it is empty; pickles are refused."""
    array: NDArray[Any]
    try:
        if length:
            array = np.lib.format.open_memmap(file, mode="r")
        else:
            with open(file, "rb") as opened:
                array = np.lib.format.read_array(opened, allow_pickle=False)
    except (ValueError, EOFError, OverflowError, TypeError) as error:
        raise ValueError(f"{file} is damaged: {str(error).rstrip('.')}.") from None
    if array.dtype != dtype or array.shape != (length,):
        raise ValueError(
            f"{file} holds {array.dtype} of shape {array.shape}; the manifest "
            f"says {dtype} of shape ({length},). The directory is damaged."
        )
    return array


@overload
def load(path: str | os.PathLike[str], *, labels: Literal[False] = False) -> Any: ...
@overload
def load(
    path: str | os.PathLike[str], *, labels: Literal[True]
) -> tuple[Any, NDArray[np.float64] | None]: ...
def load(path: str | os.PathLike[str], *, labels: bool = False) -> Any:
    """Open an expansion that was written to a directory, without reading it.

    Parameters
    ----------
    path : path-like
        Directory written by the command ``polysparse expand IN DIR``.
    labels : bool, default=False
        If True, also return the labels.

    Returns
    -------
    X : csr_array
        The expansion. Its arrays are memory-mapped and read-only.
    labels : ndarray of float64, or None
        The labels, or None if there are none. Only returned if `labels` is True.

    See Also
    --------
    iter_load : Read the parts one by one.

    Examples
    --------
    >>> import polysparse
    >>> X = polysparse.load("expanded")  # doctest: +SKIP
    """
    manifest, arrays = open_arrays(path)
    X = as_csr(
        tuple(manifest["shape"]),
        arrays["indptr"],
        arrays["indices"],
        arrays["data"],
        is_array=True,
    )
    return (X, arrays.get("labels")) if labels else X


def iter_load(
    path: str | os.PathLike[str],
) -> Iterator[tuple[slice, Any, NDArray[np.float64] | None]]:
    """Iterate over the parts of an expansion that was written to a directory.

    Parameters
    ----------
    path : path-like
        Directory written by the command ``polysparse expand IN DIR``.

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

    Examples
    --------
    >>> import polysparse
    >>> for rows, part, labels in polysparse.iter_load("expanded"):  # doctest: +SKIP
    ...     model.partial_fit(part, labels, classes=[0, 1])
    """
    manifest, arrays = open_arrays(path)
    return _parts(Path(path), manifest, arrays)


def _parts(
    folder: Path, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> Iterator[Any]:
    n_columns, labels = manifest["shape"][1], arrays.get("labels")
    for (first_row, first), (end_row, end) in pairwise([[0, 0], *manifest["part_ends"]]):
        indptr = np.array(arrays["indptr"][first_row : end_row + 1]) - first
        indices, data = np.array(arrays["indices"][first:end]), np.array(arrays["data"][first:end])
        rows = slice(first_row, end_row)
        try:
            rising, _ = inspect_arrays(indptr, indices, data, n_columns, "column")
        except ValueError as error:
            raise ValueError(f"{folder} is damaged, in rows {first_row} on: {error}") from None
        if not rising:
            raise ValueError(f"{folder / 'indices.npy'} is damaged: a row's columns do not rise.")
        part = as_csr((end_row - first_row, n_columns), indptr, indices, data, is_array=True)
        yield rows, part, None if labels is None else np.array(labels[rows])
