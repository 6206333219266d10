"""Sparse matrices in files, read in blocks of rows."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse import _kernels
from polysparse.columns import ColumnSpace
from polysparse.machine import threads_for
from polysparse.planning import ExpansionPlan
from polysparse.targets import UnknownExtension as UnknownExtension

ENOUGH_FOR_ALL = 2**60  # outputs: files are read by every thread that may be used

# Parquet in arrays: an index and a value of 8 bytes each, an offset and a label beside them.
BYTES_PER_VALUE, BYTES_PER_ROW = 16, 16
SCAN_BYTES = 2**22  # of indices, looked at together for the summary


class FileFault(ValueError):
    """A file that cannot be what it should be; the message names it."""


@dataclass(frozen=True)
class Summary:
    """What a plan needs to know of a file."""

    n_rows: int
    n_features: int
    row_lengths: tuple[tuple[int, int], ...]
    has_labels: bool


@contextmanager
def faults_of(path: Path) -> Iterator[None]:
    """Whatever a reader trips over in a damaged file, as a FileFault that names the file."""
    try:
        yield
    except (FileFault, ImportError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        text, kind = " ".join(str(error).split()), type(error).__name__
        if not isinstance(error, (ValueError, OSError)):  # not written for who has the file
            text = f"is damaged, or not what its name says ({kind}{': ' * bool(text)}{text})."
        raise FileFault(f"{path}: {text or kind}") from None


class Source:
    """A matrix in a file. Subclasses know a format."""

    is_upper_bound = False  # whether the plan also counts stored zeros and duplicates

    def __init__(
        self,
        path: Path,
        n_features: int | None,
        zero_based: bool | None,
        n_threads: int,
        least_features: int = 0,
    ) -> None:
        self.path, self.zero_based, self.n_threads = path, zero_based, n_threads
        self.given_features, self.least_features = n_features, least_features
        self.place = path  # where the bytes are; `path` is what the user calls it
        self._copy: IO[bytes] | None = None

    @cached_property
    def summary(self) -> Summary:
        raise NotImplementedError

    @property
    def base(self) -> int | None:
        """The number of the first column in the file, in formats where it may be 0 or 1."""
        return None

    @property
    def notes(self) -> list[str]:
        """What the user should know of the file, in sentences."""
        return [] if self.summary.n_rows else ["IN has no rows."]

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        """CSR blocks of rows and their labels, or None, from a row on."""
        raise NotImplementedError

    def plan(self, columns: ColumnSpace, dtype: np.dtype[Any]) -> ExpansionPlan:
        """What the expansion of the whole file will be, or at most, if `is_upper_bound`."""
        return ExpansionPlan(columns, self.summary.n_rows, dtype, self.summary.row_lengths)

    def identity(self) -> dict[str, Any]:
        """What must not change for a run to be resumed."""
        state = self.place.stat()
        return {"name": self.path.name, "bytes": state.st_size, "modified": state.st_mtime_ns}

    def width(self, largest: int) -> int:
        """n_features, if given and enough, else one more than the largest column, at least."""
        if self.given_features is None:
            return max(largest + 1, self.least_features)
        if largest >= self.given_features:
            raise FileFault(
                f"{self.path}: column {largest} occurs, but --n-features={self.given_features} "
                "allows only those below."
            )
        return self.given_features

    def spool(self, stream: IO[bytes]) -> None:
        """Read from a copy of a stream, which could be read only once.

        On Linux the copy never has a name, and so is gone however the process ends.
        """
        nameless = Path("/proc/self/fd")
        make = tempfile.TemporaryFile if nameless.is_dir() else tempfile.NamedTemporaryFile
        self._copy = copy = make(prefix="polysparse-")
        try:
            shutil.copyfileobj(stream, copy, 2**20)
            copy.flush()
        except BaseException:
            copy.close()
            raise
        self.place = nameless / str(copy.fileno()) if nameless.is_dir() else Path(copy.name)

    def close(self) -> None:
        """Remove what was made on the way."""
        if self._copy is not None:
            self._copy.close()


class WholeSource(Source):
    """A format that is read at once: SciPy's .npz, Matrix Market."""

    @cached_property
    def _content(self) -> tuple[Any, NDArray[Any] | None]:
        from polysparse.canonical import as_canonical_csr, as_csr

        with faults_of(self.path):
            matrix, labels = self._read_npz() if self.path.suffix == ".npz" else self._read_mtx()
            x = as_canonical_csr(matrix)  # files hold whatever was written into them
        shape = x.shape
        if self.given_features is not None:
            shape = x.shape[0], self.width(int(x.indices.max(initial=-1)))
        return as_csr(shape, x.indptr, x.indices, x.data, is_array=True), labels

    def _read_npz(self) -> tuple[Any, NDArray[Any] | None]:
        with open(self.place, "rb") as file:  # NumPy leaves a damaged one open
            matrix = sparse.load_npz(file)
            if matrix.ndim != 2:
                raise ValueError(f"holds an array of {matrix.ndim} dimensions; two are needed.")
            file.seek(0)
            return matrix, _labels_in(file, matrix.shape[0])

    def _read_mtx(self) -> tuple[Any, None]:
        from scipy.io import mmread

        with (
            (gzip.open if self.path.suffix == ".gz" else open)(self.place, "rb") as file,
            warnings.catch_warnings(),
        ):
            # of SciPy 1.18, about which family mmread will return one day: either will do
            warnings.simplefilter("ignore", DeprecationWarning)
            matrix = mmread(io.BufferedReader(_EndedLines(file), 2**20))
        if not sparse.issparse(matrix):
            raise ValueError("holds a dense array; write it in coordinate format.")
        return matrix, None

    @cached_property
    def summary(self) -> Summary:
        matrix, labels = self._content
        lengths = tuple(_kernels.count_row_lengths(matrix.indptr))
        n_rows, n_features = matrix.shape
        return Summary(n_rows, n_features, lengths, has_labels=labels is not None)

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        matrix, labels = self._content
        if skip_rows:  # SciPy copies what it slices, even all of it
            matrix = matrix[skip_rows:]
        yield matrix, None if labels is None else labels[skip_rows:]


