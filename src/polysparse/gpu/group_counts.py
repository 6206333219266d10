"""Counts of the tuples of rows with groups or terms on a GPU: groups.cu."""

from __future__ import annotations

import cupy
import numpy as np

from polysparse.engine.descriptions import Basis
from polysparse.gpu.arguments import basis_numbers, kind_of, tuples_struct
from polysparse.gpu.compiling import kernel, launch, struct
from polysparse.gpu.containers import Array
from polysparse.gpu.group_tables import groups_of_features


def count_led(basis: Basis, indptr: Array, indices: Array) -> Array | None:
    """Return how many tuples each stored value or a later one of its row leads.

    Row k - 2 has those of degree k. None if there are no such degrees, or terms.
    """
    if basis.terms is not None or basis.highest < 2:
        return None
    n_rows = len(indptr) - 1
    led = cupy.empty((basis.highest - 1, len(indices)), dtype=np.int64)
    groups = groups_of_features(basis, cupy.cuda.runtime.getDevice())
    numbers = np.int64(n_rows), np.int64(basis.highest)
    tuples = tuples_struct(basis, led)
    launch(kernel("count_led", indices.dtype), n_rows, indptr, indices, *numbers, groups, tuples)
    return led


def count_rows(
    basis: Basis, indptr: Array, indices: Array, led: Array | None, degree: int | None = None
) -> Array:
    """Return how many outputs each row has, in all or of one degree; 2^60 stands for more."""
    n_rows = len(indptr) - 1
    counts = cupy.empty(n_rows, dtype=np.int64)
    n_features, lowest, highest, bias = basis_numbers(basis)
    if degree is not None:
        lowest, highest, bias = max(degree, lowest), min(degree, highest), int(bias and degree == 0)
    count = kernel("count_rows", indices.dtype, kind_of(basis))
    numbers = np.int64(n_rows), struct(n_features, lowest, highest, bias)
    launch(count, n_rows, indptr, indices, *numbers, tuples_struct(basis, led), counts)
    return counts
