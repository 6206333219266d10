"""Expansions written to files, block by block, whole or not at all: what all formats share."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

from numpy.typing import NDArray

from polysparse.files.paths import beside


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