class _EndedLines(io.RawIOBase):
    """A file whose last line ends: in others, SciPy 1.17 reads past the end of its memory."""

    def __init__(self, file: Any) -> None:
        self.file, self.last = file, b""

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        text = self.file.read(len(room)) or b"\n" * (self.last != b"\n")
        self.last = text[-1:] or self.last
        room[: len(text)] = text
        return len(text)


def _labels_in(npz: IO[bytes], n_rows: int) -> NDArray[Any] | None:
    """The labels that polysparse writes beside the arrays of a matrix; others' may be anything."""
    labels: NDArray[Any] = np.empty(0, object)
    with np.load(npz, allow_pickle=False) as members, suppress(KeyError, ValueError):
        labels = members["labels"]
    is_ours = labels.shape == (n_rows,) and labels.dtype.kind in "biuf"
    return labels.astype(np.float64) if is_ours else None


class SvmlightSource(Source):
    """svmlight text, plain or gzipped."""

    is_upper_bound = True

    @cached_property
    def _scan(self) -> Any:
        from polysparse.svmlight import open_svmlight, summarize

        with faults_of(self.path), open_svmlight(self.place, str(self.path)) as file:
            return summarize(file, n_threads=self.n_threads)

    @property
    def notes(self) -> list[str]:
        return super().notes + ["qid is not kept."] * self._scan.has_qid

    @property
    def base(self) -> int:
        """The number of the first column in the file: 0 or 1."""
        lowest = self._scan.min_index
        if self.zero_based is None:
            return int(lowest != 0)
        if lowest == 0 and not self.zero_based:
            raise FileFault(
                f"{self.path}: index 0 occurs, but --one-based, or the vocabulary, says they begin "
                "at 1."
            )
        return int(not self.zero_based)

    @cached_property
    def summary(self) -> Summary:
        scan = self._scan
        n_features = self.width(scan.max_index - self.base if scan.n_stored else -1)
        return Summary(scan.n_rows, n_features, scan.row_lengths, scan.has_labels)

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        from polysparse.canonical import as_csr
        from polysparse.svmlight import iter_blocks, open_svmlight

        n_features, base = self.summary.n_features, self.base
        with faults_of(self.path), open_svmlight(self.place, str(self.path)) as file:
            options = {"block_bytes": block_bytes, "n_threads": self.n_threads}
            for block in iter_blocks(file, skip_rows=skip_rows, **options):
                shape = len(block.indptr) - 1, n_features
                yield (
                    as_csr(shape, block.indptr, block.indices - base, block.data, is_array=True),
                    block.labels,
                )


