"""Parse files in the svmlight (libsvm) and libffm formats, in blocks of rows.

A row is a line: ``[label] [qid:N] index:value index:value ... [# comment]``. Lines with nothing but
blanks and a comment are not rows. The first row determines whether rows have labels and a qid.
Indices are returned as written; the caller decides whether they are 0-based or 1-based. In libffm
text, each pair is field:index:value.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.engine.cpu import SvmlightFault, SvmlightText
from polysparse.files.field_table import FieldTable
from polysparse.matrix.row_profile import RowProfile

BLOCK_BYTES = 2**24
LAYOUT_BYTES = 2**16  # that are read at a time until there is a row

# A message quotes at most this much of a word, and analyses only words up to the second length.
_QUOTED, _EXPLAINED = 40, 4000

_GZIP_MAGIC = b"\x1f\x8b"


class SvmlightError(ValueError):
    """An error in a file: its `reason`, and its `line`, from 1, or None if there is no line."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason, line)
        self.reason = reason
        self.line = line

    def __str__(self) -> str:
        return self.reason if self.line is None else f"line {self.line}: {self.reason}"


@dataclass(frozen=True)
class TextBlock:
    """Consecutive rows of a file. In a row, indices are in the order of the file and may repeat."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    data: NDArray[np.float64]
    labels: NDArray[np.float64] | None
    qid: NDArray[np.int64] | None
    fields: NDArray[np.int64] | None  # beside the indices, in libffm text
    line_of: Callable[[int], int]  # from a row to its line, from 1; valid until the next block


@dataclass(frozen=True)
class TextSummary:
    """What a whole file holds. `min_index` and `max_index` are -1 if nothing is stored."""

    profile: RowProfile
    min_index: int
    max_index: int
    has_labels: bool
    has_qid: bool
    fields: NDArray[np.int64] | None = None  # of each index in libffm text, -1 if it is missing


def open_text(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a text file, plain or gzip, depending on its first bytes."""
    file = open(path, "rb")  # noqa: SIM115
    try:
        return unpacked(file)
    except BaseException:
        file.close()
        raise


def unpacked(file: io.BufferedReader) -> BinaryIO:
    """Return an open file, or what it contains if it is gzipped, depending on its first bytes."""
    is_gzip = file.peek(2)[:2] == _GZIP_MAGIC
    return cast(BinaryIO, _Gunzip(file) if is_gzip else file)


def iter_blocks(
    file: BinaryIO,
    *,
    block_bytes: int = BLOCK_BYTES,
    line_bytes: int | None = None,
    n_threads: int = 1,
    skip_rows: int = 0,
    layout: tuple[bool, bool] | None = None,
    has_fields: bool = False,
) -> Iterator[TextBlock]:
    """Yield the rows in order, in blocks of about `block_bytes` of text and at least one row.

    A line that is longer than both `block_bytes` and `line_bytes` is refused; without `line_bytes`,
    lines may have any length.

    The arrays of a block take at most 8 times the memory of its text. That is reached if rows have
    a label and nothing else; pairs take 16 bytes each, and so at most 4 times their text; with
    fields, 24 bytes. The first `skip_rows` rows are skipped without checking their content.
    `layout` states whether rows have labels and a qid, if the file is a section of another one.
    `has_fields` states that the text is libffm.
    """
    _require_at_least(1, block_bytes=block_bytes, n_threads=n_threads)
    _require_at_least(0, skip_rows=skip_rows)
    lines = TextLines(file, block_bytes, line_bytes)
    return _iter_blocks(lines, n_threads, skip_rows, layout, has_fields)


