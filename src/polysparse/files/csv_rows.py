"""Where the rows of CSV text begin: not at every line, because quoted cells may have line ends."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from polysparse.files.text import line_begin

_LINE_END = re.compile(rb"\r\n?|\n")
_REST_OF_CELL = rb'[^"]*+(?:""[^"]*+)*+"'  # from within quotes to the one that closes them
_CLOSE = re.compile(_REST_OF_CELL)


@dataclass(frozen=True)
class Quoting:
    """The quotes of CSV text, as pyarrow reads them.

    A quote opens a cell only at its beginning; anywhere else outside of quotes it is a character.
    """

    delimiter: bytes

    @cached_property
    def _cells(self) -> re.Pattern[bytes]:
        """Matches whole cells and line ends, up to a quote that is not closed."""
        return self._repeated(rb"[^\"]++")

    @cached_property
    def _row(self) -> re.Pattern[bytes]:
        """Matches the rest of a row without its line end, up to a quote that is not closed."""
        return self._repeated(rb"[^\"\r\n]++")

    def _repeated(self, plain: bytes) -> re.Pattern[bytes]:
        before = rb"[^" + re.escape(self.delimiter) + rb"\r\n]"  # a character within a cell
        character, cell = rb'(?<=%b)"' % before, rb'(?<!%b)"' % before + _REST_OF_CELL
        return re.compile(rb"(?:%b|%b|%b)*+" % (plain, character, cell))

    def ends_within_quotes(self, text: bytes, start: int = 0) -> bool:
        """Return whether a quote is open at the end of text; none is at `start`."""
        found = self._cells.match(text, start)
        return found is not None and found.end() < len(text)

    def row_end(self, text: bytes, start: int = 0) -> int | None:
        """Return where the row at `start`, which is outside of quotes, ends, after its line end.

        None if its end is not in the text.
        """
        found = self._row.match(text, start)
        end = None if found is None else _LINE_END.match(text, found.end())
        return None if end is None else end.end()

    def heading_end(self, text: bytes) -> int:
        """Return where the heading ends, which is the first row that is not empty."""
        rest = text.removeprefix(BOM_UTF8).lstrip(b"\r\n")
        end = self.row_end(rest)
        return len(text) if end is None else len(text) - len(rest) + end


@dataclass(frozen=True)
class Lines:
    """What some lines say about rows, whether or not they begin within quotes."""

    first: int  # byte at which the lines begin
    opens: bool  # whether a quote is open at their end, if none is at their beginning
    next_row: int | None  # byte at which the first row begins, if a quote is open before
    stays_open: bool  # whether a quote is open at their end, if one is at their beginning


@dataclass(frozen=True)
class LineRange:
    """The lines that begin in a range of bytes. The first line of all rows begins at `start`."""

    path: Path
    quoting: Quoting
    start: int
    stop: int
    is_first: bool

    def read(self) -> Lines | None:
        """Read the lines; None if there are none."""
        with open(self.path, "rb") as file:
            first = self.start if self.is_first else line_begin(file, self.start)
            if first >= self.stop:
                return None
            end = line_begin(file, self.stop)
            file.seek(first)
            text = file.read(end - first)
        if not text:
            return None
        if b'"' not in text:
            return Lines(first, opens=False, next_row=None, stays_open=True)
        opens, close = self.quoting.ends_within_quotes(text), _CLOSE.match(text)
        if close is None:
            return Lines(first, opens, next_row=None, stays_open=True)
        row = self.quoting.row_end(text, close.end())
        next_row = None if row is None or row == len(text) else first + row
        return Lines(first, opens, next_row, self.quoting.ends_within_quotes(text, close.end()))


def row_starts(found: Iterable[Lines | None]) -> list[int]:
    """Return at most one byte for each range of lines: where its first row begins."""
    starts, is_open = [], False
    for lines in found:
        if lines is None:
            continue
        start = lines.next_row if is_open else lines.first
        if start is not None:
            starts.append(start)
        is_open = lines.stays_open if is_open else lines.opens
    return starts
