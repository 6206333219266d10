"""What kernels take of bases and columns: numbers, tables and structs."""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import Any

import cupy
import numpy as np

from polysparse.engine.descriptions import Basis
from polysparse.gpu.compiling import (
    GROUPED,
    INTERACTIONS,
    OF_TERMS,
    WITH_POWERS,
    Struct,
    kernel,
    launch,
    struct,
)
from polysparse.gpu.containers import Array
from polysparse.gpu.group_tables import depths_of, groups_of_features, terms_of

# Rows of up to so many values, with the 1 in front, are looked up in a table of tuples; by degree.
LONGEST = {1: 64, 2: 64, 3: 160, 4: 64, 5: 32, 6: 20, 7: 14, 8: 12}

ALL = 0, 0, 0  # in place of chosen columns


def has_degrees(basis: Basis) -> bool:
    """Return whether there is any column but the bias."""
    return basis.highest >= max(basis.lowest, 1)


def kind_of(basis: Basis) -> int:
    """Return which tuples the rows of a basis have: a constant that kernels are compiled for."""
    if basis._is_grouped:
        return GROUPED if basis.terms is None else OF_TERMS
    return INTERACTIONS if basis.interaction_only else WITH_POWERS


def basis_numbers(basis: Basis) -> tuple[int, ...]:
    """Return the members of the struct of a basis."""
    return basis.n_features, basis.lowest, basis.highest, int(basis.include_bias)


@lru_cache
def last_columns(basis: Basis) -> tuple[int, ...]:
    """Return the last column of each degree, modulo 2^64; that of degree 0 is the bias."""
    return 0, *(end - 1 for end in basis._degree_ends()[1:])


def basis_struct(basis: Basis) -> Struct:
    """Return a basis as kernels take it."""
    return struct(*basis_numbers(basis))


def ends_struct(basis: Basis) -> Struct:
    """Return the last column of each degree as kernels take them."""
    return struct(*last_columns(basis))


def hasher_struct(columns: Any) -> Struct:
    """Return the hash function of hashed columns as kernels take it."""
    z = (columns.seed + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return struct(columns.n_columns, 2**31 if columns.alternate_sign else 0, z ^ (z >> 31))


def rank_keys_struct(basis: Basis, choice: tuple[Any, ...] = ALL) -> Struct:
    """Return what outputs are known by, if that is their column, as kernels take it: keys.cu.

    choice: chosen columns, where to begin to look for one, and by how many bits that is shifted.
    """
    if basis.terms is not None:
        return struct(*choice)
    last = cupy.asarray(np.array([each % 2**64 for each in last_columns(basis)], dtype=np.uint64))
    if basis._is_grouped:
        return struct(basis.n_features, last, depths_of(basis, _device()), *choice)
    return struct(basis.n_features, last, *choice)


def tuples_struct(basis: Basis, led: Array | None) -> Struct:
    """Return the tuples of rows, as kernels take them: tuples.cu.

    led: those that each stored value leads, if there are groups and degrees above 1.
    """
    if basis.terms is not None:
        return struct(*terms_of(basis, _device()))
    if basis._is_grouped:
        return struct(0, 0) if led is None else struct(led, led.shape[1])
    return struct(*table_of(basis))


def grouping_struct(basis: Basis) -> Struct:
    """Return the groups of features and the terms of a basis: Grouping of inner_products.cu."""
    if not basis._is_grouped:
        return struct(0, 0, 0, 0)
    if basis.terms is None:
        return struct(groups_of_features(basis, _device()), 0, 0, 0)
    return struct(0, *terms_of(basis, _device()))


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
