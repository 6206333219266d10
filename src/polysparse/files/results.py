"""Tables of results in files: .csv, .parquet, or .arrow and .feather."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from polysparse.files.atomic import replacing
from polysparse.files.errors import UnknownExtension
from polysparse.files.opening import enumerate_words
from polysparse.files.parquet_source import pyarrow_parquet

Columns = dict[str, list[Any]]  # None is a missing value


def write_result(columns: Columns, path: Path) -> None:
    """Write a table, in the format of its ending."""
    write = _writer(path)
    with replacing(path) as file:
        write(columns, file)


def require_known_ending(path: Path) -> None:
    """Raise UnknownExtension or ImportError if a table cannot be written to a path."""
    if _writer(path) is not _write_csv:
        pyarrow_parquet()


def _writer(path: Path) -> Callable[[Columns, IO[bytes]], None]:
    if path.suffix not in WRITERS:
        raise UnknownExtension(f"{path}: unknown ending. Known are {enumerate_words(WRITERS)}.")
    return WRITERS[path.suffix]


def _write_csv(columns: Columns, file: IO[bytes]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    file.write(text.getvalue().encode())


def _write_parquet(columns: Columns, file: IO[bytes]) -> None:
    import pyarrow as pa

    pyarrow_parquet().write_table(pa.table(columns), file)


def _write_arrow(columns: Columns, file: IO[bytes]) -> None:
    import pyarrow as pa

    table = pa.table(columns)
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[Columns, IO[bytes]], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
}
