"""What the size of an expansion depends on, of all that is in a matrix."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.simplex import count_monomials
from polysparse.machine import format_count

# Stored values that can be counted in bytes by int64, at 16 bytes each and an offset beside it.
MAX_STORED = 2**58


@dataclass(frozen=True)
class RowProfile:
    """How many rows store how many values.

    The one place that knows how a row's outputs follow from what it stores. `engine.count` is its
    counterpart for single rows.

    Attributes
    ----------
    lengths : tuple of (int, int)
        Distinct numbers of stored values, rising, each with the number of rows that have it.
    """

    lengths: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of_dense(cls, shape: tuple[int, int]) -> RowProfile:
        """A matrix that stores everything."""
        n_rows, n_features = shape
        return cls(((n_features, n_rows),))

    def __add__(self, other: RowProfile) -> RowProfile:
        """The rows of both."""
        lengths = Counter(dict(self.lengths))
        lengths.update(dict(other.lengths))
        return RowProfile(tuple(sorted(lengths.items())))

    @cached_property
    def n_rows(self) -> int:
        """Rows in all."""
        return sum([rows for _, rows in self.lengths])

    @property
    def n_stored(self) -> int:
        """Stored values in all."""
        return sum(length * rows for length, rows in self.lengths)

    def outputs_by_degree(self, basis: MonomialBasis) -> dict[int, int]:
        """Outputs of each degree that has a column; degree 0 is the bias. Exact at any size."""
        outputs = {0: self.n_rows} if basis.include_bias else {}
        interaction_only = basis.interaction_only
        for d in range(basis.lowest, basis.highest + 1):
            counts = [rows * count_monomials(n, d, interaction_only) for n, rows in self.lengths]
            outputs[d] = sum(counts)
        return outputs

    def outputs(self, basis: MonomialBasis) -> int:
        """Outputs in all."""
        return sum(self.outputs_by_degree(basis).values())

    def largest_row(self, basis: MonomialBasis) -> int:
        """Outputs of the row that has the most."""
        longest = max((n for n, _ in self.lengths), default=0)
        return RowProfile(((longest, 1),)).outputs(basis)


def require_countable(n_outputs: int) -> None:
    """Raise if there are more stored values than arrays can be sized for."""
    if n_outputs > MAX_STORED:
        raise MemoryError(
            f"The expansion would have {format_count(n_outputs)} stored values, more than can "
            "be counted: reduce the degree or set interaction_only=True."
        )
