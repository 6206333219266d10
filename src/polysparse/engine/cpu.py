"""The CPU engine: every operation is a call of the compiled module, on every core."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from polysparse import thresholds
from polysparse.engine.descriptions import (
    Basis,
    Columns,
    CsrArrays,
    CsrRows,
    HashFunction,
    Int64s,
)
from polysparse.machine import require_memory

try:
    from polysparse import _kernels
    from polysparse._kernels import (
        SVMLIGHT_BYTES_PER_ROW,
        SVMLIGHT_BYTES_PER_VALUE,
        CsrFault,
        SvmlightFault,
        SvmlightText,
        Tally,
        add_rows,
        center,
        clear,
        combine,
        count_built,
        descend,
        divide,
        dot,
        dots,
        fill_built,
        fill_column_gram,
        fill_exponentials,
        fill_hessian_products,
        fill_log_losses,
        fill_logarithms,
        fill_probabilities,
        fill_target_losses,
        multiply,
        multiply_each,
        raise_shifted,
        rescale,
        sum_hessian_products,
        sum_log_losses,
        sum_target_losses,
        svmlight_layout,
        svmlight_skip,
        weighted_squares,
        write_svmlight,
    )
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "polysparse's compiled module is missing: was the package built? "
        "Install it with 'pip install .' from its source folder."
    ) from error

__all__ = [
    "SVMLIGHT_BYTES_PER_ROW",
    "SVMLIGHT_BYTES_PER_VALUE",
    "CsrFault",
    "Expansion",
    "OnlineLearner",
    "ScoreTest",
    "SvmlightFault",
    "SvmlightText",
    "Tally",
    "add_rows",
    "center",
    "clear",
    "combine",
    "compare_groups",
    "count",
    "count_built",
    "count_outputs",
    "count_row_lengths",
    "descend",
    "divide",
    "dot",
    "dots",
    "fill",
    "fill_built",
    "fill_column_gram",
    "fill_dense",
    "fill_exponentials",
    "fill_hessian_products",
    "fill_log_losses",
    "fill_logarithms",
    "fill_probabilities",
    "fill_target_losses",
    "filling_bytes",
    "filling_dense_bytes",
    "gram",
    "hash_tuples",
    "inspect",
    "keeping_threads",
    "multiply",
    "multiply_each",
    "number_objects",
    "observe",
    "observing_bytes",
    "raise_shifted",
    "rank",
    "rescale",
    "row_norms",
    "scale_blocks",
    "search",
    "sum_hessian_products",
    "sum_log_losses",
    "sum_target_losses",
    "svmlight_layout",
    "svmlight_skip",
    "unrank",
    "weighted_squares",
    "write_svmlight",
]


# -------------------------------------------------------------------------------- descriptions


@lru_cache(maxsize=16)
def _native_basis(
    basis: Basis,
    has_columns: bool = True,
    rows_are_distinct: bool = False,
    row_groups: tuple[int, ...] = (),
) -> _kernels.Basis:
    """Return the kernels' counterpart of a basis.

    With `has_columns=False` it only has the sizes of rows. `rows_are_distinct` and `row_groups` are
    what is known of the rows to expand, as in `CsrRows`.
    """
    ends = basis._degree_ends() if has_columns else [0] * (basis.highest + 1)
    native = _kernels.Basis(
        basis.n_features,
        basis.lowest,
        basis.highest,
        not basis._has_powers,
        basis.include_bias,
        ends,
    )
    if basis._is_grouped:
        require_memory(
            8 * (basis.highest + 1) * (basis.n_features + basis.groups.n_groups),
            f"the tables of {basis.n_features:,} features in {basis.groups.n_groups:,} groups",
            "Use fewer features or a lower degree.",
        )
        native.set_groups(basis.groups.sizes.tolist(), basis._has_powers)
        if basis.terms is not None:
            native.set_terms([list(term) for term in basis.terms])
        native.set_rows(rows_are_distinct, list(row_groups))
    return native


def _basis_for_rows(basis: Basis, x: CsrRows, has_columns: bool = True) -> _kernels.Basis:
    """Return the kernels' counterpart of a basis to expand x into, with what is known of x."""
    if not basis._is_grouped:
        return _native_basis(basis, has_columns)
    return _native_basis(basis, has_columns, x.has_distinct_groups, x.row_groups)


