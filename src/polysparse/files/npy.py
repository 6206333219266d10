"""One-dimensional .npy files: opened with suspicion, and appended to."""

from __future__ import annotations

import io
import os
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from polysparse.files.atomic import sync
from polysparse.files.errors import FileFault
from polysparse.files.paths import require_on_disk

CHUNK_BYTES = 2**20  # bytes that are read at a time to add up a checksum


class GrowingArray:
    """A one-dimensional .npy file that is appended to. Its header is valid only once closed."""

    def __init__(self, path: Path, dtype: np.dtype[Any], length: int = 0) -> None:
        self.path, self.dtype, self.length = path, dtype, length
        self.checksum = 0  # of what was appended since `end_part`
        self.file: IO[bytes] = open(path, "r+b" if length else "w+b", buffering=0)  # noqa: SIM115
        try:
            if length:
                self._cut()
            else:
                write_all(self.file, self._header())
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
        return npy_header(self.dtype, (self.length,))

    def append(self, array: NDArray[Any]) -> None:
        """Append values."""
        data = np.ascontiguousarray(array, dtype=self.dtype).view(np.uint8).data
        write_all(self.file, data)
        self.checksum = zlib.crc32(data, self.checksum)
        self.length += len(array)

    def end_part(self) -> int:
        """Return the checksum of the part that ends here, once it is on the disk."""
        sync(self.file)
        checksum, self.checksum = self.checksum, 0
        return checksum

    def close(self) -> None:
        """Write the final header and close the file, once it is on the disk."""
        self.file.seek(0)
        write_all(self.file, self._header())
        sync(self.file)
        self.file.close()


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of an array, whose size is constant: NumPy reserves room for the length."""
    buffer = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, fields)
    return buffer.getvalue()


def write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    """Write all of the data: a raw file may write less than it is given."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def open_array(path: Path, dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    """Memory-map an array for reading; raise ValueError unless it is of this dtype and length."""
    require_on_disk(path)
    try:
        with open(path, "rb") as file:
            found = read_header(file)
            start, size = file.tell(), file.seek(0, os.SEEK_END)
    except ValueError as error:
        raise FileFault(f"{path} is damaged: {str(error).rstrip('.')}.") from None
    if found != (dtype, (length,)):
        raise FileFault(
            f"{path} holds {found[0]} of shape {found[1]}; the manifest "
            f"says {dtype} of shape ({length},). The directory is damaged."
        )
    end = start + length * dtype.itemsize
    if size != end:
        raise FileFault(f"{path} is damaged: it has {size:,} bytes, but should have {end:,}.")
    if length == 0:  # nothing can be mapped
        return np.empty(0, dtype)
    return np.memmap(path, dtype, mode="r", offset=start, shape=(length,))


def read_header(file: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Read the header of a .npy file; raise ValueError, and nothing else, if it is damaged.

    NumPy reads a header as Python, which fails in as many ways as Python can.
    """
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        version = np.lib.format.read_magic(file)
        if version not in readers:
            raise ValueError(f"its header has version {version}")
        shape, _, dtype = readers[version](file)
    except OSError:
        raise
    except Exception as error:
        text = str(error) if isinstance(error, ValueError) else type(error).__name__
        raise ValueError(f"its header cannot be read: {text}") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never loaded")
    return dtype, shape


def checksum_of(file: IO[bytes], start: int, n_bytes: int) -> int:
    """Return the checksum of a stretch of a file, reading little at a time."""
    file.seek(start)
    checksum = 0
    while n_bytes and (piece := file.read(min(n_bytes, CHUNK_BYTES))):
        checksum, n_bytes = zlib.crc32(piece, checksum), n_bytes - len(piece)
    return checksum
