"""Tables of groups and terms on a GPU, for features that are sorted by group.

Each is kept for the bases that were used last.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from polysparse.engine.descriptions import Basis
from polysparse.gpu.containers import Array
from polysparse.machine import require_memory

KEPT = 4  # bases


def _has_powers(basis: Basis) -> NDArray[np.bool_]:
    """Return of each group whether a monomial may have its feature more than once."""
    has_powers: NDArray[np.bool_] = (basis.groups.sizes == 1) & basis._has_powers
    return has_powers


@lru_cache(maxsize=KEPT)
def groups_of_features(basis: Basis, device: int) -> Array:
    """Return the group of each feature, or its complement if the group has powers; int32."""
    _require_room(basis)
    groups = np.arange(basis.groups.n_groups, dtype=np.int32)
    groups = np.where(_has_powers(basis), ~groups, groups)
    return _sent(np.repeat(groups, basis.groups.sizes))


@lru_cache(maxsize=KEPT)
def depths_of(basis: Basis, device: int) -> Array:
    """Return how many k-tuples are led by a feature after each one, modulo 2^64.

    Row k - 1 has those of degree k. With E_k(g) monomials of degree k in groups g, g + 1, ..., that
    are E_k(g + 1), and E_{k-1} of what may follow for each later member of the group.
    """
    _require_room(basis)
    sizes, starts = basis.groups.sizes.astype(np.uint64), basis.groups.starts
    n_groups = len(sizes)
    following = np.arange(n_groups) + ~_has_powers(basis)
    group_of = np.repeat(np.arange(n_groups), basis.groups.sizes)
    later = (starts[group_of + 1] - 1 - np.arange(basis.n_features)).astype(np.uint64)
    counts = np.ones(n_groups + 1, dtype=np.uint64)
    depths = np.empty((max(basis.highest, 1), basis.n_features), dtype=np.uint64)
    for row in depths:
        tails = counts[following]
        counts = np.append(np.cumsum((sizes * tails)[::-1])[::-1], np.uint64(0))
        row[:] = counts[group_of + 1] + later * tails[group_of]
    return _sent(depths)


@lru_cache(maxsize=KEPT)
def terms_of(basis: Basis, device: int) -> tuple[Array, Array, int]:
    """Return the terms of a basis, their members, and the number of terms: places.hpp."""
    assert basis.terms is not None
    sizes, starts = basis.groups.sizes.tolist(), basis.groups.starts.tolist()
    terms: list[tuple[int, ...]] = []
    members: list[tuple[int, ...]] = []
    column = int(basis.include_bias)
    for term in basis.terms:
        terms.append((len(members), column % 2**64))
        stride, own = 1, []
        for group in reversed(term):
            own.append((starts[group], starts[group + 1], stride % 2**64))
            stride *= sizes[group]
        members += reversed(own)
        column += stride
    terms.append((len(members), column % 2**64))
    tables = (_sent(np.array(table, dtype=np.uint64)) for table in (terms, members))
    return *tables, len(basis.terms)


def _require_room(basis: Basis) -> None:
    """Raise MemoryError if tables with numbers of each feature, made here first, would not fit."""
    n_features, n_groups = basis.n_features, basis.groups.n_groups
    require_memory(
        8 * (basis.highest + 4) * (n_features + n_groups),
        f"the tables of {n_features:,} features in {n_groups:,} groups",
        "Use fewer features or a lower degree.",
    )


def _sent(table: NDArray[Any]) -> Array:
    """Return a table on the current device."""
    sent = cupy.asarray(table)
    cupy.cuda.get_current_stream().synchronize()  # another stream may use it next
    return sent
