"""The GPU engine: counts outputs and fills the arrays of a result."""

from __future__ import annotations

from functools import lru_cache
from math import comb, factorial
from typing import Any

import cupy
import numpy as np

from polysparse.engine.descriptions import Basis
from polysparse.gpu.arguments import (
    basis_numbers,
    basis_struct,
    has_degrees,
    hasher_struct,
    kind_of,
    last_columns,
    rank_keys_struct,
    table_of,
    tuples_struct,
)
from polysparse.gpu.canonical import DeviceCsr, offsets_of, rows_of, sum_between
from polysparse.gpu.compiling import (
    START_BYTES,
    THREADS,
    Struct,
    kernel,
    launch,
    launch_blocks,
    most_shared_bytes,
    struct,
)
from polysparse.gpu.containers import Array
from polysparse.gpu.parts import RowParts

# Outputs that a block of threads makes: as many as shared memory suffices for.
TILES = 4096, 2048
ENOUGH_SHARED_BYTES = 36 * 1024
FEWEST_RUNS = 512  # that there is room for

# Outputs are looked up in a table of tuples if an average row is not longer: runs take less time
# otherwise; by degree, if that is not the length of the table's rows.
LONGEST_FILLED = {1: 0, 2: 14}


def allocate(n: int, dtype: np.dtype[Any]) -> Array:
    """Allocate an output array. All of them come from here, so that tests can poison them."""
    return cupy.ndarray(n, dtype)


def fill(
    columns: Any, x: DeviceCsr, starts: Array, total: int, index_dtype: np.dtype[Any]
) -> tuple[Array, Array, Array]:
    """Return indptr, indices and data of all rows of x, whose outputs begin at `starts`.

    All indices are of the given dtype, if all columns are wanted; otherwise int32. indptr may be
    `starts` itself.
    """
    if columns.kind == "all":
        indices, data = allocate(total, index_dtype), allocate(total, x.dtype)
        indptr = starts if starts.dtype == index_dtype else starts.astype(index_dtype)
        _fill_all(columns.basis, x, indptr, indices, data)
        return indptr, indices, data
    return (_fill_chosen if columns.kind == "chosen" else _fill_hashed)(columns, x, starts, total)


def _fill_all(basis: Basis, x: DeviceCsr, starts: Array, indices: Array, data: Array) -> None:
    """Write the columns and values of all outputs."""
    total, n_rows = len(data), x.shape[0]
    if total == 0:
        return
    if not has_degrees(basis):
        indices.fill(0)
        data.fill(1)
        return
    require_short_rows(basis, x)
    if basis._is_grouped:
        _fill_tuples(basis, rank_keys_struct(basis), False, x, starts, indices, data)
        return
    highest, strict = basis.highest, basis.interaction_only
    table, longest = table_of(basis)
    if total > n_rows * comb(LONGEST_FILLED.get(highest, longest) + highest - 1, highest):
        longest = 0  # most outputs are those of longer rows
    sizes = x.dtype.itemsize, indices.dtype.itemsize
    most = most_shared_bytes()
    tile, capacity, shared_bytes = _capacity(basis, sizes, total / n_rows, longest, most)
    tile_starts, n_tiles = _tiles(basis, x, starts, total, tile)
    arguments = struct(
        *(x.indptr, x.indices, x.data, n_rows, starts, total, tile_starts.ptr),
        *(*basis_numbers(basis), *last_columns(basis), table, longest, *capacity, indices, data),
    )
    dtypes = x.dtype, x.indices.dtype, indices.dtype, starts.dtype
    struct_bytes = _run_bytes(*sizes, highest), _slot_bytes(*sizes, highest)
    fill_all = kernel("fill_all", *dtypes, highest, strict, tile, *struct_bytes)
    launch_blocks(fill_all, n_tiles, arguments, shared_bytes=shared_bytes)


