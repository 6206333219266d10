"""SciPy's .npz format, read as a whole and written in parts."""

from __future__ import annotations

import json
import shutil
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.files.paths import beside, remove
from polysparse.files.source import WholeSource
from polysparse.files.store_writer import StoreWriter

ZIP_DATE = 1980, 1, 1, 0, 0, 0  # a constant, so that every run writes the same bytes


class NpzSource(WholeSource):
    """A sparse matrix in SciPy's .npz format, with labels if polysparse wrote it."""

    def read(self) -> tuple[Any, NDArray[Any] | None]:
        """Read the matrix, and its labels or None."""
        with open(self.place, "rb") as file:  # given a path, NumPy leaves a damaged file open
            matrix = sparse.load_npz(file)
            if matrix.ndim != 2:
                raise ValueError(f"holds an array of {matrix.ndim} dimensions; two are needed.")
            file.seek(0)
            return matrix, _labels_in(file, matrix.shape[0])


def _labels_in(npz: IO[bytes], n_rows: int) -> NDArray[Any] | None:
    """Read the labels that polysparse writes next to a matrix.

    Files of other programs may hold anything under that name; then None is returned.
    """
    labels: NDArray[Any] = np.empty(0, object)
    with np.load(npz, allow_pickle=False) as members, suppress(KeyError, ValueError):
        labels = members["labels"]
    is_ours = labels.shape == (n_rows,) and labels.dtype.kind in "biuf"
    return labels.astype(np.float64) if is_ours else None


class NpzSink:
    """SciPy's .npz format, uncompressed: written as a store next to it, packed at the end."""

    def __init__(self, path: Path, description: dict[str, Any], *, resume: bool = False) -> None:
        self.path, self.aside = path, beside(path, "partial")
        self.store = StoreWriter(path, description, resume=resume, partial=beside(path, "store"))

    @property
    def n_rows(self) -> int:
        """Number of rows that are written."""
        return self.store.n_rows

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        """Append a block of rows and its labels."""
        self.store.write(block, labels)

    def seal(self) -> None:
        """Complete the store and pack it into an archive under a hidden name."""
        self.store.seal()
        self._pack(self.aside)

    def finish(self) -> None:
        """Rename the archive and remove the store."""
        self.aside.replace(self.path)
        remove(self.store.partial)

    def _pack(self, aside: Path) -> None:
        shape = np.array(self.store.shape)
        small = {"format": b"csr", "shape": shape, "_is_array": np.array(True)}
        with zipfile.ZipFile(aside, "w", zipfile.ZIP_STORED) as archive:
            archive.comment = json.dumps(self.store.description).encode()
            for file in sorted(self.store.partial.glob("*.npy")):
                with open(file, "rb") as array, _member(archive, file.name) as member:
                    shutil.copyfileobj(array, member, 2**20)
            for name, value in small.items():
                with _member(archive, f"{name}.npy") as member:
                    np.lib.format.write_array(member, np.asanyarray(value))

    def leave(self) -> None:
        """Stop, keeping the store for a later run."""
        self.store.leave()
        self.aside.unlink(missing_ok=True)

    def discard(self) -> None:
        """Stop, and remove the store and the archive."""
        self.store.discard()
        self.aside.unlink(missing_ok=True)


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    return archive.open(zipfile.ZipInfo(name, ZIP_DATE), "w", force_zip64=True)
