"""Choice of the format of a path by its ending."""

from __future__ import annotations

import os
import stat
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polysparse.files.description import fits_description, parse_json
from polysparse.files.matrix_market import MatrixMarketSource
from polysparse.files.npz import NpzSink, NpzSource
from polysparse.files.parquet import ParquetSink, ParquetSource
from polysparse.files.paths import DIRECTORY, NPZ, PARQUET, SVMLIGHT, UnknownExtension, kind_of
from polysparse.files.sink import Sink
from polysparse.files.source import FileFault, Source
from polysparse.files.store import open_arrays
from polysparse.files.store_writer import StoreWriter
from polysparse.files.svmlight import SvmlightSink, SvmlightSource
from polysparse.machine import threads_for

ENOUGH_FOR_ALL = 2**60  # a number of outputs for which every allowed thread is used


def open_source(
    path: str,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    n_jobs: int | None = None,
    least_features: int = 0,
) -> Source:
    """Open a source in the format given by the ending of a path; '-' is svmlight on standard input.

    A file that does not store its number of features is taken to have `least_features`, or more if
    more occur.
    """
    kind, n_threads = _source_for(path), threads_for(n_jobs, ENOUGH_FOR_ALL)
    options = n_features, zero_based, n_threads, least_features
    if path == "-":
        source = kind(Path("standard input"), *options)
        if sys.stdin is None:
            raise FileFault("standard input is closed; give a file in place of -.")
        source.spool(sys.stdin.buffer)
        return source
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: there is no such file.")
    source = kind(Path(path), *options)
    if not stat.S_ISREG(os.stat(path).st_mode):  # for example a pipe
        with open(path, "rb") as stream:
            source.spool(stream)
    return source


def _source_for(path: str) -> type[Source]:
    name = path.removesuffix(".gz")
    if path.endswith(".npz") or name.endswith(".mtx"):
        return NpzSource if path.endswith(".npz") else MatrixMarketSource
    if path.endswith(".parquet"):
        return ParquetSource
    if name.endswith((".svmlight", ".svm", ".libsvm", ".txt")) or "." not in Path(name).name:
        return SvmlightSource
    raise UnknownExtension(
        f"{path}: unknown ending. Known are .svmlight, .libsvm, .svm, .txt or none (svmlight), "
        ".npz, .mtx and .parquet; svmlight and .mtx also with .gz."
    )


def open_sink(path: Path, description: dict[str, Any], *, resume: bool) -> Sink:
    """Open a sink in the format given by the ending of a path."""
    kinds: dict[str, Callable[[], Sink]] = {
        DIRECTORY: lambda: StoreWriter(path, description, resume=resume),
        NPZ: lambda: NpzSink(path, description, resume=resume),
        PARQUET: lambda: ParquetSink(path, description),
        SVMLIGHT: lambda: SvmlightSink(path),
    }
    return kinds[kind_of(path)]()


def is_written(path: Path, description: dict[str, Any]) -> bool:
    """Return whether a path already holds what a run with this description would write."""
    try:
        if path.is_dir():
            return fits_description(open_arrays(path)[0], description)
        with zipfile.ZipFile(path) as archive:
            return fits_description(parse_json(archive.comment), description)
    except (OSError, ValueError, zipfile.BadZipFile):
        return False
