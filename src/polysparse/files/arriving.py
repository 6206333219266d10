"""Rows of svmlight and libffm text as they arrive: from files, files that grow, and pipes."""

from __future__ import annotations

import io
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.files.errors import FileFault, faults_of
from polysparse.files.text import (
    SvmlightError,
    TextBlock,
    TextLines,
    open_text,
    parse_lines,
    unpacked,
)
from polysparse.matrix.output import as_csr

POLL = 0.2  # seconds between two looks at a file that may have grown
CAREFUL_BYTES = 2**12  # of text that are parsed at a time after a line was skipped
NEWLINE = ord("\n")


@dataclass(frozen=True)
class TextPlace:
    """A place in a text from which reading goes on.

    Attributes
    ----------
    byte, line : int
        How many bytes and lines come before it; of gzipped text, bytes of what it contains.
    has_qid : bool or None
        Whether rows have a qid; None if no row came before.
    n_skipped : int
        How many of the lines were skipped.
    """

    byte: int = 0
    line: int = 0
    has_qid: bool | None = None
    n_skipped: int = 0

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> TextPlace:
        """Return the place whose attributes are given; raise ValueError if they are damaged."""
        place = cls(**found)
        counts = place.byte, place.line, place.n_skipped
        if not all(type(each) is int and each >= 0 for each in counts):
            raise ValueError(f"{found} is not a place in a text")
        return place


class Ending:
    """Whether to end a stream that goes on. This one does not; others may do so on a signal."""

    is_wanted = False

    def __init__(self) -> None:
        self.before_waiting: Callable[[], None] | None = None  # what is done between two reads

    def waiting(self) -> AbstractContextManager[Any]:
        """Return a context in which nothing is done but to wait, so that it may raise `Ended`."""
        return nullcontext()


class Ended(Exception):
    """A stream is to end while it waits for rows."""


# Which rows of a block are not valid, and why one of them is not.
Check = Callable[[TextBlock], tuple[NDArray[np.bool_], Callable[[int], str]]]


@dataclass(frozen=True)
class ArrivingText:
    """The rows of a text, in the order in which they arrive.

    Attributes
    ----------
    path : Path
        Where the text is; for standard input, its name in messages.
    is_pipe : bool
        Whether rows come when they like, and once.
    follows : bool
        Whether to wait for more lines at the end of a file, until `ending` is wanted.
    skips_bad_lines : bool
        Whether lines that are malformed or not valid are skipped and counted, not refused.
    """

    path: Path
    is_standard_input: bool = False
    is_pipe: bool = False
    has_fields: bool = False
    block_bytes: int = 2**22
    line_bytes: int | None = None
    n_threads: int = 1
    skips_bad_lines: bool = False
    follows: bool = False
    ending: Ending = Ending()  # noqa: RUF009

    def blocks(
        self, place: TextPlace, check: Check, most_rows: Callable[[], int]
    ) -> Iterator[tuple[TextBlock, TextPlace]]:
        """Yield rows with labels that follow a place, each block with the place after it.

        `most_rows()` is how many rows the next block may have. FileFault is raised for a line that
        is malformed, or that `check` refuses, unless such lines are skipped.
        """
        with faults_of(self.path), self._open() as file:
            if place.byte:
                file.seek(place.byte)
            reader = cast(BinaryIO, _Reader(self, file))
            lines = TextLines(reader, self.block_bytes, self.line_bytes)
            lines.n_lines = place.line
            try:
                for text in lines:
                    for block, after in self._rows_of(text, place, check, most_rows):
                        yield block, after
                        place = after
                    lines.n_lines = place.line
            except Ended:
                return

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if not self.is_standard_input:
            with open_text(self.path) as file:
                yield file
            return
        if sys.stdin is None:
            raise FileFault("standard input is closed; give a file in place of -.")
        stream: Any = sys.stdin.buffer
        yield unpacked(stream) if hasattr(stream, "peek") else stream

    @property
    def is_gzipped(self) -> bool:
        """Whether the text of a file is gzipped."""
        with open_text(self.path) as file:
            return not isinstance(file, io.BufferedReader)

    def _rows_of(
        self,
        text: NDArray[np.uint8],
        place: TextPlace,
        check: Check,
        most_rows: Callable[[], int],
    ) -> Iterator[tuple[TextBlock, TextPlace]]:
        """Yield the rows of whole lines, some at a time."""
        at, most_bytes = 0, len(text)
        while at < len(text):
            if place.has_qid is None:
                place = replace(place, has_qid=self._find_qid(text[at:]))
            part = text[at : at + cpu.svmlight_skip(text[at:], most_rows())[0]]
            part = _whole_lines(part, most_bytes)
            try:
                layout = True, bool(place.has_qid), self.has_fields
                block, n_lines = parse_lines(part, layout, self.n_threads, place.line)
                is_bad, why = check(block)
                row = int(np.argmax(is_bad)) if is_bad.any() else None
                if row is not None and not self.skips_bad_lines:
                    raise SvmlightError(why(row), block.line_of(row))
            except SvmlightError as error:
                if not self.skips_bad_lines or error.line is None:
                    raise
                ends = np.flatnonzero(part == NEWLINE)
                number = error.line - place.line - 1  # of the line that is malformed
                if number:  # first those before it
                    most_bytes = int(ends[number - 1]) + 1
                    continue
                block, part, n_lines = _NO_ROWS, part[: int(ends[0]) + 1], 1
                is_bad, most_bytes = np.ones(1, bool), CAREFUL_BYTES // 4
            at += len(part)
            place = replace(
                place,
                byte=place.byte + len(part),
                line=place.line + n_lines,
                n_skipped=place.n_skipped + int(np.count_nonzero(is_bad)),
            )
            yield (without_rows(block, is_bad) if len(block.indptr) > 1 else block), place
            most_bytes = max(4 * most_bytes, CAREFUL_BYTES)

    def _find_qid(self, text: NDArray[np.uint8]) -> bool | None:
        """Return whether the first row has a qid; None if there is no row."""
        layout = cpu.svmlight_layout(text)
        if layout is not None and not layout[0] and not self.skips_bad_lines:
            raise ValueError(
                "has no labels to learn from: they are the first number of a line of svmlight text."
            )
        return None if layout is None else bool(layout[1])


