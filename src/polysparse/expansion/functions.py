"""The public functions plan, expand and iter_expand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polysparse.basis.degrees import Degree
from polysparse.columns.arguments import (
    DEGREE,
    INCLUDE_BIAS,
    INTERACTION_ONLY,
    as_column_space,
    groups_or_names,
)
from polysparse.columns.spaces import ColumnSpace
from polysparse.dispatch import dispatch
from polysparse.expansion.by_blocks import count_stored, iter_expand_columns
from polysparse.expansion.planning import ExpansionPlan, plan_expansion
from polysparse.expansion.whole import expand_columns
from polysparse.matrix.canonical import Canonical, as_canonical
from polysparse.matrix.out_argument import require_apart_from
from polysparse.observation.tally import observed_columns

# Ways out of a refusal, besides other parameters.
WAYS_OUT = (
    "iter_expand yields it in blocks of rows within a limit that you set. "
    "max_bytes=None tries anyway",
)


@dispatch("plan")
def plan(
    X: Any,
    degree: Degree = DEGREE,
    *,
    interaction_only: bool = INTERACTION_ONLY,
    include_bias: bool = INCLUDE_BIAS,
    groups: Any = None,
    terms: Any = None,
    columns: Any = None,
    n_jobs: int | None = None,
) -> ExpansionPlan:
    """Describe what `expand` would return, without allocating it.

    Parameters
    ----------
    X : sparse matrix or array, or array-like, of shape (n_rows, n_features)
        The matrix to expand.
    degree, interaction_only, include_bias, groups, terms, columns, n_jobs
        As in `expand`. Without `columns`, only the sizes of rows are computed. Which chosen or
        hashed columns a row has is known only once it is expanded, so with `columns` every row is
        expanded, a few rows at a time.

    Returns
    -------
    ExpansionPlan
        Its `shape`, `nnz`, `index_dtype` and `nbytes` are exact. It prints as a table.

    See Also
    --------
    expand : Compute the expansion.

    Examples
    --------
    >>> import polysparse
    >>> from scipy.sparse import identity
    >>> polysparse.plan(identity(1000, format="csr"), degree=4).nbytes
    88008
    """
    space, x = _read(X, columns, degree, interaction_only, include_bias, groups, terms, n_jobs)
    planned = plan_expansion(space, x)
    return count_stored(planned, x.as_sparse(), n_jobs) if planned.is_upper_bound else planned


@dispatch("expand")
def expand(
    X: Any,
    degree: Degree = DEGREE,
    *,
    interaction_only: bool = INTERACTION_ONLY,
    include_bias: bool = INCLUDE_BIAS,
    groups: Any = None,
    terms: Any = None,
    columns: Any = None,
    n_jobs: int | None = None,
    max_bytes: int | str | None = "available",
    out: Any = None,
) -> Any:
    """Compute the polynomial features of a matrix: CSR in, CSR out.

    Parameters
    ----------
    X : sparse matrix or array, array-like, or dask array, of shape (n_rows, n_features)
        The matrix to expand, in any SciPy format. Indices may be unsorted or repeated, and arrays
        may be read-only or memory-mapped; X is never changed. A dense X gives a dense result.
        Integers and booleans are expanded as float64, float16 as float32. The blocks of a dask
        array are sparse or dense. A CSR matrix of CuPy or PyTorch on a GPU is expanded there.
    degree : int or tuple (min_degree, max_degree), default=2
        Degrees of the monomials. If a single int is given, it is the maximum degree.
    interaction_only : bool, default=False
        If True, interactions use each feature at most once, and there are no powers.
    include_bias : bool, default=True
        If True, a column of ones is prepended.
    groups : sequence of (str or None), mapping of str to int, or sequence of int, optional
        Groups of features, such as the levels of a categorical variable: each interaction uses at
        most one feature per group. A label for each feature (None for a feature that is not in a
        group), a mapping of labels to the sizes of contiguous groups, or a list of sizes; see
        MonomialBasis.
    terms : sequence of (str or tuple of str), optional
        Which groups interact, instead of all up to a degree: formulas such as "user:item",
        "user*hour" or "(a + b + c)**2", or tuples of labels. Without `groups`, labels are the names
        of the columns of a DataFrame, or "x0", "x1", ...
    columns : {"all", "observed", "hashed"}, array-like of int, or a transformer, optional
        The columns of the result; by default all. "observed" keeps only the columns that occur in
        X; "hashed" hashes all of them to 2**20. An array lists columns of the full expansion in
        increasing order. An ObservedPolynomialFeatures, HashedPolynomialFeatures or
        PolynomialFeatures uses its own degree, interaction_only and include_bias: ValueError is
        raised if another one is given. Unless all columns are requested, the result is sparse, even
        for a dense X. To find the "observed" columns of a dask array, its blocks are computed.
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS. The result does not depend on it.
    max_bytes : int, "available" or None, default="available"
        Raise MemoryError, before anything is allocated, if the result would be larger than this
        many bytes, or than the available memory. With `columns`, the error is raised as soon as the
        size is known. Choosing or hashing the columns of long rows takes additional memory, which
        counts from 8 MB on; if there is too little for all threads, fewer are used. None removes
        the limit. Not used if `out` is passed.
    out : CSR matrix or array, tuple of three arrays, or ndarray, optional
        Where to write the result, instead of new memory. For a sparse result, pass an earlier
        result, which is overwritten, or arrays (indptr, indices, data), which may be longer than
        the result. For a dense result, pass an array of its shape. ValueError is raised if they are
        too small, have another dtype, are read-only, or share memory with X. Large results are
        often about twice as fast, because new memory is slow to obtain.

    Returns
    -------
    csr_array, csr_matrix, ndarray or dask array of shape (n_rows, n_columns)
        The expansion, in the container family of X, with columns in scikit-learn's order. Indices
        are sorted and unique, and int32 whenever they fit. For a dask array, a lazy array whose
        blocks are the expansions of the blocks of X. If `out` is passed, the result is a matrix
        whose arrays are the beginning of those arrays, or `out` itself if it is dense. On a GPU,
        the result has the type of X.

    See Also
    --------
    plan : Describe the result in advance.
    iter_expand : Compute the same in blocks of rows, in bounded memory.

    Notes
    -----
    Values are converted to the floating-point type of the result first. Entries that are stored
    more than once are then summed in that type, in the order in which they are stored. For floats,
    this matches ``X.toarray()`` bit for bit, from every format. For integers,
    SciPy's ``toarray`` sums in the type of X, where 100 + 100 is -56 for int8; here it is 200.

    X must not be changed while it is expanded, for example by another thread. Offsets
    (``X.indptr``) are copied before they are checked, so changing them has no effect. The values
    and indices of a CSR matrix are not copied. If they change, no memory outside of the arrays is
    read or written, but the values of the result are undefined. Without `columns`, its indices are
    undefined, too, and SciPy's functions do not check them.

    A dask array is expanded by a task for each block of rows. The result is lazy, but if `columns`
    is "observed", blocks are computed to count their columns. Blocks may have any number of rows,
    even if Dask does not know it. If the columns are in several chunks, these are joined first,
    which copies X once. `max_bytes` is the limit of a block. `n_jobs` is the number of threads of a
    task, by default one, because Dask runs a task on every core.

    If `out` is a matrix whose arrays are the beginning of larger arrays, such as a result that was
    itself written to `out`, the larger arrays may be written to. So a loop can pass the last result
    as `out`, if the first result was the largest. The arrays of a tuple are never written to beyond
    their ends. After an error or Ctrl-C, their contents are undefined.

    Examples
    --------
    >>> import polysparse
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[0.0, 2.0, 3.0], [5.0, 0.0, 0.0]])
    >>> polysparse.expand(X, degree=2, include_bias=False).toarray()
    array([[ 0.,  2.,  3.,  0.,  0.,  0.,  4.,  6.,  9.],
           [ 5.,  0.,  0., 25.,  0.,  0.,  0.,  0.,  0.]])

    The next batch in the memory of this one:

    >>> XP = polysparse.expand(X, degree=2)
    >>> XP = polysparse.expand(X[:1], degree=2, out=XP)
    >>> XP.toarray()
    array([[1., 0., 2., 3., 0., 0., 0., 4., 6., 9.]])
    """
    space, x = _read(X, columns, degree, interaction_only, include_bias, groups, terms, n_jobs)
    if out is not None:
        for read in (X, getattr(x, "values", x)):  # what was given, and what is read of it
            require_apart_from(out, read)
    return expand_columns(space, x, n_jobs=n_jobs, max_bytes=max_bytes, ways_out=WAYS_OUT, out=out)


@dispatch("iter_expand")
def iter_expand(
    X: Any,
    degree: Degree = DEGREE,
    *,
    interaction_only: bool = INTERACTION_ONLY,
    include_bias: bool = INCLUDE_BIAS,
    groups: Any = None,
    terms: Any = None,
    columns: Any = None,
    n_jobs: int | None = None,
    max_bytes: int = 2**28,
    reuse: bool = False,
) -> Iterator[tuple[slice, Any]]:
    """Compute the polynomial features of a matrix, one block of rows at a time.

    Parameters
    ----------
    X : sparse matrix or array, array-like, or dask array, of shape (n_rows, n_features)
        The matrix to expand. Do not change it before the last block is computed. The blocks of a
        dask array are computed one after the other, and expanded in this process.
    degree, interaction_only, include_bias, groups, terms, columns, n_jobs
        As in `expand`.
    max_bytes : int, default=2**28
        Maximum size of a block in bytes. With `columns`, a block would not exceed it even if it had
        all columns; memory to choose or hash the columns of long rows counts as in `expand`, and is
        at most half of it unless a single thread needs more.
    reuse : bool, default=False
        If True, build every block in the memory of the previous one, and keep blocks small enough
        for the processor's cache even if `max_bytes` is larger. Two to four times as fast, because
        fresh memory is slow to obtain. A block is then valid only until the next one is requested:
        use it or copy it within the loop.

    Yields
    ------
    rows : slice
        The rows of X in the block.
    block : csr_array, csr_matrix or ndarray
        Their expansion: the same rows of what `expand` returns, dense if that is dense.

    See Also
    --------
    expand : Compute the whole expansion at once.

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
    space, x = _read(X, columns, degree, interaction_only, include_bias, groups, terms, n_jobs)
    return iter_expand_columns(space, x, n_jobs=n_jobs, max_bytes=max_bytes, reuse=reuse)


def _read(
    X: Any,
    columns: Any,
    degree: Degree,
    interaction_only: bool,
    include_bias: bool,
    groups: Any,
    terms: Any,
    n_jobs: int | None,
) -> tuple[ColumnSpace, Canonical]:
    """Read X, and the columns requested for it; X is sparse unless all columns are requested."""
    x = as_canonical(X, n_jobs)
    space = as_column_space(
        columns,
        x.shape[1],
        observe=lambda basis: observed_columns(basis, x.as_sparse(), n_jobs),
        names=getattr(X, "columns", None),
        degree=degree,
        interaction_only=interaction_only,
        include_bias=include_bias,
        groups=groups_or_names(groups, terms, getattr(X, "columns", None)),
        terms=terms,
    )
    return space, x if space.is_exact else x.as_sparse()
