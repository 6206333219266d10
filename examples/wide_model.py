"""Train linear models on the pairs of 100,000 features, in less than 2 GB.

There are 5 billion pairs, too many for the models of scikit-learn. Observed columns keep the pairs
that occur in at least ten rows. Hashed columns assign all pairs to 2^20 columns.
"""

from __future__ import annotations

import resource
import sys
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

import polysparse
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures

N_ROWS, N_FEATURES = 60_000, 100_000


def main() -> None:
    """Compare the accuracy of models with and without interactions."""
    X, y = click_log()
    train, test = slice(0, N_ROWS * 3 // 4), slice(N_ROWS * 3 // 4, N_ROWS)
    print(f"{N_ROWS:,} rows, {N_FEATURES:,} features, {X.nnz:,} stored values")
    print(f"the full expansion has {polysparse.MonomialBasis(N_FEATURES).n_columns:,} columns\n")
    print(f"{'features':<30} {'columns':>12} {'accuracy':>9} {'seconds':>8}")
    for name, steps in {
        "single features": [],
        "observed pairs": [ObservedPolynomialFeatures(interaction_only=True, min_count=10)],
        "hashed pairs": [HashedPolynomialFeatures(interaction_only=True, n_columns=2**20)],
    }.items():
        model = make_pipeline(*steps, SGDClassifier(loss="log_loss", alpha=1e-5, random_state=0))
        start = perf_counter()
        model.fit(X[train], y[train])
        accuracy, n_columns = model.score(X[test], y[test]), model[-1].coef_.shape[1]
        print(f"{name:<30} {n_columns:>12,} {accuracy:>9.3f} {perf_counter() - start:>8.1f}")
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(f"\npeak memory of the process: {peak / 1e9:.2f} GB")


def click_log() -> tuple[Any, Any]:
    """Return rows with one level of each of 20 fields; clicks depend on a pair of fields."""
    rng = np.random.default_rng(0)
    n_levels = np.array([20, 20, *[(N_FEATURES - 40) // 18] * 17, (N_FEATURES - 40) // 18 + 10])
    levels = (n_levels ** rng.random((N_ROWS, len(n_levels)))).astype(np.int32)  # most are small
    first = np.concatenate([[0], np.cumsum(n_levels)[:-1]]).astype(np.int32)
    columns, n = (levels + first).ravel(), len(n_levels)
    offsets = np.arange(0, len(columns) + 1, n, dtype=np.int32)
    X = sparse.csr_array((np.ones(len(columns)), columns, offsets), shape=(N_ROWS, N_FEATURES))
    # Only both fields together predict a click: exactly one level is odd. One label in 20 is wrong.
    odd = levels % 2 == 1
    y = odd[:, 0] ^ odd[:, 1]
    return X, np.where(rng.random(N_ROWS) < 0.05, ~y, y)


if __name__ == "__main__":
    main()