def _sizing_basis(columns: Columns) -> _kernels.Basis:
    """Return the basis for sizes only; that of hashed columns may exceed every index type."""
    return _native_basis(columns.basis, has_columns=columns.kind != "hashed")


# Keyed weakly: a look-up is as large as the columns it belongs to and must not outlive them.
_lookups: WeakKeyDictionary[Any, _kernels.Lookup] = WeakKeyDictionary()


def _lookup(columns: Any) -> _kernels.Lookup:
    """Return the table that maps a column of the basis to its position among the chosen ones."""
    found = _lookups.get(columns)
    if found is None:
        found = _lookups[columns] = _kernels.Lookup(_native_basis(columns.basis), columns.ranks)
    return found


def _hasher(function: HashFunction) -> _kernels.Hasher:
    return _kernels.Hasher(function.n_columns, function.alternate_sign, function.seed)


# --------------------------------------------------------------------------------------- threads


@contextmanager
def keeping_threads() -> Iterator[Callable[..., Any]]:
    """Give call(function, *arguments), whose calls share a thread pool.

    The threads end with the context. A fork, or a call during another, has threads of its own.
    """
    pool = _kernels.ThreadPool()
    try:
        yield pool.call
    finally:
        pool.shutdown()


# ------------------------------------------------------------------------------------- on tuples


def rank(basis: Basis, tuples: Int64s) -> Int64s:
    """Return the columns of increasing tuples, given as rows padded with -1."""
    out = np.empty(len(tuples), dtype=np.int64)
    _native_basis(basis).rank(tuples, out)
    return out


def unrank(basis: Basis, columns: Int64s) -> Int64s:
    """Return the tuples of columns, as rows padded with -1."""
    out = np.empty((len(columns), basis.highest), dtype=np.int64)
    _native_basis(basis).unrank(columns, out)
    return out


def hash_tuples(function: HashFunction, tuples: Int64s) -> tuple[Int64s, Int64s]:
    """Return the columns that increasing tuples are hashed to, and the signs of their values.

    With groups that are not contiguous, tuples are places of features that are sorted by group.
    """
    columns, signs = (np.empty(len(tuples), dtype=np.int64) for _ in range(2))
    _hasher(function).hash(tuples, columns, signs)
    return columns, signs


# ----------------------------------------------------------------------------------- on matrices


def inspect(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
    n_minor: int,
    n_threads: int,
) -> tuple[CsrFault, int, bool, int, bool]:
    """Check CSR arrays in one pass.

    Nothing is read past the end of an array, whatever the arrays hold.

    Returns
    -------
    fault : CsrFault
        The first fault, or `CsrFault.none`.
    where : int
        Position of the fault.
    increasing : bool
        Whether indices strictly increase within every row.
    stored_zeros : int
        Number of zeros that are stored explicitly.
    finite : bool
        Whether no stored value is infinite or NaN.
    """
    return _kernels.inspect(indptr, indices, data, n_minor, n_threads)


def count_row_lengths(indptr: NDArray[Any]) -> tuple[tuple[int, int], ...]:
    """Return the distinct row lengths in increasing order, each with its number of rows."""
    return tuple(_kernels.count_row_lengths(indptr))


def count(columns: Columns, x: CsrRows) -> Int64s:
    """Return, for each row, the number of outputs of all rows before it; the total comes last.

    Outputs are counted before any are dropped (chosen columns) or merged (hashed columns).
    """
    offsets = np.empty(x.shape[0] + 1, dtype=np.int64)
    basis = _basis_for_rows(columns.basis, x, has_columns=columns.kind != "hashed")
    _kernels.fill_row_offsets(basis, x.indptr, x.indices, offsets, 1)
    return offsets


