"""Writing expansions to files, block by block and atomically: what all formats share."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

from numpy.typing import NDArray

from polysparse.files.atomic import beside, put, sync


class Sink(Protocol):
    """Takes blocks of rows in order. Nothing has the final name before `finish`."""

    aside: Path  # what gets the final name, once sealed

    @property
    def n_rows(self) -> int:
        """Number of rows that are written, by this run or by an earlier one that it resumes."""
        ...

    @property
    def nnz(self) -> int:
        """Number of stored values in these rows, as far as an earlier run wrote them."""
        ...

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        """Append a block of rows and its labels."""
        ...

    def seal(self) -> None:
        """Complete what was written, still under its hidden name."""
        ...

    def finish(self) -> None:
        """Give the output its final name."""
        ...

    def leave(self) -> None:
        """Stop, keeping what a later run can resume from; if that is nothing, remove all."""
        ...

    def discard(self) -> None:
        """Stop, and remove what was written."""
        ...


class FileSink:
    """A single file, written sequentially under a hidden name and renamed when complete."""

    nnz = 0  # of an earlier run: there is none to resume

    def __init__(self, path: Path) -> None:
        self.path, self.aside = path, beside(path, "partial")
        self.n_rows = 0
        self.file: IO[bytes] = open(self.aside, "wb")  # noqa: SIM115

    def seal(self) -> None:
        """Close the file, once it is on the disk."""
        sync(self.file)
        self.file.close()

    def finish(self) -> None:
        """Rename the file."""
        put(self.aside, self.path)

    def leave(self) -> None:
        """Discard the file: a single file cannot be resumed."""
        self.discard()

    def discard(self) -> None:
        """Close and remove the file."""
        with suppress(OSError):  # closing flushes the buffer, which may not fit on the disk
            self.file.close()
        self.aside.unlink(missing_ok=True)
