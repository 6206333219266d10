"""The option --exposure: the column of a table with what the counts of rows refer to."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.cli.options import Misuse
from polysparse.files.errors import FileFault
from polysparse.files.source import Source

BLOCK_BYTES = 2**22


def add_exposure(parser: argparse.ArgumentParser, more: str) -> None:
    """Add the option."""
    parser.add_argument(
        "--exposure",
        metavar="NAME",
        help="column of a table with the exposure of each row, such as years or views: a positive "
        f"number that multiplies the predicted mean{more}",
    )


def offsets_of(options: argparse.Namespace, source: Source) -> Offsets | None:
    """Return the logarithms of the exposures of a file; None without --exposure."""
    if options.exposure is None:
        return None
    if not source.is_table:
        raise Misuse(
            f"--exposure names a column of a table, and {source.path} is not one: sparse files "
            "hold features and labels alone. Fit in Python with offset=np.log(exposure), or give a "
            "CSV, Parquet or Arrow table."
        )
    return Offsets(source, options.exposure)


class Offsets:
    """The offsets of rows, which are taken from the first to the last."""

    def __init__(self, source: Source, name: str) -> None:
        self.path, self.name = source.path, name
        table: Any = source
        self._blocks: Iterator[NDArray[np.float64]] = table.numbers(name, BLOCK_BYTES)
        self._left = np.empty(0)

    def take(self, n_rows: int) -> NDArray[np.float64]:
        """Return the offsets of the next rows; raise FileFault if an exposure is not valid."""
        parts, n_found = [self._left], len(self._left)
        while n_found < n_rows:
            block = next(self._blocks, None)
            if block is None:
                raise FileFault(f"{self.path} changed while it was read.")
            parts.append(block)
            n_found += len(block)
        found = np.concatenate(parts)
        self._left, found = found[n_rows:], found[:n_rows]
        is_valid = (found > 0) & np.isfinite(found)
        if not is_valid.all():
            raise FileFault(
                f"{self.path}: column {self.name!r} has the value {found[~is_valid][0]:g}; an "
                "exposure must be finite and above 0."
            )
        offsets: NDArray[np.float64] = np.log(found)
        return offsets
