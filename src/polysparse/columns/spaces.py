"""AllColumns, ChosenColumns and HashedColumns: the three kinds of output columns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis

# Chosen and hashed columns are written with int32 indices, which every linear model accepts.
MAX_COMPACT_COLUMNS = 2**31 - 1
HASHED_COLUMNS = 2**20  # by default


class ColumnSpace(Protocol):
    """The columns of an expansion."""

    kind: str  # "all", "chosen" or "hashed"
    is_exact: bool  # whether all outputs of a row are stored, so that sizes are known in advance

    @property
    def basis(self) -> MonomialBasis:
        """The monomials that are computed, whether or not each has its own column."""
        ...

    @property
    def n_columns(self) -> int:
        """Number of output columns."""
        ...

    @property
    def degree_ends(self) -> dict[int, int]:
        """One past the last column of each degree; empty if columns have no degree."""
        ...

    def require_indexable(self) -> None:
        """Raise ValueError if there are more columns than can be numbered."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return what distinguishes these columns from others of the same basis, for JSON."""
        ...


@dataclass(frozen=True)
class AllColumns:
    """Every column of a basis."""

    basis: MonomialBasis
    kind = "all"
    is_exact = True

    @property
    def n_columns(self) -> int:
        """Number of columns of the basis."""
        return self.basis.n_columns

    @property
    def degree_ends(self) -> dict[int, int]:
        """One past the last column of each degree."""
        return {d: columns.stop for d, columns in self.basis.degree_slices.items()}

    def require_indexable(self) -> None:
        """Raise ValueError if the basis has more columns than int64 can number."""
        self.basis.require_indexable()

    def describe(self) -> dict[str, Any]:
        """Return the kind, for JSON."""
        return {"kind": self.kind}


@dataclass(frozen=True, eq=False)
class ChosenColumns:
    """Some columns of a basis, in the order of the basis.

    Attributes
    ----------
    basis : MonomialBasis
        The basis that the columns belong to.
    ranks : ndarray of int64
        Columns of the basis, strictly increasing.
    """

    basis: MonomialBasis
    ranks: NDArray[np.int64]
    kind = "chosen"
    is_exact = False

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, ChosenColumns)
            and self.basis == other.basis
            and np.array_equal(self.ranks, other.ranks)
        )

    def __hash__(self) -> int:
        return hash((self.basis, len(self.ranks), *self.ranks[:1], *self.ranks[-1:]))

    @property
    def n_columns(self) -> int:
        """Number of chosen columns."""
        return len(self.ranks)

    @property
    def degree_ends(self) -> dict[int, int]:
        """One past the last chosen column of each degree."""
        ends = {d: columns.stop for d, columns in self.basis.degree_slices.items()}
        return {d: int(np.searchsorted(self.ranks, end)) for d, end in ends.items()}

    def require_indexable(self) -> None:
        """Raise ValueError if int64 cannot number the basis, or int32 the chosen columns."""
        self.basis.require_indexable()
        if self.n_columns > MAX_COMPACT_COLUMNS:
            raise ValueError(
                f"{self.n_columns:,} columns were chosen; at most {MAX_COMPACT_COLUMNS:,} can be. "
                "Set max_columns, or raise min_count."
            )

    def describe(self) -> dict[str, Any]:
        """Return the kind, the number of columns and a digest of their ranks, for JSON."""
        little = np.ascontiguousarray(self.ranks, dtype="<i8")  # same digest on every machine
        digest = hashlib.sha256(little.view(np.uint8).data).hexdigest()
        return {"kind": self.kind, "n_columns": self.n_columns, "sha256": digest}


@dataclass(frozen=True)
class HashedColumns:
    """One column per value of a hash function. The basis may have any number of columns."""

    basis: MonomialBasis
    n_columns: int
    alternate_sign: bool
    seed: int
    kind = "hashed"
    is_exact = False

    @property
    def degree_ends(self) -> dict[int, int]:
        """Empty: a hashed column has no degree."""
        return {}

    def require_indexable(self) -> None:
        """Do nothing: the number of columns is a parameter, and never too large."""

    def with_n_columns(self, n_columns: int) -> HashedColumns:
        """Return as many columns of the same hash function as are wanted."""
        return replace(self, n_columns=n_columns)

    def describe(self) -> dict[str, Any]:
        """Return the kind and the parameters of the hash function, for JSON."""
        return {
            "kind": self.kind,
            "n_columns": self.n_columns,
            "alternate_sign": self.alternate_sign,
            "seed": self.seed,
        }