def summarize(
    file: BinaryIO,
    *,
    block_bytes: int = BLOCK_BYTES,
    line_bytes: int | None = None,
    n_threads: int = 1,
    has_fields: bool = False,
) -> TextSummary:
    """Read a file once, checking every line, and keep only its row lengths and index range.

    Of libffm text (`has_fields`), also keep the field of every index.
    """
    _require_at_least(1, block_bytes=block_bytes, n_threads=n_threads)
    lines = TextLines(file, block_bytes, line_bytes)
    profile, lowest, highest, block = RowProfile(), [], [], None
    table = FieldTable()
    for block in _iter_blocks(lines, n_threads, 0, None, has_fields):
        profile += RowProfile(cpu.count_row_lengths(block.indptr))
        if len(block.indices):
            lowest.append(int(block.indices.min()))
            highest.append(int(block.indices.max()))
        if block.fields is not None:
            learn_fields(table, block, block.fields)
    return TextSummary(
        profile=profile,
        min_index=min(lowest, default=-1),
        max_index=max(highest, default=-1),
        has_labels=block is not None and block.labels is not None,
        has_qid=block is not None and block.qid is not None,
        fields=table.fields if has_fields else None,
    )


def learn_fields(table: FieldTable, block: TextBlock, fields: NDArray[np.int64]) -> None:
    """Add the fields of a block to a table. SvmlightError if an index has two of them."""
    where = table.add(block.indices, fields)
    if where is None:
        return
    row = int(np.searchsorted(block.indptr, where, side="right")) - 1
    index, field = int(block.indices[where]), int(fields[where])
    raise SvmlightError(table.describe_conflict(index, field), block.line_of(row))


def layout_of(file: BinaryIO) -> tuple[bool, bool] | None:
    """Return whether rows have labels and a qid, as in the first row; None if there are no rows."""
    return next(filter(None, map(cpu.svmlight_layout, TextLines(file, LAYOUT_BYTES, None))), None)


def lines_between(file: BinaryIO, start: int, stop: int) -> tuple[int, bytes]:
    """Return the lines that begin in a range of bytes, and where the first of them begins."""
    first, end = (line_begin(file, at) for at in (start, stop))
    file.seek(first)
    return first, file.read(end - first)


def line_begin(file: BinaryIO, at: int) -> int:
    """Return where the first line at or after a byte begins."""
    if at == 0:
        return 0
    file.seek(at - 1)
    file.readline()
    return file.tell()


def _require_at_least(least: int, **arguments: int) -> None:
    for name, value in arguments.items():
        if value < least:
            raise ValueError(f"{name} must be at least {least}; got {value}.")


class TextLines:
    """The text of a file in chunks of whole lines; each is valid until the next is requested."""

    def __init__(self, file: BinaryIO, block_bytes: int, line_bytes: int | None) -> None:
        self.file = cast(io.BufferedIOBase, file)
        self.block_bytes, self.line_bytes = block_bytes, line_bytes
        self.n_lines = 0  # before the current chunk; counted by the parser

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        buffer = bytearray(self.block_bytes + 1)  # one extra byte: the last line may lack a newline
        n_kept = 0  # bytes of a line whose end has not been read yet
        while n_read := self._read_into(memoryview(buffer)[n_kept:-1]):
            stop = n_kept + n_read
            cut = buffer.rfind(b"\n", n_kept, stop) + 1
            n_kept = stop - cut
            if cut:
                yield np.frombuffer(buffer, np.uint8, cut)
                buffer[:n_kept] = buffer[cut:stop]
            if n_kept == len(buffer) - 1:
                buffer = self._longer(buffer)
        if n_kept:
            buffer[n_kept] = ord("\n")
            yield np.frombuffer(buffer, np.uint8, n_kept + 1)

    def _longer(self, full: bytearray) -> bytearray:
        """Return a longer buffer that starts with the same bytes; raise if the line is too long."""
        n_kept, most = len(full) - 1, self.line_bytes
        if most is not None and n_kept > most:
            reason = f"has more than {most:,} bytes: a larger max_memory allows longer lines."
            raise SvmlightError(reason, self.n_lines + 1)
        size = 2 * n_kept  # doubling makes long lines cost linear time
        if most is not None:
            size = min(size, max(most, n_kept) + 1)
        buffer = bytearray(size + 1)
        buffer[:n_kept] = memoryview(full)[:n_kept]
        return buffer

    def _read_into(self, room: memoryview) -> int:
        n_read = cast("int | None", self.file.readinto(room))
        if n_read is None:
            raise BlockingIOError("the svmlight file is in non-blocking mode, and has no data yet.")
        return n_read


