"""Sparse matrices in files, read in blocks of rows: what all formats share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.matrix.output import as_csr
from polysparse.matrix.row_profile import RowProfile


class FileFault(ValueError):
    """A file that cannot be what it should be; the message names it."""


@dataclass(frozen=True)
class Summary:
    """What a plan needs to know of a file."""

    n_features: int
    profile: RowProfile
    has_labels: bool

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return self.profile.n_rows


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

    is_upper_bound = False  # whether the summary counts stored zeros and duplicates, too

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
                f"{self.path}: column {largest} occurs, but n_features={self.given_features} "
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
    """A format that is read at once."""

    def read(self) -> tuple[Any, NDArray[Any] | None]:
        """The matrix, as the file has it, and its labels."""
        raise NotImplementedError

    @cached_property
    def _content(self) -> tuple[Any, NDArray[Any] | None]:
        with faults_of(self.path):
            matrix, labels = self.read()
            x = as_canonical_csr(matrix)  # files hold whatever was written into them
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
        matrix, labels = self._content
        if skip_rows:  # SciPy copies what it slices, even all of it
            matrix = matrix[skip_rows:]
        yield matrix, None if labels is None else labels[skip_rows:]
