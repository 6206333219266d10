"""The operations of an engine, and what it reads of a basis, of columns and of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
CsrArrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # indptr, indices, data


class Basis(Hashable, Protocol):
    """The monomials of an expansion; see `basis.MonomialBasis`."""

    @property
    def n_features(self) -> int:
        """Number of input columns."""
        ...

    @property
    def lowest(self) -> int:
        """Lowest degree of a column other than the bias."""
        ...

    @property
    def highest(self) -> int:
        """Highest degree that has a column."""
        ...

    @property
    def interaction_only(self) -> bool:
        """Whether there are only products of distinct input columns."""
        ...

    @property
    def include_bias(self) -> bool:
        """Whether column 0 is the constant 1."""
        ...

    def degree_ends(self) -> list[int]:
        """Return a list whose element d is one past the last column of degree d.

        For a degree without columns, element d is the number of its monomials.
        """
        ...


class Columns(Protocol):
    """Which output columns there are; see `columns.spaces`.

    Depending on `kind`, there are more attributes: chosen columns have `ranks`, hashed columns have
    `alternate_sign` and `seed`.
    """

    @property
    def kind(self) -> str:
        """One of "all", "chosen" and "hashed"."""
        ...

    @property
    def basis(self) -> Basis:
        """The monomials that are computed."""
        ...

    @property
    def n_columns(self) -> int:
        """Number of output columns."""
        ...


class CsrRows(Protocol):
    """Checked CSR arrays; see `matrix.canonical.CanonicalCsr`."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        ...

    @property
    def indptr(self) -> NDArray[Any]:
        """Where each row begins in `indices` and `data`."""
        ...

    @property
    def indices(self) -> NDArray[Any]:
        """Column of each stored value."""
        ...

    @property
    def data(self) -> NDArray[Any]:
        """The stored values."""
        ...


class HashFunction(Protocol):
    """The parameters of a hash function of monomials; see `columns.spaces.HashedColumns`."""

    @property
    def n_columns(self) -> int:
        """Number of columns to hash to."""
        ...

    @property
    def alternate_sign(self) -> bool:
        """Whether the hash also decides the sign of a value."""
        ...

    @property
    def seed(self) -> int:
        """Seed that selects the function."""
        ...


class Expansion(Protocol):
    """An expansion that is never built, to multiply with. It can be pickled."""

    def apply(
        self, coefficients: NDArray[Any], out: NDArray[Any], n_outputs: int, n_threads: int
    ) -> None:
        """Write the expansion times coefficients."""
        ...

    def apply_transposed(
        self, weights: NDArray[Any], out: NDArray[Any], n_outputs: int, n_threads: int
    ) -> None:
        """Add the transposed expansion times weights of the rows."""
        ...


class Engine(Protocol):
    """The operations of every engine; `cpu` documents them in full."""

    def keeping_threads(self) -> AbstractContextManager[Callable[..., Any]]:
        """Give call(function, *arguments), between whose calls threads wait."""
        ...

    def count(self, columns: Columns, x: CsrRows) -> Int64s:
        """Return the offsets of each row's outputs."""
        ...

    def fill(
        self, columns: Columns, x: CsrRows, rows: slice, out: CsrArrays, n_threads: int
    ) -> int:
        """Write indptr, indices and data of some rows."""
        ...

    def filling_bytes(
        self,
        columns: Columns,
        row_lengths: tuple[tuple[int, int], ...],
        itemsize: int,
        n_threads: int,
    ) -> int:
        """Return how many bytes `fill` takes besides its output, for any of some rows."""
        ...

    def fill_dense(
        self, columns: Columns, x: NDArray[Any], out: NDArray[Any], n_threads: int
    ) -> None:
        """Write every element of a dense expansion."""
        ...

    def expansion(self, columns: Columns, x: CsrRows) -> Expansion:
        """Return the expansion of x, to multiply with."""
        ...

    def gram(
        self, columns: Columns, x: CsrRows, z: CsrRows, out: NDArray[Any], n_threads: int
    ) -> None:
        """Write the inner products of the expanded rows of x and z."""
        ...

    def row_norms(self, columns: Columns, x: CsrRows, out: NDArray[Any], n_threads: int) -> None:
        """Write the Euclidean norm of every expanded row."""
        ...

    def observe(
        self,
        tally: Any,
        basis: Basis,
        x: CsrRows,
        rows: slice,
        least: int,
        most: int,
        n_threads: int,
    ) -> bool:
        """Add the columns that occur in at least `least` of some rows to a tally."""
        ...

    def observing_bytes(self, basis: Basis, index_size: int, n_threads: int) -> tuple[int, int]:
        """Return how many bytes `observe` may need per stored value, and per stored column."""
        ...
