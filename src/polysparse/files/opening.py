"""Choice of the format of a path by its ending."""

from __future__ import annotations

import os
import stat
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.files.atomic import beside
from polysparse.files.description import columns_in, fits_description, parse_json
from polysparse.files.matrix_market import MatrixMarketSource
from polysparse.files.npz import NpzSink, NpzSource
from polysparse.files.parquet import ParquetSink, ParquetSource, description_in
from polysparse.files.paths import (
    DIRECTORY,
    MANIFEST,
    NPZ,
    PARQUET,
    PROGRESS,
    SVMLIGHT,
    UnknownExtension,
    kind_of,
    version_of,
)
from polysparse.files.sink import Sink
from polysparse.files.source import FileFault, Reading, Source, faults_of
from polysparse.files.store import open_arrays, read_manifest
from polysparse.files.store_source import StoreSource
from polysparse.files.store_writer import StoreWriter
from polysparse.files.svmlight import SvmlightSink, SvmlightSource
from polysparse.machine import threads_for

ENOUGH_FOR_ALL = 2**60  # a number of outputs for which every allowed thread is used


def open_source(
    path: str,
    *,
    n_jobs: int | None = None,
    **reading: Any,
) -> Source:
    """Open a source in the format given by the ending of a path; '-' is svmlight on standard input.

    A directory is one that polysparse has written. Further arguments are those of `Reading`.
    """
    how = Reading(**reading, n_threads=threads_for(n_jobs, ENOUGH_FOR_ALL))
    kind = _source_for(path)
    if path == "-":
        source = kind(Path("standard input"), how)
        if sys.stdin is None:
            raise FileFault("standard input is closed; give a file in place of -.")
        source.spool(sys.stdin.buffer)
        return source
    found = version_of(Path(path))
    if not found.exists():
        raise FileNotFoundError(f"{path}: there is no such file.")
    source = kind(Path(path), how)
    mode = found.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # for example a pipe
        with open(path, "rb") as stream:
            source.spool(stream)
    return source


def _source_for(path: str) -> type[Source]:
    if version_of(Path(path)).is_dir():
        return StoreSource
    name = path.removesuffix(".gz")
    if path.endswith(".npz") or name.endswith(".mtx"):
        return NpzSource if path.endswith(".npz") else MatrixMarketSource
    if path.endswith(".parquet"):
        return ParquetSource
    # The test sets of LIBSVM's collection end in .t.
    if name.endswith((".svmlight", ".svm", ".libsvm", ".txt", ".t")) or "." not in Path(name).name:
        return SvmlightSource
    raise UnknownExtension(
        f"{path}: unknown ending. Known are .svmlight, .libsvm, .svm, .txt, .t or none (svmlight), "
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


def begun(path: Path) -> Path | None:
    """Return what an unfinished run to a path has left for another one to resume, or None."""
    asides = (beside(path, role) for role in ("partial", "store"))
    return next((aside for aside in asides if _has_complete_parts(aside)), None)


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
    """Return the description of an output: a directory, .npz or .parquet."""
    if version_of(Path(path)).is_dir():
        return read_manifest(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: there is no such file.")
    with faults_of(Path(path)):
        text = b""
        if path.endswith(".npz"):
            with zipfile.ZipFile(path) as archive:
                text = archive.comment
        elif path.endswith(".parquet"):
            text = description_in(path)
        if not text:
            raise ValueError(
                "does not say which columns it has: a directory, .npz or .parquet that polysparse "
                "has written does."
            )
        description = parse_json(text)
        columns_in(description)
        MonomialBasis(**description["basis"])
        return dict(description)
