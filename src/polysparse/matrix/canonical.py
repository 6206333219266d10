"""The single entry point for input: turn any matrix into arrays that an engine can trust."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.basis.groups import FeatureGroups
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.dispatch import require_in_memory
from polysparse.engine import cpu
from polysparse.machine import threads_for
from polysparse.matrix.checking import Arrays, inspect_arrays
from polysparse.matrix.formats import csr_arrays
from polysparse.matrix.output import as_csr
from polysparse.matrix.row_profile import CountedProfile, RowProfile

VALUE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True)
class CanonicalCsr:
    """A checked CSR matrix: columns increase within every row, and no zero is stored.

    indices and data may be the caller's own; they are only read, and may change at any time. indptr
    never is.
    """

    shape: tuple[int, int]
    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    is_array: bool  # whether X is of SciPy's array family (csr_array), not its matrix family
    sorted_for: FeatureGroups | None = None  # whose order the features are in
    has_distinct_groups: bool = False  # whether no row has two values of a group, if known
    row_groups: tuple[int, ...] = ()  # of the values of every row, if rows are known to be alike

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the values."""
        return self.data.dtype

    @cached_property
    def profile(self) -> RowProfile:
        """Row lengths, on which the size of the expansion depends."""
        return RowProfile(cpu.count_row_lengths(self.indptr))

    def profile_for(self, basis: MonomialBasis) -> RowProfile:
        """Return the profile that has the exact size of the expansion into a basis."""
        if not basis._is_grouped:
            return self.profile
        x = self.sorted_by_group(basis)
        if x.has_distinct_groups and basis.terms is None and not basis._has_powers:
            return CountedProfile.of_interactions(self.profile, basis)
        counted, most = cpu.count_outputs(basis, x, threads_for(None, len(x.indices)))
        return CountedProfile(self.profile.lengths, tuple(counted), most)

    def sorted_by_group(self, basis: MonomialBasis) -> CanonicalCsr:
        """Return the matrix with the features of a basis sorted by group, so that they adjoin."""
        groups = basis.groups
        if groups is None or not basis._is_grouped or self.sorted_for == groups:
            return self
        if self.shape[1] != basis.n_features:
            return self  # the planner raises the error
        x = self if groups.order is None else self._sorted_by(groups)
        n_threads = threads_for(None, len(x.indices))
        are_distinct, row_groups = cpu.compare_groups(basis, x, n_threads)
        return replace(
            x, sorted_for=groups, has_distinct_groups=are_distinct, row_groups=row_groups
        )

    def _sorted_by(self, groups: FeatureGroups) -> CanonicalCsr:
        assert groups.order is not None
        places = groups.places.astype(self.indices.dtype, copy=False)
        # indices may have changed since they were checked
        indices = places[np.minimum(self.indices, self.indices.dtype.type(self.shape[1] - 1))]
        arrays = _canonicalize(self.shape, (self.indptr, indices, self.data))
        return CanonicalCsr(self.shape, *arrays, is_array=self.is_array)

    def as_sparse(self) -> CanonicalCsr:
        """Return self."""
        return self

    def rows(self, rows: slice) -> CanonicalCsr:
        """Return some of the rows. Values and indices are views, not copies."""
        offsets = self.indptr[rows.start : rows.stop + 1]
        stored = slice(int(offsets[0]), int(offsets[-1]))
        return replace(
            self,
            shape=(rows.stop - rows.start, self.shape[1]),
            indptr=offsets - offsets[0],
            indices=self.indices[stored],
            data=self.data[stored],
        )

    def take(self, numbers: NDArray[np.intp]) -> CanonicalCsr:
        """Return rows by their numbers, in that order. Values and indices are copied."""
        own = as_csr(self.shape, self.indptr, self.indices, self.data, is_array=True)
        taken = own[numbers]
        arrays = {name: getattr(taken, name) for name in ("shape", "indptr", "indices", "data")}
        return replace(self, **arrays)


@dataclass(frozen=True)
class CanonicalDense:
    """A two-dimensional float array, aligned, with any strides."""

    values: NDArray[Any]
    sorted_for: FeatureGroups | None = None  # whose order the features are in, if it is not X's

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the values."""
        return self.values.dtype

    @property
    def profile(self) -> RowProfile:
        """Row lengths, on which the size of the expansion depends."""
        return RowProfile.of_dense(self.shape)

    def profile_for(self, basis: MonomialBasis) -> RowProfile:
        """Return the profile that has the exact size of the expansion into a basis."""
        if not basis._is_grouped:
            return self.profile
        n_rows, n_features = self.shape
        counted = [n_rows * basis.count(n_features, d) for d in range(basis.highest + 1)]
        return CountedProfile(self.profile.lengths, tuple(counted), basis.n_columns)

    def sorted_by_group(self, basis: MonomialBasis) -> CanonicalDense:
        """Return the matrix with the features of a basis sorted by group, so that they adjoin."""
        groups = basis.groups
        if groups is None or groups.order is None or self.sorted_for == groups:
            return self
        if self.shape[1] != basis.n_features:
            return self  # the planner raises the error
        return CanonicalDense(self.values[:, groups.order], sorted_for=groups)

    def as_sparse(self) -> CanonicalCsr:
        """Return the matrix as CSR, without its zeros."""
        return replace(as_canonical_csr(sparse.csr_matrix(self.values)), sorted_for=self.sorted_for)


Canonical = CanonicalCsr | CanonicalDense


def value_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the floating-point dtype in which values of `dtype` are expanded."""
    dtype = dtype.newbyteorder("=")
    if dtype in VALUE_DTYPES:
        return dtype
    if dtype.kind in "biu" or dtype == np.longdouble:
        return np.dtype(np.float64)
    if dtype == np.float16:
        return np.dtype(np.float32)
    if dtype.kind == "c":
        way_out = "Take its real part, X.real."
    else:
        way_out = (
            "Convert numbers with X.astype(float), or encode columns of text and categories with "
            "TableEncoder."
        )
    raise ValueError(
        f"X has dtype {dtype}, which cannot be expanded: real numbers are needed. {way_out}"
    )


