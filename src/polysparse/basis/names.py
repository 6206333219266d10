"""Names of monomials, such as 'x0^2 x3', in scikit-learn's notation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, product
from typing import Any

from numpy.typing import NDArray

from polysparse.basis.simplex import count_monomials


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"{name}^{exponent}"


def as_feature_names(names: Any, n_features: int) -> list[str] | None:
    """Read the argument `feature_names`: None, or a string for each feature."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"feature_names must be a list of strings; got {names!r}.")
    features = list(names)
    for j, name in enumerate(features):
        if not isinstance(name, str):
            raise TypeError(f"feature_names must be strings, but feature_names[{j}] is {name!r}.")
    if len(features) != n_features:
        raise ValueError(
            f"feature_names has length {len(features):,}, but X has {n_features:,} features: pass "
            "one name for each, in order."
        )
    return features


def names_of_tuples(
    tuples: NDArray[Any], input_features: Sequence[str] | None, sep: str = " "
) -> list[str]:
    """Return the names of monomials given as rows of input columns, padded with -1."""
    if not isinstance(sep, str):
        raise TypeError(f"sep must be a string; got {sep!r}.")
    name = _namer(input_features)
    rows = ([j for j in row if j >= 0] for row in tuples.tolist())
    return [
        sep.join(_power(name(j), len(list(run))) for j, run in groupby(row)) or "1" for row in rows
    ]


def members_of_tuples(
    tuples: NDArray[Any], input_features: Sequence[str] | None
) -> list[tuple[str, ...]]:
    """Return the names of the features in such monomials; that of a power is repeated."""
    name = _namer(input_features)
    return [tuple(name(j) for j in row if j >= 0) for row in tuples.tolist()]


def features_of_name(
    name: str, input_features: Sequence[str] | None, n_features: int, sep: str = " "
) -> list[tuple[int, ...]]:
    """Return the monomials, as increasing tuples of input columns, that have a name.

    There are several only if names of features contain `sep` or "^", or occur twice.
    """
    find = _finder(input_features, n_features)
    parts = name.split(sep)
    # By how many parts are read: the monomials that they may be.
    found: list[set[tuple[int, ...]]] = [set() for _ in range(len(parts) + 1)]
    found[0].add(())
    for start, before in enumerate(found[:-1]):
        for end in range(start + 1, len(found)) if before else ():
            own = sep.join(parts[start:end])
            runs: list[tuple[int, ...]] = [(j,) for j in find(own)]
            match = re.fullmatch(r"(.+)\^([1-9]\d{0,3})", own, re.DOTALL)
            if match is not None:
                runs += [(j,) * int(match[2]) for j in find(match[1])]
            found[end] |= {tuple(sorted(each + run)) for each in before for run in runs}
    return sorted(found[-1])


def features_of_names(
    names: Sequence[str], input_features: Sequence[str] | None, n_features: int
) -> list[tuple[int, ...]]:
    """Return the monomials whose features have these names; several if features share one."""
    find = _finder(input_features, n_features)
    return sorted({tuple(sorted(each)) for each in product(*map(find, names))})


def _finder(input_features: Sequence[str] | None, n_features: int) -> Callable[[str], list[int]]:
    """Return a function that returns the features of a name."""
    if input_features is not None:
        by_name: dict[str, list[int]] = {}
        for j, name in enumerate(input_features):
            by_name.setdefault(str(name), []).append(j)
        return lambda name: by_name.get(name, [])

    def find(name: str) -> list[int]:
        match = re.fullmatch(r"x(0|[1-9]\d{0,18})", name, re.ASCII)
        return [int(match[1])] if match is not None and int(match[1]) < n_features else []

    return find


def _namer(input_features: Sequence[str] | None) -> Callable[[int], str]:
    """Return a function that returns the name of a feature."""
    return lambda j: f"x{j}" if input_features is None else str(input_features[j])


def names_by_degree(
    features: Sequence[str], highest: int, interaction_only: bool
) -> list[list[str]]:
    """Return a list whose element d holds the names of all monomials of degree d, in order.

    Within a degree, the monomials led by feature a come with the highest power of a first. What
    follows a^p is every monomial of degree d - p in the features after a. Those are the last ones
    of the block of degree d - p, so each name takes a single concatenation.
    """
    n, most_of_one = len(features), 1 if interaction_only else highest
    blocks: list[list[str]] = [[""]]
    for d in range(1, highest + 1):
        block: list[str] = []
        for a, feature in enumerate(features):
            is_last = a == n - 1  # no other feature can follow the last one
            for p in range(min(d, most_of_one), d - 1 if is_last else 0, -1):
                prefix = _power(feature, p)
                if p == d:
                    block.append(prefix)
                    continue
                lower = blocks[d - p]
                later = count_monomials(n - 1 - a, d - p, interaction_only)
                prefix += " "
                block += [prefix + rest for rest in lower[len(lower) - later :]]
        blocks.append(block)
    return blocks


def require_distinct(
    names: Sequence[str], input_features: Sequence[str], columns: Sequence[int], sep: str = " "
) -> None:
    """Raise ValueError if two columns share a name, as 'a b' and the interaction of 'a' and 'b'."""
    clash = find_clash(names, input_features, columns, sep)
    if clash is not None:
        raise ValueError(clash)


def find_clash(
    names: Sequence[str], input_features: Sequence[str], columns: Sequence[int], sep: str = " "
) -> str | None:
    """Return a sentence about two different columns with the same name, or None."""
    if _cannot_clash(list(map(str, input_features)), sep):
        return None
    seen: dict[str, int] = {}
    for column, name in zip(columns, names, strict=True):
        other = seen.setdefault(name, column)
        if other != column:
            return (
                f"columns {other} and {column} are both named {name!r}. Rename the input features "
                "so that no name is an interaction or power of others, nor '1'."
            )
    return None


def _cannot_clash(features: list[str], sep: str) -> bool:
    """Return whether the names of interactions and powers are unambiguous."""
    if not sep or any(c == "^" or c.isdigit() for c in sep):
        return False
    special = {*sep, "^"}
    distinct = len(set(features)) == len(features) and "1" not in features
    return distinct and all(special.isdisjoint(feature) for feature in features)


def as_printable(text: str) -> str:
    """Return a text in one line, with escapes for what a terminal would act on."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
