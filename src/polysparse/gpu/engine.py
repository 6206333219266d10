"""The GPU engine: counts outputs and fills the arrays of a result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb, factorial
from typing import Any

import cupy
import numpy as np

from polysparse.engine.descriptions import Basis
from polysparse.gpu.canonical import DeviceCsr, offsets_of, rows_of, sum_between
from polysparse.gpu.compiling import MOST_BLOCKS, Struct, kernel, launch, launch_blocks, struct
from polysparse.gpu.containers import Array

# Outputs that a block of threads makes: as many as shared memory suffices for.
TILES = 4096, 2048
ENOUGH_SHARED_BYTES, MOST_SHARED_BYTES = 36 * 1024, 96 * 1024
FEWEST_RUNS = 512  # that there is room for

_CAPACITY = np.dtype([("numbers", np.int32, 3)])

# Rows of up to so many values, with the 1 in front, are looked up in a table of tuples; by degree.
LONGEST = {1: 64, 2: 64, 3: 160, 4: 64, 5: 32, 6: 20, 7: 14, 8: 12}

# Outputs are looked up if an average row is not longer: runs take less time otherwise; by degree,
# if that is not the length above.
LONGEST_FILLED = {1: 0, 2: 14}

# More outputs in all than this are not counted one by one.
MOST_COUNTED = 2.0**58


@dataclass(frozen=True)
class Offsets:
    """Where the outputs of rows begin: on the device, and their number."""

    starts: Array
    total: int


def allocate(n: int, dtype: np.dtype[Any]) -> Array:
    """Allocate an output array. All of them come from here, so that tests can poison them."""
    return cupy.empty(n, dtype=dtype)


def has_degrees(basis: Basis) -> bool:
    """Return whether there is any column but the bias."""
    return basis.highest >= max(basis.lowest, 1)


def count(basis: Basis, x: DeviceCsr) -> Offsets | None:
    """Return the offsets of all rows' outputs, or None if there are too many to be counted."""
    return Counting.of(basis, x.indptr).finish()


@dataclass(frozen=True)
class Counting:
    """Outputs that the device is counting."""

    starts: Array
    about: Array | None  # their number in floating point, if there could be too many

    @classmethod
    def of(cls, basis: Basis, indptr: Array) -> Counting:
        """Begin to count the outputs of rows, whatever the offsets are."""
        n_rows = len(indptr) - 1
        starts = cupy.empty(n_rows + 1, dtype=np.int64)
        most = comb(basis.n_features + basis.highest, basis.highest) * n_rows
        about = cupy.zeros(1) if most > MOST_COUNTED else None
        asked = np.intp(0) if about is None else about
        arguments = indptr, np.int64(n_rows), basis_struct(basis), starts, asked
        size_rows = kernel("size_rows", basis.interaction_only)
        launch(size_rows, n_rows, *arguments, most_blocks=MOST_BLOCKS)
        cupy.cumsum(starts, out=starts)
        return cls(starts, about)

    def finish(self) -> Offsets | None:
        """Return the offsets of all rows' outputs, or None if there are too many."""
        if self.about is not None and float(self.about[0]) > MOST_COUNTED:
            return None
        return Offsets(self.starts, int(self.starts[-1]))


def fill(
    columns: Any, x: DeviceCsr, starts: Array, base: int, total: int, index_dtype: np.dtype[Any]
) -> tuple[Array, Array, Array]:
    """Return indptr, indices and data of the rows of x, of which `total` outputs begin at `base`.

    `starts` has the offsets of these rows' outputs. All indices are of the given dtype, if all
    columns are wanted; otherwise int32.
    """
    if columns.kind == "all":
        indices, data = allocate(total, index_dtype), allocate(total, x.dtype)
        _fill_all(columns.basis, x, starts, base, indices, data)
        return (starts - base if base else starts).astype(index_dtype), indices, data
    return (_fill_chosen if columns.kind == "chosen" else _fill_hashed)(
        columns, x, starts, base, total
    )


