"""Write expansions into a directory of .npy files, such that an interrupted run can be resumed.

The directory is written under a hidden name next to DIR and renamed when complete, so a directory
called DIR is always complete. Arrays are appended to; `progress.json` states up to where they can
be trusted, and the checksums of what is there. A part ends with the row at which its bytes reach a
limit, so a resumed run ends its parts exactly where an uninterrupted one would. The bytes of a part
are on the disk before its end is stated.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse import thresholds
from polysparse.files.atomic import beside, exchange, put, sync, sync_folder
from polysparse.files.description import fits_description, n_columns_in, parse_json
from polysparse.files.errors import CannotResume
from polysparse.files.npy import GrowingArray
from polysparse.files.parts import Parts
from polysparse.files.paths import MANIFEST, PACKING, PROGRESS, remove
from polysparse.files.sink import Sink
from polysparse.files.store import Store, reason_of, wanted_arrays


class StoreWriter(Sink):
    """A directory of arrays; a later run can continue after the last complete part."""

    role = "partial"  # of the hidden name of the directory

    def __init__(self, path: Path, description: dict[str, Any], *, resume: bool = False) -> None:
        super().__init__(path, description)
        self.partial = beside(path, self.role)
        self.parts = Parts()
        self.arrays: dict[str, GrowingArray] = {}
        index_dtype, dtype = np.dtype(description["index_dtype"]), np.dtype(description["dtype"])
        self.bytes_per_value: int = index_dtype.itemsize + dtype.itemsize
        self.bytes_per_row: int = index_dtype.itemsize + 8 * bool(description["labels"])
        self.is_sealed = self.is_packed = False
        is_new = not (resume and self._find())
        try:
            if is_new:
                remove(self.partial)
                self.partial.mkdir()
                self._write_json(PROGRESS, {})
            if not self.is_sealed:
                self._open()
            if not is_new and not self.is_packed:
                self._verify()
        except BaseException:
            if is_new:
                self.discard()
            else:
                self.leave()
            raise

    def _find(self) -> bool:
        """Take over the complete parts of an earlier run; return whether there was one."""
        names = PACKING, MANIFEST, PROGRESS
        name = next((n for n in names if (self.partial / n).exists()), None)
        if name is None:
            return False
        with _damage_to(self.partial):
            found = parse_json((self.partial / name).read_bytes())
            parts = Parts.read(found)
        if not fits_description(found, self.description):
            raise CannotResume(
                f"{self.partial} was started with other parameters or from another input: "
                "it cannot be resumed. Give resume=False to start over."
            )
        if parts.checksums is None:
            raise CannotResume(
                f"{self.partial} was started by an earlier version of polysparse, without "
                "checksums: it cannot be resumed. Give resume=False to start over."
            )
        self.is_sealed, self.is_packed = name != PROGRESS, name == PACKING
        self.parts, self.n_rows, self.nnz = parts, parts.n_rows, parts.nnz
        return True

    def _open(self) -> None:
        """Open the arrays at the end of the last complete part."""
        with _damage_to(self.partial):
            for name, (dtype, length) in wanted_arrays(self.description, self.parts).items():
                length = length if self.n_rows else 0
                self.arrays[name] = GrowingArray(self.partial / f"{name}.npy", dtype, length)
        if self.n_rows == 0:
            indptr = self.arrays["indptr"]
            indptr.append(np.zeros(1, dtype=indptr.dtype))
            indptr.end_part()

    def _verify(self) -> None:
        """Raise ValueError if what an earlier run left was changed, or never reached the disk."""
        with _damage_to(self.partial):
            if self.is_sealed:
                Store.open(self.partial)
            wanted = wanted_arrays(self.description, self.parts)
            dtypes = {name: dtype for name, (dtype, _) in wanted.items()}
            self.parts.require_files(self.partial, dtypes)

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        """Append rows, ending parts where they are full."""
        start, n_rows = 0, block.shape[0]
        offsets = block.indptr.astype(np.int64)
        sizes = (
            offsets * self.bytes_per_value
            + np.arange(n_rows + 1, dtype=np.int64) * self.bytes_per_row
        )
        while start < n_rows:
            room = thresholds.PART_BYTES - self._bytes_in_part()
            # The row that reaches the limit is the last one of the part.
            stop = min(int(np.searchsorted(sizes, sizes[start] + room, side="left")), n_rows)
            self._append(block, offsets, labels, start, stop)
            if self._bytes_in_part() >= thresholds.PART_BYTES:
                self._end_part()
                self._write_json(PROGRESS, {})
            start = stop

    def _bytes_in_part(self) -> int:
        nnz, n_rows = self.nnz - self.parts.nnz, self.n_rows - self.parts.n_rows
        return nnz * self.bytes_per_value + n_rows * self.bytes_per_row

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
        """End a part here; its bytes are on the disk when this returns."""
        self.parts.add([self.n_rows, self.nnz], [a.end_part() for a in self.arrays.values()])

    def _write_json(self, name: str, more: dict[str, Any]) -> None:
        aside = self.partial / f"{name}.new"
        with open(aside, "wb") as file:
            content = {**self.description, **more, **self.parts.as_dict()}
            file.write(json.dumps(content).encode())
            sync(file)
        put(aside, self.partial / name)

    def seal(self) -> None:
        """Close the arrays and write the manifest, after which the directory is complete."""
        if not self.is_sealed:
            if self.n_rows > self.parts.n_rows:
                self._end_part()
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
        """Seal the directory and give it its final name. What it replaces is left aside."""
        self.seal()
        replace_directory(self.partial, self.path)

    def leave(self) -> None:
        """Stop, so that another run can continue after the last complete part, if there is one."""
        for array in self.arrays.values():
            array.file.close()
        if not self.parts.ends:
            shutil.rmtree(self.partial, ignore_errors=True)

    def discard(self) -> None:
        self.leave()
        shutil.rmtree(self.partial, ignore_errors=True)


def replace_directory(new: Path, path: Path) -> None:
    """Give a directory its name, replacing an old one; an incomplete one is never at `path`.

    Where the system can exchange two names in one step, there is always a directory at `path`.
    Where it cannot, `paths.version_of` finds the old one if this is cut short.
    """
    old, replaced = beside(path, "old"), beside(path, "replaced")
    remove(replaced)
    if not path.exists():
        new.rename(path)
    elif exchange(new, path):
        new.rename(replaced)
    else:
        remove(old)
        path.rename(old)
        try:
            new.rename(path)
        except BaseException:
            if not path.exists():
                old.rename(path)
            raise
        old.rename(replaced)
    sync_folder(path.parent)
    with suppress(OSError):  # the new one has its name, whether or not the old one can be removed
        remove(replaced)


@contextmanager
def _damage_to(folder: Path) -> Iterator[None]:
    """Re-raise errors of a damaged directory as CannotResume."""
    try:
        yield
    except (ValueError, KeyError, TypeError, OverflowError, FileNotFoundError) as error:
        raise CannotResume(
            f"{folder} is damaged: {reason_of(error)}. Give resume=False to start over."
        ) from None
