"""FTRL-proximal in plain Python, on an expansion that is built: the reference of online models."""

import numpy as np


def block_sizes(n_rows):
    """One row at first, 64 after 4,096 rows."""
    sizes, n_seen = [], 0
    while n_seen < n_rows:
        sizes.append(min(64, max(1, n_seen // 64), n_rows - n_seen))
        n_seen += sizes[-1]
    return sizes


def residuals(loss, scores, target):
    """How half of a square or deviance, or a log loss, changes with the scores of a row."""
    if loss == "squared":
        return scores - target
    if loss == "poisson":
        return np.exp(scores) - target
    if loss == "two_classes":
        return 1 / (1 + np.exp(-scores)) - target
    likely = np.exp(scores - scores.max())
    return likely / likely.sum() - (np.arange(len(scores)) == target)


def ftrl(expansion, targets, loss, n_scores=1, weights=None, *, rate, beta=1.0, l1=0.0, l2=0.0):
    """Weights after one pass, of shape (n_columns, n_scores), and the intercepts."""
    n_rows, n_columns = expansion.shape
    rows = np.column_stack([expansion, np.ones(n_rows)])  # the last column is the intercept's
    weights = np.ones(n_rows) if weights is None else weights
    penalties = np.zeros((2, n_columns + 1, 1))
    penalties[:, :-1] = [[[l1]], [[l2]]]
    z, n = np.zeros((2, n_columns + 1, n_scores))

    def coefficients():
        size = np.abs(z) - penalties[0]
        w = -np.sign(z) * size / ((beta + np.sqrt(n)) / rate + penalties[1])
        return np.where(size > 0, w, 0.0)

    begin = 0
    for size in block_sizes(n_rows):
        w, gradient = coefficients(), np.zeros_like(z)
        for r in range(begin, begin + size):
            changes = residuals(loss, rows[r] @ w, targets[r])
            gradient += weights[r] * np.multiply.outer(rows[r], changes)
        z += gradient - (np.sqrt(n + gradient**2) - np.sqrt(n)) / rate * w
        n += gradient**2
        begin += size
    return coefficients()[:-1], coefficients()[-1]
