"""Compute an expansion in one piece."""

from __future__ import annotations

from typing import Any

from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import engine_for
from polysparse.expansion.planning import plan_expansion
from polysparse.machine import threads_for
from polysparse.matrix import output
from polysparse.matrix.canonical import Canonical, CanonicalDense
from polysparse.matrix.output import CsrRoom, index_dtype_for


def expand_columns(
    columns: ColumnSpace,
    x: Canonical,
    *,
    n_jobs: int | None,
    max_bytes: int | str | None,
    order: str = "C",
) -> Any:
    """Expand canonical input into given columns, which must be exact if the input is dense."""
    planned, engine = plan_expansion(columns, x), engine_for(x)
    n_threads = threads_for(n_jobs, planned.nnz)
    most = planned.room_for(max_bytes)
    if isinstance(x, CanonicalDense):
        out = output.allocate(planned.shape, planned.dtype, order)
        engine.fill_dense(columns, x.values, out, n_threads)
        return out
    # The size of a result in chosen or hashed columns is known only once it is computed. The room
    # is for the largest that is possible or allowed, but only pages that are written take memory.
    room = CsrRoom(
        planned.n_rows, most, planned.index_dtype, planned.filled_index_dtype, planned.dtype
    )
    rows = slice(0, planned.n_rows)
    nnz = engine.fill(columns, x, rows, room.rows(planned.n_rows), n_threads)
    if nnz < 0:
        more = room.indices.itemsize + room.data.itemsize
        planned.refuse(max_bytes, "at least ", room.nbytes + more)
    room.trim(nnz)
    index_dtype = index_dtype_for(max(columns.n_columns, nnz))
    return room.wrap(planned.shape, nnz, index_dtype, is_array=x.is_array)