def _iter_blocks(
    lines: TextLines,
    n_threads: int,
    skip_rows: int,
    layout: tuple[bool, bool] | None,
    has_fields: bool,
) -> Iterator[TextBlock]:
    n_rows = 0  # passed so far
    for text in lines:
        layout = layout or cpu.svmlight_layout(text)
        if n_rows < skip_rows:
            begin, *passed = cpu.svmlight_skip(text, skip_rows - n_rows)
            n_rows, text = n_rows + passed[1], text[begin:]
            lines.n_lines += passed[0]
        counted = SvmlightText(text, *(layout or (False, False)), n_threads, has_fields)
        if layout and counted.n_rows:
            yield _parse(text, counted, (*layout, has_fields), lines.n_lines)
        lines.n_lines += counted.n_lines
        n_rows += counted.n_rows


def parse_lines(
    text: NDArray[np.uint8], layout: tuple[bool, bool, bool], n_threads: int, n_lines: int
) -> tuple[TextBlock, int]:
    """Parse whole lines, before which the file has `n_lines`; also return how many they are.

    `layout` states whether rows have labels, a qid and fields.
    """
    has_labels, has_qid, has_fields = layout
    counted = SvmlightText(text, has_labels, has_qid, n_threads, has_fields)
    return _parse(text, counted, layout, n_lines), counted.n_lines


def _parse(
    text: NDArray[np.uint8], counted: SvmlightText, layout: tuple[bool, bool, bool], n_lines: int
) -> TextBlock:
    """Parse the rows of a chunk that `n_lines` lines of the file precede."""
    has_labels, has_qid, has_fields = layout
    indptr = np.empty(counted.n_rows + 1, np.int64)
    indices = np.empty(counted.n_stored, np.int64)
    data = np.empty(counted.n_stored, np.float64)
    labels = np.empty(counted.n_rows * has_labels, np.float64)
    qid = np.empty(counted.n_rows * has_qid, np.int64)
    fields = np.empty(counted.n_stored, np.int64) if has_fields else None
    fault, line, begin, end = counted.fill(indptr, indices, data, labels, qid, fields)
    if fault != SvmlightFault.none:
        word = text[begin : min(end, begin + _EXPLAINED)].tobytes()
        words = _LIBFFM if has_fields else _SVMLIGHT
        raise SvmlightError(_explain(fault, word, end - begin, words), n_lines + line + 1)
    return TextBlock(
        indptr,
        indices,
        data,
        labels if has_labels else None,
        qid if has_qid else None,
        fields,
        lambda row: n_lines + cpu.svmlight_skip(text, row + 1)[1],
    )


@dataclass(frozen=True)
class _Wording:
    """What messages call the parts of a format."""

    file: str
    parts: tuple[str, ...]  # of a stored value, with colons between them
    noun: str  # what these parts are together

    @property
    def stored(self) -> str:
        return ":".join(self.parts)

    def split(self, word: bytes) -> list[bytes]:
        """Return the parts of a word; the last one may hold further colons."""
        return word.split(b":", len(self.parts) - 1)


_SVMLIGHT = _Wording("an svmlight", ("index", "value"), "a pair")
_LIBFFM = _Wording("a libffm", ("field", "index", "value"), "a triple")


def _explain(fault: SvmlightFault, word: bytes, n_bytes: int, words: _Wording) -> str:
    """Return why a word is not what was expected; `word` holds the first of its n_bytes bytes."""
    odd = next((byte for byte in word if byte < 0x20 or byte == 0x7F), None)
    if odd == 0x0D:
        return f"{_quote(word)} holds a carriage return (byte 0x0d) that no newline follows."
    if odd is not None:
        return f"{_quote(word)} holds the byte {odd:#04x}: this is not {words.file} text file."
    if len(word) < n_bytes:
        return f"{_quote(word)}, of {n_bytes} bytes, is neither a number nor {words.stored}."
    return _EXPLAIN[fault](word, words)


def _explain_label(word: bytes, words: _Wording) -> str:
    if b"," in word:
        return f"{_quote(word)} are several labels: only one for each row can be read."
    return f"label {_quote(word)} {_not_a_number(word)}"


