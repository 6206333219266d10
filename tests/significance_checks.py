"""Score tests of all interactions by dense linear algebra."""

import numpy as np
from sklearn.utils import check_random_state

import reference


def scaled(X):
    """The features divided by their largest sizes."""
    largest = np.abs(X).max(axis=0)
    return X / np.where(largest > 0, largest, 1)


def with_ones(X):
    return np.column_stack([np.ones(len(X)), X])


def projected(X, residuals, weights, is_linear):
    """Residuals, a column for each draw, without main effects."""
    A = with_ones(X)
    gram = A.T @ (weights[:, None] * A)
    left = residuals - weights[:, None] * (
        A @ np.linalg.lstsq(gram, A.T @ residuals, rcond=None)[0]
    )
    if is_linear:
        n_free = len(X) - np.linalg.matrix_rank(A)
        left = left * np.sqrt(n_free / (left**2).sum(axis=0))
    return left


def information(X, z, members, weights):
    """What a weighted regression of z on its members leaves."""
    roots = np.sqrt(weights)
    A = roots[:, None] * with_ones(X[:, sorted(set(members))])
    left = roots * z - A @ np.linalg.lstsq(A, roots * z, rcond=None)[0]
    return left @ left


def statistics(X, residuals, weights, degree, min_count, least, is_linear, **of_basis):
    """The statistics of all interactions that are tested, a row for each, by their tuples."""
    X = scaled(X)
    left = projected(X, residuals, weights, is_linear)
    found = {}
    for members in reference.monomials(X.shape[1], degree, include_bias=False, **of_basis):
        z = X[:, list(members)].prod(axis=1)
        if np.count_nonzero(z) < min_count:
            continue
        v = information(X, z, members, weights)
        squares, fourth = (weights * z**2).sum(), (weights * z**4).sum()
        is_alike = len(set(np.round(np.abs(z[z != 0]), 12))) == 1
        enough = (v if is_alike else squares) * squares >= least * fourth
        if v > 1e-10 * squares and enough:
            found[members] = z @ left / np.sqrt(v)
    return found


def generators(random_state, n):
    """A generator of random numbers for each simulated target."""
    entropy = check_random_state(random_state).randint(0, 2**31, size=4).tolist()
    for draw in range(n):
        yield np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(draw,)))


def step_down_by_definition(observed, simulated):
    """Adjusted p-values of Westfall and Young, from the statistics of all interactions."""
    order = np.argsort(-np.abs(observed))
    p = []
    for i, q in enumerate(order):
        maxima = np.abs(simulated[order[i:]]).max(axis=0)
        as_large = np.count_nonzero(maxima >= abs(observed[q]) * (1 - 1e-9))
        p.append((1 + as_large) / (1 + simulated.shape[1]))
    return np.maximum.accumulate(p)
