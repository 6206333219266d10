"""The verbs of an engine, and what it needs to know of a basis, of columns and of a matrix."""

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
    def n_features(self) -> int: ...
    @property
    def lowest(self) -> int: ...
    @property
    def highest(self) -> int: ...
    @property
    def interaction_only(self) -> bool: ...
    @property
    def include_bias(self) -> bool: ...

    def degree_ends(self) -> list[int]:
        """[d]: one past the last column of degree d, or the monomials of a degree without any."""
        ...


class Columns(Protocol):
    """Which output columns there are; see `columns.spaces`.

    By their `kind`, chosen columns have `ranks`, too; hashed ones `alternate_sign` and `seed`.
    """

    @property
    def kind(self) -> str: ...
    @property
    def basis(self) -> Basis: ...
    @property
    def n_columns(self) -> int: ...


class CsrRows(Protocol):
    """Checked CSR arrays; see `matrix.canonical.CanonicalCsr`."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def indptr(self) -> NDArray[Any]: ...
    @property
    def indices(self) -> NDArray[Any]: ...
    @property
    def data(self) -> NDArray[Any]: ...


class HashFunction(Protocol):
    """What decides where a monomial is hashed to; see `columns.spaces.HashedColumns`."""

    @property
    def n_columns(self) -> int: ...
    @property
    def alternate_sign(self) -> bool: ...
    @property
    def seed(self) -> int: ...


class Engine(Protocol):
    """What every engine can do. The documentation of the verbs is that of `cpu`."""

    def count(self, columns: Columns, x: CsrRows) -> Int64s: ...

    def fill(
        self, columns: Columns, x: CsrRows, rows: slice, out: CsrArrays, n_threads: int
    ) -> int: ...

    def fill_dense(
        self, columns: Columns, x: NDArray[Any], out: NDArray[Any], n_threads: int
    ) -> None: ...

    def observe(
        self, tally: Any, basis: Basis, x: CsrRows, rows: slice, most: int, n_threads: int
    ) -> bool: ...

    def observing_bytes(self, basis: Basis, index_size: int, n_threads: int) -> int: ...
