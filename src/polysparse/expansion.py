"""Expansions: planned, whole, or in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse import _kernels
from polysparse.basis import Degree
from polysparse.blocks import RowBlocks
from polysparse.canonical import CanonicalCsr, as_canonical, as_canonical_csr, as_csr, as_sparse
from polysparse.columns import ColumnSpace, CsrArrays, as_column_space
from polysparse.machine import require_memory, threads_for
from polysparse.planning import ExpansionPlan, index_dtype_for

# Outputs in one task of a thread; 0 lets the kernel choose. Lowered in tests.
TASK_OUTPUTS = 0

# Of the indices of selected columns, as the kernels write them.
NATIVE = np.dtype(np.int32)

# Reused blocks of this size stay in cache: 2 to 4 times as fast as memory, measured with 2 threads.
CACHE_PER_THREAD = 2**23


def plan(
    X: Any,
    degree: Degree = 2,
    *,
    interaction_only: bool = False,
    include_bias: bool = True,
    columns: Any = None,
) -> ExpansionPlan:
    """Say what `expand` would return, without holding it.

    Parameters
    ----------
    X : sparse matrix or array, or array-like, of shape (n_rows, n_features)
    degree, interaction_only, include_bias, columns
        As in `expand`. Without `columns` nothing is computed but the sizes of rows; which of the
        chosen or hashed ones a row has shows only in making it, so with `columns` that is done, a
        few rows at a time.

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
    space = as_column_space(
        columns,
        x.shape[1],
        degree,
        interaction_only=interaction_only,
        include_bias=include_bias,
    )
    planned = plan_expansion(space, x)
    return planned if space.is_exact else count_stored(planned, x)


