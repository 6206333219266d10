"""What 100 bootstrap refits cost, how close they are to exact ones, and what their intervals cover.

Fit and refits run in one process, in turn; the best of several times counts. Coverage is counted on
simulated data, whose true coefficients are known: a penalty biases coefficients, so intervals of a
penalized model cover its own expected coefficients, not the true ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

import measure
from bench_core import DATA, Reached, Report, say
from polysparse import PolynomialLogisticRegression, PolynomialRidge
from polysparse.machine import threads_for

N_REFITS, N_SETS, N_ROWS, LEVEL = 100, 500, 400, 0.9
TARGET_TIME = 30.0
EXACT = 1e-5  # the tol of replicates that others are compared with


def time_refits(data: Path, repeats: int) -> Iterator[tuple[str, float, float, float, float]]:
    """Times of a fit and of its refits, and how close these are, for each model."""
    X, y = load_svmlight_file(str(data / "a9a"))
    for name, model in {
        "logistic, C=0.1": PolynomialLogisticRegression(0.1),
        "logistic, C=1": PolynomialLogisticRegression(1.0),
        "ridge, alpha=1": PolynomialRidge(1.0),
        "ridge, alpha=10": PolynomialRidge(10.0),
    }.items():
        say(f"refits: {name}")
        refit = partial(model.fit(X, y).bootstrap, X, y, N_REFITS, random_state=0)
        times = measure.best_times(
            {"fit": partial(model.fit, X, y), "refits": refit}, repeats=repeats
        )
        few, exact = (model.bootstrap(X, y, 20, random_state=0, tol=t) for t in (1e-2, EXACT))
        spread = exact.coefficients.std(axis=0)
        error = np.sqrt(np.mean(((few.coefficients - exact.coefficients) / spread) ** 2))
        moved = np.abs((few.quantiles((0.1, 0.9)) - exact.quantiles((0.1, 0.9))) / spread)
        yield name, times["fit"], times["refits"], float(error), float(np.median(moved))


def coverage(model: Any, seed: int) -> NDArray[np.bool_]:
    """Whether the intervals of all coefficients cover the true ones, of one simulated set."""
    rng = np.random.default_rng(seed)
    true = np.array([0.5, -0.5, 0.0, 1.0, 0.0, -0.3])  # x0 x1 x2, then pairs
    X = rng.standard_normal((N_ROWS, 3))
    pairs = np.column_stack([X[:, 0] * X[:, 1], X[:, 0] * X[:, 2], X[:, 1] * X[:, 2]])
    scores = np.hstack([X, pairs]) @ true
    if isinstance(model, PolynomialRidge):
        y = scores + rng.standard_normal(N_ROWS)
    else:
        y = rng.random(N_ROWS) < 1 / (1 + np.exp(-scores))
    found = model.fit(X, y).bootstrap(X, y, N_REFITS, random_state=seed, n_terms=None)
    low, high = found.quantiles(((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    order = np.argsort(found.columns)
    return (low[order] <= true) & (true <= high[order])  # type: ignore[no-any-return]


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="no timing, few simulated sets")
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has the file a9a")
    parser.add_argument("--repeats", type=int, default=2, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    report, reached, lines = Report(options.markdown), [], []
    if not options.quick and (options.data / "a9a").exists():
        for name, fit, refits, error, moved in time_refits(options.data, options.repeats):
            ratio = refits / fit
            met = ratio <= TARGET_TIME
            times = f"{fit:.2f}", f"{refits:.1f}", report.mark(f"{ratio:.1f}", met)
            lines.append([name, *times, f"{error:.3f}", f"{moved:.3f}"])
            measured = f"{N_REFITS} bootstrap refits over one fit: {name}, a9a, degree 2"
            target = f"at most {TARGET_TIME:g}x"
            reached.append(Reached(measured, target, f"{ratio:.1f}x", met))
    n_sets = 20 if options.quick else N_SETS
    shares = []
    for name, model in {
        "ridge, alpha=1e-6": PolynomialRidge(1e-6, interaction_only=True, n_jobs=1),
        "ridge, alpha=40": PolynomialRidge(40.0, interaction_only=True, n_jobs=1),
        "logistic, C=1e6": PolynomialLogisticRegression(1e6, interaction_only=True, n_jobs=1),
        "logistic, C=0.1": PolynomialLogisticRegression(0.1, interaction_only=True, n_jobs=1),
    }.items():
        say(f"coverage: {name}")
        covered = np.mean([coverage(model, seed) for seed in range(n_sets)], axis=0)
        shares.append([name, *(f"{100 * share:.1f}" for share in (*covered, covered.mean()))])
    print(measure.describe_machine(threads_for(None, 10**9)))
    if lines:
        report.heading("Refits on a9a, degree 2")
        report.table(
            "model | fit, s | 100 refits, s | ratio | error, in standard errors | of 80 % "
            "intervals (median)",
            lines,
        )
    report.heading(f"Coverage of {100 * LEVEL:g} % intervals, percent of {n_sets} simulated sets")
    report.table("model | x0 | x1 | x2 | x0 x1 | x0 x2 | x1 x2 | mean", shares)
    report.reached(reached)


if __name__ == "__main__":
    main()