def number_objects(
    objects: NDArray[np.object_], most: int
) -> tuple[NDArray[np.int32], NDArray[np.object_]] | None:
    """Return the number of the object in each place, and the objects; None if more than `most`.

    Places with the same object have the same number. Equal objects have different numbers: their
    addresses are compared, and nothing else is read of them.
    """
    values = np.ascontiguousarray(objects)
    addresses = np.ndarray(values.shape, np.uintp, buffer=values).astype(np.uint64, copy=False)
    numbers, firsts = np.empty(len(values), np.int32), np.empty(most, np.int64)
    n = _kernels.number_distinct(addresses, numbers, firsts)
    return None if n < 0 else (numbers, values[firsts[:n]])


def compare_groups(basis: Basis, x: CsrRows, n_threads: int) -> tuple[bool, tuple[int, ...]]:
    """Return `has_distinct_groups` and `row_groups` of rows whose features are sorted by group."""
    native = _native_basis(basis, has_columns=False)
    are_distinct, row_groups = _kernels.compare_groups(native, x.indptr, x.indices, n_threads)
    return are_distinct, tuple(row_groups)


def count_outputs(basis: Basis, x: CsrRows, n_threads: int) -> tuple[list[int], int]:
    """Return the outputs of each degree, and of the row that has the most, for grouped features.

    Numbers of 2**60 and more are returned as 2**60.
    """
    native = _basis_for_rows(basis, x, has_columns=False)
    return _kernels.count_outputs(native, x.indptr, x.indices, n_threads)


def fill(columns: Columns, x: CsrRows, rows: slice, out: CsrArrays, n_threads: int) -> int:
    """Write indptr, indices and data of some rows.

    Returns the number of stored values, or -1 if the arrays are too short for them. For all columns
    of a basis, indptr and indices have the same dtype; otherwise indices are int32.
    """
    row_offsets = x.indptr[rows.start : rows.stop + 1]
    return _FILLS[columns.kind](columns, row_offsets, x, out, n_threads, thresholds.TASK_OUTPUTS)


def _fill_all(
    columns: Columns, offsets: NDArray[Any], x: CsrRows, out: CsrArrays, *how: int
) -> int:
    basis = _basis_for_rows(columns.basis, x)
    indptr, indices, data = out
    if not _kernels.fill_row_offsets(basis, offsets, x.indices, indptr, how[0]):
        return -1
    nnz = int(indptr[-1])
    if nnz > len(indices):
        return -1
    filled = indptr, indices[:nnz], data[:nnz]
    _kernels.fill(basis, offsets, x.indices, x.data, x.shape[1], *filled, *how)
    return nnz


def _fill_chosen(
    columns: Columns, offsets: NDArray[Any], x: CsrRows, out: CsrArrays, *how: int
) -> int:
    if len(offsets) == 1:  # there are no rows, and a look-up takes long to build
        out[0][:] = 0
        return 0
    basis = _native_basis(columns.basis)
    return _kernels.fill_chosen(basis, _lookup(columns), offsets, x.indices, x.data, *out, *how)


def _fill_hashed(columns: Any, offsets: NDArray[Any], x: CsrRows, out: CsrArrays, *how: int) -> int:
    basis = _sizing_basis(columns)
    return _kernels.fill_hashed(basis, _hasher(columns), offsets, x.indices, x.data, *out, *how)


_FILLS: dict[str, Callable[..., int]] = {
    "all": _fill_all,
    "chosen": _fill_chosen,
    "hashed": _fill_hashed,
}


def filling_bytes(
    columns: Any, row_lengths: tuple[tuple[int, int], ...], itemsize: int, n_threads: int
) -> int:
    """Return how many bytes `fill` takes besides its output, for any of some rows.

    Row lengths are distinct and have their numbers of rows; the itemsize is that of values. All
    columns of a basis are filled in place, and take nothing of note.
    """
    how = row_lengths, itemsize, n_threads, thresholds.TASK_OUTPUTS
    if columns.kind == "chosen":
        return _kernels.choosing_bytes(_native_basis(columns.basis), columns.n_columns, *how)
    if columns.kind == "hashed":
        return _kernels.hashing_bytes(_sizing_basis(columns), _hasher(columns), *how)
    return 0


