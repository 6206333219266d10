"""Expansions on disk: a directory of .npy files that opens as one memory-mapped CSR matrix.

    DIR/manifest.json   shape, dtypes, basis, where the parts end
    DIR/indptr.npy      of all rows; likewise indices.npy, data.npy and maybe labels.npy

It is written as DIR.partial and renamed when whole, so that what has the name DIR is whole. The
arrays grow at their ends; `progress.json` says up to where they can be trusted. A part ends where
its bytes pass a limit, row by row, so that a resumed run ends its parts where the first one would.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from polysparse.basis import MonomialBasis
from polysparse.canonical import as_csr

VERSION = 1
PART_BYTES = 2**26
MANIFEST, PROGRESS = "manifest.json", "progress.json"


class GrowingArray:
    """A one-dimensional .npy file that is appended to. Its header is right only once closed."""

    def __init__(self, path: Path, dtype: np.dtype[Any], length: int = 0) -> None:
        self.path, self.dtype, self.length = path, dtype, length
        self.file: IO[bytes] = open(path, "r+b" if length else "w+b", buffering=0)  # noqa: SIM115
        start = len(self._header())
        if length:
            self.file.truncate(start + length * dtype.itemsize)
            self.file.seek(0, os.SEEK_END)
        else:
            _write_all(self.file, self._header())

    def _header(self) -> bytes:
        """Of the same length whatever the array's: NumPy leaves room for the digits."""
        buffer = io.BytesIO()
        descr = np.lib.format.dtype_to_descr(self.dtype)
        fields = {"descr": descr, "fortran_order": False, "shape": (self.length,)}
        np.lib.format.write_array_header_1_0(buffer, fields)
        return buffer.getvalue()

    def append(self, array: NDArray[Any]) -> None:
        array = np.ascontiguousarray(array, dtype=self.dtype)
        _write_all(self.file, array.view(np.uint8).data)
        self.length += len(array)

    def close(self) -> None:
        self.file.seek(0)
        _write_all(self.file, self._header())
        self.file.close()


def _write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    """Raw files may write less than they are given."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


class StoreWriter:
    """Writes blocks of rows into DIR.partial; `finish` makes it DIR.

    Parameters
    ----------
    path : Path
        DIR.
    basis : MonomialBasis
    index_dtype, dtype : numpy.dtype
        Of the columns and offsets, and of the values.
    has_labels : bool
        Whether every block comes with labels.
    origin : dict
        What else must be the same for a run to be resumed.
    resume : bool
        Go on from the last whole part of an earlier run, if there is one.
    """

    def __init__(
        self,
        path: Path,
        basis: MonomialBasis,
        index_dtype: np.dtype[Any],
        dtype: np.dtype[Any],
        *,
        has_labels: bool,
        origin: dict[str, Any],
        resume: bool = False,
    ) -> None:
        self.path, self.partial = path, path.with_name(f"{path.name}.partial")
        self.basis = basis
        self.description: dict[str, Any] = {
            "format": "polysparse.store",
            "version": VERSION,
            "basis": basis_as_dict(basis),
            "index_dtype": index_dtype.str,
            "dtype": dtype.str,
            "labels": has_labels,
        }
        self.origin = origin
        self.part_ends: list[list[int]] = []  # [rows, stored values] before the end of each part
        found = self._progress() if resume else None
        if found is None:
            shutil.rmtree(self.partial, ignore_errors=True)
            self.partial.mkdir(parents=True)
        else:
            self.part_ends = found
        self.n_rows, self.nnz = self.part_ends[-1] if self.part_ends else [0, 0]
        lengths = {"indptr": self.n_rows and self.n_rows + 1, "indices": self.nnz, "data": self.nnz}
        dtypes = {"indptr": index_dtype, "indices": index_dtype, "data": dtype}
        if has_labels:
            lengths["labels"], dtypes["labels"] = self.n_rows, np.dtype(np.float64)
        self.arrays = {
            name: GrowingArray(self.partial / f"{name}.npy", dtypes[name], lengths[name])
            for name in dtypes
        }
        if self.n_rows == 0:
            self.arrays["indptr"].append(np.zeros(1, dtype=index_dtype))
        self.bytes_per_value = index_dtype.itemsize + dtype.itemsize
        self.bytes_per_row = index_dtype.itemsize + 8 * has_labels

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        """Append a block of rows, ending parts where they are full."""
        start, n_rows = 0, block.shape[0]
        offsets = block.indptr.astype(np.int64)
        sizes = offsets * self.bytes_per_value + np.arange(n_rows + 1) * self.bytes_per_row
        while start < n_rows:
            room = PART_BYTES - self._bytes_in_part()
            # The row that fills the part is its last.
            stop = min(int(np.searchsorted(sizes, sizes[start] + room, side="left")), n_rows)
            self._append(block, offsets, labels, start, stop)
            if self._bytes_in_part() >= PART_BYTES:
                self._end_part()
            start = stop

    def _bytes_in_part(self) -> int:
        rows, nnz = self.part_ends[-1] if self.part_ends else (0, 0)
        return (self.nnz - nnz) * self.bytes_per_value + (self.n_rows - rows) * self.bytes_per_row

    def _append(
        self,
        block: Any,
        offsets: NDArray[np.int64],
        labels: NDArray[Any] | None,
        start: int,
        stop: int,
    ) -> None:
        stored = slice(offsets[start], offsets[stop])
        self.arrays["indices"].append(block.indices[stored])
        self.arrays["data"].append(block.data[stored])
        self.arrays["indptr"].append(offsets[start + 1 : stop + 1] - offsets[start] + self.nnz)
        if labels is not None:
            self.arrays["labels"].append(labels[start:stop])
        self.n_rows += stop - start
        self.nnz += int(offsets[stop] - offsets[start])

    def _end_part(self) -> None:
        self.part_ends.append([self.n_rows, self.nnz])
        self._write_json(PROGRESS, {**self.description, "origin": self.origin})

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        aside = self.partial / f"{name}.new"
        aside.write_text(json.dumps({**content, "part_ends": self.part_ends}))
        aside.replace(self.partial / name)

    def _progress(self) -> list[list[int]] | None:
        """Ends of the whole parts of an earlier run with the same parameters, or None."""
        try:
            found = json.loads((self.partial / PROGRESS).read_text())
        except (OSError, ValueError):
            return None
        part_ends = found.pop("part_ends", None)
        if found != json.loads(json.dumps({**self.description, "origin": self.origin})):
            raise ValueError(
                f"{self.partial} was begun with other parameters or from another input: it cannot "
                "be resumed. Run without --resume to begin anew."
            )
        return part_ends  # type: ignore[no-any-return]

    def finish(self) -> None:
        """Close the arrays and give the directory its name."""
        if self.n_rows > (self.part_ends[-1][0] if self.part_ends else 0):
            self.part_ends.append([self.n_rows, self.nnz])
        for array in self.arrays.values():
            array.close()
        shape = [self.n_rows, self.basis.n_columns]
        self._write_json(MANIFEST, {**self.description, "shape": shape, "nnz": self.nnz})
        (self.partial / PROGRESS).unlink(missing_ok=True)
        replace_directory(self.partial, self.path)

    def leave(self) -> None:
        """Stop here, so that another run can go on from the last whole part."""
        for array in self.arrays.values():
            array.file.close()

    def discard(self) -> None:
        """Stop here, and leave nothing behind."""
        self.leave()
        shutil.rmtree(self.partial, ignore_errors=True)


def replace_directory(new: Path, path: Path) -> None:
    """Rename a directory, over an old one if there is: at no moment is a half one at `path`."""
    if not path.exists():
        new.rename(path)
        return
    old = path.with_name(f"{path.name}.old")
    path.rename(old)
    new.rename(path)
    shutil.rmtree(old) if old.is_dir() else old.unlink()


def basis_as_dict(basis: MonomialBasis) -> dict[str, Any]:
    """The arguments that make the basis again."""
    return {
        "n_features": basis.n_features,
        "degree": [basis.min_degree, basis.max_degree],
        "interaction_only": basis.interaction_only,
        "include_bias": basis.include_bias,
    }


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest of a directory, checked as far as it decides what is opened."""
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
    return manifest


