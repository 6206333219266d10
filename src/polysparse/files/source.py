"""Reading sparse matrices from files in blocks of rows: what all formats share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.files.errors import FileFault, faults_of
from polysparse.machine import require_memory, require_within
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.matrix.output import as_csr
from polysparse.matrix.row_profile import RowProfile
from polysparse.tables.encoding import TableEncoding

MOST_FEATURES = 2**63 - 1

OPEN_FILES = Path("/proc/self/fd")  # on Linux, the open files of this process by their numbers


@dataclass(frozen=True)
class Summary:
    """What a plan needs to know about a file."""

    n_features: int
    profile: RowProfile
    has_labels: bool

    @property
    def n_rows(self) -> int:
        """Number of rows of the file."""
        return self.profile.n_rows


@dataclass(frozen=True)
class Reading:
    """How to read a file: what the caller knows about it, and the resources to use."""

    n_features: int | None = None  # by default as the file states, or as many as occur
    least_features: int = 0  # of a file that does not state it, unless more occur
    zero_based: bool | None = None  # whether svmlight indices are; by default if index 0 occurs
    was_zero_based: bool | None = None  # whether they were in the training data
    earlier: str = "the vocabulary"  # what was learned from the training data, for messages
    n_threads: int = 1
    line_bytes: int = 2**25  # of the longest line that is accepted, and of text read at a time
    max_memory: int | None = None  # for what a source itself holds, such as levels or a whole file
    table: Any = None  # a TableReading: how to read a table


class Source:
    """A matrix in a file. Each subclass reads one format."""

    is_upper_bound = False  # whether the summary also counts stored zeros and duplicates
    resident_bytes = 0  # memory that the source itself takes while its blocks are read
    is_table = False  # whether the file is a table, whose columns are variables

    def __init__(self, path: Path, reading: Reading) -> None:
        self.path, self.reading = path, reading
        self.given_features = reading.n_features
        self.place = path  # where the bytes are; `path` is the name used in messages
        self._copy: ExitStack | None = None

    @cached_property
    def summary(self) -> Summary:
        """Size and row lengths of the matrix."""
        raise NotImplementedError

    @property
    def base(self) -> int | None:
        """Number of the first column, 0 or 1, in formats that allow both; otherwise None."""
        return None

    @property
    def reason_for_base(self) -> str:
        """Why `base` is what it is; empty if that was given, or is the same in the whole format."""
        return ""

    @property
    def groups(self) -> list[str | None] | None:
        """Label of the group of each feature, in formats that have groups; otherwise None.

        A feature that does not occur is on its own: its label is None.
        """
        return None

    @property
    def table(self) -> TableEncoding | None:
        """How a table is encoded; None if the file is not a table."""
        return None

    @property
    def classes(self) -> NDArray[Any] | None:
        """The classes that labels number; None if labels are what they are."""
        return None

    @property
    def notes(self) -> list[str]:
        """Sentences that the user should read about the file."""
        return [] if self.summary.n_rows else [f"{self.path} has no rows."]

    @property
    def can_be_read_again(self) -> bool:
        """Whether another run finds the same; a stream is gone when this run ends."""
        return self._copy is None

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        """Yield CSR blocks of rows, each with its labels or None, after the first `skip_rows`."""
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """Return what must stay the same for an interrupted run to be resumed."""
        state = self.place.stat()
        return {
            "name": self.path.name,
            "bytes": state.st_size,
            "modified": state.st_mtime_ns,
            "zero_based": None if self.base is None else self.base == 0,
        }

    def width(self, largest: int) -> int:
        """Return the number of features, given the largest column that occurs.

        It is `n_features` if that was given; FileFault is raised if that is too small. Otherwise it
        is one more than the largest column, but at least `least_features`.
        """
        n_features = self.given_features
        if n_features is None:
            n_features = max(largest + 1, self.reading.least_features)
        if n_features > MOST_FEATURES:
            raise FileFault(
                f"{self.path} would have {n_features} features; at most 2**63 - 1 are possible."
            )
        if largest >= n_features:
            raise FileFault(
                f"{self.path}: column {largest} occurs, but n_features={n_features} "
                "allows only those below."
            )
        return n_features

    def spool(self, stream: IO[bytes]) -> None:
        """Copy a stream that can be read only once to a temporary file, and read from that.

        On Linux the copy has no name, so it disappears however the process ends. Elsewhere it is
        closed before it is read: Windows does not open a temporary file twice.
        """
        with ExitStack() as copies:
            if OPEN_FILES.is_dir():
                copy: IO[bytes] = copies.enter_context(tempfile.TemporaryFile(prefix="polysparse-"))
                place = OPEN_FILES / str(copy.fileno())
                shutil.copyfileobj(stream, copy, 2**20)
                copy.flush()
            else:
                folder = copies.enter_context(tempfile.TemporaryDirectory(prefix="polysparse-"))
                place = Path(folder) / "copy"
                with open(place, "xb") as copy:
                    shutil.copyfileobj(stream, copy, 2**20)
            self.place, self._copy = place, copies.pop_all()

    def close(self) -> None:
        """Remove the temporary copy, if there is one."""
        if self._copy is not None:
            self._copy.close()


class WholeSource(Source):
    """A source whose format can only be read as a whole."""

    # While it is read, a matrix is in memory up to so many times: as it is in the file, in
    # canonical form, and in between. Small matrices are not worth counting.
    COPIES, NOT_COUNTED = 3, 2**20

    def whole_bytes(self) -> int:
        """Return the size of the matrix in memory, according to the head of the file."""
        raise NotImplementedError

    @cached_property
    def resident_bytes(self) -> int:  # type: ignore[override]
        """Memory that reading the matrix takes, as long as it is more than a little."""
        with faults_of(self.path):
            needed = self.COPIES * self.whole_bytes()
        return needed if needed > self.NOT_COUNTED else 0

    def _require_room(self) -> None:
        """Raise MemoryError, before anything is read, if the matrix is larger than allowed."""
        needed = self.resident_bytes
        what = f"{self.path} can only be read as a whole, which needs"
        require_within(self.reading.max_memory, needed, what)
        what = f"{self.path}, which can only be read as a whole,"
        require_memory(needed, what, "svmlight text and Parquet are read in blocks.")

    def read(self) -> tuple[Any, NDArray[Any] | None]:
        """Read the matrix, exactly as it is in the file, and its labels or None."""
        raise NotImplementedError

    @cached_property
    def _content(self) -> tuple[Any, NDArray[Any] | None]:
        """The checked matrix as a csr_array, and its labels or None."""
        self._require_room()
        with faults_of(self.path):
            matrix, labels = self.read()
            x = as_canonical_csr(matrix)  # the file may hold unsorted or invalid indices
        shape = x.shape
        if self.given_features is not None:
            shape = x.shape[0], self.width(int(x.indices.max(initial=-1)))
        return as_csr(shape, x.indptr, x.indices, x.data, is_array=True), labels

    @cached_property
    def summary(self) -> Summary:
        matrix, labels = self._content
        profile = RowProfile(cpu.count_row_lengths(matrix.indptr))
        return Summary(matrix.shape[1], profile, has_labels=labels is not None)

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        """Yield all rows after the first `skip_rows` as a single block."""
        matrix, labels = self._content
        if skip_rows:  # SciPy copies a slice, even one of all rows
            matrix = matrix[skip_rows:]
        yield matrix, None if labels is None else labels[skip_rows:]
