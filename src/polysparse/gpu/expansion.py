"""plan, expand and iter_expand of matrices on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.arguments import as_column_space
from polysparse.columns.spaces import ColumnSpace
from polysparse.dispatch import require_no_out
from polysparse.expansion.budgets import MemoryLimit, as_byte_limit, refuse
from polysparse.expansion.by_blocks import count_in_blocks
from polysparse.expansion.functions import WAYS_OUT
from polysparse.expansion.planning import ExpansionPlan
from polysparse.expansion.row_blocks import RowBlocks
from polysparse.gpu import engine
from polysparse.gpu.canonical import DeviceCsr, Offsets, as_canonical, count, read
from polysparse.gpu.containers import Array, Container, container_of
from polysparse.machine import format_bytes
from polysparse.matrix.output import index_dtype_for, largest_index
from polysparse.observation.tally import observed_columns

# Outputs that are made before those of chosen columns are kept, or those of one bucket are summed.
AT_A_TIME = 2**27

Arrays = tuple[Array, Array, Array]


def column_space(
    container: Container, columns: Any, degree: Degree, n_jobs: int | None, flags: dict[str, Any]
) -> ColumnSpace:
    """Return the columns requested. To find the observed ones, X is copied to main memory."""

    def observe(basis: MonomialBasis) -> NDArray[np.int64]:
        with container.on_its_device():
            x = as_canonical(container).get()
        return observed_columns(basis, x, n_jobs)

    n_features = container.shape[1]
    return as_column_space(columns, n_features, observe=observe, degree=degree, **flags)


def plan(
    X: Any, degree: Degree, *, columns: Any, n_jobs: int | None, **flags: Any
) -> ExpansionPlan:
    """Describe what `expand` would return."""
    container = container_of(X)
    space = column_space(container, columns, degree, n_jobs, flags)
    with container.on_its_device():
        x = as_canonical(container).for_basis(space.basis)
        planned = _plan(space, x)
        if not planned.is_upper_bound:
            return planned
        planned._require_countable()
        pieces = _pieces(space, x, _count(space, x))
        blocks = (SimpleNamespace(nnz=len(data), indices=indices) for _, indices, data in pieces)
        return count_in_blocks(planned, blocks)


def expand(
    X: Any,
    degree: Degree,
    *,
    columns: Any,
    n_jobs: int | None,
    max_bytes: int | str | None,
    out: Any,
    **flags: Any,
) -> Any:
    """Return the expansion, of the kind of X."""
    require_no_out(X, out)
    container = container_of(X)
    space = column_space(container, columns, degree, n_jobs, flags)
    with container.on_its_device():
        x, offsets = read(container, None, space.basis, _offset_dtype(space))
        space.require_indexable()
        arrays = _expand(space, x, offsets, max_bytes, WAYS_OUT)
        return container.wrap((x.shape[0], space.n_columns), *arrays)


def expand_columns(
    columns: ColumnSpace, x: DeviceCsr, *, max_bytes: int | str | None, ways_out: Sequence[str]
) -> Arrays:
    """Return indptr, indices and data of the expansion into given columns."""
    columns.require_indexable()
    x = x.for_basis(columns.basis)
    offsets = count(columns.basis, x, _offset_dtype(columns))
    return _expand(columns, x, offsets, max_bytes, ways_out)


def _expand(
    columns: ColumnSpace,
    x: DeviceCsr,
    offsets: Offsets | None,
    max_bytes: int | str | None,
    ways_out: Sequence[str],
) -> Arrays:
    if offsets is None or offsets.total > largest_index(offsets.starts.dtype):
        offsets = _count(columns, x)
    if columns.is_exact:
        index_dtype = index_dtype_for(max(columns.n_columns, offsets.total))
        needed = offsets.total * (index_dtype.itemsize + x.dtype.itemsize)
        needed += (x.shape[0] + 1) * index_dtype.itemsize
        limit = _limit(max_bytes, ways_out, needed - offsets.starts.nbytes)  # which are there
        if limit.n_bytes is not None and needed > limit.n_bytes:
            refuse(_plan(columns, x), limit, "", needed)
        return engine.fill(columns, x, offsets.starts, offsets.total, index_dtype)
    limit = _limit(max_bytes, ways_out, None)
    parts, used = [], 8 * (x.shape[0] + 1)
    for part in _pieces(columns, x, offsets):
        parts.append(part)
        used += sum(array.nbytes for array in part[1:])
        if limit.n_bytes is not None and used > limit.n_bytes:
            refuse(_plan(columns, x), limit, "at least ", used)
    return _joined(parts, columns.n_columns, x.dtype)


def iter_expand(
    X: Any,
    degree: Degree,
    *,
    columns: Any,
    n_jobs: int | None,
    max_bytes: int,
    reuse: bool,
    **flags: Any,
) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of the expansion. CuPy's pool reuses the memory of blocks that are dropped."""
    container = container_of(X)
    space = column_space(container, columns, degree, n_jobs, flags)
    with container.on_its_device():
        x = as_canonical(container).for_basis(space.basis)
        _plan(space, x)._require_countable()
        offsets = _count(space, x)
        blocks = RowBlocks(offsets.starts.get(), space.n_columns, x.dtype, max_bytes)
        needed, free = min(blocks.limit, blocks.offsets[-1] * blocks.value_bytes), free_bytes()
        if needed > free:
            raise MemoryError(
                f"A block would need {format_bytes(needed)}; {format_bytes(free)} are free on the "
                "GPU. Pass a lower max_bytes."
            )
    return _blocks(container, space, x, offsets.starts, blocks)


