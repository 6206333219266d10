"""Archives: .npz files of plain arrays and a description in JSON, no pickles.

description.npy   JSON: format, version, and what the writer adds
NAME.npy          the arrays that the format has, little-endian
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.groups import as_groups
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.arguments import require_increasing
from polysparse.files.description import TABLE, parse_json
from polysparse.files.errors import FileFault
from polysparse.files.npy import read_header
from polysparse.files.paths import require_on_disk
from polysparse.machine import format_bytes, require_memory
from polysparse.tables.encoding import TableEncoding

DESCRIPTION = "description"

# How much larger than its packed size a member of an archive can be, by the method of packing.
DEFLATE_FACTOR = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}

# What the contents of a damaged archive may cause.
_DAMAGE = KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError

# A description read from JSON takes up to this many times the bytes of its text.
JSON_FACTOR = 32

MOST_PEEKED = 2**24  # bytes of a description that is read for nothing but its format


@dataclass(frozen=True)
class ArchiveFormat:
    """A kind of archive."""

    noun: str  # what messages call such a file
    version: int  # that is written, and the only one that is read
    arrays: tuple[str, ...]  # names of those that such a file may have
    way_out: str  # what to do about a file that is too large, in the imperative

    @property
    def name(self) -> str:
        """The entry `format` of the description."""
        return f"polysparse.{self.noun}"

    def write(
        self, file: IO[bytes], description: dict[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> None:
        """Write a description and arrays to an open file."""
        text = json.dumps({"format": self.name, "version": self.version, **description})
        members = {DESCRIPTION: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in members.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, as_little(array), allow_pickle=False)

    def read(
        self, path: str | os.PathLike[str], max_memory: int | None = None
    ) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Read the description, and the arrays that are there.

        ValueError is raised if the file is damaged or of another kind. MemoryError is raised before
        reading it if that takes more than `max_memory` bytes, or more than are available: a
        compressed file may be a thousand times as large as it looks.
        """
        if not os.path.exists(path):
            raise FileNotFoundError(f"{os.fspath(path)}: no such {self.noun}.")
        require_on_disk(Path(path))
        try:
            with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
                names = [name for name in self.arrays if f"{name}.npy" in archive.namelist()]
                self._require_room(path, archive, names, max_memory)
                description = self._read_description(archive)
                return description, {name: read_member(archive, name) for name in names}
        except MemoryError:
            raise
        except Exception as error:  # NumPy and zipfile raise many types for a damaged file
            if isinstance(error, OSError) and error.filename is not None:
                raise  # the file cannot be opened
            reason = str(error).strip("'\".") or type(error).__name__
            raise FileFault(
                f"{os.fspath(path)} is not a {self.noun} of polysparse, or is damaged: {reason}."
            ) from None

    def _require_room(
        self,
        path: str | os.PathLike[str],
        archive: zipfile.ZipFile,
        names: list[str],
        max_memory: int | None,
    ) -> None:
        """Raise MemoryError if the arrays, unpacked, take too much memory."""
        needed = JSON_FACTOR * _size_in(archive, f"{DESCRIPTION}.npy")
        needed += sum(_size_in(archive, f"{name}.npy") for name in names)
        what = f"{os.fspath(path)}, {format_bytes(os.path.getsize(path))} on the disk,"
        if max_memory is not None and needed > max_memory:
            raise MemoryError(
                f"{what} would need {needed:,} bytes ({format_bytes(needed)}) of memory, which is "
                f"more than max_memory={max_memory}: give more, or {self.way_out}."
            )
        require_memory(needed, what, f"{self.way_out.capitalize()}.")

    def _read_description(self, archive: zipfile.ZipFile) -> dict[str, Any]:
        description = parse_json(read_member(archive, DESCRIPTION).tobytes())
        if not isinstance(description, dict) or description.get("format") != self.name:
            raise ValueError(f"its format is not {self.name}")
        version = description.get("version")
        if version != self.version:
            raise ValueError(f"it has version {version}, and this polysparse reads {self.version}")
        return description


