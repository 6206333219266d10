"""Matrix Market files, read as a whole by SciPy."""

from __future__ import annotations

import gzip
import io
import warnings
from typing import Any

from scipy import sparse

from polysparse.files.source import WholeSource


class MatrixMarketSource(WholeSource):
    """A matrix in coordinate format, plain or gzipped."""

    def read(self) -> tuple[Any, None]:
        """Read the matrix; the format has no labels."""
        from scipy.io import mmread

        with (
            (gzip.open if self.path.suffix == ".gz" else open)(self.place, "rb") as file,
            warnings.catch_warnings(),
        ):
            # SciPy 1.18 warns that mmread will change the family it returns; either is fine here.
            warnings.simplefilter("ignore", DeprecationWarning)
            matrix = mmread(io.BufferedReader(_EndedLines(file), 2**20))
        if not sparse.issparse(matrix):
            raise ValueError("holds a dense array; write it in coordinate format.")
        return matrix, None


class _EndedLines(io.RawIOBase):
    """A file whose last line always ends with a newline.

    If it does not, SciPy 1.17 reads past the end of its memory.
    """

    def __init__(self, file: Any) -> None:
        self.file, self.last = file, b""

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        text = self.file.read(len(room)) or b"\n" * (self.last != b"\n")
        self.last = text[-1:] or self.last
        room[: len(text)] = text
        return len(text)
