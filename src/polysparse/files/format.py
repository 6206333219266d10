"""What a file format is. A new one is a subclass in its own module, and a line in `opening`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.description import fits_description
from polysparse.files.pieces import CutFile
from polysparse.files.sink import Sink
from polysparse.files.source import Source


class Format:
    """A file format: how its files are named, read and written. Each subclass is one format."""

    noun: ClassVar[str]  # what messages call it
    source: ClassVar[type[Source]]  # reads a file
    sink: ClassVar[type[Sink]]  # writes a file, if there are written_endings
    endings: ClassVar[tuple[str, ...]] = ()  # of files that are read; "" stands for no ending
    written_endings: ClassVar[tuple[str, ...]] = ()
    may_be_gzipped: ClassVar[bool] = False  # whether .gz may follow the ending of an input
    is_directory: ClassVar[bool] = False  # an input is then recognized as such, by any name
    is_resumable: ClassVar[bool] = False  # whether an interrupted run can be resumed
    has_pieces: ClassVar[bool] = False  # whether `cut` is implemented
    has_description: ClassVar[bool] = False  # whether `read_description` is implemented

    def source_of(self, path: Path) -> type[Source]:
        """Return what reads a file on disk; a format may look at the file to choose."""
        return self.source

    def least_bytes(self, plan: ExpansionPlan, *, has_labels: bool) -> int:
        """Return a lower bound of the bytes that a file takes, if the plan is exact.

        By default a file holds the arrays as they are in memory.
        """
        return plan.nbytes + 8 * plan.n_rows * has_labels

    def read_description(self, path: Path) -> Any:
        """Return the description that polysparse stored in a file, or None if there is none."""
        return None

    def is_written(self, path: Path, description: dict[str, Any]) -> bool:
        """Return whether a file is complete and has this description."""
        return fits_description(self.read_description(path), description)

    def cut(self, path: Path, block_bytes: int) -> CutFile:
        """Cut a file into pieces of about `block_bytes`, reading little more than its head."""
        raise NotImplementedError

    def describe(self, endings: tuple[str, ...], *, is_read: bool) -> str:
        """Return the noun and endings, for messages."""
        if self.is_directory:
            return self.noun
        named = [ending for ending in endings if ending]
        text = ", ".join(named) + " or no ending" * ("" in endings)
        return f"{self.noun} ({text}{'; also with .gz' * (is_read and self.may_be_gzipped)})"
