"""Expansions written to files, block by block, whole or not at all."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse import _kernels
from polysparse.basis import MonomialBasis
from polysparse.sources import UnknownExtension
from polysparse.store import StoreWriter


class Sink(Protocol):
    """Takes blocks of rows in order. Nothing has the final name before `finish`."""

    n_rows: int  # written, and safe from what was written before

    def write(self, block: Any, labels: NDArray[Any] | None) -> None: ...
    def finish(self) -> None: ...
    def leave(self) -> None: ...
    def discard(self) -> None: ...


class NpzSink:
    """SciPy's .npz, uncompressed: a store beside it, packed at the end."""

    def __init__(self, path: Path, *arguments: Any, **keywords: Any) -> None:
        self.path = path
        self.store = StoreWriter(path.with_name(f"{path.name}.store"), *arguments, **keywords)

    @property
    def n_rows(self) -> int:
        return self.store.n_rows

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        self.store.write(block, labels)

    def finish(self) -> None:
        self.store.finish()
        aside = self.path.with_name(f"{self.path.name}.partial")
        try:
            with zipfile.ZipFile(aside, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                for file in sorted(self.store.path.glob("*.npy")):
                    archive.write(file, file.name)
                shape = self.store.n_rows, self.store.basis.n_columns
                small = {"format": b"csr", "shape": np.array(shape), "_is_array": np.array(True)}
                for name, value in small.items():
                    with archive.open(f"{name}.npy", "w") as member:
                        np.lib.format.write_array(member, np.asanyarray(value))
            aside.replace(self.path)
        finally:
            aside.unlink(missing_ok=True)
        shutil.rmtree(self.store.path)

    def leave(self) -> None:
        self.store.leave()

    def discard(self) -> None:
        self.store.discard()
        shutil.rmtree(self.store.path, ignore_errors=True)


class FileSink:
    """One file that is written from the front, aside, and renamed when whole."""

    def __init__(self, path: Path) -> None:
        self.path, self.aside = path, path.with_name(f"{path.name}.partial")
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

    def __init__(
        self,
        path: Path,
        basis: MonomialBasis,
        index_dtype: np.dtype[Any],
        dtype: np.dtype[Any],
        has_labels: bool,
    ) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ImportError(
                "Parquet files need pyarrow: pip install 'polysparse[cli]'."
            ) from None
        super().__init__(path)
        self.pa = pa
        fields = [
            pa.field("indices", pa.large_list(pa.from_numpy_dtype(index_dtype))),
            pa.field("values", pa.large_list(pa.from_numpy_dtype(dtype))),
        ]
        if has_labels:
            fields.append(pa.field("label", pa.float64()))
        metadata = {"polysparse:n_features": str(basis.n_columns)}
        self.schema = pa.schema(fields, metadata=metadata)
        self.writer = pq.ParquetWriter(self.file, self.schema)

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


def open_sink(
    path: Path,
    basis: MonomialBasis,
    index_dtype: np.dtype[Any],
    dtype: np.dtype[Any],
    *,
    has_labels: bool,
    origin: dict[str, Any],
    resume: bool,
) -> Sink:
    """Sink for a path, by its ending; a name without one is a directory."""
    kind = sink_kind(path)
    if kind is SvmlightSink:
        return SvmlightSink(path)
    if kind is ParquetSink:
        return ParquetSink(path, basis, index_dtype, dtype, has_labels)
    return kind(  # type: ignore[no-any-return]
        path, basis, index_dtype, dtype, has_labels=has_labels, origin=origin, resume=resume
    )


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
