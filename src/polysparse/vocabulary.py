"""Observed columns in a file: an .npz of plain arrays, for any machine, without pickle."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis import MonomialBasis
from polysparse.columns import require_rising
from polysparse.description import basis_as_dict
from polysparse.targets import beside

FORMAT, VERSION = "polysparse.vocabulary", 1

# What NumPy and zipfile raise for files that are not what they seem.
DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    MemoryError,
    OSError,
    OverflowError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


def write_vocabulary(
    path: str | os.PathLike[str],
    basis: MonomialBasis,
    columns: NDArray[np.int64],
    counts: NDArray[np.int64],
    more: dict[str, Any],
) -> None:
    """Write a vocabulary, whole or not at all; `more` is kept beside it, as JSON."""
    target = Path(path)
    aside = beside(target, "partial")
    try:
        write_vocabulary_file(aside, basis, columns, counts, more)
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def write_vocabulary_file(
    path: Path,
    basis: MonomialBasis,
    columns: NDArray[np.int64],
    counts: NDArray[np.int64],
    more: dict[str, Any],
) -> None:
    """Write a vocabulary into a file that nobody reads yet."""
    description = {
        "format": FORMAT,
        "version": VERSION,
        "basis": basis_as_dict(basis),
        "n_columns": len(columns),
        **more,
    }
    text = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
    arrays: dict[str, NDArray[Any]] = {"description": text, "columns": columns, "counts": counts}
    with open(path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, little, allow_pickle=False)


def read_vocabulary(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], MonomialBasis, NDArray[np.int64], NDArray[np.int64]]:
    """Description, basis, columns and counts; raise for a file that is damaged or not ours."""
    try:
        with open(path, "rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it is no .npz archive")
            description = _read_description(archive)
            columns, counts = (_read_integers(archive, name) for name in ("columns", "counts"))
    except DAMAGE as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # there is no such file, or it may not be read
        reason = str(error).strip("'\".") or type(error).__name__
        raise ValueError(
            f"{os.fspath(path)} is no vocabulary of polysparse, or damaged: {reason}."
        ) from None
    try:
        basis = MonomialBasis(**description["basis"])
        basis.require_indexable()
        if not len(columns) == len(counts) == description["n_columns"]:
            raise ValueError(f"it should have {description['n_columns']} columns")
        require_rising(columns)
        for column in (*columns[:1], *columns[-1:]):
            if not 0 <= column < basis.n_columns:
                raise ValueError(f"column {column} is not in the basis")
        if np.any(counts < 1):
            raise ValueError("a count is not positive")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} is damaged: {str(error).rstrip('.')}.") from None
    return description, basis, columns, counts


def _read_description(archive: Any) -> dict[str, Any]:
    description = json.loads(archive["description"].tobytes())
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ValueError("it has another format")
    if description.get("version") != VERSION:
        raise ValueError(
            f"it has version {description.get('version')}, and this polysparse reads {VERSION}"
        )
    return description


def _read_integers(archive: Any, name: str) -> NDArray[np.int64]:
    array = archive[name]
    if array.dtype != np.dtype("<i8") or array.ndim != 1:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not int64")
    return np.ascontiguousarray(array, dtype=np.int64)
