"""Write expansions into a directory of .npy files, such that an interrupted run can be resumed.

The directory is written under a hidden name next to DIR and renamed when complete, so a directory
called DIR is always complete. Arrays are appended to; `progress.json` states up to where they can
be trusted. A part ends with the row at which its bytes reach a limit, so a resumed run ends its
parts exactly where an uninterrupted one would.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from polysparse import thresholds
from polysparse.files.description import fits_description, n_columns_in
from polysparse.files.paths import MANIFEST, PROGRESS, beside, remove
from polysparse.files.store import open_arrays, reason_of, require_part_ends


class GrowingArray:
    """A one-dimensional .npy file that is appended to. Its header is valid only once closed."""

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
        """Truncate the file to the length that can be trusted, and seek to its end."""
        end = len(self._header()) + self.length * self.dtype.itemsize
        size = self.file.seek(0, os.SEEK_END)
        if size < end:
            raise ValueError(f"{self.path.name} has {size:,} bytes, but needs {end:,}")
        self.file.truncate(end)
        self.file.seek(end)

    def last(self) -> Any:
        """Return the last value."""
        self.file.seek(-self.dtype.itemsize, os.SEEK_END)
        return np.frombuffer(self.file.read(self.dtype.itemsize), dtype=self.dtype)[0]

    def _header(self) -> bytes:
        """Return the header, whose size is constant: NumPy reserves room for the length."""
        buffer = io.BytesIO()
        descr = np.lib.format.dtype_to_descr(self.dtype)
        fields = {"descr": descr, "fortran_order": False, "shape": (self.length,)}
        np.lib.format.write_array_header_1_0(buffer, fields)
        return buffer.getvalue()

    def append(self, array: NDArray[Any]) -> None:
        """Append values."""
        array = np.ascontiguousarray(array, dtype=self.dtype)
        _write_all(self.file, array.view(np.uint8).data)
        self.length += len(array)

    def close(self) -> None:
        """Write the final header and close the file."""
        self.file.seek(0)
        _write_all(self.file, self._header())
        self.file.close()


def _write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    """Write all of the data: a raw file may write less than it is given."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


class StoreWriter:
    """Writes blocks of rows under a hidden name; `finish` renames the directory.

    Parameters
    ----------
    path : Path
        Final name of the directory.
    description : dict
        As returned by `description.describe`.
    resume : bool
        Whether to continue after the last complete part of an earlier run, if there is one.
    partial : Path, optional
        Where to write; by default a hidden name next to `path`.
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
        self.aside = self.partial
        self.description = description
        self.part_ends: list[list[int]] = []  # rows and stored values before the end of each part
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
        """Take over the complete parts of an earlier run; return whether there was one."""
        name = next((n for n in (MANIFEST, PROGRESS) if (self.partial / n).exists()), None)
        if name is None:
            return False
        with _damage_to(self.partial):
            found = json.loads((self.partial / name).read_text())
            require_part_ends(found["part_ends"])
        if not fits_description(found, self.description):
            raise ValueError(
                f"{self.partial} was begun with other parameters or from another input: it cannot "
                "be resumed. Give resume=False to begin anew."
            )
        self.is_sealed = name == MANIFEST
        if self.is_sealed:
            with _damage_to(self.partial):
                open_arrays(self.partial)
        self.part_ends = found["part_ends"]
        self.n_rows, self.nnz = self.part_ends[-1] if self.part_ends else [0, 0]
        return True

    def _open(self, index_dtype: np.dtype[Any], dtype: np.dtype[Any]) -> None:
        """Open the arrays at the end of the last complete part."""
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
            room = thresholds.PART_BYTES - self._bytes_in_part()
            # The row that reaches the limit is the last one of the part.
            stop = min(int(np.searchsorted(sizes, sizes[start] + room, side="left")), n_rows)
            self._append(block, offsets, labels, start, stop)
            if self._bytes_in_part() >= thresholds.PART_BYTES:
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
        """Close the arrays and write the manifest, after which the directory is complete."""
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
        """Shape of what has been written so far."""
        return self.n_rows, n_columns_in(self.description)

    def finish(self) -> None:
        """Seal the directory and give it its final name."""
        self.seal()
        replace_directory(self.partial, self.path)

    def leave(self) -> None:
        """Stop, so that another run can continue after the last complete part."""
        for array in self.arrays.values():
            array.file.close()

    def discard(self) -> None:
        """Stop, and remove everything that was written."""
        self.leave()
        shutil.rmtree(self.partial, ignore_errors=True)


def replace_directory(new: Path, path: Path) -> None:
    """Rename a directory, replacing an old one; an incomplete one is never at `path`."""
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
    """Re-raise errors that rule out resuming, saying that the folder is damaged and what to do."""
    try:
        yield
    except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
        raise ValueError(
            f"{folder} is damaged: {reason_of(error)}. Give resume=False to begin anew."
        ) from None