def _open_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    manifest, folder = read_manifest(path), Path(path)
    try:
        n_rows, nnz = int(manifest["shape"][0]), int(manifest["nnz"])
        wanted = {
            "indptr": (manifest["index_dtype"], n_rows + 1),
            "indices": (manifest["index_dtype"], nnz),
            "data": (manifest["dtype"], nnz),
        }
        if manifest["labels"]:
            wanted["labels"] = ("<f8", n_rows)
        manifest["part_ends"], manifest["shape"][1], manifest["basis"]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: {error!r}.") from None
    arrays = {}
    for name, (dtype, length) in wanted.items():
        file = folder / f"{name}.npy"
        arrays[name] = np.load(file, mmap_mode="r" if length else None, allow_pickle=False)
        if arrays[name].dtype != np.dtype(dtype) or arrays[name].shape != (length,):
            raise ValueError(
                f"{file} holds {arrays[name].dtype} of shape {arrays[name].shape}; the manifest "
                f"says {np.dtype(dtype)} of shape ({length},). The directory is damaged."
            )
    return manifest, arrays


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
        Whether to return the labels, too.

    Returns
    -------
    X : csr_array
        Its arrays are memory-mapped and read-only.
    labels : ndarray of float64, or None if there are none
        Only if `labels` is true.

    Examples
    --------
    >>> import polysparse
    >>> X = polysparse.load("expanded")  # doctest: +SKIP
    """
    manifest, arrays = _open_arrays(path)
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
    """Go through an expansion that was written to a directory, part by part.

    Parameters
    ----------
    path : path-like
        Directory written by the command ``polysparse expand IN DIR``.

    Yields
    ------
    rows : slice
    part : csr_array
        Those rows, in memory.
    labels : ndarray of float64, or None if there are none

    Examples
    --------
    >>> import polysparse
    >>> for rows, part, labels in polysparse.iter_load("expanded"):  # doctest: +SKIP
    ...     model.partial_fit(part, labels, classes=[0, 1])
    """
    manifest, arrays = _open_arrays(path)
    return _parts(manifest, arrays)


def _parts(manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Iterator[Any]:
    first_row = first = 0
    for end_row, end in manifest["part_ends"]:
        rows = slice(first_row, end_row)
        part = as_csr(
            (end_row - first_row, manifest["shape"][1]),
            arrays["indptr"][first_row : end_row + 1] - arrays["indptr"][first_row],
            np.array(arrays["indices"][first:end]),
            np.array(arrays["data"][first:end]),
            is_array=True,
        )
        labels = arrays.get("labels")
        yield rows, part, None if labels is None else np.array(labels[rows])
        first_row, first = end_row, end