class ParquetSource(Source):
    """Parquet with list columns `indices` and `values`, and maybe a column `label`."""

    is_upper_bound = True

    @cached_property
    def _file(self) -> Any:
        try:
            import pyarrow.parquet as pq
        except ImportError:
            raise ImportError(
                "Parquet files need pyarrow: pip install 'polysparse[cli]'."
            ) from None
        with faults_of(self.path):
            file = pq.ParquetFile(self.place, buffer_size=2**20, pre_buffer=False)
            _require_sparse_rows(file.schema_arrow)
        return file

    def close(self) -> None:
        if "_file" in self.__dict__:
            self._file.close()
        super().close()

    @cached_property
    def summary(self) -> Summary:
        lengths: Counter[int] = Counter()
        largest = -1
        for indptr, indices, _, _ in self._batches(("indices",), self._rows_to_scan()):
            lengths.update(dict(_kernels.count_row_lengths(indptr)))
            largest = max(largest, int(indices.max(initial=-1)))
            if indices.min(initial=0) < 0:
                raise FileFault(f"{self.path}: index {indices.min()} is negative.")
        schema = self._file.schema_arrow
        if self.given_features is None:
            self.given_features = self._width_in(schema.metadata or {}, largest)
        n_features, pairs = self.width(largest), tuple(sorted(lengths.items()))
        return Summary(lengths.total(), n_features, pairs, "label" in schema.names)

    def _width_in(self, metadata: dict[bytes, bytes], largest: int) -> int | None:
        """The n_features that the file itself gives, if any: columns at the end may be empty."""
        text = metadata.get(b"polysparse:n_features")
        if text is None:
            return None
        if not text.isdigit() or len(text) > 19 or int(text) <= largest:
            raise FileFault(
                f"{self.path}: its metadata polysparse:n_features is {ascii(text)[1:]}, "
                f"but must be a number above the largest index, {largest}."
            )
        return int(text)

    def _rows_to_scan(self) -> int:
        """Rows whose indices take about SCAN_BYTES in the row group of the longest rows."""
        with faults_of(self.path):
            metadata = self._file.metadata
            groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            where = [c.path.split(".")[0] for c in self._file.schema].index("indices")
            means = [g.column(where).num_values // max(g.num_rows, 1) for g in groups]
        return max(1, SCAN_BYTES // (8 * int(max([0, *means])) + 8))

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        from polysparse.canonical import as_csr

        summary = self.summary
        columns = ("indices", "values", *(["label"] if summary.has_labels else []))
        n_together = rows_within(block_bytes, summary.row_lengths)
        for indptr, indices, values, labels in self._batches(columns, n_together):
            n_rows = len(indptr) - 1
            if skip_rows >= n_rows:
                skip_rows -= n_rows
                continue
            block = as_csr((n_rows, summary.n_features), indptr, indices, values, is_array=True)
            block.has_canonical_format = block.has_sorted_indices = False
            if skip_rows:
                block, labels = block[skip_rows:], None if labels is None else labels[skip_rows:]
            yield block, labels
            skip_rows = 0

    def _batches(
        self, columns: tuple[str, ...], n_rows: int
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any] | None]]:
        """Offsets, indices, values and labels of some rows at a time, as far as asked for."""
        with faults_of(self.path):
            for batch in self._file.iter_batches(batch_size=n_rows, columns=list(columns)):
                indptr, indices = _as_rows(batch, "indices", np.int64)
                values, labels = indices[:0], None
                if "values" in columns:
                    own, values = _as_rows(batch, "values", np.float64)
                    if not np.array_equal(own, indptr):
                        raise ValueError("a row has other numbers of indices and values.")
                if "label" in columns:
                    labels = _as_numbers(batch.column("label"), "label", np.float64).astype(float)
                yield indptr, indices, values, labels


