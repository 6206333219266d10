"""Tables in CSV files, plain or gzipped, with pyarrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from typing import Any

from polysparse.extras import how_to_install
from polysparse.files.csv_rows import LineRange, Quoting, row_starts
from polysparse.files.table_source import NO_ROWS, Run, TableSource
from polysparse.tables.reading import TextTable, arrow_kind

# Bytes at the beginning of a file from which types of columns are inferred. It is a constant, so
# that they do not depend on the memory limit.
INFERRED_BYTES = 2**20

# Bytes of arrays that a byte of text takes: "0," becomes a number in Arrow, an index and a value.
TEXT_FACTOR = 4
LEAST_BLOCK = 2**16
HEADING_BYTES = 2**16  # in which a delimiter is looked for

# What pandas.read_csv takes for missing.
MISSING = (
    "",
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
# What files that are not text begin with, and what to do.
NOT_TEXT = {
    b"\x1f\x8b": 'is gzipped: its name must end in ".gz".',
    b"PK\x03\x04": "is a zip archive or a spreadsheet: save it as CSV.",
    b"\xff\xfe": "is UTF-16 text: convert it to UTF-8, for example with iconv.",
    b"\xfe\xff": "is UTF-16 text: convert it to UTF-8, for example with iconv.",
}

_CONVERSION = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (.+?): (.*)", re.DOTALL
)
_ROW = re.compile(r"Row #(\d+)")
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)(.*)", re.DOTALL)


def pyarrow_csv() -> Any:
    try:
        from pyarrow import csv
    except ImportError:
        raise ImportError(f"CSV files need pyarrow: {how_to_install('cli')}") from None
    return csv


class CsvSource(TableSource):
    """A table in CSV text, whose first row has the names of columns."""

    table_of = TextTable

    @property
    def first_row(self) -> int:
        return 1 if self.n_before is None else self.n_before + 2

    @property
    def row_note(self) -> str:
        if self.n_before is None:
            return f" after byte {self.part[0]:,}"
        return " (the heading is row 1)"

    @cached_property
    def delimiter(self) -> str:
        """What separates columns: a comma or, if the heading has none, a semicolon or a tab."""
        if self.path.name.removesuffix(".gz").endswith(".tsv"):
            return "\t"
        heading = self._read_beginning().partition(b"\n")[0]
        found = [each for each in (",", ";", "\t") if each.encode() in heading]
        return found[0] if found else ","

    @property
    def hint_on_names(self) -> str:
        if len(self.names) == 1:
            return " Columns are separated by commas, semicolons or tabs."
        if any(name[:1].isdigit() for name in self.names):
            return " The first row must have the names of columns."
        return ""

    def _read_beginning(self) -> bytes:
        """Return the first bytes of the text."""
        with self._open_bytes() as stream:
            return bytes(stream.read(HEADING_BYTES))

    @cached_property
    def _inferred(self) -> Any:
        """The schema that pyarrow infers from the beginning of the file."""
        beginning = self._read_beginning()
        for bytes_, why in NOT_TEXT.items():
            if beginning.startswith(bytes_):
                raise ValueError(why)
        with self._open(INFERRED_BYTES, {}) as reader:
            return reader.schema

    @cached_property
    def names(self) -> list[str]:
        try:
            return list(self._inferred.names)
        except UnicodeDecodeError:
            raise ValueError("the names of its columns are not UTF-8 text; convert it.") from None

    def types(self, wanted: dict[str, bool | None]) -> dict[str, Any]:
        import pyarrow as pa

        kinds = {True: pa.dictionary(pa.int32(), pa.string()), False: pa.float64(), None: None}
        found = {name: kinds[is_categorical] for name, is_categorical in wanted.items()}
        for name, kind in found.items():
            if kind is None:
                given = self.given_types.get(name)
                inferred = self._inferred.field(self.names.index(name)).type
                found[name] = _as_read(inferred if given is None else given)
        empty = [name for name, kind in found.items() if pa.types.is_null(kind)]
        return found | (self._types_of_late(empty) if empty else {})

    def _types_of_late(self, names: list[str]) -> dict[str, Any]:
        """Return the types of columns whose first values are missing, by their first values."""
        import pyarrow as pa

        found: dict[str, Any] = {}
        for batch in self.batches(dict.fromkeys(names, pa.string()), INFERRED_BYTES * TEXT_FACTOR):
            for name in names:
                values = batch.column(name).drop_null()
                if name not in found and len(values):
                    found[name] = _type_of_texts(values)
            if len(found) == len(names):
                break
        return dict.fromkeys(names, pa.null()) | found

    def batches(self, types: dict[str, Any], block_bytes: int) -> Iterator[Any]:
        import pyarrow as pa

        text = pa.dictionary(pa.int32(), pa.string())
        types = {name: text if pa.types.is_null(kind) else kind for name, kind in types.items()}
        last, n_rows, cell = self.names[-1], 0, None
        with self._open(
            max(block_bytes // TEXT_FACTOR, LEAST_BLOCK), {last: pa.binary()} | types
        ) as reader:
            for batch in reader:
                n_rows += batch.num_rows
                if batch.num_rows:
                    cell = batch.column(last)[-1].as_py()
                yield batch.select(list(types))
        if isinstance(cell, str | bytes):
            self._require_closed(cell if isinstance(cell, bytes) else cell.encode(), n_rows)

    def _require_closed(self, cell: bytes, n_rows: int) -> None:
        """Raise ValueError if the last cell of the text has all lines after a quote.

        pyarrow notices a quote that is not closed only if cells are missing, or a block is full.
        """
        if b"\n" not in cell and b"\r" not in cell:
            return
        end = self.delimiter.encode() + b'"' + cell.replace(b'"', b'""')
        with self._open_bytes() as text:
            if text.seekable():
                text.seek(max(0, text.size() - len(end)))
            found = b""
            while more := text.read(max(len(end), LEAST_BLOCK)):
                found = (found + more)[-len(end) :]
        if found == end:
            raise ValueError(
                f"column {self.names[-1]!r}, row {self.first_row + n_rows - 1}{self.row_note}: the "
                "quote is not closed, so that the cell has all lines after it. Close it; a quote "
                'within quotes must be doubled, "".'
            )

    @contextmanager
    def _open(self, block_bytes: int, types: dict[str, Any]) -> Iterator[Any]:
        """Open a reader of columns with given types; all columns, if there are none."""
        csv = pyarrow_csv()
        heading = None if self.part is None else self.names
        with self._open_bytes() as text, self._explained(block_bytes):
            reader = csv.open_csv(
                text,
                # With threads, pyarrow does not know the numbers of rows that it refuses.
                csv.ReadOptions(use_threads=False, block_size=block_bytes, column_names=heading),
                csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                csv.ConvertOptions(
                    include_columns=list(types),
                    column_types=types,
                    null_values=MISSING,
                    strings_can_be_null=True,
                ),
            )
            with reader:
                yield reader

    @contextmanager
    def _open_bytes(self) -> Iterator[Any]:
        """Open the text; that of a part has no heading."""
        pyarrow_csv()
        import pyarrow as pa

        if self.part is not None:
            start, stop = self.part
            with open(self.place, "rb") as file:
                file.seek(start)
                yield pa.BufferReader(file.read(stop - start))
            return
        with pa.OSFile(str(self.place)) as plain:
            is_packed = self.path.suffix == ".gz"
            yield pa.CompressedInputStream(plain, "gzip") if is_packed else plain

    def parts(self, block_bytes: int, run: Run) -> list[tuple[Any, int | None]]:
        """Cut the text where rows begin; a gzipped file, and a small one, is a single part."""
        size = self.place.stat().st_size
        if self.path.suffix == ".gz" or size <= block_bytes:
            return super().parts(block_bytes, run)
        quoting = Quoting(self.delimiter.encode())
        with open(self.place, "rb") as file:
            first = quoting.heading_end(file.read(INFERRED_BYTES))
        ranges = [
            LineRange(self.place, quoting, start, min(start + block_bytes, size), start == first)
            for start in range(first, size, block_bytes)
        ]
        starts = row_starts(run(LineRange.read, ranges))
        parts = list(pairwise([*starts, size]))
        longest = max((stop - start for start, stop in parts), default=0)
        if longest > block_bytes + self.reading.line_bytes:
            raise ValueError(
                f"a row is longer than {self.reading.line_bytes:,} bytes, or a quote is not "
                "closed: correct the row."
            )
        return [(part, None) for part in parts] or super().parts(block_bytes, run)

    @contextmanager
    def _explained(self, block_bytes: int) -> Iterator[None]:
        """Explain what pyarrow says about a row, and name the column."""
        import pyarrow as pa

        try:
            yield
        except pa.ArrowInvalid as error:
            text = _ROW.sub(self._number_row, str(error), count=1)
            match = _CONVERSION.search(text)
            if match is not None:
                raise ValueError(self._explain(match)) from None
            if "straddl" in text:
                raise ValueError(
                    f"a row is longer than {block_bytes:,} bytes, or a quote is not closed: give "
                    "more max_memory, or correct the row."
                ) from None
            if "Empty CSV" in text:
                if self._read_beginning().strip():
                    raise ValueError(NO_ROWS) from None
                raise ValueError(
                    "is empty: its first row must have the names of columns."
                ) from None
            if ragged := _RAGGED.search(text):
                row, expected, n_cells, cells = ragged.groups()
                raise ValueError(
                    f"row {row}{self.row_note} has {n_cells} cells, but {expected} are expected"
                    f"{cells[:150]}. Correct the row; a cell with {self.delimiter!r} needs quotes."
                ) from None
            text = text.removeprefix("CSV parse error: ").replace("Row #", "row ")
            raise ValueError(f"{text[:200]}{self.row_note}") from None

    def _number_row(self, match: re.Match[str]) -> str:
        """Return the number of a row in the file; pyarrow numbers those of a part from 1."""
        return f"Row #{int(match[1]) + self.first_row - (2 if self.part is None else 1)}"

    def _explain(self, match: re.Match[str]) -> str:
        number, row, kind, reason = match.groups()
        name = self.names[int(number)]  # of all columns, including those that are left out
        where = f"column {name!r}" + (f", row {row}{self.row_note}" if row else "")
        if "UTF8" in reason:
            return (
                f"{where}: the text is not UTF-8; convert it, for example from Latin-1 with iconv."
            )
        value = reason.removeprefix("invalid value ")
        noun = "number" if kind == "double" else "boolean" if kind == "bool" else kind
        if name == self.how.target:
            return f"{where}: {value} is not a {noun}, but the target has been one so far."
        if self.how.encoding is not None:
            return f"{where}: {value} is not a {noun}, but the training data had one: correct it."
        return (
            f"{where}: {value} is not a {noun}: correct it, or read the column as text with "
            f'categorical="{name}".'
        )


def _as_read(kind: Any) -> Any:
    """Return the type to read a column with, which was inferred or is that of another file."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return pa.float64()
    if types.is_binary(kind) or arrow_kind(kind) in ("category", "text"):
        return pa.dictionary(pa.int32(), pa.string())
    return kind


def _type_of_texts(values: Any) -> Any:
    """Return the type that texts look like."""
    import pyarrow as pa

    try:
        values.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.dictionary(pa.int32(), pa.string())
    return pa.float64()
