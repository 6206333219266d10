"""What 199 simulated targets cost besides one search, and whether p-values hold.

Search and test run in one process, in turn; the best of several times counts. Calibration is
counted on simulated sets with strong main effects and no interaction, power on sets with one
planted pair beside them. Power is compared with what arithmetic predicts: the statistic of the pair
is normal with mean b * sqrt(v), where b is its coefficient and v what a weighted regression on all
features leaves of it, and it is significant above the 95 % quantile of the simulated maxima.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr
from sklearn.datasets import load_svmlight_file

import measure
from bench_core import DATA, say
from polysparse import interaction_test, top_interactions
from polysparse.machine import threads_for

N_ROWS, N_NULL, K = 600, 99, 20
TARGET = 60.0
EFFECTS = np.array([1.0, -1.0, 0.8, -0.8, 0.6, 0.6])  # of the first features, standardized
PLANTED = {"linear": 0.19, "logistic": 0.5}  # coefficient of the standardized pair
LEVELS = (0.01, 0.05, 0.1, 0.5)


def times_of(data: Path, repeats: int) -> Iterator[list[str]]:
    """A search of a9a, and a test with 199 simulated targets, for each model."""
    X, y = load_svmlight_file(str(data / "a9a"))
    for n_jobs in (None, 1):
        search = partial(top_interactions, X, y - y.mean(), K, min_count=10, n_jobs=n_jobs)
        for model in ("linear", "logistic"):
            test = partial(
                interaction_test, X, y, K, n_null=199, model=model, random_state=0, n_jobs=n_jobs
            )
            times = measure.best_times({"search": search, "test": test}, repeats=repeats)
            ratio = times["test"] / times["search"]
            mark = "" if ratio <= TARGET else " *"
            threads = threads_for(n_jobs, 2**40)
            milliseconds = [f"{1000 * times[side]:,.1f}" for side in ("search", "test")]
            yield [f"a9a, K=2, {model}, n_jobs={threads}", *milliseconds, f"{ratio:.1f}{mark}"]


def a_set(kind: str, n_features: int, model: str, planted: float, seed: int) -> tuple[Any, ...]:
    """Features, a target, and the mean of the statistic of the planted pair x0 x1."""
    rng = np.random.default_rng(seed)
    if kind == "binary":
        X = (rng.random((N_ROWS, n_features)) < rng.uniform(0.1, 0.6, n_features)).astype(float)
    else:
        X = rng.standard_normal((N_ROWS, n_features))
    scores = (X - X.mean(axis=0))[:, : len(EFFECTS)] / X.std(axis=0)[: len(EFFECTS)] @ EFFECTS
    pair = left_of(X[:, 0] * X[:, 1], X[:, :2], np.ones(N_ROWS))
    pair /= pair.std()
    scores += planted * pair
    if model == "linear":
        weights, y = np.ones(N_ROWS), scores + rng.standard_normal(N_ROWS)
    else:
        p = expit(scores)
        weights, y = p * (1 - p), (rng.random(N_ROWS) < p).astype(float)
    left = left_of(pair, X, weights)
    return X, y, planted * np.sqrt(weights @ left**2)


def left_of(z: NDArray[Any], X: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """What a weighted regression on features leaves of a column."""
    A, roots = np.column_stack([np.ones(len(X)), X]), np.sqrt(weights)
    left: NDArray[Any] = z - A @ np.linalg.lstsq(A * roots[:, np.newaxis], z * roots)[0]
    return left


def calibrate(n_sets: int) -> Iterator[list[str]]:
    """The share of null sets whose smallest adjusted p-value is at most each level."""
    for model in ("linear", "logistic"):
        for kind, degree in (("binary", 2), ("normal", 2), ("binary", 3), ("normal", 3)):
            say(f"null sets: {model}, {kind}, degree {degree}")
            smallest, single = np.empty(n_sets), np.empty(n_sets)
            for seed in range(n_sets):
                X, y, _ = a_set(kind, 20 if degree == 2 else 12, model, 0.0, seed)
                tested = interaction_test(
                    X, y, 1, degree=degree, n_null=N_NULL, model=model, random_state=seed, n_jobs=1
                )
                smallest[seed], single[seed] = tested.p_values[0], tested.bonferroni[0]
            shares = [f"{np.mean(smallest <= level + 1e-12):.3f}" for level in LEVELS]
            yield [f"{model}, {kind}, K={degree}", *shares, f"{np.mean(single <= 0.05):.3f}"]


def powers(n_sets: int) -> Iterator[list[str]]:
    """The share of sets in which the planted pair is significant, and what is predicted."""
    for model, planted in PLANTED.items():
        for kind in ("binary", "normal"):
            say(f"power: {model}, {kind}")
            found, predicted = np.empty(n_sets), np.empty(n_sets)
            for seed in range(n_sets):
                X, y, mean = a_set(kind, 20, model, planted, seed)
                tested = interaction_test(
                    X, y, n_null=N_NULL, model=model, random_state=seed, n_jobs=1
                )
                found[seed] = "x0 x1" in tested.significant(0.05).names
                predicted[seed] = ndtr(mean - np.quantile(tested.null_maxima, 0.95))
            yield [f"{model}, {kind}", f"{found.mean():.2f}", f"{predicted.mean():.2f}"]


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has the file a9a")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sets", type=int, default=500, help="simulated null sets of each kind")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    print(measure.describe_machine(threads_for(None, 2**40)), end="\n\n")
    if (options.data / "a9a").exists():
        print(f"199 simulated targets over one search. Target: at most {TARGET:.0f}x.\n")
        rows = list(times_of(options.data, options.repeats))
        header = ["", "search, ms", "test, ms", "ratio"]
        print(measure.format_table(header, rows, options.markdown), end="\n\n", flush=True)
    else:
        say(f"a9a is left out: there is no {options.data / 'a9a'}; name its folder with --data")
    print(
        f"{options.sets} sets of {N_ROWS} rows with strong main effects and no interaction, "
        f"{N_NULL} simulated targets: the share whose smallest p is at most\n"
    )
    header = ["", *map(str, LEVELS), "Bonferroni, 0.05"]
    rows = list(calibrate(options.sets))
    print(measure.format_table(header, rows, options.markdown), end="\n\n", flush=True)
    n_sets = max(options.sets // 2, 1)
    print(f"{n_sets} sets with one planted pair: the share in which its p is at most 0.05\n")
    rows = list(powers(n_sets))
    print(measure.format_table(["", "found", "predicted"], rows, options.markdown))


if __name__ == "__main__":
    main()
