"""The part of a matrix that the size of its expansion depends on: its row lengths."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.simplex import count_monomials
from polysparse.machine import format_count

# The arrays of this many stored values, at 16 bytes each plus an offset, have a size that int64
# can count in bytes.
MAX_STORED = 2**58


@dataclass(frozen=True)
class RowProfile:
    """How many rows store how many values.

    No other Python code knows how the number of a row's outputs follows from the number of values
    it stores. `engine.count` is the counterpart for single rows. With groups or terms the number
    also depends on which values a row stores: it is an upper bound here, exact in CountedProfile.

    Attributes
    ----------
    lengths : tuple of (int, int)
        The distinct numbers of stored values, increasing, each with its number of rows.
    """

    lengths: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of_dense(cls, shape: tuple[int, int]) -> RowProfile:
        """Return the profile of a matrix that stores every element."""
        n_rows, n_features = shape
        return cls(((n_features, n_rows),))

    def __add__(self, other: RowProfile) -> RowProfile:
        """Return the profile of the rows of both."""
        lengths = Counter(dict(self.lengths))
        lengths.update(dict(other.lengths))
        return RowProfile(tuple(sorted(lengths.items())))

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum([rows for _, rows in self.lengths])

    @property
    def n_stored(self) -> int:
        """Number of stored values in all rows."""
        return sum(length * rows for length, rows in self.lengths)

    def is_exact(self, basis: MonomialBasis) -> bool:
        """Return whether numbers of outputs are exact, not upper bounds."""
        return not basis._is_grouped

    def outputs_by_degree(self, basis: MonomialBasis) -> dict[int, int]:
        """Return the outputs of each degree that has a column; degree 0 is the bias."""
        outputs = {0: self.n_rows} if basis.include_bias else {}
        interaction_only = not basis._has_powers
        for d in range(basis.lowest, basis.highest + 1):
            counts = [rows * count_monomials(n, d, interaction_only) for n, rows in self.lengths]
            outputs[d] = sum(counts)
        return outputs

    def outputs(self, basis: MonomialBasis) -> int:
        """Return the number of outputs of all rows and degrees."""
        return sum(self.outputs_by_degree(basis).values())

    @property
    def longest(self) -> RowProfile:
        """The profile of the longest row alone."""
        return RowProfile(((max((n for n, _ in self.lengths), default=0), 1),))

    def largest_row(self, basis: MonomialBasis) -> int:
        """Return the number of outputs of the row that has the most."""
        return self.longest.outputs(basis)


@dataclass(frozen=True)
class CountedProfile(RowProfile):
    """Rows whose outputs were counted, for one basis with groups or terms.

    Attributes
    ----------
    counted : tuple of int
        Outputs of each degree, from 0 to the highest of the basis.
    most : int
        Outputs of the row that has the most.
    """

    counted: tuple[int, ...] = ()
    most: int = 0

    @classmethod
    def of_interactions(cls, profile: RowProfile, basis: MonomialBasis) -> CountedProfile:
        """Return the profile of rows with at most one value of each group, without powers."""
        outputs = profile.outputs_by_degree(basis)
        counted = tuple(outputs.get(d, 0) for d in range(basis.highest + 1))
        return cls(profile.lengths, counted, profile.largest_row(basis))

    def is_exact(self, basis: MonomialBasis) -> bool:
        """Return True."""
        return True

    def outputs_by_degree(self, basis: MonomialBasis) -> dict[int, int]:
        """Return the outputs of each degree that has a column, exactly; degree 0 is the bias."""
        degrees = [0] * basis.include_bias + list(range(basis.lowest, basis.highest + 1))
        return {d: self.counted[d] for d in degrees}

    def largest_row(self, basis: MonomialBasis) -> int:
        """Return the number of outputs of the row that has the most."""
        return self.most


def require_countable(n_outputs: int) -> None:
    """Raise MemoryError if there are more stored values than arrays can be sized for."""
    if n_outputs > MAX_STORED:
        raise MemoryError(
            f"The expansion would have {format_count(n_outputs)} stored values, more than can "
            "be counted: reduce the degree or set interaction_only=True."
        )
