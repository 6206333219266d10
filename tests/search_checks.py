"""The scores of all columns of the reference expansion, and a check of what a search has found."""

import numpy as np
from scipy import sparse

import reference

SCORES = "dot", "normalized", "correlation"


def columns_of(X, **of_basis):
    """What `reference.expand` returns, column by column, which is faster."""
    tuples = reference.monomials(X.shape[1], include_bias=False, **of_basis)
    expanded = np.ones((len(X), len(tuples)))
    for c, features in enumerate(tuples):
        for j in reversed(features):
            expanded[:, c] = X[:, j] * expanded[:, c]
    stored = [np.all([X[:, j] != 0 for j in features], axis=0) for features in tuples]
    return expanded, np.array(stored, dtype=bool).reshape(len(tuples), len(X)).T


def all_scores(X, target, weights, score, **of_basis):
    """Signed scores of shape (n_columns, n_targets), and in how many rows each column occurs."""
    expanded, stored = columns_of(X, **of_basis)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    target = np.asarray(target, dtype=float).reshape(len(X), -1)
    counts = stored[weights > 0].sum(axis=0)
    if score == "correlation":
        z = expanded - np.average(expanded, axis=0, weights=weights)
        r = target - np.average(target, axis=0, weights=weights)
        sums = (z * weights[:, None]).T @ r
        norms = np.sqrt(weights @ z**2)[:, None] * np.sqrt(weights @ r**2)
        is_constant = np.ptp(expanded[weights > 0], axis=0) == 0
        norms[is_constant] = np.inf
        return sums / norms, counts
    sums = (expanded * weights[:, None]).T @ target
    if score == "normalized":
        norms = np.sqrt(weights @ expanded**2)[:, None]
        sums = np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0)
    return sums, counts


def require_best(top, found, k, min_count=1, allowed=None, tolerance=1e-9):
    """Check that a result has k columns with the largest scores, in order, and what it says."""
    scores, counts = found
    can_be = counts >= min_count
    if allowed is not None:
        can_be &= allowed
    sizes = np.abs(scores).max(axis=1, initial=0.0)
    assert len(top) == min(k, can_be.sum())
    assert len(set(top.columns.tolist())) == len(top)
    assert can_be[top.columns].all()
    np.testing.assert_array_equal(top.counts, counts[top.columns])
    targets = np.zeros(len(top), int) if top.targets is None else top.targets
    scale = max(1e-300, sizes.max(initial=0.0))
    mine = scores[top.columns, targets]
    np.testing.assert_allclose(top.scores, mine, rtol=tolerance, atol=tolerance * scale)
    own = list(zip(-np.abs(top.scores), top.columns, strict=True))
    assert own == sorted(own)
    rest = can_be.copy()
    rest[top.columns] = False
    if len(top) and rest.any():
        assert sizes[rest].max() <= np.abs(top.scores).min() + tolerance * scale


def random_rows(rng, n_rows, n_features, kind, density=0.4):
    """A dense matrix with zeros: "binary", "positive" or "signed" values."""
    stored = rng.random((n_rows, n_features)) < density
    if kind == "binary":
        return stored.astype(float)
    if kind == "positive":
        return stored * rng.uniform(0.1, 2.5, stored.shape)
    return stored * rng.normal(size=stored.shape)


def as_csr(X):
    return sparse.csr_array(X)


def require_same(found, expected):
    """Check that two results are the same, bit for bit."""
    assert found.basis == expected.basis
    np.testing.assert_array_equal(found.columns, expected.columns)
    np.testing.assert_array_equal(found.counts, expected.counts)
    assert found.scores.tobytes() == expected.scores.tobytes()
    np.testing.assert_array_equal(found.targets, expected.targets)
    assert found.names == expected.names
