"""The attributes that an engine reads of a basis, of columns and of a matrix."""

from __future__ import annotations

from collections.abc import Hashable
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
        """Whether interactions use each column at most once, without powers."""
        ...

    @property
    def include_bias(self) -> bool:
        """Whether column 0 is the constant 1."""
        ...

    @property
    def groups(self) -> Any:
        """The groups of features, or None; see `basis.FeatureGroups`."""
        ...

    @property
    def terms(self) -> tuple[tuple[int, ...], ...] | None:
        """The groups of each term, or None."""
        ...

    @property
    def _is_grouped(self) -> bool:
        """Whether groups or terms leave monomials out."""
        ...

    @property
    def _has_powers(self) -> bool:
        """Whether some feature may occur more than once in a monomial."""
        ...

    def _degree_ends(self) -> list[int]:
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

    @property
    def has_distinct_groups(self) -> bool:
        """Whether every row is known to have at most one value of each group of features."""
        ...

    @property
    def row_groups(self) -> tuple[int, ...]:
        """The group of each value of a row, if it is known to be the same for all rows; or ()."""
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
