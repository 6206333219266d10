"""K-simplex numbers in exact integers of any size."""

from __future__ import annotations

from math import comb


def count_monomials(n: int, degree: int, interaction_only: bool) -> int:
    """Monomials of one degree in n variables: the K-simplex number T_degree(n), or C(n, degree)."""
    if degree == 0:
        return 1
    return comb(n, degree) if interaction_only else comb(n + degree - 1, degree)
