"""Inner products of the rows of two expansions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse import thresholds
from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import cpu
from polysparse.expansion.whole import expand_columns
from polysparse.machine import require_memory, threads_for
from polysparse.matrix import output
from polysparse.matrix.canonical import CanonicalCsr

WAY_OUT = "Pass fewer rows at a time, as Z."


def gram(
    columns: ColumnSpace, x: CanonicalCsr, z: CanonicalCsr, n_jobs: int | None
) -> NDArray[Any]:
    """Return the expansion of x times the transposed expansion of z."""
    shape = x.shape[0], z.shape[0]
    require_memory(
        shape[0] * shape[1] * x.dtype.itemsize,
        f"A Gram matrix of shape {shape[0]:,} x {shape[1]:,}",
        WAY_OUT,
    )
    out = output.allocate(shape, x.dtype)
    if columns.kind == "all":
        n_threads = threads_for(n_jobs, shape[0] * len(z.data))
        if not columns.basis._is_grouped:  # otherwise the group of each column is needed
            x, z = _with_few_columns(x, z)
        cpu.gram(columns, x, z, out, n_threads)
        return out
    for rows, x_block in _blocks(columns, x, n_jobs):
        for other_rows, z_block in _blocks(columns, z, n_jobs):
            out[rows, other_rows] = (x_block @ z_block.T).toarray()
    return out


def _with_few_columns(x: CanonicalCsr, z: CanonicalCsr) -> tuple[CanonicalCsr, CanonicalCsr]:
    """Return both without the columns that x does not store, if it has more than stored values.

    The engine needs some bytes for each column.
    """
    if x.shape[1] <= len(x.data):
        return x, z
    stored = np.unique(x.indices)

    def narrow(y: CanonicalCsr) -> CanonicalCsr:
        kept = np.isin(y.indices, stored)
        before = np.concatenate([[0], np.cumsum(kept)])
        return replace(
            y,
            shape=(y.shape[0], len(stored)),
            indptr=before[y.indptr],
            indices=np.searchsorted(stored, y.indices[kept]),
            data=y.data[kept],
        )

    narrowed = narrow(x)
    return narrowed, narrowed if z is x else narrow(z)


def _blocks(
    columns: ColumnSpace, x: CanonicalCsr, n_jobs: int | None
) -> Iterator[tuple[slice, Any]]:
    """Yield the expansion in blocks of a few rows."""
    for start in range(0, x.shape[0], thresholds.GRAM_ROWS):
        rows = slice(start, min(start + thresholds.GRAM_ROWS, x.shape[0]))
        block = x.rows(rows)
        yield rows, expand_columns(columns, block, n_jobs=n_jobs, max_bytes="available")
