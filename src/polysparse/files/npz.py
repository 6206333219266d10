"""SciPy's .npz format, read as a whole and written in parts."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse import thresholds
from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.archive import read_member, require_size
from polysparse.files.atomic import put, sync
from polysparse.files.description import parse_json
from polysparse.files.errors import CannotResume
from polysparse.files.format import Format
from polysparse.files.npy import CHUNK_BYTES
from polysparse.files.paths import MANIFEST, PACKING, remove
from polysparse.files.source import WholeSource
from polysparse.files.store_writer import StoreWriter

ZIP_DATE = 1980, 1, 1, 0, 0, 0  # a constant, so that every run writes the same bytes
ZIP_LENGTHS_AT = 26  # where a member's header has the lengths of its name and its extra field

# The arrays that SciPy reads, depending on the format of the matrix.
SPARSE_ARRAYS = {"format", "_is_array", "shape", "data", "indptr", "indices"}
SPARSE_ARRAYS |= {"row", "col", "coords", "offsets"}

SHAPE_BYTES = 2**10  # more than a shape takes

# The description is the archive's comment or, if that is too long for one, a member.
COMMENT_BYTES = zipfile.ZIP_MAX_COMMENT
DESCRIPTION = "polysparse.json"


class NpzSource(WholeSource):
    """A sparse matrix in SciPy's .npz format, with labels if polysparse wrote it."""

    def whole_bytes(self) -> int:
        """Return the size of all arrays in the archive, unpacked, and of the offsets of its rows.

        Formats other than CSR have no such offsets, however many rows they state.
        """
        with zipfile.ZipFile(self.place) as archive:
            sizes = {member.filename: member.file_size for member in archive.infolist()}
            n_rows = 0
            if 0 < sizes.get("shape.npy", 0) < SHAPE_BYTES:
                n_rows = int(read_member(archive, "shape")[0])
        return sum(sizes.values()) + max(0, 8 * n_rows - sizes.get("indptr.npy", 0))

    def read(self) -> tuple[Any, NDArray[Any] | None]:
        with open(self.place, "rb") as file:  # given a path, NumPy leaves a damaged file open
            with zipfile.ZipFile(file) as archive:
                for name in SPARSE_ARRAYS & {Path(name).stem for name in archive.namelist()}:
                    require_size(archive, name)
            file.seek(0)
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
    with zipfile.ZipFile(npz) as archive, suppress(KeyError, ValueError):
        labels = read_member(archive, "labels")
    is_ours = labels.shape == (n_rows,) and labels.dtype.kind in "biuf"
    return labels.astype(np.float64) if is_ours else None


