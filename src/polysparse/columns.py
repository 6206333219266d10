"""Which output columns there are: all of a basis, chosen ones, or hashed ones."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse import _kernels
from polysparse.basis import Degree, MonomialBasis, as_degree_range
from polysparse.canonical import CanonicalCsr
from polysparse.tuples import as_columns

# The native index of a column that is chosen or hashed is int32: so linear models take it.
MAX_SELECTED = 2**31 - 1

CsrArrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # indptr, indices, data


class ColumnSpace(Protocol):
    """The columns of an expansion, and the way to fill them."""

    @property
    def basis(self) -> MonomialBasis:
        """The monomials that are made, whether or not they have a column of their own."""
        ...

    @property
    def n_columns(self) -> int: ...

    @property
    def counting(self) -> _kernels.Basis:
        """The basis as far as the sizes of rows depend on it."""
        ...

    is_exact: bool  # every monomial of a row is stored: sizes are known before anything is made

    @property
    def degree_ends(self) -> dict[int, int]:
        """One past the last column of each degree; empty if columns have no degree."""
        ...

    def require_indexable(self) -> None:
        """Raise if there are more columns than can be numbered."""
        ...

    def fill(
        self,
        x: CanonicalCsr,
        rows: slice,
        out: CsrArrays,
        n_threads: int,
        task: int,
    ) -> int:
        """Write indptr, indices and data of some rows; return the stored values, -1 if too many."""
        ...


@dataclass(frozen=True)
class AllColumns:
    """Every column of a basis."""

    basis: MonomialBasis
    is_exact = True

    @property
    def n_columns(self) -> int:
        return self.basis.n_columns

    @property
    def counting(self) -> _kernels.Basis:
        return self.basis.native

    @property
    def degree_ends(self) -> dict[int, int]:
        return {d: columns.stop for d, columns in self.basis.degree_slices.items()}

    def require_indexable(self) -> None:
        self.basis.require_indexable()

    def fill(
        self,
        x: CanonicalCsr,
        rows: slice,
        out: CsrArrays,
        n_threads: int,
        task: int,
    ) -> int:
        row_offsets, (indptr, indices, data) = x.indptr[rows.start : rows.stop + 1], out
        _kernels.fill_row_offsets(self.counting, row_offsets, indptr)
        nnz = int(indptr[-1])
        _kernels.fill(
            self.counting,
            row_offsets,
            x.indices,
            x.data,
            x.shape[1],
            indptr,
            indices[:nnz],
            data[:nnz],
            n_threads,
            task,
        )
        return nnz


@dataclass(frozen=True, eq=False)
class ChosenColumns:
    """Some columns of a basis, in its order.

    Attributes
    ----------
    basis : MonomialBasis
    ranks : ndarray of int64
        Columns of the basis, rising.
    """

    basis: MonomialBasis
    ranks: NDArray[np.int64]
    is_exact = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is derived: the native lookup cannot be pickled."""
        return {"basis": self.basis, "ranks": self.ranks}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def n_columns(self) -> int:
        return len(self.ranks)

    @property
    def counting(self) -> _kernels.Basis:
        return self.basis.native

    @property
    def degree_ends(self) -> dict[int, int]:
        ends = {d: columns.stop for d, columns in self.basis.degree_slices.items()}
        return {d: int(np.searchsorted(self.ranks, end)) for d, end in ends.items()}

    @cached_property
    def lookup(self) -> _kernels.Lookup:
        """Where a column of the basis stands among the chosen ones."""
        self.require_indexable()
        return _kernels.Lookup(self.basis.native, self.ranks)

    def require_indexable(self) -> None:
        self.basis.require_indexable()
        if self.n_columns > MAX_SELECTED:
            raise ValueError(
                f"{self.n_columns:,} columns were chosen; at most {MAX_SELECTED:,} can be. Set "
                "max_columns, or raise min_count."
            )

    def fill(
        self,
        x: CanonicalCsr,
        rows: slice,
        out: CsrArrays,
        n_threads: int,
        task: int,
    ) -> int:
        row_offsets = x.indptr[rows.start : rows.stop + 1]
        return _kernels.fill_chosen(
            self.counting, self.lookup, row_offsets, x.indices, x.data, *out, n_threads, task
        )