def format_name_in(path: str | os.PathLike[str]) -> str:
    """Return the entry `format` of the description of an archive; empty if it is not one."""
    require_on_disk(Path(path))
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            if _size_in(archive, f"{DESCRIPTION}.npy") > MOST_PEEKED:
                return ""
            return str(parse_json(read_member(archive, DESCRIPTION).tobytes())["format"])
    except Exception:  # NumPy and zipfile raise many types for other files
        return ""


@contextmanager
def damage_to(path: str | os.PathLike[str]) -> Iterator[None]:
    """Re-raise errors that the contents of a damaged archive cause as a FileFault that names it."""
    try:
        yield
    except _DAMAGE as error:
        reason = str(error).rstrip(".")
        if isinstance(error, KeyError):
            reason = f"its description has no {reason}"
        raise FileFault(f"{os.fspath(path)} is damaged: {reason}.") from None


def as_little(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the byte order of files."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def array_of(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    dtype: type[np.generic],
    dimensions: tuple[int, ...] = (1,),
) -> NDArray[Any]:
    """Return an array that was read; raise ValueError if it is missing or of another kind."""
    if name not in arrays:
        raise ValueError(f"it has no {name}")
    array, wanted = arrays[name], np.dtype(dtype)
    if array.dtype != wanted.newbyteorder("<") or array.ndim not in dimensions:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not {wanted}")
    return np.ascontiguousarray(array, dtype=wanted)


def read_ranks(arrays: Mapping[str, NDArray[Any]], basis: MonomialBasis) -> NDArray[np.int64]:
    """Return the array `columns`; raise ValueError unless its ranks increase, within the basis."""
    ranks = array_of(arrays, "columns", np.int64)
    require_increasing(ranks)
    for column in (*ranks[:1], *ranks[-1:]):
        if not 0 <= column < basis.n_columns:
            raise ValueError(f"column {column} is not in the basis")
    return ranks


def require_names(description: dict[str, Any], n_features: int) -> None:
    """Raise ValueError unless names of features, if any, are strings, one for each."""
    names = description.get("feature_names_in")
    if names is None:
        return
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("the feature names are not a list of strings")
    if len(names) != n_features:
        raise ValueError(f"there are {len(names)} feature names for {n_features} features")


def encoding_in(description: dict[str, Any], basis: MonomialBasis) -> TableEncoding | None:
    """Return how a table was encoded, if the data were one; raise ValueError if it is damaged."""
    if TABLE not in description:
        return None
    encoding = TableEncoding.from_dict(description[TABLE])
    if encoding.n_features != basis.n_features:
        raise ValueError(
            f"its table has {encoding.n_features} features, its basis {basis.n_features}"
        )
    if as_groups(encoding.groups, basis.n_features) != basis.groups:
        raise ValueError("the groups of its basis are not those of its table")
    return encoding


def _size_in(archive: zipfile.ZipFile, name: str) -> int:
    """Return the size of a member, unpacked; raise ValueError if it cannot have that size."""
    member = archive.getinfo(name)
    most = DEFLATE_FACTOR.get(member.compress_type, 0) * member.compress_size
    if member.file_size > most:
        raise ValueError(f"{name} cannot have {member.file_size:,} bytes")
    return member.file_size


def read_member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read an array, if it is as large as its member of the archive."""
    require_size(archive, name)
    with archive.open(f"{name}.npy") as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def require_size(archive: zipfile.ZipFile, name: str) -> None:
    """Raise ValueError unless an array is as large as its member, before anything is allocated."""
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as file:
        dtype, shape = read_header(file)
        if file.tell() + dtype.itemsize * math.prod(shape) != member.file_size:
            raise ValueError(
                f"{name} has {member.file_size} bytes, but is {dtype} of shape {shape}"
            )
