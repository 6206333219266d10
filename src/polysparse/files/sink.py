"""Writing expansions to files, block by block and atomically: what all formats share."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from polysparse.files.atomic import beside, put, sync


class Sink:
    """Takes blocks of rows in order, under a hidden name until `finish`. Each subclass is a format.

    `description` is that of `description.describe`. With `resume`, a sink continues what an earlier
    run left, if its format allows that.
    """

    n_rows = 0  # rows that are written, by this run or by an earlier one that it resumes
    nnz = 0  # stored values in these rows, as far as an earlier run wrote them

    def __init__(self, path: Path, description: dict[str, Any], *, resume: bool = False) -> None:
        self.path, self.description = path, description
        self.aside = beside(path, "partial")  # what gets the final name, once sealed

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        """Append a block of rows and its labels."""
        raise NotImplementedError

    def seal(self) -> None:
        """Complete what was written, still under its hidden name."""
        raise NotImplementedError

    def finish(self) -> None:
        """Give the output its final name."""
        put(self.aside, self.path)

    def leave(self) -> None:
        """Stop, keeping what a later run can resume from; if that is nothing, remove all."""
        self.discard()

    def discard(self) -> None:
        """Stop, and remove what was written."""
        raise NotImplementedError


class FileSink(Sink):
    """A single file, written sequentially, which cannot be resumed."""

    def __init__(self, path: Path, description: dict[str, Any], *, resume: bool = False) -> None:
        super().__init__(path, description)
        self.file: IO[bytes] = open(self.aside, "wb")  # noqa: SIM115

    def seal(self) -> None:
        sync(self.file)
        self.file.close()

    def discard(self) -> None:
        with suppress(OSError):  # closing flushes the buffer, which may not fit on the disk
            self.file.close()
        self.aside.unlink(missing_ok=True)
