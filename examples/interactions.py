"""Fit a logistic regression to all pairs of features, then list, draw, save and load its terms.

Some pairs of levels that make a click likely are planted in a generated click log. The model finds
them without building the pairs: it is fitted to the one-hot matrix itself.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

import polysparse
from polysparse import PolynomialLogisticRegression

FIELDS = {"weekday": 7, "hour": 24, "device": 5, "country": 60, "campaign": 150, "site": 300}
PLANTED = {
    ("weekday=0", "device=0"): 4.0,
    ("weekday=1", "device=1"): 4.0,
    ("hour=0", "country=0"): -3.0,
    ("hour=20", "campaign=0"): 4.0,
}
N_ROWS, N_TRAIN = 100_000, 75_000


def main(folder: Path) -> None:
    """Fit models with and without pairs, and write the terms of the second one to a folder."""
    X, names, y = click_log()
    basis = polysparse.MonomialBasis(X.shape[1], interaction_only=True)
    print(f"{N_ROWS:,} rows, {X.shape[1]} features, {basis.n_columns - 1:,} columns with all pairs")
    for degree in (1, 2):
        model = PolynomialLogisticRegression(
            C=0.03, degree=degree, interaction_only=True, feature_names=names
        )
        start = perf_counter()
        model.fit(X[:N_TRAIN], y[:N_TRAIN])
        seconds = perf_counter() - start
        accuracy = model.score(X[N_TRAIN:], y[N_TRAIN:])
        print(f"degree {degree}: accuracy {accuracy:.3f} on the test rows, {seconds:.1f} s")

    print(f"\n{model.top_terms(6)}\n")
    model.plot_top_terms(20).figure.savefig(folder / "terms.svg")
    model.to_text(folder / "terms.txt")
    model.save(folder / "model.npz")
    again = polysparse.load_model(folder / "model.npz")
    if not np.array_equal(again.predict_proba(X[:100]), model.predict_proba(X[:100])):
        raise AssertionError("the loaded model has other predictions")
    print("written:", *sorted(path.name for path in folder.iterdir()))


def click_log() -> tuple[Any, list[str], Any]:
    """Return rows with one level of each field, the names of levels, and which rows are clicks."""
    rng = np.random.default_rng(0)
    first = np.cumsum([0, *FIELDS.values()])
    levels = [(rng.random(N_ROWS) ** 2 * n).astype(np.int32) for n in FIELDS.values()]
    columns = np.column_stack(levels) + first[:-1]
    offsets = np.arange(0, columns.size + 1, len(FIELDS))
    arrays = np.ones(columns.size), columns.ravel(), offsets
    names = [f"{field}={level}" for field, n in FIELDS.items() for level in range(n)]
    X = sparse.csr_matrix(arrays, shape=(N_ROWS, len(names)))
    log_odds = rng.logistic(size=N_ROWS) - 1
    for pair, weight in PLANTED.items():
        one, other = (X[:, names.index(name)].toarray().ravel() for name in pair)
        log_odds += weight * one * other
    return X, names, log_odds > 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