def expand(
    X: Any,
    degree: Degree = 2,
    *,
    interaction_only: bool = False,
    include_bias: bool = True,
    columns: Any = None,
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
    columns : array-like of int, ObservedPolynomialFeatures or HashedPolynomialFeatures, optional
        Which columns the result has; by default all. An array names columns of the full expansion,
        rising. An estimator has a degree, interaction_only and include_bias of its own. With
        `columns` the result is sparse, also for a dense X.
    n_jobs : int, optional
        Threads to use. By default every core that this process may use, lowered by
        OMP_NUM_THREADS. The result does not depend on it.
    max_bytes : int, "available" or None, default="available"
        Refuse, before anything is allocated, a result larger than this many bytes, or than the
        memory at hand; with `columns`, as soon as it shows. None: never refuse.

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
    space = as_column_space(
        columns,
        x.shape[1],
        degree,
        interaction_only=interaction_only,
        include_bias=include_bias,
    )
    return expand_in(space, x, n_jobs=n_jobs, max_bytes=max_bytes)


def plan_expansion(columns: ColumnSpace, x: CanonicalCsr | NDArray[Any]) -> ExpansionPlan:
    """Plan of canonical input in given columns; an upper bound if they are not exact."""
    n_features = columns.basis.n_features
    if x.shape[1] != n_features:
        raise ValueError(f"X has {x.shape[1]} features; the basis has {n_features}.")
    if not isinstance(x, CanonicalCsr) and not columns.is_exact:
        x = as_sparse(x)
    lengths = None
    if isinstance(x, CanonicalCsr):
        lengths = tuple(_kernels.count_row_lengths(x.indptr))
    return ExpansionPlan(columns, x.shape[0], x.dtype, lengths)


def count_stored(planned: ExpansionPlan, x: CanonicalCsr | NDArray[Any]) -> ExpansionPlan:
    """The exact plan of columns that are not, by making every row once."""
    blocks = iter_expand_in(planned.columns, as_sparse(x), n_jobs=None, max_bytes=2**62, reuse=True)
    return count_in_blocks(planned, (block for _, block in blocks))


def count_in_blocks(planned: ExpansionPlan, blocks: Iterable[Any]) -> ExpansionPlan:
    """The exact plan, from all blocks of the expansion."""
    ends = planned.columns.degree_ends
    below, nnz = dict.fromkeys(ends, 0), 0  # stored values before the end of each degree, and all
    for block in blocks:
        nnz += block.nnz
        for d, end in ends.items():
            below[d] += int(np.count_nonzero(block.indices < end))
    return planned.with_found(below, nnz)


def expand_in(
    columns: ColumnSpace,
    x: CanonicalCsr | NDArray[Any],
    *,
    n_jobs: int | None,
    max_bytes: int | str | None,
    order: str = "C",
) -> Any:
    """Expansion of canonical input in given columns."""
    planned = plan_expansion(columns, x)
    n_threads = threads_for(n_jobs, planned.nnz)
    if not columns.is_exact:
        return _expand_selected(planned, as_sparse(x), n_threads, max_bytes)
    planned.require_fits(max_bytes)
    if isinstance(x, CanonicalCsr):
        room = Room(planned.n_rows, planned.nnz, planned.index_dtype, planned.dtype)
        return expand_rows(columns, x, slice(0, planned.n_rows), room, n_threads)
    out = allocate(planned.shape, x.dtype, order)
    _kernels.fill_dense(columns.basis.native, x, out, n_threads)
    return out


def _expand_selected(
    planned: ExpansionPlan, x: CanonicalCsr, n_threads: int, max_bytes: int | str | None
) -> Any:
    """Expansion whose size shows only when it is made.

    Room is set aside for the largest that it can be, or that is allowed, but memory is taken only
    by what is written.
    """
    planned.require_countable()
    most = planned.most_stored(max_bytes)
    room = Room(planned.n_rows, most, NATIVE, planned.dtype, index_dtype_for(most))
    rows = slice(0, planned.n_rows)
    nnz = planned.columns.fill(x, rows, room.arrays, n_threads, TASK_OUTPUTS)
    if nnz < 0:
        more = room.indices.itemsize + room.data.itemsize
        planned.refuse(max_bytes, "at least ", room.nbytes + more)
    room.trim(nnz)
    return _as_selected(planned.columns, room.arrays, x.is_array)


def _as_selected(columns: ColumnSpace, arrays: CsrArrays, is_array: bool) -> Any:
    """CSR of selected columns, with indices as wide as they must be."""
    indptr, indices, data = arrays
    index_dtype = index_dtype_for(max(columns.n_columns, len(data)))
    indptr, indices = (a.astype(index_dtype, copy=False) for a in (indptr, indices))
    return as_csr((len(indptr) - 1, columns.n_columns), indptr, indices, data, is_array=is_array)


def iter_expand(
    X: Any,
    degree: Degree = 2,
    *,
    interaction_only: bool = False,
    include_bias: bool = True,
    columns: Any = None,
    n_jobs: int | None = None,
    max_bytes: int = 2**28,
    reuse: bool = False,
) -> Iterator[tuple[slice, Any]]:
    """Polynomial features of a sparse matrix, one block of rows after the other.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_rows, n_features)
    degree, interaction_only, include_bias, columns, n_jobs
        As in `expand`.
    max_bytes : int, default=2**28
        No block is larger than this, nor would be with all columns.
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
    space = as_column_space(
        columns,
        x.shape[1],
        degree,
        interaction_only=interaction_only,
        include_bias=include_bias,
    )
    return iter_expand_in(space, x, n_jobs=n_jobs, max_bytes=max_bytes, reuse=reuse)


def iter_expand_in(
    columns: ColumnSpace, x: CanonicalCsr, *, n_jobs: int | None, max_bytes: int, reuse: bool
) -> Iterator[tuple[slice, Any]]:
    """Blocks of canonical input in given columns. What is wrong is raised before the first."""
    planned = plan_expansion(columns, x)
    planned.require_countable()
    offsets = np.empty(x.shape[0] + 1, dtype=np.int64)
    _kernels.fill_row_offsets(columns.counting, x.indptr, offsets)
    if not columns.is_exact:  # no row has more than there are columns
        np.cumsum(np.minimum(np.diff(offsets), columns.n_columns), out=offsets[1:])
    n_threads = threads_for(n_jobs, planned.nnz)
    wanted_bytes = CACHE_PER_THREAD * n_threads if reuse else None
    blocks = RowBlocks(offsets, columns.n_columns, x.dtype, max_bytes, wanted_bytes)
    require_memory(min(blocks.limit, planned.nbytes), "A block", "Give a lower max_bytes.")
    index_dtype = blocks.index_dtype if columns.is_exact else NATIVE

    def room_for(n_rows: int, nnz: int) -> Room:
        return Room(n_rows, nnz, index_dtype, x.dtype, blocks.index_dtype)

    def expanded() -> Iterator[tuple[slice, Any]]:
        shared = room_for(*blocks.largest_size) if reuse else None
        for rows in blocks:
            room = shared or room_for(*blocks.size_of(rows))
            yield rows, expand_rows(columns, x, rows, room, n_threads)

    return expanded()


def allocate(shape: int | tuple[int, ...], dtype: np.dtype[Any], order: str = "C") -> NDArray[Any]:
    """Every output array comes from here, so that tests can poison it."""
    return np.empty(shape, dtype=dtype, order="F" if order == "F" else "C")


class Room:
    """Arrays for a CSR result of at most so many rows and stored values."""

    def __init__(
        self,
        n_rows: int,
        nnz: int,
        index_dtype: np.dtype[Any],
        dtype: np.dtype[Any],
        offset_dtype: np.dtype[Any] | None = None,
    ) -> None:
        self.indptr = allocate(n_rows + 1, offset_dtype or index_dtype)
        self.indices = allocate(nnz, index_dtype)
        self.data = allocate(nnz, dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def arrays(self) -> CsrArrays:
        """indptr, indices and data."""
        return self.indptr, self.indices, self.data

    def trim(self, nnz: int) -> None:
        """Give back what is not used. Nobody else may hold the arrays."""
        for array in (self.indices, self.data):
            array.resize(nnz, refcheck=False)


def expand_rows(
    columns: ColumnSpace, x: CanonicalCsr, rows: slice, room: Room, n_threads: int
) -> Any:
    """Fill some rows of x, in room that is large enough."""
    n_rows = rows.stop - rows.start
    indptr, indices, data = room.indptr[: n_rows + 1], room.indices, room.data
    nnz = columns.fill(x, rows, (indptr, indices, data), n_threads, TASK_OUTPUTS)
    arrays = indptr, indices[:nnz], data[:nnz]
    if not columns.is_exact:
        return _as_selected(columns, arrays, x.is_array)
    return as_csr((n_rows, columns.n_columns), *arrays, is_array=x.is_array)
