"""Expansions: planned, whole, or in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse import _kernels
from polysparse.basis import Degree, MonomialBasis
from polysparse.blocks import RowBlocks
from polysparse.canonical import CanonicalCsr, as_canonical, as_canonical_csr, as_csr
from polysparse.machine import require_memory, threads_for
from polysparse.planning import ExpansionPlan

# Outputs in one task of a thread; 0 lets the kernel choose. Lowered in tests.
TASK_OUTPUTS = 0

# Reused blocks of this size stay in cache: 2 to 4 times as fast as memory, measured with 2 threads.
CACHE_PER_THREAD = 2**23


def plan(
    X: Any, degree: Degree = 2, *, interaction_only: bool = False, include_bias: bool = True
) -> ExpansionPlan:
    """Say what `expand` would return, without computing it.

    Parameters
    ----------
    X : sparse matrix or array, or array-like, of shape (n_rows, n_features)
    degree, interaction_only, include_bias
        As in `expand`.

    Returns
    -------
    ExpansionPlan
        Its `shape`, `nnz`, `index_dtype` and `nbytes` are exact; printed, it is a table.

    Examples
    --------
    >>> import polysparse
    >>> from scipy.sparse import identity
    >>> polysparse.plan(identity(1000, format="csr"), degree=4).nbytes
    88008
    """
    x = as_canonical(X)
    basis = MonomialBasis(
        x.shape[1], degree, interaction_only=interaction_only, include_bias=include_bias
    )
    return plan_expansion(basis, x)


def expand(
    X: Any,
    degree: Degree = 2,
    *,
    interaction_only: bool = False,
    include_bias: bool = True,
    n_jobs: int | None = None,
    max_bytes: int | str | None = "available",
) -> Any:
    """Polynomial features of a matrix: CSR in, CSR out.

    Parameters
    ----------
    X : sparse matrix or array, or array-like, of shape (n_rows, n_features)
        Any SciPy format. Indices may be unsorted or repeated, arrays may be read-only or
        memory-mapped; X is never changed. A dense X gives a dense result.
    degree : int or tuple (min_degree, max_degree), default=2
        Degrees of the monomials. An int is the maximum.
    interaction_only : bool, default=False
        Only products of distinct features.
    include_bias : bool, default=True
        Whether to prepend a column of ones.
    n_jobs : int, optional
        Threads to use. By default every core that this process may use, lowered by
        OMP_NUM_THREADS. The result does not depend on it.
    max_bytes : int, "available" or None, default="available"
        Refuse, before anything is allocated, a result larger than this many bytes, or than the
        memory at hand. None: never refuse.

    Returns
    -------
    csr_array, csr_matrix or ndarray of shape (n_rows, n_columns)
        Of X's container family, columns in scikit-learn's order, indices sorted and unique, int32
        whenever they fit.

    See Also
    --------
    plan : What the result will be.
    iter_expand : The same in blocks of rows, in bounded memory.

    Examples
    --------
    >>> import polysparse
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[0.0, 2.0, 3.0], [5.0, 0.0, 0.0]])
    >>> polysparse.expand(X, degree=2, include_bias=False).toarray()
    array([[ 0.,  2.,  3.,  0.,  0.,  0.,  4.,  6.,  9.],
           [ 5.,  0.,  0., 25.,  0.,  0.,  0.,  0.,  0.]])
    """
    x = as_canonical(X, n_jobs)
    basis = MonomialBasis(
        x.shape[1], degree, interaction_only=interaction_only, include_bias=include_bias
    )
    return expand_in(basis, x, n_jobs=n_jobs, max_bytes=max_bytes)


def plan_expansion(basis: MonomialBasis, x: CanonicalCsr | NDArray[Any]) -> ExpansionPlan:
    """Plan of canonical input in a given basis."""
    if x.shape[1] != basis.n_features:
        raise ValueError(f"X has {x.shape[1]} features; the basis has {basis.n_features}.")
    lengths = None
    if isinstance(x, CanonicalCsr):
        lengths = tuple(_kernels.count_row_lengths(x.indptr))
    return ExpansionPlan(basis, x.shape[0], x.dtype, lengths)


def expand_in(
    basis: MonomialBasis,
    x: CanonicalCsr | NDArray[Any],
    *,
    n_jobs: int | None,
    max_bytes: int | str | None,
    order: str = "C",
) -> Any:
    """Expansion of canonical input in a given basis."""
    planned = plan_expansion(basis, x)
    planned.require_fits(max_bytes)
    n_threads = threads_for(n_jobs, planned.nnz)
    if isinstance(x, CanonicalCsr):
        room = Room(planned.n_rows, planned.nnz, planned.index_dtype, planned.dtype)
        return expand_rows(basis, x, slice(0, planned.n_rows), room, n_threads)
    out = allocate(planned.shape, x.dtype, order)
    _kernels.fill_dense(basis.native, x, out, n_threads)
    return out


def iter_expand(
    X: Any,
    degree: Degree = 2,
    *,
    interaction_only: bool = False,
    include_bias: bool = True,
    n_jobs: int | None = None,
    max_bytes: int = 2**28,
    reuse: bool = False,
) -> Iterator[tuple[slice, Any]]:
    """Polynomial features of a sparse matrix, one block of rows after the other.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_rows, n_features)
    degree, interaction_only, include_bias, n_jobs
        As in `expand`.
    max_bytes : int, default=2**28
        No block is larger than this.
    reuse : bool, default=False
        Build every block in the memory of the one before, and keep blocks small enough for the
        processor's cache, whatever max_bytes is. It is two to four times as fast, because fresh
        memory is slow to get; but a block is then valid only until the next is asked for: use it
        or copy it within the loop.

    Yields
    ------
    rows : slice
        The rows of X that the block holds.
    block : csr_array or csr_matrix
        Their expansion: the same rows of what `expand` returns.

    Examples
    --------
    >>> import polysparse
    >>> from scipy.sparse import identity
    >>> X = identity(1000, format="csr")
    >>> for rows, block in polysparse.iter_expand(X, degree=2, max_bytes=20_000):
    ...     print(rows, block.nnz)
    slice(0, 499, None) 1497
    slice(499, 998, None) 1497
    slice(998, 1000, None) 6
    """
    x = as_canonical_csr(X, n_jobs)
    basis = MonomialBasis(
        x.shape[1], degree, interaction_only=interaction_only, include_bias=include_bias
    )
    return iter_expand_in(basis, x, n_jobs=n_jobs, max_bytes=max_bytes, reuse=reuse)


def iter_expand_in(
    basis: MonomialBasis, x: CanonicalCsr, *, n_jobs: int | None, max_bytes: int, reuse: bool
) -> Iterator[tuple[slice, Any]]:
    """Blocks of canonical input in a given basis. What is wrong is raised before the first."""
    planned = plan_expansion(basis, x)
    planned.require_countable()
    offsets = np.empty(x.shape[0] + 1, dtype=np.int64)
    _kernels.fill_row_offsets(basis.native, x.indptr, offsets)
    n_threads = threads_for(n_jobs, planned.nnz)
    wanted_bytes = CACHE_PER_THREAD * n_threads if reuse else None
    blocks = RowBlocks(offsets, basis.n_columns, x.dtype, max_bytes, wanted_bytes)
    require_memory(min(blocks.limit, planned.nbytes), "A block", "Give a lower max_bytes.")

    def expanded() -> Iterator[tuple[slice, Any]]:
        shared = Room(*blocks.largest_size, blocks.index_dtype, x.dtype) if reuse else None
        for rows in blocks:
            room = shared or Room(*blocks.size_of(rows), blocks.index_dtype, x.dtype)
            yield rows, expand_rows(basis, x, rows, room, n_threads)

    return expanded()


def allocate(shape: int | tuple[int, ...], dtype: np.dtype[Any], order: str = "C") -> NDArray[Any]:
    """Every output array comes from here, so that tests can poison it."""
    return np.empty(shape, dtype=dtype, order="F" if order == "F" else "C")


class Room:
    """Arrays for a CSR result of at most so many rows and stored values."""

    def __init__(
        self, n_rows: int, nnz: int, index_dtype: np.dtype[Any], dtype: np.dtype[Any]
    ) -> None:
        self.indptr = allocate(n_rows + 1, index_dtype)
        self.indices = allocate(nnz, index_dtype)
        self.data = allocate(nnz, dtype)


def expand_rows(
    basis: MonomialBasis, x: CanonicalCsr, rows: slice, room: Room, n_threads: int
) -> Any:
    """Count and fill some rows of x, in the room given."""
    row_offsets = x.indptr[rows.start : rows.stop + 1]
    n_rows = rows.stop - rows.start
    indptr = room.indptr[: n_rows + 1]
    _kernels.fill_row_offsets(basis.native, row_offsets, indptr)
    nnz = int(indptr[-1])
    indices, data = room.indices[:nnz], room.data[:nnz]
    _kernels.fill(
        basis.native,
        row_offsets,
        x.indices,
        x.data,
        x.shape[1],
        indptr,
        indices,
        data,
        n_threads,
        TASK_OUTPUTS,
    )
    return as_csr((n_rows, basis.n_columns), indptr, indices, data, is_array=x.is_array)