def fill_dense(columns: Columns, x: NDArray[Any], out: NDArray[Any], n_threads: int) -> None:
    """Write every element of a dense expansion, which has all columns.

    `out` is contiguous, in C or Fortran order.
    """
    if not columns.basis._is_grouped:
        _kernels.fill_dense(_native_basis(columns.basis), x, out, n_threads)
    elif out.size > 0:
        _fill_dense_as_csr(columns, x, out, n_threads)


def _fill_dense_as_csr(
    columns: Columns, x: NDArray[Any], out: NDArray[Any], n_threads: int
) -> None:
    """Expand rows as CSR that stores zeros, too: the stored values are the dense result."""
    n_features = x.shape[1]
    step = _dense_rows_together(columns, len(x))
    index_dtype = np.int32 if step * columns.n_columns <= thresholds.MAX_INT32 else np.int64
    indptr = np.arange(step + 1) * n_features
    indices = np.tile(np.arange(n_features), step)
    filled_indptr = np.empty(step + 1, index_dtype)
    filled_indices = np.empty(step * columns.n_columns, index_dtype)
    for start in range(0, len(x), step):
        part = x[start : start + step]
        n = len(part)
        rows = _StoredRows(
            (n, n_features), indptr[: n + 1], indices[: n * n_features], part.ravel()
        )
        block = out[start : start + step]
        values = block.reshape(-1)  # a copy, unless rows are contiguous
        filled = filled_indptr[: n + 1], filled_indices, values
        _fill_all(columns, rows.indptr, rows, filled, n_threads, thresholds.TASK_OUTPUTS)
        if not np.may_share_memory(values, block):
            block[:] = values.reshape(block.shape)


@dataclass(frozen=True)
class _StoredRows:
    """CSR rows that an engine reads."""

    shape: tuple[int, int]
    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    has_distinct_groups: bool = False
    row_groups: tuple[int, ...] = ()


