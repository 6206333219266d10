"""K-simplex numbers, computed with exact integers of any size."""

from __future__ import annotations

from math import comb


def count_monomials(n: int, degree: int, interaction_only: bool) -> int:
    """Return the number of monomials of one degree in n variables.

    It is the K-simplex number T_degree(n) = C(n + degree - 1, degree), or C(n, degree) if only
    products of distinct variables count.
    """
    if degree == 0:
        return 1
    return comb(n, degree) if interaction_only else comb(n + degree - 1, degree)