@dataclass(frozen=True)
class HashedColumns:
    """A column for every value of a hash function. The basis may have any number of columns."""

    basis: MonomialBasis
    n_columns: int
    alternate_sign: bool
    seed: int
    is_exact = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is derived: the native twins cannot be pickled."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @cached_property
    def counting(self) -> _kernels.Basis:
        basis = self.basis
        no_columns = [0] * (basis.highest + 1)
        return _kernels.Basis(
            basis.n_features,
            basis.lowest,
            basis.highest,
            basis.interaction_only,
            basis.include_bias,
            no_columns,
        )

    @property
    def degree_ends(self) -> dict[int, int]:
        return {}

    @cached_property
    def hasher(self) -> _kernels.Hasher:
        """The hash function."""
        return _kernels.Hasher(self.n_columns, self.alternate_sign, self.seed)

    def require_indexable(self) -> None:
        """There is nothing that could be too much."""

    def fill(
        self,
        x: CanonicalCsr,
        rows: slice,
        out: CsrArrays,
        n_threads: int,
        task: int,
    ) -> int:
        row_offsets = x.indptr[rows.start : rows.stop + 1]
        return _kernels.fill_hashed(
            self.counting, self.hasher, row_offsets, x.indices, x.data, *out, n_threads, task
        )


def as_column_space(
    columns: Any,
    n_features: int,
    degree: Degree,
    *,
    interaction_only: bool,
    include_bias: bool,
) -> ColumnSpace:
    """Read what users give for columns: nothing, ranks, or an estimator that has columns."""
    if isinstance(columns, type) or hasattr(columns, "get_params"):
        if not hasattr(columns, "column_space") or isinstance(columns, type):
            raise TypeError(
                "columns must be an ObservedPolynomialFeatures, a HashedPolynomialFeatures, or "
                f"rising numbers of columns; got {columns!r}."
            )
        space: ColumnSpace = columns.column_space(n_features)
        _require_no_contradiction(space.basis, degree, interaction_only, include_bias)
        return space
    basis = MonomialBasis(
        n_features, degree, interaction_only=interaction_only, include_bias=include_bias
    )
    return AllColumns(basis) if columns is None else ChosenColumns(basis, as_ranks(basis, columns))


def _require_no_contradiction(
    basis: MonomialBasis, degree: Degree, interaction_only: bool, include_bias: bool
) -> None:
    """Raise if a parameter was given that the columns have otherwise."""
    given = {
        "degree": (as_degree_range(degree), (0, 2), (basis.min_degree, basis.max_degree)),
        "interaction_only": (interaction_only, False, basis.interaction_only),
        "include_bias": (include_bias, True, basis.include_bias),
    }
    for name, (value, default, own) in given.items():
        if value not in (default, own):
            raise ValueError(
                f"{name}={value} contradicts columns, which has {name}={own}: leave {name} out."
            )


def as_ranks(basis: MonomialBasis, columns: Any) -> NDArray[np.int64]:
    """Read rising columns of a basis; they are copied, so that nobody changes them later."""
    ranks = np.array(as_columns(basis, columns))
    require_rising(ranks)
    ranks.flags.writeable = False
    return ranks


def require_rising(ranks: NDArray[np.int64]) -> None:
    """Raise unless each column is larger than the one before."""
    falling = np.flatnonzero(ranks[1:] <= ranks[:-1])
    if len(falling):
        i = int(falling[0])
        raise ValueError(
            f"columns must rise, but columns[{i + 1}] is {ranks[i + 1]}, after {ranks[i]}: "
            "sort them, with numpy.unique."
        )