def _dense_rows_together(columns: Columns, n_rows: int) -> int:
    """Return how many dense rows are expanded as CSR at a time: at least one."""
    longest = max(columns.n_columns, columns.basis.n_features, 1)
    return max(1, min(n_rows, thresholds.DENSE_OUTPUTS // longest))


def filling_dense_bytes(columns: Columns, n_rows: int, itemsize: int) -> int:
    """Return how many bytes `fill_dense` takes besides its output; the itemsize is of values."""
    if not columns.basis._is_grouped:
        return 0
    n_stored, n_outputs = columns.basis.n_features, columns.n_columns
    of_row = n_stored * (8 + itemsize) + n_outputs * (8 + itemsize) + 16
    return _dense_rows_together(columns, n_rows) * of_row


# ------------------------------------------------------------------------------------- products


class Expansion:
    """Matrix-vector products with the expansion of x, without building it. Can be pickled."""

    def __init__(self, columns: Any, x: CsrRows) -> None:
        self._columns = columns
        self._x = x

    def __reduce__(self) -> tuple[Any, ...]:
        return Expansion, (self._columns, self._x)

    def apply(
        self, coefficients: NDArray[Any], out: NDArray[Any], n_outputs: int, n_threads: int
    ) -> None:
        """Write the expansion times coefficients.

        Both are C-contiguous and of the dtype of x: one vector, or a table with a column for each.
        Coefficients have a number for each column of the expansion, `out` has one for each row.
        `n_outputs` is the number of outputs of the expansion.
        """
        how = n_outputs, n_threads, thresholds.TASK_OUTPUTS
        if self._fills_basis(out):
            of_all = np.zeros((self._columns.basis.n_columns, *out.shape[1:]), out.dtype)
            of_all[self._columns.ranks] = coefficients
            self._of_basis.apply(of_all, out, *how)
            if np.isfinite(out).all():
                return  # otherwise a value of a column that is not chosen, times 0, may be in it
        self._native.apply(coefficients, out, *how)

    def apply_transposed(
        self, weights: NDArray[Any], out: NDArray[Any], n_outputs: int, n_threads: int
    ) -> None:
        """Add the transposed expansion times weights of the rows to `out`.

        The arrays are as in `apply`, with those of weights and `out` exchanged.
        """
        how = n_outputs, n_threads, thresholds.TASK_OUTPUTS
        if self._fills_basis(out):
            of_all = np.zeros((self._columns.basis.n_columns, *out.shape[1:]), out.dtype)
            self._of_basis.apply_transposed(weights, of_all, *how)
            out += of_all[self._columns.ranks]
            return
        self._native.apply_transposed(weights, out, *how)

    def _fills_basis(self, vectors: NDArray[Any]) -> bool:
        """Return whether columns are chosen of so few that products with all of them are faster.

        No column is looked up then, which takes ten times as long as to multiply. The numbers of
        all columns must need little memory beside x, or beside those of the chosen ones.
        """
        columns = self._columns
        if columns.kind != "chosen":
            return False
        k = 1 if vectors.ndim == 1 else vectors.shape[1]
        most = max(len(self._x.data) // 4, 2 * k * columns.n_columns)
        return bool(k * columns.basis.n_columns <= most)

    @cached_property
    def _of_basis(self) -> _kernels.Expansion:
        basis = _basis_for_rows(self._columns.basis, self._x)
        return _kernels.Expansion(basis, basis, *self._arrays)

    @cached_property
    def _native(self) -> _kernels.Expansion:
        columns = self._columns
        if columns.kind == "all":
            return self._of_basis
        by = _lookup(columns) if columns.kind == "chosen" else _hasher(columns)
        return _kernels.Expansion(_sizing_basis(columns), by, *self._arrays)

    @property
    def _arrays(self) -> CsrArrays:
        return self._x.indptr, self._x.indices, self._x.data


# -------------------------------------------------------------------------------- inner products


def gram(columns: Columns, x: CsrRows, z: CsrRows, out: NDArray[Any], n_threads: int) -> None:
    """Write the inner products of the expanded rows of x and z, for all columns of a basis.

    Both may have fewer columns than the basis has features, if none is missing that both store, and
    the basis has no groups.
    """
    _kernels.fill_gram(
        _native_basis(columns.basis),
        *(x.indptr, x.indices, x.data),
        *(z.indptr, z.indices, z.data),
        x.shape[1],
        x is z,
        out.ravel(),
        n_threads,
    )


def row_norms(columns: Columns, x: CsrRows, out: NDArray[Any], n_threads: int) -> None:
    """Write the Euclidean norm of every expanded row, for all columns of a basis."""
    basis = _native_basis(columns.basis)
    _kernels.fill_row_norms(basis, x.indptr, x.indices, x.data, out, n_threads)


# ------------------------------------------------------------------------------ online learning


class OnlineLearner:
    """Learns from rows with FTRL-proximal, or scores them. It can be pickled; the state is kept by
    the caller.

    Parameters
    ----------
    columns : Columns
        Hashed columns have x expanded here. With others, x is expanded already.
    n_slots : int
        Number of columns that have a state: all hashed ones, or those of the expanded x.
    n_scores : int
        Number of scores for each row.
    how : tuple of bool, str, float and float
        Whether there are intercepts, the name of the loss, l1 and l2.
    """

    LOSSES = "two_classes", "classes", "squared", "poisson"

    def __init__(
        self, columns: Columns, n_slots: int, n_scores: int, how: tuple[bool, str, float, float]
    ) -> None:
        self._arguments = columns, n_slots, n_scores, how

    def __reduce__(self) -> tuple[Any, ...]:
        return OnlineLearner, self._arguments

    @cached_property
    def _native(self) -> _kernels.OnlineLearner:
        columns, n_slots, n_scores, (has_intercept, loss, *penalty) = self._arguments
        number = self.LOSSES.index(loss)
        native = _kernels.OnlineLearner(n_slots, n_scores, has_intercept, number, *penalty)
        if columns.kind == "hashed":
            native.set_hasher(_sizing_basis(columns), _hasher(columns))  # type: ignore[arg-type]
        return native

    def learn(
        self,
        x: CsrRows,
        targets: tuple[NDArray[np.float64], NDArray[np.float64]],
        blocks: tuple[Int64s, NDArray[np.float32], NDArray[np.float32]],
        learners: tuple[list[NDArray[np.float32]], NDArray[np.float64]],
        out: tuple[NDArray[np.float64], NDArray[np.float64], Int64s],
        n_threads: int,
    ) -> None:
        """Learn from rows.

        Parameters
        ----------
        x : CsrRows
            Rows, whose values are float32.
        targets : tuple of ndarray
            Targets and weights of the rows.
        blocks : tuple of ndarray
            Where blocks end; for each block the rates of all learners, and beta.
        learners : tuple of list and ndarray
            The state of each learner, of shape (n_slots + 1, n_scores, 2), and the sum of its
            losses so far. They change.
        out : tuple of ndarray
            The loss and the scores of each row by the leader, before they are learned from, and the
            number of blocks that are done, which is less than all if a signal handler raises.
        n_threads : int
            Number of threads.
        """
        states, losses = learners
        ends, rates, betas = blocks
        row_losses, scores, n_done = out
        self._native.learn(
            x.indptr,
            x.indices,
            x.data,
            *targets,
            ends,
            [state.reshape(-1) for state in states],
            rates.reshape(-1),
            betas,
            losses,
            row_losses,
            scores.reshape(-1),
            n_done,
            n_threads,
        )

    def score(
        self,
        x: CsrRows,
        state: NDArray[np.float32],
        rate: float,
        beta: float,
        out: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        """Write the scores of rows."""
        arrays = x.indptr, x.indices, x.data
        self._native.score(*arrays, state.reshape(-1), rate, beta, out.reshape(-1), n_threads)


def scale_blocks(
    x: CsrRows,
    starts: Int64s,
    limits: NDArray[np.float64],
    scales: NDArray[np.float64],
    out: NDArray[np.float32],
) -> tuple[Int64s, NDArray[np.float64]]:
    """Write the values of blocks, divided by the scales of their features, which grow first.

    Returns the features whose scales grew, and what the scales were before, in order.

    Parameters
    ----------
    x : CsrRows
        Rows, whose values are float64.
    starts : ndarray of int64
        Where the values of each block begin, and where those of the last one end.
    limits : ndarray of float64
        For each block, how many times as large as the scale of its feature a value may be. The
        scale of a feature with larger values becomes the largest one, divided by the limit.
    scales : ndarray of float64
        The scale of each feature; 0 before it occurs, so that its first scale is not divided.
    out : ndarray of float32
        Scaled values.
    """
    features, before = [np.empty(0, np.int64)], [np.empty(0)]
    capacity = max(1024, int(np.diff(starts).max(initial=0)))
    own_features, own_before = np.empty(capacity, np.int64), np.empty(capacity)
    block = 0
    while block < len(limits):
        arrays = starts, limits, x.indices, x.data, block, scales, own_features, own_before, out
        block, n = _kernels.scale_blocks(*arrays)
        features.append(own_features[:n].copy())
        before.append(own_before[:n].copy())
    return np.concatenate(features), np.concatenate(before)


# ---------------------------------------------------------------------------------- observation


def observe(
    tally: Tally, basis: Basis, x: CsrRows, rows: slice, least: int, most: int, n_threads: int
) -> bool:
    """Add the columns that occur in at least `least` of some rows to a tally.

    Returns False and leaves the tally unchanged if more than `most` columns are found or memory
    runs out.
    """
    row_offsets = x.indptr[rows.start : rows.stop + 1]
    native, task = _native_basis(basis), thresholds.TASK_OUTPUTS
    return tally.observe(native, row_offsets, x.indices, least, most, n_threads, task)


def observing_bytes(basis: Basis, index_size: int, n_threads: int) -> tuple[int, int]:
    """Return how many bytes `observe` may need per stored value, and per column that is stored.

    The columns that it finds come on top.
    """
    return _kernels.observing_bytes(_native_basis(basis), index_size, n_threads)


# ---------------------------------------------------------------------------------------- search


def search(
    basis: Basis,
    rows: CsrArrays,
    columns: tuple[Int64s, NDArray[np.uint8]],
    targets: tuple[NDArray[np.float64], NDArray[np.float64], tuple[float, float]],
    kind: tuple[int, bool, bool],
    limits: tuple[int, int, int, int],
    progress: Callable[[float], object],
) -> tuple[Int64s, Int64s, Int64s, NDArray[np.float64]] | None:
    """Return the columns of a basis with the largest scores, the best first.

    Parameters
    ----------
    basis : Basis
        Has no terms.
    rows : tuple of ndarray
        indptr, indices and data; data are empty if all are 1.
    columns : tuple of ndarray
        The feature of each column of the rows, and what it may be used for: 0 is nothing, 2 marks
        features of which a monomial needs one.
    targets : tuple
        Targets times weights, of shape (n_rows, n_targets); weights, empty if all are 1; their sum
        and maximum.
    kind : tuple of int, bool and bool
        Number of the score (dot, normalized, correlation), whether some value is negative, and
        whether a monomial needs a marked feature.
    limits : tuple of int
        How many to find, in how many rows each must be, how many more may be held whose scores are
        the same but for rounding, and the number of threads.
    progress : callable
        Called a few times a second with the share of the work that is done.

    Returns
    -------
    tuple of ndarray, or None
        Columns, numbers of rows, targets and scores; None if too many had to be held, or memory ran
        out.
    """
    found = _kernels.Found()
    values, weights, sums = targets
    score, is_signed, needs_marked = kind
    if not found.search(
        _native_basis(basis),
        *rows,
        *columns,
        values,
        weights,
        sums,
        score,
        is_signed,
        needs_marked,
        *limits,
        progress,
    ):
        return None
    return _arrays_of(found)


def _arrays_of(found: _kernels.Found) -> tuple[Int64s, Int64s, Int64s, NDArray[np.float64]]:
    """Return columns, numbers of rows, targets and scores."""
    n = found.size
    numbers = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    scores = np.empty(n)
    found.write(*numbers, scores)
    return *numbers, scores


class ScoreTest:
    """Score tests of the columns of a basis, for as many draws of residuals as are needed.

    Parameters
    ----------
    basis : Basis
        Has no terms, and at most `most_members` degrees.
    rows : tuple of ndarray
        indptr, indices and data; data are empty if all are 1. They are copied.
    features : ndarray of int64
        The feature of each column of the rows.
    weights : ndarray of float64
        Weights of the rows in the information; empty if all are 1.
    least : tuple of float and int
        The information that a column must have, for which `search/residual_scorer.hpp` has units;
        and in how many rows it must be, at least 2.
    n_threads : int
        Number of threads.
    """

    def __init__(
        self,
        basis: Basis,
        rows: CsrArrays,
        features: Int64s,
        weights: NDArray[np.float64],
        least: tuple[float, int],
        n_threads: int,
    ) -> None:
        uses = np.ones(len(features), np.uint8)
        self._test = _kernels.ScoreTest(
            _native_basis(basis), *rows, features, uses, weights, *least, n_threads
        )
        self._n_threads = n_threads

    def find_leaders(
        self,
        residuals: NDArray[np.float64],
        limits: tuple[int, int],
        progress: Callable[[float], object],
    ) -> tuple[int, Int64s, Int64s, NDArray[np.float64]] | None:
        """Return how many columns are tested, and those with the largest statistics.

        These are columns, their numbers of rows and signed roots of their statistics; `limits` are
        how many to find, and how many more may be held that tie with them but for rounding. None if
        that are too many, or memory ran out.
        """
        found = _kernels.Found()
        table = residuals.reshape(-1, 1)
        n_tested = self._test.find_leaders(table, *limits, self._n_threads, progress, found)
        if n_tested < 0:
            return None
        columns, counts, _, scores = _arrays_of(found)
        return n_tested, columns, counts, scores

    def find_maxima(
        self,
        residuals: NDArray[np.float64],
        excluded: Int64s,
        progress: Callable[[float], object],
    ) -> NDArray[np.float64]:
        """Return the largest statistic of each draw, a column of the residuals.

        Excluded columns, which are in increasing order, are left out.
        """
        maxima = np.empty(residuals.shape[1])
        if not self._test.find_maxima(residuals, excluded, self._n_threads, progress, maxima):
            raise MemoryError("Memory ran out while simulated targets were scored.")
        return maxima
