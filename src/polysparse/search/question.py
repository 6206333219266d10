"""What is searched for."""

from __future__ import annotations

from dataclasses import dataclass

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.search.arguments import Restriction, Targets


@dataclass(frozen=True)
class Question:
    """What is searched for: the k columns of a basis with the largest scores."""

    basis: MonomialBasis
    targets: Targets
    k: int
    score: str
    min_count: int
    restriction: Restriction = Restriction()  # noqa: RUF009
