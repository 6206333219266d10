"""The rows of blocks as files on an executor, memory-mapped by all of its Python workers.

Spark sends cached data to Python again for each job, and Python workers do not share memory. So the
rows of a fit are unpacked once, into a directory of the executor that Spark removes with it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from polysparse.clusters.data_blocks import DataBlock
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.spark.packing import ARRAYS


def folder_of(fit: str) -> Path | None:
    """Return the folder for the rows of a fit on this executor, None if it has no disk."""
    folders = os.environ.get("SPARK_LOCAL_DIRS")
    return None if not folders else Path(folders.split(",")[0], f"polysparse-{fit}")


def store(fit: str, block: str, rows: DataBlock) -> None:
    """Write the rows of a block, completely or not at all; a full disk only costs time."""
    folder = folder_of(fit)
    if folder is None or (folder / block).exists():
        return
    new = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        new = mkdtemp(dir=folder)
        x = rows.x
        arrays = (x.indptr, x.indices, x.data, rows.y, rows.weights, rows.offset)
        for name, array in zip(ARRAYS, arrays, strict=True):
            if array is not None:
                np.save(Path(new, f"{name}.npy"), array)
        os.rename(new, folder / block)
    except OSError:  # or another worker was faster
        if new is not None:
            shutil.rmtree(new, ignore_errors=True)


def stored(fit: str, block: str, n_features: int) -> DataBlock | None:
    """Return the rows of a block, mapped into memory, or None if this executor has no such file."""
    folder = folder_of(fit)
    if folder is None:
        return None
    try:
        files = {name: folder / block / f"{name}.npy" for name in ARRAYS}
        if not files["offset"].exists():
            del files["offset"]
        indptr, indices, data, *others = (
            np.asarray(np.load(file, mmap_mode="r")) for file in files.values()
        )
    except (OSError, ValueError, EOFError):  # missing or damaged
        return None
    x = CanonicalCsr((len(indptr) - 1, n_features), indptr, indices, data, is_array=True)
    return DataBlock(x, *others)


def remove(fit: str) -> None:
    """Remove what this executor has stored for a fit."""
    folder = folder_of(fit)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