class NpzSink(StoreWriter):
    """SciPy's .npz format, uncompressed: written as a store next to it, packed at the end.

    A zip archive has its arrays one after the other, and they are complete only at the end. So they
    are written as a store, which can be resumed, and are then moved into the archive: from the end,
    a piece at a time, each cut off from its array once it is on the disk. The disk needs room for
    the output once, and for one piece more. A resumed run continues moving.
    """

    role = "store"

    def seal(self) -> None:
        """Complete the store and pack it into an archive under a hidden name."""
        super().seal()
        self._pack()

    def finish(self) -> None:
        """Rename the archive and remove the store."""
        put(self.aside, self.path)
        with suppress(OSError):  # the archive has its name, whether or not this can be removed
            remove(self.partial)

    def _pack(self) -> None:
        is_resumed = self.is_packed
        if not is_resumed:
            self._outline()
            self.is_packed = True
            put(self.partial / MANIFEST, self.partial / PACKING)
        try:
            with open(self.aside, "r+b") as archive:
                _fill(archive, self.partial)
            if is_resumed:
                _require_sound(self.aside)
        except (FileNotFoundError, zipfile.BadZipFile) as error:
            raise CannotResume(
                f"{self.aside} is damaged: {error}. Give resume=False to start over."
            ) from None

    def _outline(self) -> None:
        """Write the archive with holes where the arrays will be."""
        small = {"format": b"csr", "shape": np.array(self.shape), "_is_array": np.array(True)}
        with _Outline(self.aside, "w+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                text = json.dumps(self.description).encode()
                if len(text) <= COMMENT_BYTES:
                    archive.comment = text
                else:
                    with _member(archive, DESCRIPTION) as member:
                        member.write(text)
                for path in sorted(self.partial.glob("*.npy")):
                    with open(path, "rb") as array, _member(archive, path.name) as member:
                        file.is_hole = True
                        shutil.copyfileobj(array, member, CHUNK_BYTES)
                        file.is_hole = False
                for name, value in small.items():
                    with _member(archive, f"{name}.npy") as member:
                        np.lib.format.write_array(member, np.asanyarray(value))
            sync(file)

    def leave(self) -> None:
        """Stop, keeping the store for a later run, and the archive if arrays were moved there."""
        super().leave()
        if not self.is_packed:
            self.aside.unlink(missing_ok=True)

    def discard(self) -> None:
        super().discard()
        self.aside.unlink(missing_ok=True)


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    return archive.open(zipfile.ZipInfo(name, ZIP_DATE), "w", force_zip64=True)


class _Outline(io.FileIO):
    """A file that leaves a hole instead of writing, while `is_hole` is set."""

    is_hole = False

    def write(self, data: Any) -> int:
        """Write all of the data, or move on by its length."""
        if self.is_hole:
            self.seek(len(data), os.SEEK_CUR)
        else:
            rest = memoryview(data)
            while rest:
                rest = rest[super().write(rest) :]
        return len(data)


def _fill(archive: IO[bytes], store: Path) -> None:
    """Move the arrays of a store into the holes of an archive, the last one first."""
    with zipfile.ZipFile(archive) as outline:
        members = sorted(outline.infolist(), key=lambda each: -each.header_offset)
    for member in members:
        array = store / member.filename
        if not array.exists():  # it is small, or was moved before
            continue
        archive.seek(member.header_offset + ZIP_LENGTHS_AT)
        name_length, extra_length = struct.unpack("<HH", archive.read(4))
        start = member.header_offset + ZIP_LENGTHS_AT + 4 + name_length + extra_length
        with open(array, "r+b") as file:
            _move(file, archive, start)
        array.unlink()


def _move(array: IO[bytes], archive: IO[bytes], start: int) -> None:
    """Move an array, or what is left of it, from its end: the holes before it take no room."""
    left = array.seek(0, os.SEEK_END)
    while left:
        size = (left - 1) % thresholds.MOVED_BYTES + 1
        left -= size
        array.seek(left)
        archive.seek(start + left)
        for _ in range(0, size, CHUNK_BYTES):
            archive.write(array.read(CHUNK_BYTES))
        sync(archive)
        array.truncate(left)


def _require_sound(path: Path) -> None:
    """Raise BadZipFile if a member does not have the checksum that the archive states."""
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"{damaged} does not match its checksum")


class NpzFormat(Format):
    """An uncompressed archive, as SciPy writes it, with a description."""

    noun = "SciPy's archive"
    source, sink = NpzSource, NpzSink
    endings = written_endings = (".npz",)
    is_resumable = True
    has_description = True

    def least_bytes(self, plan: ExpansionPlan, *, has_labels: bool) -> int:
        """Return the bytes of the arrays, and of what is on the disk twice while they are moved."""
        n_bytes = super().least_bytes(plan, has_labels=has_labels)
        return n_bytes + min(n_bytes, thresholds.MOVED_BYTES)

    def read_description(self, path: Path) -> Any:
        """Return the description that polysparse wrote into the archive, or None."""
        with zipfile.ZipFile(path) as archive:
            text = archive.comment
            if not text and DESCRIPTION in archive.namelist():
                if archive.getinfo(DESCRIPTION).compress_type != zipfile.ZIP_STORED:
                    raise ValueError(f"{DESCRIPTION} is compressed")
                text = archive.read(DESCRIPTION)
            return parse_json(text) if text else None
