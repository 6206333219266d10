"""The registry of file formats, and the choice of one by the name of a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from polysparse.files.errors import UnknownExtension
from polysparse.files.format import Format
from polysparse.files.matrix_market import MatrixMarketFormat
from polysparse.files.npz import NpzFormat
from polysparse.files.parquet import ParquetFormat
from polysparse.files.paths import version_of
from polysparse.files.store_format import StoreFormat
from polysparse.files.svmlight import SvmlightFormat

FORMATS: tuple[Format, ...] = (
    SvmlightFormat(),
    NpzFormat(),
    MatrixMarketFormat(),
    ParquetFormat(),
    StoreFormat(),
)


def format_to_read(path: str) -> Format:
    """Return the format of an input, by its ending; '-' is svmlight on standard input."""
    is_directory = version_of(Path(path)).is_dir()
    plain, unpacked = Path(path).suffix, Path(path.removesuffix(".gz")).suffix
    for format in FORMATS:
        ending = unpacked if format.may_be_gzipped else plain
        if format.is_directory if is_directory else ending in format.endings:
            return format
    raise UnknownExtension(f"{path}: unknown ending. Known are {readable_formats()}.")


def format_to_write(path: Path) -> Format:
    """Return the format of an output, by its ending."""
    for format in FORMATS:
        if path.suffix in format.written_endings:
            return format
    raise UnknownExtension(f"{path}: unknown ending. Known are {writable_formats()}.")


def readable_formats() -> str:
    """Return the formats that are read, for messages."""
    return enumerate_words(each.describe(each.endings, is_read=True) for each in FORMATS)


def writable_formats() -> str:
    """Return the formats that are written, for messages."""
    return _written(each for each in FORMATS if each.written_endings)


def resumable_formats() -> str:
    """Return the formats to which an interrupted run can be resumed, for messages."""
    return _written(each for each in FORMATS if each.is_resumable)


def _written(formats: Iterable[Format]) -> str:
    return enumerate_words(each.describe(each.written_endings, is_read=False) for each in formats)


def enumerate_words(words: Iterable[str]) -> str:
    """Return words as "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