def _fill_all(
    basis: Basis, x: DeviceCsr, starts: Array, base: int, indices: Array, data: Array
) -> None:
    """Write the columns and values of all outputs."""
    total, n_rows = len(data), x.shape[0]
    if total == 0:
        return
    if not has_degrees(basis):
        indices.fill(0)
        data.fill(1)
        return
    if basis.n_features >= 2**31 and int(cupy.diff(x.indptr).max()) >= 2**31:
        raise NotImplementedError(
            "Rows of 2**31 stored values or more are not expanded on a GPU: give X in main memory, "
            "X.get()."
        )
    highest, strict = basis.highest, basis.interaction_only
    table, longest = table_of(basis)
    if total > n_rows * comb(LONGEST_FILLED.get(highest, longest) + highest - 1, highest):
        longest = 0  # most outputs are those of longer rows
    sizes = x.dtype.itemsize, indices.dtype.itemsize
    tile, capacity, shared_bytes = _capacity(basis, sizes, total / n_rows, longest)
    targets, tile_starts = _tiles(basis, x, starts, base, total, tile)
    launch_blocks(
        kernel("fill_all", x.dtype, x.indices.dtype, indices.dtype, highest, strict, tile),
        len(tile_starts) - 1,
        *(x.as_struct, targets, tile_starts, basis_struct(basis), ends_struct(basis)),
        *(table, np.int32(longest), capacity, indices, data),
        shared_bytes=shared_bytes,
    )


def _fill_chosen(
    columns: Any, x: DeviceCsr, starts: Array, base: int, total: int
) -> tuple[Array, Array, Array]:
    """Make all outputs and keep those whose column is chosen."""
    index_dtype = np.dtype(np.int32 if columns.basis.n_columns < 2**31 else np.int64)
    ranks, data = allocate(total, index_dtype), allocate(total, x.dtype)
    _fill_all(columns.basis, x, starts, base, ranks, data)
    chosen = cupy.asarray(columns.ranks.astype(index_dtype))
    if len(chosen) == 0:
        kept = cupy.zeros(0, dtype=np.int64)
        indices = cupy.zeros(0, dtype=np.int32)
    else:
        places = cupy.searchsorted(chosen, ranks).astype(np.int32)
        cupy.minimum(places, len(chosen) - 1, out=places)
        kept = cupy.flatnonzero(chosen[places] == ranks)
        indices = places[kept]
    return cupy.searchsorted(kept, starts - base), indices, data[kept]


def _fill_hashed(
    columns: Any, x: DeviceCsr, starts: Array, base: int, total: int
) -> tuple[Array, Array, Array]:
    """List all outputs by row and bucket, and sum those of one bucket in the order of the basis."""
    basis, n_rows = columns.basis, x.shape[0]
    buckets, data = allocate(total, np.dtype(np.int32)), allocate(total, x.dtype)
    if total == 0:
        return cupy.zeros(n_rows + 1, dtype=np.int64), buckets, data
    tile = TILES[0]
    targets, tile_starts = _tiles(basis, x, starts, base, total, tile)
    highest = basis.highest if has_degrees(basis) else 0
    launch_blocks(
        kernel("fill_hashed", x.dtype, x.indices.dtype, highest, basis.interaction_only),
        len(tile_starts) - 1,
        *(x.as_struct, targets, tile_starts, basis_struct(basis), hasher_struct(columns)),
        *(np.int64(tile), buckets, data),
    )
    rows = rows_of(starts - base, total)
    keys = rows * columns.n_columns + buckets
    order = cupy.argsort(keys)  # which is stable
    keys = keys[order]
    is_head = cupy.ones(total, dtype=bool)
    is_head[1:] = keys[1:] != keys[:-1]
    heads = cupy.flatnonzero(is_head)
    firsts = order[heads]
    return offsets_of(rows[firsts], n_rows), buckets[firsts], sum_between(heads, order, data)


# ------------------------------------------------------------------------------- kernel arguments


