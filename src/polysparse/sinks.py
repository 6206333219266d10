"""Expansions written to files, block by block, whole or not at all."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse import _kernels
from polysparse.description import fits_description, n_columns_in
from polysparse.store import open_arrays
from polysparse.store_writer import StoreWriter
from polysparse.targets import DIRECTORY, NPZ, PARQUET, SVMLIGHT, beside, kind_of, remove

ZIP_DATE = 1980, 1, 1, 0, 0, 0  # the same in every run, so that its bytes are


def is_written(path: Path, description: dict[str, Any]) -> bool:
    """Whether a path holds what a run of that description would write."""
    try:
        if path.is_dir():
            return fits_description(open_arrays(path)[0], description)
        with zipfile.ZipFile(path) as archive:
            return fits_description(json.loads(archive.comment), description)
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


class Sink(Protocol):
    """Takes blocks of rows in order. Nothing has the final name before `finish`."""

    aside: Path  # once sealed: what gets the final name

    @property
    def n_rows(self) -> int: ...  # written, and safe from what was written before

    def write(self, block: Any, labels: NDArray[Any] | None) -> None: ...
    def seal(self) -> None: ...
    def finish(self) -> None: ...
    def leave(self) -> None: ...
    def discard(self) -> None: ...


class NpzSink:
    """SciPy's .npz, uncompressed: a store beside it, packed at the end."""

    def __init__(self, path: Path, description: dict[str, Any], *, resume: bool = False) -> None:
        self.path, self.aside = path, beside(path, "partial")
        self.store = StoreWriter(path, description, resume=resume, partial=beside(path, "store"))

    @property
    def n_rows(self) -> int:
        return self.store.n_rows

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        self.store.write(block, labels)

    def seal(self) -> None:
        self.store.seal()
        self._pack(self.aside)

    def finish(self) -> None:
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
        self.store.leave()
        self.aside.unlink(missing_ok=True)

    def discard(self) -> None:
        self.store.discard()
        self.aside.unlink(missing_ok=True)


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    return archive.open(zipfile.ZipInfo(name, ZIP_DATE), "w", force_zip64=True)


class FileSink:
    """One file that is written from the front, aside, and renamed when whole."""

    def __init__(self, path: Path) -> None:
        self.path, self.aside = path, beside(path, "partial")
        self.n_rows = 0
        self.file: IO[bytes] = open(self.aside, "wb")  # noqa: SIM115

    def seal(self) -> None:
        self.file.close()

    def finish(self) -> None:
        self.aside.replace(self.path)

    def leave(self) -> None:
        self.discard()  # such a file cannot be gone on with

    def discard(self) -> None:
        with suppress(OSError):  # what is buffered may not fit on the disk
            self.file.close()
        self.aside.unlink(missing_ok=True)


class SvmlightSink(FileSink):
    """svmlight text, columns counted from 1, every value exact. A missing label is written as 0."""

    ROOM = 2**22  # bytes of text that are made at once, but for longer rows

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        offsets = block.indptr.astype(np.int64)
        most = self.ROOM // _kernels.SVMLIGHT_BYTES_PER_VALUE
        start = 0
        while start < block.shape[0]:
            full = int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1
            stop = max(start + 1, min(full, start + most))
            self._write_rows(block, offsets, labels, slice(start, stop))
            start = stop
        self.n_rows += block.shape[0]

    def _write_rows(
        self, block: Any, offsets: NDArray[np.int64], labels: NDArray[Any] | None, rows: slice
    ) -> None:
        first, last = int(offsets[rows.start]), int(offsets[rows.stop])
        n_rows = rows.stop - rows.start
        size = (last - first) * _kernels.SVMLIGHT_BYTES_PER_VALUE
        text = np.empty(size + n_rows * _kernels.SVMLIGHT_BYTES_PER_ROW, dtype=np.uint8)
        n_bytes = _kernels.write_svmlight(
            offsets[rows.start : rows.stop + 1] - first,
            block.indices[first:last],
            block.data[first:last],
            np.empty(0) if labels is None else np.asarray(labels[rows], dtype=np.float64),
            1,
            text,
        )
        self.file.write(text[:n_bytes].data)


class ParquetSink(FileSink):
    """Parquet with list columns `indices` and `values`, and `label` if there are labels."""

    def __init__(self, path: Path, description: dict[str, Any]) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ImportError(
                "Parquet files need pyarrow: pip install 'polysparse[cli]'."
            ) from None
        self.pa = pa
        index_dtype, dtype = (np.dtype(description[key]) for key in ("index_dtype", "dtype"))
        fields = [
            pa.field("indices", pa.large_list(pa.from_numpy_dtype(index_dtype))),
            pa.field("values", pa.large_list(pa.from_numpy_dtype(dtype))),
        ]
        if description["labels"]:
            fields.append(pa.field("label", pa.float64()))
        metadata = {"polysparse:n_features": str(n_columns_in(description))}
        self.schema = pa.schema(fields, metadata=metadata)
        super().__init__(path)
        self.writer: Any = None
        try:
            self.writer = pq.ParquetWriter(self.file, self.schema)
        except BaseException:
            self.discard()
            raise

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        pa, offsets = self.pa, self.pa.array(block.indptr.astype(np.int64))
        columns = [
            pa.LargeListArray.from_arrays(offsets, pa.array(array, type=field.type.value_type))
            for array, field in zip((block.indices, block.data), self.schema, strict=False)
        ]
        if labels is not None:
            columns.append(pa.array(labels))
        self.writer.write_table(pa.Table.from_arrays(columns, schema=self.schema))
        self.n_rows += block.shape[0]

    def seal(self) -> None:
        self.writer.close()
        super().seal()

    def discard(self) -> None:
        if self.writer is not None:
            with suppress(Exception):  # it writes, and what it writes may not fit on the disk
                self.writer.close()
            self.writer.is_open = False  # else it would try again when it is forgotten
        super().discard()


def open_sink(path: Path, description: dict[str, Any], *, resume: bool) -> Sink:
    """Sink for a path, by its ending."""
    kinds: dict[str, Callable[[], Sink]] = {
        DIRECTORY: lambda: StoreWriter(path, description, resume=resume),
        NPZ: lambda: NpzSink(path, description, resume=resume),
        PARQUET: lambda: ParquetSink(path, description),
        SVMLIGHT: lambda: SvmlightSink(path),
    }
    return kinds[kind_of(path)]()
