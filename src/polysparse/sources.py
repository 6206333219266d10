"""Sparse matrices in files, read in blocks of rows."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse import _kernels
from polysparse.basis import MonomialBasis
from polysparse.machine import threads_for
from polysparse.planning import ExpansionPlan

ENOUGH_FOR_ALL = 2**60  # outputs: files are read by every thread that may be used


class FileFault(ValueError):
    """A file that cannot be what it should be; the message names it."""


@dataclass(frozen=True)
class Summary:
    """What a plan needs to know of a file."""

    n_rows: int
    n_features: int
    row_lengths: tuple[tuple[int, int], ...]
    has_labels: bool


class Source:
    """A matrix in a file. Subclasses know a format."""

    def __init__(
        self, path: Path, n_features: int | None, zero_based: bool | None, n_threads: int
    ) -> None:
        self.path, self.zero_based, self.n_threads = path, zero_based, n_threads
        self.given_features = n_features

    @cached_property
    def summary(self) -> Summary:
        raise NotImplementedError

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        """CSR blocks of rows and their labels, or None, from a row on."""
        raise NotImplementedError

    def plan(self, basis: MonomialBasis, dtype: np.dtype[Any]) -> ExpansionPlan:
        """What the expansion of the whole file will be; stored zeros and duplicates count."""
        return ExpansionPlan(basis, self.summary.n_rows, dtype, self.summary.row_lengths)

    def identity(self) -> dict[str, Any]:
        """What must not change for a run to be resumed."""
        state = self.path.stat()
        return {"name": self.path.name, "bytes": state.st_size, "modified": state.st_mtime_ns}

    def width(self, largest: int) -> int:
        """n_features, if given and enough, else one more than the largest column."""
        if self.given_features is None:
            return largest + 1
        if largest >= self.given_features:
            raise FileFault(
                f"{self.path}: column {largest} occurs, but --n-features={self.given_features} "
                "allows only those below."
            )
        return self.given_features

    def close(self) -> None:
        """Remove what was made on the way."""


class WholeSource(Source):
    """A format that is read at once: SciPy's .npz, Matrix Market."""

    @cached_property
    def matrix(self) -> Any:
        read = _read_npz if self.path.suffix == ".npz" else _read_matrix_market
        try:
            matrix = read(self.path)
        except FileFault:
            raise
        except (ValueError, KeyError, TypeError, EOFError, OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise FileFault(f"{self.path}: {str(error) or type(error).__name__}") from None
        if self.given_features is not None:
            matrix = sparse.csr_array(
                (matrix.data, matrix.indices, matrix.indptr),
                shape=(matrix.shape[0], self.width(matrix.shape[1] - 1)),
            )
        return matrix

    @cached_property
    def summary(self) -> Summary:
        lengths = tuple(_kernels.count_row_lengths(self.matrix.indptr))
        n_rows, n_features = self.matrix.shape
        return Summary(n_rows, n_features, lengths, has_labels=False)

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        yield self.matrix[skip_rows:], None


def _read_npz(path: Path) -> Any:
    import zipfile

    try:
        with open(path, "rb") as file:  # NumPy leaves a damaged one open
            matrix = sparse.load_npz(file)
    except zipfile.BadZipFile as error:
        raise FileFault(f"{path}: {error}") from None
    if matrix.ndim != 2:
        raise FileFault(f"{path} holds an array of {matrix.ndim} dimensions; two are needed.")
    return _checked(matrix, path)


def _read_matrix_market(path: Path) -> Any:
    from scipy.io import mmread

    matrix = mmread(path)
    if not sparse.issparse(matrix):
        raise FileFault(f"{path} holds a dense array; write it in coordinate format.")
    return _checked(matrix, path)


def _checked(matrix: Any, path: Path) -> Any:
    """CSR that can be sliced: files hold whatever was written into them."""
    from polysparse.canonical import as_canonical_csr, as_csr

    try:
        x = as_canonical_csr(matrix)
    except ValueError as error:
        raise FileFault(f"{path}: {error}") from None
    return as_csr(x.shape, x.indptr, x.indices, x.data, is_array=True)


class SvmlightSource(Source):
    """svmlight text, plain or gzipped."""

    @cached_property
    def _scan(self) -> Any:
        from polysparse.svmlight import open_svmlight, summarize

        with self._faults_named(), open_svmlight(self.path) as file:
            return summarize(file, n_threads=self.n_threads)

    def _faults_named(self) -> Any:
        return _Renamed(self.path)

    @cached_property
    def base(self) -> int:
        """The number of the first column in the file: 0 or 1."""
        lowest = self._scan.min_index
        if self.zero_based is None:
            return int(lowest != 0)
        if lowest == 0 and not self.zero_based:
            raise FileFault(f"{self.path}: index 0 occurs, but --one-based says they begin at 1.")
        return int(not self.zero_based)

    @cached_property
    def summary(self) -> Summary:
        scan = self._scan
        n_features = self.width(scan.max_index - self.base if scan.n_stored else -1)
        lengths, counts = np.unique(scan.row_lengths, return_counts=True)
        pairs = tuple((int(n), int(rows)) for n, rows in zip(lengths, counts, strict=True))
        return Summary(scan.n_rows, n_features, pairs, scan.has_labels)

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        from polysparse.canonical import as_csr
        from polysparse.svmlight import iter_blocks, open_svmlight

        n_features, base = self.summary.n_features, self.base
        with self._faults_named(), open_svmlight(self.path) as file:
            options = {"block_bytes": block_bytes, "n_threads": self.n_threads}
            for block in iter_blocks(file, skip_rows=skip_rows, **options):
                shape = len(block.indptr) - 1, n_features
                yield (
                    as_csr(shape, block.indptr, block.indices - base, block.data, is_array=True),
                    block.labels,
                )


class _Renamed:
    """Puts the file's name before a reader's complaint."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        from polysparse.svmlight import SvmlightError

        if isinstance(error, SvmlightError):
            raise FileFault(f"{self.path}: {error}") from None


class StandardInput(SvmlightSource):
    """svmlight text from standard input, kept in a temporary file to be read twice."""

    def __init__(
        self, path: Path, n_features: int | None, zero_based: bool | None, n_threads: int
    ) -> None:
        super().__init__(path, n_features, zero_based, n_threads)
        self._copy = tempfile.NamedTemporaryFile(prefix="polysparse-")  # noqa: SIM115
        shutil.copyfileobj(sys.stdin.buffer, self._copy, 2**20)
        self._copy.flush()
        self.path = Path(self._copy.name)

    def close(self) -> None:
        self._copy.close()


class ParquetSource(Source):
    """Parquet with list columns `indices` and `values`, and maybe a column `label`."""

    @cached_property
    def _file(self) -> Any:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ImportError(
                "Parquet files need pyarrow: pip install 'polysparse[cli]'."
            ) from None
        try:
            file = pq.ParquetFile(self.path)
        except pa.ArrowInvalid as error:
            raise FileFault(f"{self.path}: {error}") from None
        names = file.schema_arrow.names
        for name in ("indices", "values"):
            if name not in names or not pa.types.is_nested(file.schema_arrow.field(name).type):
                raise FileFault(f"{self.path} has no list column {name!r}; it has {names}.")
        return file

    @cached_property
    def summary(self) -> Summary:
        lengths: dict[int, int] = {}
        largest = -1
        for indptr, indices, _, _ in self._batches(("indices",), 2**16):
            for n, rows in _kernels.count_row_lengths(indptr):
                lengths[n] = lengths.get(n, 0) + rows
            largest = max(largest, int(indices.max(initial=-1)))
            if indices.min(initial=0) < 0:
                raise FileFault(f"{self.path}: index {indices.min()} is negative.")
        known = (self._file.schema_arrow.metadata or {}).get(b"polysparse:n_features")
        if self.given_features is None and known is not None:
            self.given_features = int(known)
        has_labels = "label" in self._file.schema_arrow.names
        n_rows = self._file.metadata.num_rows
        return Summary(n_rows, self.width(largest), tuple(sorted(lengths.items())), has_labels)

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        from polysparse.canonical import as_csr

        summary = self.summary
        columns = ("indices", "values", *(["label"] if summary.has_labels else []))
        for indptr, indices, values, labels in self._batches(columns, 2**13):
            n_rows = len(indptr) - 1
            if skip_rows >= n_rows:
                skip_rows -= n_rows
                continue
            if len(values) != len(indices):
                raise FileFault(f"{self.path}: a row has other numbers of indices and values.")
            block = as_csr((n_rows, summary.n_features), indptr, indices, values, is_array=True)
            block.has_canonical_format = block.has_sorted_indices = False
            yield block[skip_rows:], None if labels is None else labels[skip_rows:]
            skip_rows = 0

    def _batches(
        self, columns: tuple[str, ...], n_rows: int
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any] | None]]:
        for batch in self._file.iter_batches(batch_size=n_rows, columns=list(columns)):
            if any(column.null_count for column in batch.columns):
                raise FileFault(f"{self.path}: a row is null.")
            lists = batch.column("indices")
            indptr = np.asarray(lists.offsets).astype(np.int64)
            first, last = indptr[0], indptr[-1]
            indices = np.asarray(lists.values)[first:last].astype(np.int64)
            values = indices[:0]
            if "values" in columns:
                found = batch.column("values")
                own = np.asarray(found.offsets).astype(np.int64)
                if not np.array_equal(own - own[0], indptr - first):
                    raise FileFault(f"{self.path}: a row has other numbers of indices and values.")
                values = np.asarray(found.values)[own[0] : own[-1]]
            labels = np.asarray(batch.column("label"), float) if "label" in columns else None
            yield indptr - first, indices, values, labels


def open_source(
    path: str,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    n_jobs: int | None = None,
) -> Source:
    """Source for a path, by its ending; '-' is svmlight on standard input."""
    kind = _kind_of(path)
    if path != "-" and not os.path.exists(path):
        raise FileNotFoundError(f"{path}: there is no such file.")
    return kind(Path(path), n_features, zero_based, threads_for(n_jobs, ENOUGH_FOR_ALL))


def _kind_of(path: str) -> type[Source]:
    if path == "-":
        return StandardInput
    name = path.removesuffix(".gz")
    if name.endswith(".npz") or name.endswith(".mtx"):
        return WholeSource
    if name.endswith(".parquet"):
        return ParquetSource
    if name.endswith((".svmlight", ".svm", ".libsvm", ".txt")) or "." not in Path(name).name:
        return SvmlightSource
    raise UnknownExtension(
        f"{path}: unknown ending. Known are .svmlight, .libsvm, .svm, .txt or none (svmlight), "
        ".npz, .mtx and .parquet; svmlight and .mtx also with .gz."
    )


class UnknownExtension(ValueError):
    """A name that does not tell the format."""