def _explain_integer(word: bytes, words: _Wording, what: str) -> str:
    """Return why the index or the field of a stored value cannot be read."""
    parts = words.split(word)
    if len(parts) > 1 and parts[0] == b"qid":
        return (
            f"{_quote(word)} is out of place: a qid comes once, before all {words.stored} "
            f"{words.noun.split()[-1]}s."
        )
    if len(parts) < len(words.parts):
        return f"{_quote(word)} is not {words.noun} {words.stored}."
    place = words.parts.index(what)
    if not parts[place]:
        return f"{_quote(word)} has no {what} before its {'second ' * place}colon."
    return f"{what} {_quote(parts[place], marks='')} {_not_an_integer(parts[place], what)}"


def _explain_value(word: bytes, words: _Wording) -> str:
    value = words.split(word)[-1]
    if not value:
        return f"{_quote(word)} has no value after its {'second ' * (words is _LIBFFM)}colon."
    return f"value {_quote(value)} of {_quote(word)} {_not_a_number(value)}"


def _explain_qid(word: bytes, words: _Wording) -> str:
    qid = word.partition(b":")[2]
    return f"qid {_quote(qid)} {_not_an_integer(qid, 'qid')}"


def _not_a_number(word: bytes) -> str:
    try:
        too_large = b"_" not in word and abs(float(word)) == float("inf")
    except ValueError:
        too_large = False
    return "is too large for a float64." if too_large else "is not a number."


def _not_an_integer(word: bytes, what: str) -> str:
    if not word.removeprefix(b"-").isdigit():
        return "is not an integer."
    if what == "index" and word.startswith(b"-"):
        return "is negative: indices are 0-based or 1-based."
    if what == "field" and word.startswith(b"-"):
        return "is negative: fields are 0-based."
    return "is too large for an int64."


def _quote(word: bytes, marks: str = "'") -> str:
    text = word[:_QUOTED].decode("ascii", "backslashreplace")
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return f"{marks}{text}{'...' if len(word) > _QUOTED else ''}{marks}"


_EXPLAIN: dict[SvmlightFault, Callable[[bytes, _Wording], str]] = {
    SvmlightFault.label: _explain_label,
    SvmlightFault.label_missing: lambda word, _: (
        f"begins with {_quote(word)} and so has no label, but the first row has one."
    ),
    SvmlightFault.label_unexpected: lambda word, words: (
        f"begins with {_quote(word)}, which is not {words.stored}; the first row has no label."
    ),
    SvmlightFault.qid: _explain_qid,
    SvmlightFault.qid_missing: lambda *_: "has no qid, but the first row has one.",
    SvmlightFault.qid_unexpected: lambda word, _: (
        f"has {_quote(word)}, but the first row has no qid."
    ),
    SvmlightFault.field: partial(_explain_integer, what="field"),
    SvmlightFault.index: partial(_explain_integer, what="index"),
    SvmlightFault.value: _explain_value,
}


class _Gunzip(gzip.GzipFile):
    """A gzip file with errors in plain words; closing it also closes the underlying file."""

    def __init__(self, file: io.BufferedReader) -> None:
        super().__init__(fileobj=file, mode="rb")
        self._underneath = file

    def read(self, size: int | None = -1) -> bytes:
        """Read bytes; raise SvmlightError if the gzip stream is damaged."""
        return cast(bytes, _in_plain_words(super().read, size))

    def readinto(self, room: Any) -> int:
        """Read into a buffer; raise SvmlightError if the gzip stream is damaged."""
        return cast(int, _in_plain_words(super().readinto, room))

    def close(self) -> None:
        """Close this file and the underlying one."""
        super().close()
        self._underneath.close()


def _in_plain_words(read: Callable[[Any], Any], argument: Any) -> Any:
    try:
        return read(argument)
    except EOFError:
        reason = "ends in the middle of its gzip stream: it was cut short."
        raise SvmlightError(reason) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise SvmlightError(f"is a corrupted gzip file: {error}.") from None
