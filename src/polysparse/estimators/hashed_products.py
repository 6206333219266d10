"""The terms that occur in a matrix, with the columns that they are hashed to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.groups import FeatureGroups, groups_of_codes
from polysparse.basis.monomial_basis import MAX_COLUMNS, MonomialBasis
from polysparse.basis.names import names_of_tuples
from polysparse.columns.spaces import HashedColumns
from polysparse.engine import cpu
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.observation.tally import ColumnTally


@dataclass(frozen=True)
class Collisions:
    """How monomials share columns. Returned by `HashedPolynomialFeatures.collisions`.

    Attributes
    ----------
    n_monomials : int
        Number of distinct monomials that occur.
    n_columns : int
        Number of columns that at least one of them is hashed to.
    n_sharing : int
        Number of monomials that share their column with another one.
    """

    n_monomials: int
    n_columns: int
    n_sharing: int


@dataclass(frozen=True)
class Candidate:
    """A term that is hashed to a column. Returned by `HashedPolynomialFeatures.candidates`.

    Attributes
    ----------
    column : int
        The column.
    features : tuple of int
        The input features of the term, in increasing order; empty for the bias.
    name : str
        The term as `MonomialBasis.names` writes it.
    sign : int
        1 or -1, by which its values are multiplied.
    n_rows : int
        Number of rows in which it occurs.
    """

    column: int
    features: tuple[int, ...]
    name: str
    sign: int
    n_rows: int


@dataclass(frozen=True)
class HashedProducts:
    """Some distinct terms that occur.

    Attributes
    ----------
    tuples : ndarray of int64 of shape (n, k)
        Their input features, in increasing order, padded with -1 at the end.
    counts : ndarray of int64 of shape (n,)
        Number of rows in which each interaction occurs.
    columns, signs : ndarray of int64 of shape (n,)
        Where they go, and with which sign.
    """

    tuples: NDArray[np.int64]
    counts: NDArray[np.int64]
    columns: NDArray[np.int64]
    signs: NDArray[np.int64]

    def take(self, which: Any) -> HashedProducts:
        """Return some of the terms, in the given order."""
        arrays = self.tuples, self.counts, self.columns, self.signs
        return HashedProducts(*(array[which] for array in arrays))


def iter_products(
    space: HashedColumns, x: CanonicalCsr, n_jobs: int | None
) -> Iterator[HashedProducts]:
    """Yield all terms that occur in x, some at a time, in the order of the basis."""
    basis, counted, features = _countable(space.basis, x)
    if basis.n_columns > MAX_COLUMNS:
        raise ValueError(
            f"X has {len(features):,} features that occur: they have more terms of degree "
            f"{basis.max_degree} than can be counted. Pass fewer rows."
        )
    tally = ColumnTally(basis)
    tally.count(counted, n_jobs)
    observed, counts = tally.chosen(1, None)
    step = max(1, 2**22 // max(1, basis.highest))
    for start in range(0, len(observed), step):
        part = slice(start, start + step)
        tuples = basis.unrank(observed[part])
        tuples = np.ascontiguousarray(np.where(tuples >= 0, features[tuples], -1))
        places = space.basis._as_increasing(tuples)[0] if space.basis._is_grouped else tuples
        yield HashedProducts(tuples, counts[part], *cpu.hash_tuples(space, places))


def _countable(
    basis: MonomialBasis, x: CanonicalCsr
) -> tuple[MonomialBasis, CanonicalCsr, NDArray[np.int64]]:
    """Return a basis of the features that occur, x in their numbers, and these features.

    Renumbered from 0, they have a basis small enough to be counted.
    """
    features, groups = np.unique(x.indices).astype(np.int64), None
    if basis._is_grouped and basis.groups is not None:
        features, groups = _few_groups(basis.groups, features)
    numbers = np.searchsorted(features, x.indices).astype(np.int64)
    compact = replace(x, shape=(x.shape[0], len(features)), indices=numbers)
    few = MonomialBasis(
        len(features),
        (basis.min_degree, basis.max_degree) if basis.min_degree else basis.max_degree,
        interaction_only=basis.interaction_only,
        include_bias=basis.include_bias,
        groups=groups,
        terms=basis.terms,
    )
    return few, compact, features


def _few_groups(
    groups: FeatureGroups, features: NDArray[np.int64]
) -> tuple[NDArray[np.int64], FeatureGroups]:
    """Return the features to count, which include the given ones, and their groups.

    If only one feature of a larger group is given, another one is added: a group of a single
    feature would allow its powers. Groups keep their numbers, and may be empty.
    """
    places = features if groups.order is None else groups.places[features]
    of_features = np.searchsorted(groups.starts, places, side="right") - 1
    counts = np.bincount(of_features, minlength=groups.n_groups)
    is_alone = (counts == 1)[of_features] & (groups.sizes > 1)[of_features]
    first = groups.starts[of_features[is_alone]]
    more = first + (places[is_alone] == first)
    more = more if groups.order is None else groups.order[more]
    kept = np.concatenate([features, more])
    codes = np.concatenate([of_features, of_features[is_alone]])
    order = np.argsort(kept)
    return kept[order], groups_of_codes(codes[order], groups.labels)


def list_candidates(
    space: HashedColumns,
    x: CanonicalCsr,
    columns: NDArray[np.int64],
    input_features: Sequence[str] | None,
    n_jobs: int | None,
    sep: str = " ",
) -> list[Candidate]:
    """List the terms in x that are hashed to given columns: by column, the most frequent first."""
    return as_candidates(find_products(space, x, columns, n_jobs), input_features, sep)


def find_products(
    space: HashedColumns, x: CanonicalCsr, columns: NDArray[np.int64], n_jobs: int | None
) -> HashedProducts:
    """Find the terms in x that are hashed to given columns: by column, the most frequent first."""
    none = np.empty(0, np.int64)
    parts = [HashedProducts(np.empty((0, space.basis.highest), np.int64), none, none, none)]
    for each in iter_products(space, x, n_jobs):
        parts.append(each.take(np.isin(each.columns, columns)))
    tuples, counts, places, signs = (
        np.concatenate(arrays)
        for arrays in zip(*((p.tuples, p.counts, p.columns, p.signs) for p in parts), strict=True)
    )
    found = HashedProducts(tuples, counts, places, signs)
    return found.take(np.lexsort((-counts, places)))


def as_candidates(
    found: HashedProducts, input_features: Sequence[str] | None, sep: str = " "
) -> list[Candidate]:
    """Return terms as candidates, with their names."""
    features = [tuple(j for j in row if j >= 0) for row in found.tuples.tolist()]
    names = names_of_tuples(found.tuples, input_features, sep)
    place, sign, n_rows = (a.tolist() for a in (found.columns, found.signs, found.counts))
    return list(map(Candidate, place, features, names, sign, n_rows))


def countable_rows(basis: MonomialBasis, x: CanonicalCsr) -> CanonicalCsr:
    """Return the first rows of x: as many as `iter_products` can count the terms of."""
    while x.shape[0] and _countable(basis, x)[0].n_columns > MAX_COLUMNS:
        x = x.rows(slice(0, x.shape[0] // 2))
    return x


def numbers_of_features(tuples: Any, names: Sequence[str] | None) -> Any:
    """Replace names of features in tuples by their numbers; leave numbers as they are."""
    if isinstance(tuples, str):
        raise ValueError(
            f"tuples must be a tuple of features, or several; for one feature, pass ({tuples!r},)."
        )
    if isinstance(tuples, np.ndarray) and tuples.dtype.kind in "iu":
        return tuples
    numbers: dict[str, int | None] = {}
    for j, name in enumerate(() if names is None else names):
        numbers[name] = None if name in numbers else j  # None: the name is not unique

    def number(feature: Any) -> Any:
        if isinstance(feature, str):
            found = numbers.get(feature)
            if found is None:
                raise ValueError(f"{feature!r} names no single feature: {_why(feature, names)}.")
            return found
        is_several = isinstance(feature, Sequence | np.ndarray)
        return tuple(map(number, feature)) if is_several else feature

    return (
        [number(each) for each in tuples] if isinstance(tuples, Sequence | np.ndarray) else tuples
    )


def _why(name: str, names: Sequence[str] | None) -> str:
    """Return why a name does not say which feature is meant."""
    if names is None:
        return "names are known only after fit, on data whose features have names"
    if name in names:
        return "feature_names_in_ has it more than once"
    return f"feature_names_in_ has {len(names):,} others"