class _Reader:
    """Reads what has arrived, and waits for more if there is nothing."""

    def __init__(self, text: ArrivingText, file: BinaryIO) -> None:
        self.text, self.file = text, cast(io.BufferedIOBase, file)
        is_plain = isinstance(file, io.BufferedReader)
        self._read = self._read_ready if text.is_pipe and is_plain else self._read_all

    def readinto(self, room: memoryview) -> int:
        """Read into a buffer; return 0 at the end."""
        text = self.text
        while True:
            with text.ending.waiting():
                n_read = self._read(room)
                if n_read or not text.follows:
                    return n_read
                self._require_not_cut()
                time.sleep(POLL)

    def _read_all(self, room: memoryview) -> int:
        return self.file.readinto(room)

    def _read_ready(self, room: memoryview) -> int:
        """Wait for bytes of a pipe, and read those that are there."""
        n_read = self.file.readinto1(room)
        while 0 < n_read < len(room) and _is_ready(self.file):
            more = self.file.readinto1(room[n_read:])
            if not more:
                break
            n_read += more
        return n_read

    def _require_not_cut(self) -> None:
        if os.fstat(self.file.fileno()).st_size < self.file.tell():
            raise ValueError("was cut short while it was followed: start again with its new rows.")


def _is_ready(file: io.BufferedIOBase) -> bool:
    if os.name != "posix":
        return False
    return bool(select.select([file], [], [], 0)[0])


def _whole_lines(text: NDArray[np.uint8], most_bytes: int) -> NDArray[np.uint8]:
    """Return the lines that begin within `most_bytes` of a text."""
    if most_bytes >= len(text):
        return text
    start = max(0, most_bytes - 1)
    step = CAREFUL_BYTES
    while start < len(text):
        ends = np.flatnonzero(text[start : start + step] == NEWLINE)
        if len(ends):
            return text[: start + int(ends[0]) + 1]
        start, step = start + step, 2 * step
    return text


def without_rows(block: TextBlock, are_out: NDArray[np.bool_]) -> TextBlock:
    """Return a block without some of its rows."""
    if not are_out.any():
        return block
    rows = np.flatnonzero(~are_out)
    lengths = np.diff(block.indptr)
    is_kept = np.repeat(~are_out, lengths)
    indptr = np.concatenate([[0], np.cumsum(lengths[rows])])
    return replace(
        block,
        indptr=indptr,
        indices=block.indices[is_kept],
        data=block.data[is_kept],
        labels=None if block.labels is None else block.labels[rows],
        qid=None if block.qid is None else block.qid[rows],
        fields=None if block.fields is None else block.fields[is_kept],
        line_of=lambda row: block.line_of(int(rows[row])),
    )


def as_matrix(block: TextBlock, base: int, n_features: int) -> Any:
    """Return the rows of a block as a csr_array whose first column is the index `base`."""
    shape = len(block.indptr) - 1, n_features
    matrix = as_csr(shape, block.indptr, block.indices - base, block.data, is_array=True)
    matrix.has_canonical_format = matrix.has_sorted_indices = False
    return matrix


_NO_ROWS = TextBlock(
    np.zeros(1, np.int64),
    np.empty(0, np.int64),
    np.empty(0),
    np.empty(0),
    None,
    None,
    lambda row: 0,
)