def _require_sparse_rows(schema: Any) -> None:
    """Raise if columns are missing, or of types that do not say which numbers are meant."""
    from pyarrow import types

    def is_number(kind: Any) -> bool:
        tests = types.is_integer, types.is_floating, types.is_decimal, types.is_boolean
        return any(test(kind) for test in tests)

    def is_list(kind: Any) -> bool:  # lists of views came with pyarrow 16
        names = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
        return any(getattr(types, f"is_{name}", lambda _: False)(kind) for name in names)

    for name in {"indices", "values", "label"} & set(schema.names):
        if schema.names.count(name) > 1:
            raise ValueError(f"has several columns {name!r}.")
    for name, is_right in (("indices", types.is_integer), ("values", is_number)):
        kind = schema.field(name).type if name in schema.names else None
        if kind is None or not is_list(kind):
            raise ValueError(f"has no list column {name!r}; it has {schema.names}.")
        if not is_right(kind.value_type):
            needed = "integers" if name == "indices" else "numbers"
            raise ValueError(f"column {name!r} is {kind}: lists of {needed} are needed.")
    if "label" in schema.names and not is_number(schema.field("label").type):
        raise ValueError(f"column 'label' is {schema.field('label').type}: not a number.")


def _as_rows(batch: Any, name: str, dtype: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Offsets and numbers of a list column, of whichever kind of list."""
    from pyarrow import compute

    lists = batch.column(name)
    if lists.null_count:
        raise ValueError(f"column {name!r}: a row is null.")
    indptr = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(compute.list_value_length(lists), out=indptr[1:])
    return indptr, _as_numbers(lists.flatten(), name, dtype)


def _as_numbers(array: Any, name: str, dtype: Any) -> NDArray[Any]:
    """Numbers as `dtype`, exactly; float32 stays what it is."""
    import pyarrow as pa

    if array.null_count:
        raise ValueError(f"column {name!r}: a number is null.")
    if pa.types.is_float32(array.type):
        return np.asarray(array)
    try:
        return np.asarray(array.cast(pa.from_numpy_dtype(dtype)))
    except pa.ArrowInvalid as error:  # a number that the type does not hold
        raise ValueError(f"column {name!r}: {error}") from None


def rows_within(n_bytes: int, row_lengths: tuple[tuple[int, int], ...]) -> int:
    """So many rows fit into n_bytes of arrays, whichever they are; at least one."""
    n_rows = 0
    for length, count in sorted(row_lengths, reverse=True):
        each = length * BYTES_PER_VALUE + BYTES_PER_ROW
        fitting = min(count, n_bytes // each)
        n_rows, n_bytes = n_rows + fitting, n_bytes - fitting * each
        if fitting < count:
            break
    return max(1, n_rows)


def open_source(
    path: str,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    n_jobs: int | None = None,
    least_features: int = 0,
) -> Source:
    """Source for a path, by its ending; '-' is svmlight on standard input.

    A file that does not say how many features it has is taken to have `least_features`, or more if
    more occur.
    """
    kind, n_threads = _kind_of(path), threads_for(n_jobs, ENOUGH_FOR_ALL)
    options = n_features, zero_based, n_threads, least_features
    if path == "-":
        source = kind(Path("standard input"), *options)
        if sys.stdin is None:
            raise FileFault("standard input is closed; give a file in place of -.")
        source.spool(sys.stdin.buffer)
        return source
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: there is no such file.")
    source = kind(Path(path), *options)
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe, say
        with open(path, "rb") as stream:
            source.spool(stream)
    return source


def _kind_of(path: str) -> type[Source]:
    name = path.removesuffix(".gz")
    if path.endswith(".npz") or name.endswith(".mtx"):
        return WholeSource
    if path.endswith(".parquet"):
        return ParquetSource
    if name.endswith((".svmlight", ".svm", ".libsvm", ".txt")) or "." not in Path(name).name:
        return SvmlightSource
    raise UnknownExtension(
        f"{path}: unknown ending. Known are .svmlight, .libsvm, .svm, .txt or none (svmlight), "
        ".npz, .mtx and .parquet; svmlight and .mtx also with .gz."
    )