def _blocks(
    container: Any, space: ColumnSpace, x: DeviceCsr, starts: Array, blocks: RowBlocks
) -> Iterator[tuple[slice, Any]]:
    for rows in blocks:
        with container.on_its_device():
            *places, data = _rows(space, x, starts, rows, blocks.index_dtype)
            places = [each.astype(blocks.index_dtype, copy=False) for each in places]
            shape = rows.stop - rows.start, space.n_columns
            block = container.wrap(shape, *places, data)
        yield rows, block


def _count(columns: ColumnSpace, x: DeviceCsr) -> Offsets:
    """Return the offsets of outputs; raise MemoryError if there are too many."""
    offsets = count(columns.basis, x)
    if offsets is None:
        _plan(columns, x)._require_countable()
        raise MemoryError("The expansion has more outputs than can be counted: reduce the degree.")
    return offsets


def _offset_dtype(columns: ColumnSpace) -> np.dtype[Any]:
    """Return the dtype that the indices of a result have, if there are not too many outputs."""
    return index_dtype_for(columns.n_columns) if columns.is_exact else np.dtype(np.int64)


def _pieces(columns: ColumnSpace, x: DeviceCsr, offsets: Offsets) -> Iterator[Arrays]:
    """Yield indptr, indices and data of a few rows at a time, from the first to the last."""
    n_rows, starts, start = x.shape[0], offsets.starts, 0
    bounds = starts.get() if offsets.total > AT_A_TIME else None
    while True:
        stop = n_rows
        if bounds is not None:
            within = np.searchsorted(bounds, bounds[start] + AT_A_TIME, side="right")
            stop = min(max(int(within) - 1, start + 1), n_rows)
        yield _rows(columns, x, starts, slice(start, stop), np.dtype(np.int64))
        if stop == n_rows:
            return
        start = stop


def expanded_rows(columns: ColumnSpace, x: DeviceCsr) -> Iterator[tuple[slice, Arrays]]:
    """Yield a few rows at a time: which, and their indptr, indices and data."""
    start = 0
    for arrays in _pieces(columns, x, _count(columns, x)):
        stop = start + len(arrays[0]) - 1
        yield slice(start, stop), arrays
        start = stop


def _rows(
    columns: ColumnSpace, x: DeviceCsr, starts: Array, rows: slice, index_dtype: np.dtype[Any]
) -> Arrays:
    """Return indptr, indices and data of some rows."""
    here = starts[rows.start : rows.stop + 1]
    base, end = here[[0, -1]].tolist()
    return engine.fill(columns, x.rows(rows), here - base, end - base, index_dtype)


def _joined(parts: list[Arrays], n_columns: int, dtype: np.dtype[Any]) -> Arrays:
    """Return the arrays of all rows, with indices of one dtype."""
    nnz = sum(len(part[2]) for part in parts)
    index_dtype = index_dtype_for(max(n_columns, nnz))
    before, offsets = 0, [cupy.zeros(1, dtype=index_dtype)]
    for indptr, _, data in parts:
        offsets.append((indptr[1:] + before).astype(index_dtype))
        before += len(data)
    indices = cupy.concatenate([part[1] for part in parts]) if len(parts) > 1 else parts[0][1]
    data = cupy.concatenate([part[2] for part in parts]) if len(parts) > 1 else parts[0][2]
    return cupy.concatenate(offsets), indices.astype(index_dtype, copy=False), data


def _plan(columns: ColumnSpace, x: DeviceCsr) -> ExpansionPlan:
    return ExpansionPlan(columns, x.profile_for(columns.basis), x.dtype)


def _limit(max_bytes: int | str | None, ways_out: Sequence[str], needed: int | None) -> MemoryLimit:
    """Return the limit of a result on the current device; none if CuPy keeps enough for reuse.

    A query of the device takes longer.
    """
    kept = cupy.get_default_memory_pool().free_bytes()
    is_kept = max_bytes == "available" and needed is not None and needed <= kept
    if max_bytes is None or is_kept:
        return MemoryLimit(None, "", ways_out)
    if max_bytes == "available":
        return MemoryLimit(free_bytes(), "are free on the GPU", ways_out)
    n_bytes = as_byte_limit(max_bytes)
    return MemoryLimit(n_bytes, f"are allowed (max_bytes={n_bytes})", ways_out)


def free_bytes() -> int:
    """Return the free memory of the current device, with what CuPy keeps for reuse."""
    return int(cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes())
