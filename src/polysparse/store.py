"""Expansions on disk: a directory of .npy files that opens as one memory-mapped CSR matrix.

    DIR/manifest.json   shape, dtypes, basis, where the parts end
    DIR/indptr.npy      of all rows; likewise indices.npy, data.npy and maybe labels.npy

It is written under a hidden name beside DIR and renamed when whole, so that what has the name DIR
is whole. The arrays grow at their ends; `progress.json` says up to where they can be trusted. A
part ends where its bytes pass a limit, row by row, so that a resumed run ends its parts where the
first one would.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from polysparse.basis import MonomialBasis
from polysparse.canonical import INDEX_DTYPES, VALUE_DTYPES, as_csr, inspect_arrays

VERSION = 1
PART_BYTES = 2**26
MANIFEST, PROGRESS = "manifest.json", "progress.json"
JSON_NAMES = {MANIFEST, PROGRESS, f"{MANIFEST}.new", f"{PROGRESS}.new"}
OWN_NAMES = JSON_NAMES | {f"{name}.npy" for name in ("indptr", "indices", "data", "labels")}


def beside(path: Path, role: str) -> Path:
    """The hidden name that is reserved for what is not yet, or no longer, to be called `path`."""
    return path.with_name(f".{path.name}.polysparse-{role}")


def is_own(path: Path) -> bool:
    """Whether all that is there, if anything, can have been written by us, and may be removed."""
    if path.is_symlink():
        return False
    if path.is_dir():
        return {each.name for each in path.iterdir()} <= OWN_NAMES
    return path.is_file() or not path.exists()


def remove(path: Path) -> None:
    """Remove a file or a directory, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class GrowingArray:
    """A one-dimensional .npy file that is appended to. Its header is right only once closed."""

    def __init__(self, path: Path, dtype: np.dtype[Any], length: int = 0) -> None:
        self.path, self.dtype, self.length = path, dtype, length
        self.file: IO[bytes] = open(path, "r+b" if length else "w+b", buffering=0)  # noqa: SIM115
        try:
            if length:
                self._cut()
            else:
                _write_all(self.file, self._header())
        except BaseException:
            self.file.close()
            raise

    def _cut(self) -> None:
        """Go to the end of what can be trusted, and take off the rest."""
        end = len(self._header()) + self.length * self.dtype.itemsize
        size = self.file.seek(0, os.SEEK_END)
        if size < end:
            raise ValueError(f"{self.path.name} has {size:,} bytes, but needs {end:,}")
        self.file.truncate(end)
        self.file.seek(end)

    def last(self) -> Any:
        """The value at the end."""
        self.file.seek(-self.dtype.itemsize, os.SEEK_END)
        return np.frombuffer(self.file.read(self.dtype.itemsize), dtype=self.dtype)[0]

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


def describe(
    basis: MonomialBasis,
    index_dtype: np.dtype[Any],
    dtype: np.dtype[Any],
    *,
    has_labels: bool,
    origin: dict[str, Any],
) -> dict[str, Any]:
    """What must be the same for two runs to write the same, as JSON gives it back."""
    description = {
        "format": "polysparse.store",
        "version": VERSION,
        "basis": basis_as_dict(basis),
        "index_dtype": index_dtype.str,
        "dtype": dtype.str,
        "labels": has_labels,
        "origin": origin,
    }
    return dict(json.loads(json.dumps(description)))


def fits_description(found: Any, description: dict[str, Any]) -> bool:
    """Whether what was read from a file says all that the description says."""
    return isinstance(found, dict) and description == {k: found.get(k) for k in description}