def _tiles(
    basis: Basis, x: DeviceCsr, starts: Array, base: int, total: int, tile: int
) -> tuple[Struct, Array]:
    """Return where outputs go, and the row and the run that every tile begins in."""
    targets, n_tiles, n_rows = struct(starts, base, total), -(-total // tile), x.shape[0]
    tile_starts = cupy.empty((n_tiles + 1, 2), dtype=np.int64)
    arguments = x.indptr, targets, np.int64(n_rows), basis_struct(basis)
    sizes = np.int64(tile), np.int64(n_tiles)
    find_tiles = kernel("find_tiles", basis.interaction_only)
    launch(find_tiles, n_tiles + 1, *arguments, *sizes, tile_starts)
    return targets, tile_starts


def basis_struct(basis: Basis) -> Struct:
    """Return a basis as kernels take it."""
    return _numbers(basis.n_features, basis.lowest, basis.highest, basis.include_bias)


def ends_struct(basis: Basis) -> Struct:
    """Return the last column of each degree; that of degree 0 is the bias."""
    return _numbers(0, *(end - 1 for end in basis.degree_ends()[1:]))


@lru_cache
def _numbers(*numbers: int) -> Struct:
    return struct(*numbers)


def hasher_struct(columns: Any) -> Struct:
    """Return the hash function of hashed columns as kernels take it."""
    z = (columns.seed + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return struct(columns.n_columns, 2**31 if columns.alternate_sign else 0, z ^ (z >> 31))


def _run_bytes(value: int, word: int, highest: int) -> int:
    """Return the size of what a run's outputs share: Shared of fill.cu."""
    size = -(-(max(highest - 1, 1) * value + 4) // word) * word + word
    return 16 if size <= 16 else -(-size // 8) * 8


def _slot_bytes(value: int, word: int, highest: int) -> int:
    """Return the size of a Slot of fill.cu."""
    unit = max(value, word)
    return unit * (-(-(unit + highest * word) // unit) | 1)


def _capacity(
    basis: Basis, sizes: tuple[int, int], row_size: float, longest: int
) -> tuple[int, Struct, int]:
    """Return how many outputs a tile has, for how much of it there is room, and the bytes of that.

    sizes: bytes of a value and of an index. row_size: outputs of an average row. longest: the
    length of rows that are looked up in a table, or 0.
    """
    highest, strict = basis.highest, basis.interaction_only
    length = max((row_size * factorial(highest)) ** (1 / highest) - (highest + 1) / 2, 0.5)
    by_table = longest > 0
    for tile in TILES:
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
        segment_bytes = n_segments * (12 if strict else 8)
        # A multiple of 64 still: what lies behind the slots is aligned to 8 bytes.
        n_values = min(n_values, (MOST_SHARED_BYTES - segment_bytes) // slot_size // 64 * 64)
        needed = max(n_runs * run_size, n_values * slot_size + segment_bytes)
        if needed <= ENOUGH_SHARED_BYTES or tile == TILES[-1]:
            break
    return tile, np.array([n_runs, n_values, n_segments], dtype=np.int32).view(_CAPACITY), needed


def _device() -> int:
    device: int = cupy.cuda.runtime.getDevice()
    return device


def table_of(basis: Basis) -> tuple[Array, int]:
    """Return the tuples of all places, and the length of rows that have them."""
    return _table(basis.highest, basis.interaction_only, _device())


@lru_cache(maxsize=64)
def _table(highest: int, strict: bool, device: int) -> tuple[Array, int]:
    dtype = np.uint32 if highest <= 4 else np.uint64
    longest = LONGEST.get(highest, 0)
    if longest == 0:
        return cupy.full(1, np.iinfo(dtype).max, dtype=dtype), 0  # the bias of interactions
    size = comb(longest + highest - 1, highest)
    if strict:
        size = sum(comb(longest, d) for d in range(highest + 1))
    table = cupy.empty(size, dtype=dtype)
    launch(kernel("make_table", highest, strict), size, np.int32(longest), np.uint64(size), table)
    cupy.cuda.get_current_stream().synchronize()  # another stream may use it next
    return table, longest
