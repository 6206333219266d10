"""What an expansion is, by enumeration. It imports nothing of what it judges."""

from functools import cache
from itertools import chain, combinations, combinations_with_replacement
from itertools import product as product_of_sets

import numpy as np


def monomials(
    n_features, degree=2, interaction_only=False, include_bias=True, groups=None, terms=None
):
    """All tuples of input columns, in the order of the output columns.

    `groups` has a label for each input column, or None for a column of its own, or it maps labels
    to numbers of columns; `terms` are tuples of such labels, by degree.
    """
    low, high = degree if isinstance(degree, tuple) else (0, degree)
    choose = combinations if interaction_only else combinations_with_replacement
    if groups is None:
        tuples = (choose(range(n_features), d) for d in range(max(1, low), high + 1))
        return [()] * include_bias + list(chain.from_iterable(tuples))
    if isinstance(groups, dict):
        groups = [label for label, size in groups.items() for _ in range(size)]
    labels = [("own", j) if label is None else label for j, label in enumerate(groups)]
    order = sorted(range(n_features), key=lambda j: (labels.index(labels[j]), j))
    if terms is not None:
        tuples = (
            product_of_sets(*([j for j in order if labels[j] == label] for label in by_order))
            for by_order in (
                sorted(term, key=labels.index) for term in terms if {*term} <= {*labels}
            )
        )
        return [()] * include_bias + list(chain.from_iterable(tuples))
    tuples = (
        some
        for d in range(max(1, low), high + 1)
        for some in choose(order, d)
        if all(
            labels[a] != labels[b] or (a == b and labels.count(labels[a]) == 1)
            for a, b in combinations(some, 2)
        )
    )
    return [()] * include_bias + list(tuples)


def product(values, dtype):
    """x_i * (x_j * x_k): associating to the right decides the last bit."""
    result = dtype.type(1)
    for value in reversed(values):
        result = dtype.type(value * result)
    return result


def expand(X, degree=2, interaction_only=False, include_bias=True, groups=None, terms=None):
    """Expansion of a dense array: (dense result, pattern of the stored values)."""
    X = np.asarray(X)
    tuples = monomials(X.shape[1], degree, interaction_only, include_bias, groups, terms)
    out = np.zeros((len(X), len(tuples)), dtype=X.dtype)
    stored = np.zeros(out.shape, dtype=bool)
    for r, row in enumerate(X):
        for c, columns in enumerate(tuples):
            out[r, c] = product([row[j] for j in columns], X.dtype)
            stored[r, c] = all(row[j] != 0 for j in columns)
    return out, stored


def observed(X, degree=2, interaction_only=False, include_bias=True, min_count=1, max_columns=None):
    """Columns that are stored in enough rows, or the most frequent of them; and their counts."""
    counts = expand(X, degree, interaction_only, include_bias)[1].sum(axis=0)
    kept = [c for c in range(len(counts)) if counts[c] >= min_count]
    kept = sorted(sorted(kept, key=lambda c: (-counts[c], c))[:max_columns])
    return np.array(kept, dtype=np.int64), counts[kept].astype(np.int64)


def mix(z):
    """The finaliser of splitmix64, on integers modulo 2^64."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@cache
def hash_of(features, seed=0):
    """64 bits of a tuple of input columns, in any order."""
    salt = mix((seed + 0x9E3779B97F4A7C15) % 2**64)
    h = salt
    for j in sorted(features, reverse=True):
        h = (h ^ mix((salt + j) % 2**64)) * 0xD1342543DE82EF95 % 2**64
    return h


def hashed_column(features, n_columns, alternate_sign=True, seed=0):
    """Where a monomial goes, and what its value is multiplied by."""
    h = hash_of(tuple(features), seed)
    return ((h >> 32) * n_columns) >> 32, -1 if alternate_sign and (h ^ (h >> 16)) >> 31 & 1 else 1


def hashed(expansion, tuples, n_columns, alternate_sign=True, seed=0):
    """What `expand` gives for these monomials, hashed: for each row a dict of column to value.

    Values that fall together are added up in the order of the basis.
    """
    places = [hashed_column(features, n_columns, alternate_sign, seed) for features in tuples]
    rows = []
    for values, stored in zip(*expansion, strict=True):
        row = {}
        for c in np.flatnonzero(stored):
            column, sign = places[c]
            value = values[c] if sign > 0 else -values[c]
            row[column] = row[column] + value if column in row else value
        rows.append(dict(sorted(row.items())))
    return rows
