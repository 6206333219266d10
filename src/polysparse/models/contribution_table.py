"""The terms that contribute most to the predictions of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.expansion.by_blocks import iter_expand_columns
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.terms import Terms

_BLOCK_BYTES = 2**26  # of the expansion, at a time


def contribution_table(
    terms: Terms, x: CanonicalCsr, n: int, n_jobs: int | None, sep: str
) -> dict[str, list[Any]]:
    """Return the columns of a table of the n largest contributions to each score of each row."""
    row, score, column, value = _largest(terms, x, n, n_jobs)
    weights = terms.weights[score, column]
    table = {
        "row": row.tolist(),
        **terms.rows_of(score),
        "name": terms.names(column, sep),
        "contribution": (value * weights).tolist(),
        "value": value.tolist(),
        "weight": weights.tolist(),
    }
    if terms.columns.kind != "hashed":
        table["features"] = terms.members(column)
    return table


def _largest(
    terms: Terms, x: CanonicalCsr, n: int, n_jobs: int | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return row, score, column and value of terms, by row and score, the largest ones first."""
    none = np.empty(0, np.int64)
    parts = [(none, none, none, np.empty(0))]
    blocks = iter_expand_columns(
        terms.columns, x, n_jobs=n_jobs, max_bytes=_BLOCK_BYTES, reuse=True
    )
    for rows, block in blocks:
        lengths = np.diff(block.indptr)
        row = np.repeat(np.arange(rows.start, rows.stop), lengths)
        place = np.arange(len(row)) - np.repeat(block.indptr[:-1], lengths)  # within the row
        for number, weights in enumerate(terms.weights):
            sizes = np.abs(block.data * weights[block.indices])
            order = np.lexsort((-sizes, row))
            kept = order[(place < n) & (sizes[order] > 0)]
            column = block.indices[kept].astype(np.int64)
            parts.append((row[kept], np.full(len(kept), number), column, block.data[kept]))
    found = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    order = np.lexsort((found[1], found[0]))  # stable: terms stay in the order of their sizes
    by_row, score, column, value = (array[order] for array in found)
    return by_row, score, column, value