def _fill_tuples(
    basis: Basis,
    keys: Struct,
    is_hashed: bool,
    x: DeviceCsr,
    starts: Array,
    indices: Array,
    data: Array,
) -> None:
    """Write the columns and values of all outputs of rows with groups or terms."""
    parts = RowParts.of_sizes(cupy.diff(starts))
    dtypes = x.dtype, x.indices.dtype, indices.dtype, starts.dtype
    launch_blocks(
        kernel("fill_tuples", *dtypes, max(basis.highest, 1), kind_of(basis), is_hashed),
        -(-parts.n // (THREADS // 32)),
        *(x.as_struct, basis_struct(basis), keys, tuples_struct(basis, x.led)),
        *(parts.as_struct(slice(0, parts.n)), starts, indices, data),
    )


def require_short_rows(basis: Basis, x: DeviceCsr) -> None:
    """Raise NotImplementedError if a row stores more values than kernels count."""
    if basis.n_features >= 2**31 and len(x.data) >= 2**31 and cupy.diff(x.indptr).max() >= 2**31:
        raise NotImplementedError(
            "Rows of 2**31 stored values or more are neither expanded nor multiplied on a GPU: "
            "pass X in main memory, X.get()."
        )


def _fill_chosen(
    columns: Any, x: DeviceCsr, starts: Array, total: int
) -> tuple[Array, Array, Array]:
    """Make all outputs and keep those whose column is chosen."""
    index_dtype = np.dtype(np.int32 if columns.basis.n_columns < 2**31 else np.int64)
    ranks, data = allocate(total, index_dtype), allocate(total, x.dtype)
    _fill_all(columns.basis, x, starts, ranks, data)
    chosen = cupy.asarray(columns.ranks.astype(index_dtype))
    if len(chosen) == 0:
        kept = cupy.zeros(0, dtype=np.int64)
        indices = cupy.zeros(0, dtype=np.int32)
    else:
        places = cupy.searchsorted(chosen, ranks).astype(np.int32)
        cupy.minimum(places, len(chosen) - 1, out=places)
        kept = cupy.flatnonzero(chosen[places] == ranks)
        indices = places[kept]
    return cupy.searchsorted(kept, starts), indices, data[kept]


def _fill_hashed(
    columns: Any, x: DeviceCsr, starts: Array, total: int
) -> tuple[Array, Array, Array]:
    """List all outputs by row and bucket, and sum those of one bucket in the order of the basis."""
    basis, n_rows = columns.basis, x.shape[0]
    buckets, data = allocate(total, np.dtype(np.int32)), allocate(total, x.dtype)
    if total == 0:
        return cupy.zeros(n_rows + 1, dtype=np.int64), buckets, data
    if basis._is_grouped:
        _fill_tuples(basis, hasher_struct(columns), True, x, starts, buckets, data)
    else:
        _fill_buckets(columns, x, starts, buckets, data)
    rows = rows_of(starts, total)
    keys = rows * columns.n_columns + buckets
    order = cupy.argsort(keys)  # which is stable
    keys = keys[order]
    is_head = cupy.ones(total, dtype=bool)
    is_head[1:] = keys[1:] != keys[:-1]
    heads = cupy.flatnonzero(is_head)
    firsts = order[heads]
    return offsets_of(rows[firsts], n_rows), buckets[firsts], sum_between(heads, order, data)


def _fill_buckets(columns: Any, x: DeviceCsr, starts: Array, buckets: Array, data: Array) -> None:
    """Write the buckets and signed values of all outputs."""
    basis, total, tile = columns.basis, len(data), TILES[0]
    tile_starts, n_tiles = _tiles(basis, x, starts, total, tile)
    highest = basis.highest if has_degrees(basis) else 0
    launch_blocks(
        kernel("fill_hashed", x.dtype, x.indices.dtype, highest, basis.interaction_only),
        n_tiles,
        *(x.as_struct, struct(starts, total), tile_starts, basis_struct(basis)),
        *(hasher_struct(columns), np.int64(tile), buckets, data),
    )


# ------------------------------------------------------------------------------- kernel arguments


def _tiles(basis: Basis, x: DeviceCsr, starts: Array, total: int, tile: int) -> tuple[Any, int]:
    """Return where every tile begins, its row and run, in memory, and how many tiles there are."""
    n_tiles, n_rows = -(-total // tile), x.shape[0]
    tile_starts = cupy.cuda.alloc(START_BYTES * (n_tiles + 1))
    arguments = struct(
        *(x.indptr, starts, total, n_rows, *basis_numbers(basis), tile, n_tiles, tile_starts.ptr)
    )
    launch(kernel("find_tiles", starts.dtype, basis.interaction_only), n_tiles + 1, arguments)
    return tile_starts, n_tiles


def _run_bytes(value: int, word: int, highest: int) -> int:
    """Return the size of Shared of fill_by_runs.cu, which checks it."""
    size = -(-(max(highest - 1, 1) * value + 4) // word) * word + word
    return 16 if size <= 16 else -(-size // 8) * 8


def _slot_bytes(value: int, word: int, highest: int) -> int:
    """Return the size of a Slot of fill_by_table.cu, which checks it."""
    unit = max(value, word)
    return unit * (-(-(unit + highest * word) // unit) | 1)


@lru_cache
def _capacity(
    basis: Basis, sizes: tuple[int, int], row_size: float, longest: int, most: int
) -> tuple[int, tuple[int, ...], int]:
    """Return how many outputs a tile has, for how much of it there is room, and the bytes of that.

    sizes: bytes of a value and of an index. row_size: outputs of an average row. longest: the
    length of rows that are looked up in a table, or 0. most: bytes that there are.
    """
    highest, strict = basis.highest, basis.interaction_only
    length = max((row_size * factorial(highest)) ** (1 / highest) - (highest + 1) / 2, 0.5)
    by_table = longest > 0
    # With values of 8 bytes in rows that are not long, smaller tiles are a little faster.
    is_small = sizes[0] == 8 and highest == 2 and not by_table and row_size < 2 * TILES[0]
    for tile in TILES[is_small:]:
        # Outputs are to runs as the length of a row, with the degree, is to the degree.
        runs = tile * (highest / (length + highest) + 1 / row_size)
        rows = tile / row_size
        segments = rows * (highest + 1 if strict else 1)
        wanted = [
            FEWEST_RUNS if by_table else min(max(1.125 * runs + 64, FEWEST_RUNS), tile),
            1.125 * (rows + 2) * (length + 2) + 64 if by_table else 0,
            min(1.125 * segments + 64, tile) if by_table else 0,
        ]
        run_size, slot_size = (size(*sizes, highest) for size in (_run_bytes, _slot_bytes))
        n_runs, n_values, n_segments = (64 * int(-(-each // 64)) for each in wanted)
        # Runs that there is no room for are made one part of the tile after the other.
        n_runs = min(n_runs, max(most // run_size // 64, 1) * 64)
        segment_bytes = n_segments * (12 if strict else 8)
        # A multiple of 64 still: what lies behind the slots is aligned to 8 bytes.
        n_values = min(n_values, (most - segment_bytes) // slot_size // 64 * 64)
        needed = max(n_runs * run_size, n_values * slot_size + segment_bytes)
        if needed <= ENOUGH_SHARED_BYTES or tile == TILES[-1]:
            break
    return tile, (n_runs, n_values, n_segments), needed
