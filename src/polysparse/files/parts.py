"""The parts of a store: where each ends, and what its bytes add up to.

The checksum is CRC-32. It is in the standard library, is computed faster than a disk reads, detects
every change within 32 bits, and misses one in four billion of the others. It protects against
accidents, not against attacks: a program that can change the arrays can change the manifest, too.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.files.errors import FileFault
from polysparse.files.npy import checksum_of

ARRAYS = "indptr", "indices", "data", "labels"


@dataclass
class Parts:
    """The parts of a store."""

    # Rows and stored values before the end of each part.
    ends: list[list[int]] = field(default_factory=list)
    # Those of each part's arrays, in the order of ARRAYS; None in a store written by polysparse
    # 0.1.0. The first offset, 0, belongs to no part.
    checksums: list[list[int]] | None = field(default_factory=list)

    @classmethod
    def read(cls, description: dict[str, Any], end: list[int] | None = None) -> Parts:
        """Return the parts that a manifest lists; raise ValueError or KeyError if they are invalid.

        If `end` is given, the last part must end there.
        """
        ends, checksums = description["part_ends"], description.get("checksums")
        _require_integers("part_ends must be pairs of integers", ends, 2)
        for before, after in pairwise([[0, 0], *ends]):
            if before[0] >= after[0] or before[1] > after[1]:
                raise ValueError(f"part_ends must increase, but {after} follows {before}")
        if end is not None and [[0, 0], *ends][-1] != end:
            raise ValueError(f"part_ends must end at {end}")
        if checksums is not None:
            n_arrays = 3 + bool(description["labels"])
            message = f"checksums must be {n_arrays} integers for each part"
            _require_integers(message, checksums, n_arrays)
            if len(checksums) != len(ends):
                raise ValueError(message)
        return cls(ends, checksums)

    def add(self, end: list[int], checksums: list[int]) -> None:
        """Append a part that ends after these rows and stored values."""
        assert self.checksums is not None, "parts are added only to those with checksums"
        self.ends.append(end)
        self.checksums.append(checksums)

    def as_dict(self) -> dict[str, Any]:
        """Return what `read` reads, for JSON."""
        return {"part_ends": self.ends, "checksums": self.checksums}

    @property
    def n_rows(self) -> int:
        """Number of rows in all parts."""
        return self.ends[-1][0] if self.ends else 0

    @property
    def nnz(self) -> int:
        """Number of stored values in all parts."""
        return self.ends[-1][1] if self.ends else 0

    def __iter__(self) -> Iterator[tuple[slice, slice]]:
        """Yield the rows and the stored values of each part."""
        return map(self.span, range(len(self.ends)))

    def span(self, number: int) -> tuple[slice, slice]:
        """Return the rows and the stored values of a part."""
        first_row, first = self.ends[number - 1] if number else (0, 0)
        end_row, end = self.ends[number]
        return slice(first_row, end_row), slice(first, end)

    def require_checksums(self, folder: Path, number: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Raise ValueError if the arrays of a part, which were read into memory, were changed."""
        for name, array in arrays.items():
            self._compare(folder, number, name, zlib.crc32(array.view(np.uint8).data))

    def require_files(self, folder: Path, dtypes: dict[str, np.dtype[Any]]) -> None:
        """Raise ValueError if a file was changed. Each must end with the last part."""
        for name, dtype in dtypes.items():
            is_stored = name in ("indices", "data")
            length = self.nnz if is_stored else self.n_rows
            with open(folder / f"{name}.npy", "rb") as file:
                end = os.fstat(file.fileno()).st_size
                for number, (rows, stored) in enumerate(self):
                    span = stored if is_stored else rows
                    start = end - (length - span.start) * dtype.itemsize
                    found = checksum_of(file, start, (span.stop - span.start) * dtype.itemsize)
                    self._compare(folder, number, name, found)

    def _compare(self, folder: Path, number: int, name: str, found: int) -> None:
        if self.checksums is None:
            return
        wanted = self.checksums[number][ARRAYS.index(name)]
        if found != wanted:
            rows, _ = self.span(number)
            raise FileFault(
                f"{folder / name}.npy is damaged in rows {rows.start} to {rows.stop - 1}: its "
                f"checksum is {found}, but was {wanted} when it was written."
            )


def _require_integers(message: str, table: Any, width: int) -> None:
    """Raise ValueError unless it is a list of lists of this many integers."""
    if not isinstance(table, list) or not all(
        isinstance(row, list) and len(row) == width and all(type(n) is int for n in row)
        for row in table
    ):
        raise ValueError(message)
