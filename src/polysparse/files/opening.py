"""The registry of file formats, and opening a file in the format that its name stands for."""

from __future__ import annotations

import os
import stat
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.files.description import columns_in, parse_json
from polysparse.files.errors import FileFault, UnknownExtension, faults_of
from polysparse.files.format import Format
from polysparse.files.libffm import LibffmFormat
from polysparse.files.matrix_market import MatrixMarketFormat
from polysparse.files.npz import NpzFormat
from polysparse.files.parquet import ParquetFormat
from polysparse.files.paths import MANIFEST, PROGRESS, require_on_disk, version_of, written_asides
from polysparse.files.pieces import CutFile
from polysparse.files.source import Reading, Source
from polysparse.files.store_source import StoreFormat
from polysparse.files.svmlight import SvmlightFormat
from polysparse.files.tables import ArrowFormat, CsvFormat
from polysparse.machine import threads_for

ENOUGH_FOR_ALL = 2**60  # a number of outputs for which every allowed thread is used

FORMATS: tuple[Format, ...] = (
    SvmlightFormat(),
    LibffmFormat(),
    NpzFormat(),
    MatrixMarketFormat(),
    ParquetFormat(),
    StoreFormat(),
    CsvFormat(),
    ArrowFormat(),
)


def format_to_read(path: str) -> Format:
    """Return the format of an input, by its ending; '-' is svmlight on standard input."""
    is_directory = version_of(Path(path)).is_dir()
    plain, unpacked = Path(path).suffix, Path(path.removesuffix(".gz")).suffix
    for format in FORMATS:
        ending = unpacked if format.may_be_gzipped else plain
        if format.is_directory if is_directory else ending in format.endings:
            return format
    raise UnknownExtension(
        f"{path}: unknown ending. Known are {readable_formats()}. Rename the file; a table in text "
        "must end in .csv."
    )


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


def open_source(path: str, *, n_jobs: int | None = None, **reading: Any) -> Source:
    """Open an input; '-' is svmlight on standard input. Other arguments are those of `Reading`."""
    how = Reading(**reading, n_threads=threads_for(n_jobs, ENOUGH_FOR_ALL))
    format = format_to_read(path)
    kind = format.source
    if path == "-":
        source = kind(Path("standard input"), how)
        if sys.stdin is None:
            raise FileFault("standard input is closed; give a file in place of -.")
        source.spool(sys.stdin.buffer)
        return source
    found = _require_exists(path)
    mode = found.stat().st_mode
    if stat.S_ISREG(mode):
        kind = format.source_of(found)
    source = kind(Path(path), how)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # for example a pipe
        with open(path, "rb") as stream:
            source.spool(stream)
    return source


def _require_exists(path: str) -> Path:
    """Return where a file is; raise FileNotFoundError if it is not there."""
    found = version_of(Path(path))
    if not found.exists():
        raise FileNotFoundError(f"{path}: no such file or directory.")
    return found


def is_table(path: str) -> bool:
    """Return whether an input is a table, whose columns are variables."""
    if path == "-":
        return False
    format, found = format_to_read(path), _require_exists(path)
    return (format.source_of(found) if found.is_file() else format.source).is_table


def open_on_disk(path: str | os.PathLike[str], **reading: Any) -> Source:
    """Open a file that other processes can open under the same path."""
    where = Path(path).absolute()
    require_on_disk(_require_exists(str(where)))
    return open_source(str(where), **reading)


def cut_file(path: str | os.PathLike[str], block_bytes: int) -> CutFile:
    """Cut a file into pieces of about `block_bytes`, reading little more than its head."""
    where = Path(path).absolute()
    format = format_to_read(str(where))
    require_on_disk(_require_exists(str(where)))
    if not format.has_pieces:
        can = [each for each in FORMATS if each.has_pieces or each.source.is_table]
        nouns = enumerate_words(each.noun for each in can)
        raise ValueError(
            f"{path} can only be read as a whole. These can be read in pieces: {nouns}."
        )
    return format.cut(where, block_bytes)


def is_written(path: Path, description: dict[str, Any]) -> bool:
    """Return whether a path already holds what a run with this description would write."""
    try:
        return format_to_write(path).is_written(path, description)
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def unfinished(path: Path) -> Path | None:
    """Return what an unfinished run to a path has left for another one to resume, or None."""
    return next((aside for aside in written_asides(path) if _has_complete_parts(aside)), None)


def _has_complete_parts(aside: Path) -> bool:
    """Return whether there is something that should not be lost; a damaged list counts as that."""
    progress = aside / PROGRESS
    if not progress.exists() or (aside / MANIFEST).exists():
        return aside.is_dir() and any(aside.iterdir())
    try:
        return bool(parse_json(progress.read_bytes())["part_ends"])
    except (ValueError, KeyError, TypeError):
        return True


def read_description(path: str) -> dict[str, Any]:
    """Return the description that polysparse stored in an output."""
    where, own_format = _require_exists(path), format_to_read(path)
    require_on_disk(where)
    with faults_of(Path(path)):
        description = own_format.read_description(where)
        if description is None:
            described = _written(each for each in FORMATS if each.has_description)
            raise ValueError(
                "has no description of its columns. These have one, if polysparse wrote them: "
                f"{described}."
            )
        columns_in(description)
        MonomialBasis(**description["basis"])
        return dict(description)
