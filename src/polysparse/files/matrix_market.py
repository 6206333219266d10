"""Matrix Market files, read as a whole by SciPy."""

from __future__ import annotations

import gzip
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from scipy import sparse

from polysparse.files.format import Format
from polysparse.files.source import WholeSource


class MatrixMarketSource(WholeSource):
    """A matrix in coordinate format, plain or gzipped."""

    def whole_bytes(self) -> int:
        """Return the size of the matrix in memory: 8 bytes each for row, column and value."""
        from scipy.io import mminfo

        with self._open() as file:
            n_rows, _, stored, _, _, symmetry = mminfo(file)
        return 24 * int(stored) * (1 if symmetry == "general" else 2) + 8 * int(n_rows)

    def read(self) -> tuple[Any, None]:
        from scipy.io import mmread

        with self._open() as file, warnings.catch_warnings():
            # SciPy 1.18 warns that mmread will change the family it returns; either is fine here.
            warnings.simplefilter("ignore", DeprecationWarning)
            matrix = mmread(file)
        if not sparse.issparse(matrix):
            raise ValueError("holds a dense array; write it in coordinate format.")
        return matrix, None

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with (gzip.open if self.path.suffix == ".gz" else open)(self.place, "rb") as file:
            lines = _EndedLines(file, self.reading.line_bytes)
            try:
                yield io.BufferedReader(lines, min(2**20, self.reading.line_bytes))
            except Exception:
                if lines.fault is not None:  # SciPy reports errors of the file in its own words
                    raise lines.fault from None
                raise


class _EndedLines(io.RawIOBase):
    """A file whose last line always ends with a newline, and none of whose lines is too long.

    If the last one does not end, SciPy 1.17 reads past the end of its memory.
    """

    def __init__(self, file: Any, line_bytes: int) -> None:
        self.file, self.last, self.line_bytes = file, b"", line_bytes
        self.n_lines = self.n_open = 0  # lines that have ended, and bytes of the one that has not
        self.fault: ValueError | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        text = self.file.read(len(room)) or b"\n" * (self.last != b"\n")
        self.last = text[-1:] or self.last
        self._require_ends(text)
        room[: len(text)] = text
        return len(text)

    def _require_ends(self, text: bytes) -> None:
        """Raise ValueError if a line is too long. Text is not longer than a line may be."""
        ended = text.count(b"\n")
        self.n_open = len(text) - text.rfind(b"\n") - 1 if ended else self.n_open + len(text)
        self.n_lines += ended
        if self.n_open > self.line_bytes:
            self.fault = ValueError(
                f"line {self.n_lines + 1}: has more than {self.line_bytes:,} bytes: a larger "
                "max_memory allows longer lines."
            )
            raise self.fault


class MatrixMarketFormat(Format):
    """Text in coordinate format, only read."""

    noun = "Matrix Market"
    source = MatrixMarketSource
    endings = (".mtx",)
    may_be_gzipped = True
