"""Monomials as text: 'x0^2 x3', as scikit-learn writes them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from polysparse.basis import count_monomials

if TYPE_CHECKING:
    from polysparse.basis import MonomialBasis


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"{name}^{exponent}"


def names_of_tuples(tuples: NDArray[Any], input_features: Sequence[str] | None) -> list[str]:
    """Names of monomials given as rows of input columns, filled up with -1."""

    def name(j: int) -> str:
        return f"x{j}" if input_features is None else str(input_features[j])

    return [
        " ".join(_power(name(j), len(list(run))) for j, run in groupby(row) if j >= 0) or "1"
        for row in tuples.tolist()
    ]


def all_names(basis: MonomialBasis, input_features: Sequence[str] | None) -> list[str]:
    """Names of all columns, each by one concatenation from a name of lower degree.

    Within a degree the monomials led by feature a come with a's highest power first, and what
    follows a^p is every monomial of degree - p in the later features: the end of a lower block.
    """
    n = basis.n_features
    features = (
        [f"x{j}" for j in range(n)] if input_features is None else list(map(str, input_features))
    )
    most_of_one = 1 if basis.interaction_only else basis.highest
    blocks: list[list[str]] = [[""]]
    for d in range(1, basis.highest + 1):
        block: list[str] = []
        for a, feature in enumerate(features):
            for p in range(min(d, most_of_one), 0, -1):
                prefix = _power(feature, p)
                if p == d:
                    block.append(prefix)
                    continue
                lower = blocks[d - p]
                later = count_monomials(n - 1 - a, d - p, basis.interaction_only)
                prefix += " "
                block += [prefix + rest for rest in lower[len(lower) - later :]]
        blocks.append(block)
    names = ["1"] if basis.include_bias else []
    for d in range(basis.lowest, basis.highest + 1):
        names += blocks[d]
    return names


def require_distinct(names: Sequence[str], input_features: Sequence[str]) -> None:
    """Raise if two columns got one name, as 'a b' and the product of 'a' and 'b' do."""
    if len(set(input_features)) == len(input_features) and not any(
        " " in f or "^" in f or f == "1" for f in map(str, input_features)
    ):
        return
    seen: dict[str, int] = {}
    for column, name in enumerate(names):
        if seen.setdefault(name, column) != column:
            raise ValueError(
                f"columns {seen[name]} and {column} would both be named {name!r}. Rename the "
                "input features so that no name is a product or power of others."
            )
