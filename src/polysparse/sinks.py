"""Expansions written to files, block by block, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse import _kernels
from polysparse.basis import MonomialBasis
from polysparse.sources import UnknownExtension
from polysparse.store import (
    MANIFEST,
    StoreWriter,
    _open_arrays,
    beside,
    fits_description,
    is_own,
    remove,
)

fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None  # Windows has none
ASIDES = "partial", "store", "old", "lock"
ZIP_DATE = 1980, 1, 1, 0, 0, 0  # the same in every run, so that its bytes are


class UnwritableTarget(ValueError):
    """What OUT names cannot be written, or must not be overwritten."""


def require_writable_target(path: Path, *, force: bool, source: str) -> None:
    """Raise if nothing can, or should, be written at a path; looked at before IN is read."""
    if str(path) == "-" or path.name in ("", ".."):
        raise UnwritableTarget(f"{str(path)!r} names no file or directory to write.")
    if not path.parent.is_dir():
        raise UnwritableTarget(f"{path.parent}: there is no such folder.")
    if source != "-" and Path(source).resolve().is_relative_to(path.resolve()):
        raise UnwritableTarget(f"{path} is, or holds, the input: write somewhere else.")
    if path.is_symlink():
        raise UnwritableTarget(f"{path} is a symbolic link: name what it points to.")
    if path.exists():
        if not force:
            raise UnwritableTarget(f"{path} exists already: give --force to overwrite it.")
        _require_replaceable(path)
    for aside in (beside(path, role) for role in ASIDES):
        if not is_own(aside):
            raise UnwritableTarget(f"{aside} is in the way, and not polysparse's: move it away.")


def _require_replaceable(path: Path) -> None:
    """Raise unless what is there is of the kind that the name asks for, and ours if a directory."""
    if sink_kind(path) is not StoreWriter:
        if not path.is_file():
            raise UnwritableTarget(f"{path} is no file, as its ending asks for: it is kept.")
    elif not path.is_dir():
        raise UnwritableTarget(f"{path} is no directory, as a name without ending asks for.")
    elif not is_own(path) or (any(path.iterdir()) and not (path / MANIFEST).exists()):
        raise UnwritableTarget(f"{path} is a directory that polysparse did not write: it is kept.")


def can_resume(path: Path) -> bool:
    """Whether an interrupted run into a path can be gone on with."""
    return sink_kind(path) in (StoreWriter, NpzSink)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other runs from writing to the same path."""
    if fcntl is None:
        yield
        return
    name = beside(path, "lock")
    while True:
        with open(name, "wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BlockingIOError(f"another run is writing {path}.") from None
            if not _is_named(lock, name):  # the run that held it has just removed it
                continue
            try:
                yield
            finally:
                name.unlink(missing_ok=True)
            return


def _is_named(file: IO[bytes], name: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), name.stat())
    except FileNotFoundError:
        return False


def is_written(path: Path, description: dict[str, Any]) -> bool:
    """Whether a path holds what a run of that description would write."""
    try:
        if path.is_dir():
            return fits_description(_open_arrays(path)[0], description)
        with zipfile.ZipFile(path) as archive:
            return fits_description(json.loads(archive.comment), description)
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def remove_asides(path: Path) -> None:
    """Remove what a run that was killed at its very end has left."""
    for role in ("partial", "store", "old"):
        remove(beside(path, role))


class Sink(Protocol):
    """Takes blocks of rows in order. Nothing has the final name before `finish`."""

    n_rows: int  # written, and safe from what was written before

    def write(self, block: Any, labels: NDArray[Any] | None) -> None: ...
    def finish(self) -> None: ...
    def leave(self) -> None: ...
    def discard(self) -> None: ...


class NpzSink:
    """SciPy's .npz, uncompressed: a store beside it, packed at the end."""

    def __init__(self, path: Path, description: dict[str, Any], *, resume: bool = False) -> None:
        self.path = path
        self.store = StoreWriter(path, description, resume=resume, partial=beside(path, "store"))

    @property
    def n_rows(self) -> int:
        return self.store.n_rows

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        self.store.write(block, labels)

    def finish(self) -> None:
        self.store.seal()
        aside = beside(self.path, "partial")
        try:
            self._pack(aside)
            aside.replace(self.path)
        finally:
            aside.unlink(missing_ok=True)
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

    def discard(self) -> None:
        self.store.discard()


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    return archive.open(zipfile.ZipInfo(name, ZIP_DATE), "w", force_zip64=True)


class FileSink:
    """One file that is written from the front, aside, and renamed when whole."""

    def __init__(self, path: Path) -> None:
        self.path, self.aside = path, beside(path, "partial")
        self.n_rows = 0
        self.file: IO[bytes] = open(self.aside, "wb")  # noqa: SIM115

    def finish(self) -> None:
        self.file.close()
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
        n_columns = MonomialBasis(**description["basis"]).n_columns
        metadata = {"polysparse:n_features": str(n_columns)}
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
            pa.LargeListArray.from_arrays(offsets, pa.array(array))
            for array in (block.indices, block.data)
        ]
        if labels is not None:
            columns.append(pa.array(labels))
        self.writer.write_table(pa.Table.from_arrays(columns, schema=self.schema))
        self.n_rows += block.shape[0]

    def finish(self) -> None:
        self.writer.close()
        super().finish()

    def discard(self) -> None:
        if self.writer is not None:
            with suppress(Exception):  # it writes, and what it writes may not fit on the disk
                self.writer.close()
            self.writer.is_open = False  # else it would try again when it is forgotten
        super().discard()


def open_sink(path: Path, description: dict[str, Any], *, resume: bool) -> Sink:
    """Sink for a path, by its ending; a name without one is a directory."""
    kind = sink_kind(path)
    if kind is SvmlightSink:
        return SvmlightSink(path)
    if kind is ParquetSink:
        return ParquetSink(path, description)
    return kind(path, description, resume=resume)  # type: ignore[no-any-return]


def sink_kind(path: Path) -> Callable[..., Any]:
    """Which sink a name asks for."""
    kinds: dict[str, Callable[..., Any]] = {
        ".npz": NpzSink,
        ".parquet": ParquetSink,
        ".svmlight": SvmlightSink,
        ".libsvm": SvmlightSink,
        ".svm": SvmlightSink,
        ".txt": SvmlightSink,
        "": StoreWriter,
    }
    if path.suffix not in kinds:
        raise UnknownExtension(
            f"{path}: unknown ending. Known are .npz, .parquet, .svmlight, .libsvm, .svm and .txt; "
            "a name without an ending is a directory of .npy files."
        )
    return kinds[path.suffix]
