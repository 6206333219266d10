"""The law: what an expansion is, by enumeration. It imports nothing of what it judges."""

from itertools import chain, combinations, combinations_with_replacement

import numpy as np


def monomials(n_features, degree=2, interaction_only=False, include_bias=True):
    """All tuples of input columns, in the order of the output columns."""
    low, high = degree if isinstance(degree, tuple) else (0, degree)
    choose = combinations if interaction_only else combinations_with_replacement
    tuples = (choose(range(n_features), d) for d in range(max(1, low), high + 1))
    return [()] * include_bias + list(chain.from_iterable(tuples))


def product(values, dtype):
    """x_i * (x_j * x_k): associating to the right decides the last bit."""
    result = dtype.type(1)
    for value in reversed(values):
        result = dtype.type(value * result)
    return result


def expand(X, degree=2, interaction_only=False, include_bias=True):
    """Expansion of a dense array: (dense result, pattern of the stored values)."""
    X = np.asarray(X)
    tuples = monomials(X.shape[1], degree, interaction_only, include_bias)
    out = np.zeros((len(X), len(tuples)), dtype=X.dtype)
    stored = np.zeros(out.shape, dtype=bool)
    for r, row in enumerate(X):
        for c, columns in enumerate(tuples):
            out[r, c] = product([row[j] for j in columns], X.dtype)
            stored[r, c] = all(row[j] != 0 for j in columns)
    return out, stored
