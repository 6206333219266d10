"""Compare polysparse with scikit-learn on interactions of one-hot data: time, memory and terms."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, PolynomialFeatures

import polysparse


def main() -> None:
    """Expand and fit data that come with scikit-learn, then expand a generated click log."""
    X, y, names = binned_measurements()
    heading("Breast cancer data: 30 measurements, each in 8 bins")
    compare(X, 3, names)
    show_degree_4(X)
    heading("The same measurements: which pairs distinguish malignant from benign tumors")
    show_fit(X, y, names)

    X, names = click_log(n_rows=50_000)
    heading("Click log: 50,000 impressions, 10 fields, Zipf-distributed levels")
    compare(X, 2, names)
    heading("The same click log, all triples")
    compare(X, 3, names)


def binned_measurements() -> tuple[Any, Any, list[str]]:
    """Return real measurements as one-hot CSR, their diagnoses and the names of the columns.

    Each measurement has a column for each eighth of its range.
    """
    data = load_breast_cancer()
    bins = KBinsDiscretizer(n_bins=8, encode="onehot", strategy="uniform").fit(data.data)
    names = [f"{name}:{b + 1}" for name in data.feature_names for b in range(8)]
    y = data.target_names[data.target]
    return sparse.csr_array(bins.transform(data.data)), y, names


def click_log(n_rows: int) -> tuple[Any, list[str]]:
    """Return rows with one level of each field, as one-hot CSR; level r has weight 1/r."""
    fields = {
        "weekday": 7,
        "slot": 10,
        "hour": 24,
        "device": 40,
        "browser": 60,
        "country": 150,
        "region": 400,
        "campaign": 600,
        "site": 1_500,
        "ad": 2_000,
    }
    rng = np.random.default_rng(0)
    first_columns = np.cumsum([0, *fields.values()])
    columns = np.empty((n_rows, len(fields)), dtype=np.int32)
    for f, n_levels in enumerate(fields.values()):
        frequency = 1 / np.arange(1, n_levels + 1)
        level = rng.choice(n_levels, size=n_rows, p=frequency / frequency.sum())
        columns[:, f] = first_columns[f] + level
    offsets = np.arange(0, columns.size + 1, len(fields), dtype=np.int32)
    arrays = np.ones(columns.size), columns.ravel(), offsets
    names = [f"{field}={level}" for field, n in fields.items() for level in range(n)]
    return sparse.csr_array(arrays, shape=(n_rows, len(names))), names


def compare(X: Any, degree: int, names: list[str]) -> None:
    """Print the plan, expand with both libraries, compare results, and name frequent columns.

    The square of a one-hot column is the column itself, so only interactions are included.
    """
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} stored values")
    print(f"\nThe plan for degree {degree}, before the expansion is computed:")
    print(polysparse.plan(X, degree, interaction_only=True))

    theirs = PolynomialFeatures(degree, interaction_only=True).fit(X).transform
    ours = polysparse.PolynomialFeatures(degree, interaction_only=True).fit(X).transform
    require_equal(ours(X), theirs(X))
    show_costs({"scikit-learn": lambda: theirs(X), "polysparse": lambda: ours(X)})
    print("Both results have the same columns and values.")
    show_largest(
        ours(X), polysparse.MonomialBasis(X.shape[1], degree, interaction_only=True), names
    )


def require_equal(ours: Any, theirs: Any) -> None:
    """Raise unless both are the same matrix, stored in the same order."""
    for part in ("shape", "indptr", "indices", "data"):
        if not np.array_equal(getattr(ours, part), getattr(theirs, part)):
            raise AssertionError(f"the results differ in their {part}")


def show_costs(sides: dict[str, Callable[[], Any]], repeats: int = 8) -> None:
    """Print time and peak memory of both libraries."""
    seconds = best_seconds(sides, repeats)
    peaks = {side: peak_bytes(call) for side, call in sides.items()}
    print(f"\n{'':14}{'time':>12}{'peak memory':>14}")
    for side in sides:
        print(f"{side:14}{seconds[side] * 1e3:>9.1f} ms{peaks[side] / 1e6:>11.1f} MB")
    faster, smaller = (slow / fast for slow, fast in (seconds.values(), peaks.values()))
    print(f"{'ratio':14}{faster:>11.1f}x{smaller:>13.1f}x")


def best_seconds(sides: dict[str, Callable[[], Any]], repeats: int = 8) -> dict[str, float]:
    """Return the best time of each side. They run in turn, twice each, to reuse freed memory."""
    best = dict.fromkeys(sides, np.inf)
    for _ in range(repeats):
        for side, call in [pair for pair in sides.items() for _ in range(2)]:
            start = perf_counter()
            result = call()
            best[side] = min(best[side], perf_counter() - start)
            del result
    return best


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the peak memory of the call, including its result."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def show_largest(expanded: Any, basis: polysparse.MonomialBasis, names: list[str]) -> None:
    """Name the interactions that occur in most rows. Only these columns are decoded."""
    degree = basis.max_degree
    interactions = expanded.indices[expanded.indices >= basis.degree_slices[degree].start]
    columns, counts = np.unique(interactions, return_counts=True)
    print(f"\n{len(columns):,} interactions of {degree} columns occur. The most frequent ones:")
    largest = np.argsort(-counts, kind="stable")[:5]
    for count, name in zip(
        counts[largest], basis.names(columns[largest], input_features=names), strict=True
    ):
        print(f"{count:>8,}  {name}")


def show_degree_4(X: Any) -> None:
    """Expand to degree 4, for which scikit-learn loops over output columns in Python."""
    plan = polysparse.plan(X, 4, interaction_only=True)
    seconds = best_seconds({"": lambda: polysparse.expand(X, 4, interaction_only=True)})[""]
    print(
        f"\nDegree 4: {plan.shape[1]:,} columns, {plan.nnz:,} stored values, "
        f"{plan.nbytes / 1e6:.0f} MB, in {seconds * 1e3:.0f} ms."
        "\nscikit-learn would loop over these columns in Python."
    )


def show_fit(X: Any, y: Any, names: list[str]) -> None:
    """Fit a model on all pairs, which only scikit-learn builds, and list its largest terms."""
    pairs = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    theirs = make_pipeline(pairs, LogisticRegression(max_iter=1_000))
    ours = polysparse.PolynomialLogisticRegression(interaction_only=True)
    fits = {"scikit-learn": lambda: theirs.fit(X, y), "polysparse": lambda: ours.fit(X, y)}
    show_costs(fits, repeats=1)
    same = np.mean(theirs.predict(X) == ours.predict(X))
    print(f"Both predict the same for {same:.1%} of the rows. The largest terms:")
    weights = ours.coef_[0]
    largest = np.argsort(-np.abs(weights), kind="stable")[:5]
    found = ours.column_space_.basis.names(largest, input_features=names)
    for weight, name in zip(weights[largest], found, strict=True):
        print(f"{weight:>8.3f}  {name}")


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


if __name__ == "__main__":
    main()