def as_canonical(X: Any, n_jobs: int | None = None) -> Canonical:
    """Read a matrix of any kind; the result is sparse if X is sparse."""
    require_in_memory(X)
    if is_sparse_frame(X):
        X = X.sparse.to_coo()
    return as_canonical_csr(X, n_jobs) if sparse.issparse(X) else as_canonical_dense(X)


def is_sparse_frame(X: Any) -> bool:
    """Return whether X is a pandas DataFrame whose columns are all sparse with fill value 0."""
    dtypes = list(getattr(X, "dtypes", [])) if hasattr(X, "sparse") else []
    return bool(dtypes) and all(getattr(dtype, "fill_value", None) == 0 for dtype in dtypes)


def as_canonical_dense(X: Any) -> CanonicalDense:
    """Read anything array-like as a dense matrix."""
    if isinstance(X, np.ma.MaskedArray):
        raise ValueError("X is a masked array: pass X.filled(value), with the value you mean.")
    array = np.asarray(X)
    require_two_dimensions(array)
    array = array.astype(value_dtype(array.dtype), copy=False)
    itemsize = array.itemsize
    if not array.flags.aligned or any(stride % itemsize for stride in array.strides):
        array = array.copy()
    return CanonicalDense(array)


def as_canonical_csr(
    X: Any, n_jobs: int | None = None, dtype: np.dtype[Any] | None = None
) -> CanonicalCsr:
    """Read any SciPy sparse matrix or array. X itself is never changed.

    Values are converted first, to `dtype` or to the dtype in which they are expanded. Entries that
    are stored more than once are then summed in the order in which they are stored.
    """
    return inspect_csr(X, n_jobs, dtype)[0]


def inspect_csr(
    X: Any, n_jobs: int | None = None, dtype: np.dtype[Any] | None = None
) -> tuple[CanonicalCsr, bool]:
    """Return the same, and whether all stored values are finite."""
    require_two_dimensions(X)
    shape = int(X.shape[0]), int(X.shape[1])
    arrays = csr_arrays(X, dtype or value_dtype(X.dtype))
    found = inspect_arrays(*arrays, shape[1], "column", n_jobs)
    if not found.increasing or found.stored_zeros:
        arrays = _canonicalize(shape, arrays)
        inspect_arrays(*arrays, shape[1], "column", n_jobs)  # X may have changed meanwhile
    return CanonicalCsr(shape, *arrays, is_array=not sparse.isspmatrix(X)), found.finite


def _canonicalize(shape: tuple[int, int], arrays: Arrays) -> Arrays:
    """Return copies of inspected arrays with sorted columns, without repeats and zeros."""
    indptr, indices, data = arrays
    own = sparse.csr_matrix((data, indices, indptr), shape=shape, copy=True)
    own.sort_indices()
    if not own.has_canonical_format:
        _restore_order(own, indices, data)
        own.sum_duplicates()
    own.eliminate_zeros()
    return own.indptr, own.indices, own.data


def _restore_order(own: Any, indices: NDArray[Any], data: NDArray[Any]) -> None:
    """Let repeated entries of a sorted matrix follow each other as they did in its old arrays.

    SciPy's sorting is not stable. Only rows with repeats are sorted again.
    """
    n_rows = own.shape[0]
    rows = np.repeat(np.arange(n_rows), np.diff(own.indptr))
    is_repeat = (own.indices[1:] == own.indices[:-1]) & (rows[1:] == rows[:-1])
    has_repeats = np.zeros(n_rows, dtype=bool)
    has_repeats[rows[1:][is_repeat]] = True
    where = np.flatnonzero(has_repeats[rows])
    order = np.lexsort((indices[where], rows[where]))
    own.data[where] = data[where[order]]


def ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all numbers of some ranges, one range after the other."""
    before = np.cumsum(lengths) - lengths
    numbers: NDArray[np.int64] = np.arange(int(lengths.sum()), dtype=np.int64)
    numbers += np.repeat(starts - before, lengths)
    return numbers


def require_two_dimensions(X: Any) -> None:
    """Raise ValueError unless X has rows and columns."""
    if X.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, rows and features; got {X.ndim} (shape {X.shape})."
        )
