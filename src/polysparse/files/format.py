"""What a file format is. A new one is a subclass in its own module, and a line in `formats`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.description import fits_description
from polysparse.files.pieces import CutFile
from polysparse.files.sink import Sink
from polysparse.files.source import Source


class Format:
    """A file format: how its files are named, read and written. Each subclass is one format.

    Attributes
    ----------
    noun : str
        What messages call it.
    source : type of Source
        Reads a file.
    endings : tuple of str
        Endings of the files that are read; "" stands for no ending.
    written_endings : tuple of str
        Endings of the files that are written; none if the format is only read.
    may_be_gzipped : bool
        Whether files with .gz after their ending are read, too.
    is_directory : bool
        Whether it is a directory. It is then recognised as such, whatever its ending.
    is_resumable : bool
        Whether an interrupted run can be resumed.
    has_pieces : bool
        Whether `cut` is implemented.
    """

    noun: ClassVar[str]
    source: ClassVar[type[Source]]
    endings: ClassVar[tuple[str, ...]] = ()
    written_endings: ClassVar[tuple[str, ...]] = ()
    may_be_gzipped: ClassVar[bool] = False
    is_directory: ClassVar[bool] = False
    is_resumable: ClassVar[bool] = False
    has_pieces: ClassVar[bool] = False

    def open_sink(self, path: Path, description: dict[str, Any], *, resume: bool) -> Sink:
        """Open a file for writing."""
        raise NotImplementedError

    def least_bytes(self, plan: ExpansionPlan, *, has_labels: bool) -> int:
        """Return a lower bound of the bytes that a file takes, if the plan is exact.

        By default the size cannot be predicted, for example because files are compressed.
        """
        return 0

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