class StoreWriter:
    """Writes blocks of rows aside; `finish` gives them the name.

    Parameters
    ----------
    path : Path
        Directory that is to be.
    description : dict
        As `describe` makes it.
    resume : bool
        Go on from the last whole part of an earlier run, if there is one.
    partial : Path, optional
        Where to write; by default a hidden name beside `path`.
    """

    def __init__(
        self,
        path: Path,
        description: dict[str, Any],
        *,
        resume: bool = False,
        partial: Path | None = None,
    ) -> None:
        self.path, self.partial = path, partial or beside(path, "partial")
        self.description = description
        self.part_ends: list[list[int]] = []  # [rows, stored values] before the end of each part
        self.n_rows = self.nnz = 0
        self.arrays: dict[str, GrowingArray] = {}
        index_dtype, dtype = np.dtype(description["index_dtype"]), np.dtype(description["dtype"])
        self.bytes_per_value: int = index_dtype.itemsize + dtype.itemsize
        self.bytes_per_row: int = index_dtype.itemsize + 8 * bool(description["labels"])
        self.is_sealed = False
        is_new = not (resume and self._find())
        try:
            if is_new:
                remove(self.partial)
                self.partial.mkdir()
                self._write_json(PROGRESS, {})
            if not self.is_sealed:
                self._open(index_dtype, dtype)
        except BaseException:
            if is_new:
                self.discard()
            else:
                self.leave()
            raise

    def _find(self) -> bool:
        """Take over the whole parts of an earlier run, if there was one."""
        name = next((n for n in (MANIFEST, PROGRESS) if (self.partial / n).exists()), None)
        if name is None:
            return False
        with _damage_to(self.partial):
            found = json.loads((self.partial / name).read_text())
            require_part_ends(found["part_ends"])
        if not fits_description(found, self.description):
            raise ValueError(
                f"{self.partial} was begun with other parameters or from another input: it cannot "
                "be resumed. Run without --resume to begin anew."
            )
        self.is_sealed = name == MANIFEST
        if self.is_sealed:
            with _damage_to(self.partial):
                _open_arrays(self.partial)
        self.part_ends = found["part_ends"]
        self.n_rows, self.nnz = self.part_ends[-1] if self.part_ends else [0, 0]
        return True

    def _open(self, index_dtype: np.dtype[Any], dtype: np.dtype[Any]) -> None:
        """Open the arrays, at the end of the last whole part."""
        wanted = {
            "indptr": (index_dtype, self.n_rows and self.n_rows + 1),
            "indices": (index_dtype, self.nnz),
            "data": (dtype, self.nnz),
        }
        if self.description["labels"]:
            wanted["labels"] = (np.dtype(np.float64), self.n_rows)
        with _damage_to(self.partial):
            for name, (of, length) in wanted.items():
                self.arrays[name] = GrowingArray(self.partial / f"{name}.npy", of, length)
            if self.n_rows == 0:
                self.arrays["indptr"].append(np.zeros(1, dtype=index_dtype))
            elif self.arrays["indptr"].last() != self.nnz:
                raise ValueError(
                    f"indptr.npy does not have {self.nnz:,} after {self.n_rows:,} rows"
                )

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
        self._write_json(PROGRESS, {})

    def _write_json(self, name: str, more: dict[str, Any]) -> None:
        aside = self.partial / f"{name}.new"
        content = {**self.description, **more, "part_ends": self.part_ends}
        aside.write_text(json.dumps(content))
        aside.replace(self.partial / name)

    def seal(self) -> None:
        """Close the arrays and write the manifest: from here on the directory is whole."""
        if not self.is_sealed:
            if self.n_rows > (self.part_ends[-1][0] if self.part_ends else 0):
                self.part_ends.append([self.n_rows, self.nnz])
            for array in self.arrays.values():
                array.close()
            self._write_json(MANIFEST, {"shape": self.shape, "nnz": self.nnz})
            self.is_sealed = True
        for name in (PROGRESS, f"{PROGRESS}.new"):
            (self.partial / name).unlink(missing_ok=True)

    @property
    def shape(self) -> tuple[int, int]:
        """Of what is written so far."""
        return self.n_rows, MonomialBasis(**self.description["basis"]).n_columns

    def finish(self) -> None:
        """Close the arrays and give the directory its name."""
        self.seal()
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
    old = beside(path, "old")
    remove(old)
    try:
        if path.exists():
            path.rename(old)
        new.rename(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    remove(old)


@contextmanager
def _damage_to(folder: Path) -> Iterator[None]:
    """Say that what cannot be gone on with is damaged, and the way out."""
    try:
        yield
    except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
        raise ValueError(
            f"{folder} is damaged: {_reason(error)}. Run without --resume to begin anew."
        ) from None


def _reason(error: Exception) -> str:
    """An error within a sentence."""
    return (str(error) if isinstance(error, ValueError) else repr(error)).rstrip(".")


def require_part_ends(part_ends: Any) -> None:
    """Raise unless they are pairs of rows and stored values, and rise."""
    if not isinstance(part_ends, list) or not all(
        isinstance(end, list) and len(end) == 2 and all(type(n) is int for n in end)
        for end in part_ends
    ):
        raise ValueError("part_ends must be pairs of integers")
    for before, after in pairwise([[0, 0], *part_ends]):
        if before[0] >= after[0] or before[1] > after[1]:
            raise ValueError(f"part_ends must rise, but {after} follows {before}")


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
    try:
        MonomialBasis(**manifest["basis"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: basis: {_reason(error)}.") from None
    return manifest


def _open_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Manifest and memory-mapped arrays; what can be checked without reading them is checked."""
    manifest, folder = read_manifest(path), Path(path)
    try:
        wanted = _wanted_arrays(manifest)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: {_reason(error)}.") from None
    arrays = {name: _open_array(folder / f"{name}.npy", *wanted[name]) for name in wanted}
    ends = [int(arrays["indptr"][i]) for i in (0, -1)]
    if ends != [0, manifest["nnz"]]:
        raise ValueError(
            f"{folder / 'indptr.npy'} goes from {ends[0]} to {ends[1]}; it must go from 0 to "
            f"{manifest['nnz']}. The directory is damaged."
        )
    return manifest, arrays


def _wanted_arrays(manifest: dict[str, Any]) -> dict[str, tuple[np.dtype[Any], int]]:
    """Types and lengths of the arrays; raise if the manifest contradicts itself."""
    (n_rows, n_columns), nnz = manifest["shape"], manifest["nnz"]
    if not all(type(n) is int and n >= 0 for n in (n_rows, n_columns, nnz)):
        raise ValueError("shape and nnz must be integers")
    if n_columns != MonomialBasis(**manifest["basis"]).n_columns:
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
    """Memory-map a .npy file, unless it is empty; never a pickle."""
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
