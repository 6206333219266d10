"""plan, expand and iter_expand: the public functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polysparse.basis.degrees import Degree
from polysparse.columns.arguments import as_column_space
from polysparse.columns.spaces import ColumnSpace
from polysparse.expansion.by_blocks import count_stored, iter_expand_columns
from polysparse.expansion.planning import ExpansionPlan, plan_expansion
from polysparse.expansion.whole import expand_columns
from polysparse.matrix.canonical import Canonical, as_canonical, as_canonical_csr


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
    space, x = _settle(x, columns, degree, interaction_only, include_bias)
    planned = plan_expansion(space, x)
    return count_stored(planned, x.as_sparse()) if planned.is_upper_bound else planned


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
    space, x = _settle(x, columns, degree, interaction_only, include_bias)
    return expand_columns(space, x, n_jobs=n_jobs, max_bytes=max_bytes)


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
    space, _ = _settle(x, columns, degree, interaction_only, include_bias)
    return iter_expand_columns(space, x, n_jobs=n_jobs, max_bytes=max_bytes, reuse=reuse)


def _settle(
    x: Canonical, columns: Any, degree: Degree, interaction_only: bool, include_bias: bool
) -> tuple[ColumnSpace, Canonical]:
    """The columns that are meant for x, and x in a form that can be expanded in them."""
    space = as_column_space(
        columns,
        x.shape[1],
        degree,
        interaction_only=interaction_only,
        include_bias=include_bias,
    )
    return space, x if space.is_exact else x.as_sparse()
