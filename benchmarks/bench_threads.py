"""What every core adds: expansions in GB/s beside memset, columns in ns, fits of models in seconds.

Every number of threads is timed in turn in one process; the best of several times counts, and every
timed result is checked. On a machine with more cores, name the numbers of threads.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import measure
import polysparse
from bench_columns import N_HASHED, mark, zipf_columns
from bench_core import Case, consume, random_csr, require_blocks_right, say
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialRidge,
)
from polysparse.machine import threads_for, usable_cores
from polysparse.models.losses.logistic import LogRowLosses

EXPAND, MEMSET, INTO, BLOCKS = "expand", "memset", "expand(out=...)", "iter_expand(reuse=True)"
FIT, TRANSFORM, HASHED = "observed fit", "observed transform", "hashed transform"
LOGISTIC, RIDGE, PREDICT = "logistic, 3 iterations", "ridge, 12 iterations", "predict_proba"
LOSSES = "losses of all rows, once"

TARGET_MEMSET, TARGET_SHORT_2, TARGET_SHORT = 1.25, 1.6, 2.0
TARGET_INTO, TARGET_BLOCKS = 2.0, 2.5  # over expand, with 2 threads
TARGET_FIT_2, TARGET_FIT_16, TARGET_HASHED = 1.7, 8.0, 0.4
TARGET_MODEL_16 = 8.0

Times = dict[tuple[str, int], float]  # of a side with so many threads


def equal_rows(n_rows: int, stored: int, n_features: int) -> Any:
    """Rows that all store as many values."""
    return random_csr(np.random.default_rng(0), np.full(n_rows, stored), n_features)


SHORT = Case("1,000,000 rows of 5, K=2", 2, partial(equal_rows, 1_000_000, 5, 1_000))
ROWS_OF_20 = Case("200,000 rows of 20, K=2", 2, partial(equal_rows, 200_000, 20, 10_000))
EXPANSIONS = [
    ROWS_OF_20,
    Case("20,000 rows of 100, K=2", 2, partial(equal_rows, 20_000, 100, 10_000)),
    Case("50,000 rows of 20, K=3", 3, partial(equal_rows, 50_000, 20, 1_000)),
    Case("one row of 20,000, K=2", 2, partial(equal_rows, 1, 20_000, 50_000)),
    SHORT,
]
COUNTED = [
    Case("200,000 rows of 20, D=10,000, uniform", 2, partial(equal_rows, 200_000, 20, 10_000)),
    Case("300,000 rows of 20, D=100,000, Zipf", 2, partial(zipf_columns, 300_000, 100_000, 20)),
]
MODELS = [
    Case("1,000,000 rows of 20, D=100, K=2", 2, partial(equal_rows, 1_000_000, 20, 100)),
    Case("200,000 rows of 60, D=100, K=2", 2, partial(equal_rows, 200_000, 60, 100)),
    Case("100,000 rows of 20, D=3,000, K=2", 2, partial(equal_rows, 100_000, 20, 3_000)),
]


# --------------------------------------------------------------------------------------- measures


@dataclass(frozen=True)
class Row:
    """Best times of several sides on one matrix, with several numbers of threads."""

    name: str
    plan: polysparse.ExpansionPlan
    times: Times

    def ratio(self, slow: str, fast: str, n_threads: int) -> float:
        """How many times the first takes of the second's time, both with so many threads."""
        return self.times[slow, n_threads] / self.times[fast, n_threads]

    def gain(self, side: str, n_threads: int) -> float:
        """How many times as fast as one thread so many are."""
        return self.times[side, 1] / self.times[side, n_threads]


def time_expansion(case: Case, threads: list[int], repeats: int) -> Row:
    """New results, results in the memory of an earlier one, blocks in one room; and memset."""
    X, k = case.make(), case.degree
    plan = polysparse.plan(X, k)
    indices = plan.index_dtype
    arrays = [(plan.n_rows + 1, indices), (plan.nnz, indices), (plan.nnz, plan.dtype)]
    room = polysparse.expand(X, k)
    sides: dict[tuple[str, int], Callable[[], Any]] = {}
    for t in threads:
        sides[EXPAND, t] = partial(polysparse.expand, X, k, n_jobs=t)
        sides[MEMSET, t] = partial(measure.fill_fresh, arrays, t)
        sides[INTO, t] = partial(polysparse.expand, X, k, n_jobs=t, out=room)
        if X.shape[0] > 1:
            sides[BLOCKS, t] = partial(consume, X, k, n_jobs=t)
    if X.shape[0] > 1:
        require_blocks_right(X, k)
    same = measure.SameResult(indices, but=(MEMSET, BLOCKS))
    measure.allocate_fresh(True)
    times = measure.best_times(sides, repeats=repeats, check=lambda side, out: same(side[0], out))
    return Row(case.name, plan, times)


def time_columns(case: Case, threads: list[int], repeats: int) -> Row:
    """Learning observed columns, expanding into them, into hashed ones, and into all."""
    X, k = case.make(), case.degree
    observed = ObservedPolynomialFeatures(k).fit(X)
    kept = observed.columns_, observed.counts_
    sides: dict[tuple[str, int], Callable[[], Any]] = {}
    for t in threads:
        hashed = HashedPolynomialFeatures(k, n_columns=N_HASHED, n_jobs=t)
        sides[FIT, t] = partial(fit, X, k, t)
        sides[TRANSFORM, t] = partial(polysparse.expand, X, columns=observed, n_jobs=t)
        sides[HASHED, t] = partial(hashed.transform, X)
        sides[EXPAND, t] = partial(polysparse.expand, X, k, n_jobs=t)
    same = {
        TRANSFORM: measure.SameResult(np.dtype(np.int32)),
        HASHED: measure.SameResult(np.dtype(np.int32)),
        EXPAND: measure.SameResult(polysparse.plan(X, k).index_dtype),
    }

    def check(side: tuple[str, int], result: Any) -> None:
        if side[0] != FIT:
            same[side[0]](side[0], result)
        elif not all(map(np.array_equal, (result.columns_, result.counts_), kept)):
            raise AssertionError(f"{side[1]} threads learn other columns")

    measure.allocate_fresh(False)
    times = measure.best_times(sides, repeats=repeats, check=check)
    return Row(case.name, polysparse.plan(X, k), times)


def fit(X: Any, degree: int, n_jobs: int) -> Any:
    """A transformer that has learned and chosen its columns."""
    poly = ObservedPolynomialFeatures(degree, n_jobs=n_jobs).fit(X)
    assert len(poly.columns_)
    return poly


def time_models(case: Case, threads: list[int], repeats: int) -> Row:
    """Short fits, predictions and what the losses take; coefficients have the same bits."""
    X, rng = case.make(), np.random.default_rng(1)
    scores = X @ rng.standard_normal(X.shape[1])
    y = scores + rng.logistic(size=len(scores)) > np.median(scores)
    models = {
        LOGISTIC: PolynomialLogisticRegression(0.1, degree=case.degree, max_iter=3),
        RIDGE: PolynomialRidge(degree=case.degree, max_iter=12),
    }
    kept = {side: fit_model(model, X, y, -1).coef_.copy() for side, model in models.items()}
    likely = models[LOGISTIC].predict_proba(X)
    sides: dict[tuple[str, int], Callable[[], Any]] = {}
    for t in threads:
        for side, model in models.items():
            sides[side, t] = partial(fit_model, model, X, y, t)
        sides[PREDICT, t] = partial(predict, models[LOGISTIC], X, t)
        sides[LOSSES, t] = partial(LogRowLosses(y, np.ones(len(y)), 1, t).sums, scores, 0.5)
    value = sides[LOSSES, threads[0]]().value

    def check(side: tuple[str, int], result: Any) -> None:
        if side[0] == LOSSES:
            is_same = result.value == value
        elif side[0] == PREDICT:
            is_same = np.array_equal(result, likely)
        else:
            is_same = np.array_equal(result.coef_, kept[side[0]])
        if not is_same:
            raise AssertionError(f"{side[0]} has other bits with {side[1]} threads")

    measure.allocate_fresh(False)
    times = measure.best_times(sides, repeats=repeats, check=check)
    return Row(case.name, polysparse.plan(X, case.degree), times)


def fit_model(model: Any, X: Any, y: Any, n_jobs: int) -> Any:
    """A fit that is stopped early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.set_params(n_jobs=n_jobs).fit(X, y)


def predict(model: Any, X: Any, n_jobs: int) -> Any:
    """Probabilities of classes."""
    return model.set_params(n_jobs=n_jobs).predict_proba(X)


# ----------------------------------------------------------------------------------------- report


def expansion_table(rows: list[Row], threads: list[int]) -> list[list[str]]:
    """GB/s of output, and time over memset with the most threads."""
    lines = []
    for row in rows:
        for side in (EXPAND, INTO, BLOCKS, MEMSET):
            if (side, threads[0]) not in row.times:
                continue
            speeds = [f"{row.plan.nbytes / row.times[side, t] / 1e9:.1f}" for t in threads]
            ratios = [f"{row.ratio(side, MEMSET, t):.2f}" for t in (threads[0], threads[-1])]
            lines.append([f"{row.name}: {side}", *speeds, *ratios])
    return lines


def column_table(rows: list[Row], threads: list[int]) -> list[list[str]]:
    """Nanoseconds per output of the expansion, and what all threads gain over one."""
    return [
        [f"{row.name}: {side}"]
        + [f"{row.times[side, t] / row.plan.nnz * 1e9:.1f}" for t in threads]
        + [f"{row.gain(side, threads[-1]):.1f}x"]
        for row in rows
        for side in (FIT, TRANSFORM, HASHED, EXPAND)
    ]


def model_table(rows: list[Row], threads: list[int]) -> list[list[str]]:
    """Milliseconds, and what all threads gain over one."""
    return [
        [f"{row.name}: {side}"]
        + [f"{row.times[side, t] * 1e3:,.1f}" for t in threads]
        + [f"{row.gain(side, threads[-1]):.1f}x"]
        for row in rows
        for side in (LOGISTIC, RIDGE, PREDICT, LOSSES)
    ]


def measures(
    expanded: list[Row], counted: list[Row], fitted: list[Row], threads: list[int]
) -> list[list[str]]:
    """Targets, and what was reached with each number of threads."""
    reached = []

    def at_most(what: str, ratio: float, target: float) -> None:
        reached.append([what, f"at most {target:g}", mark(f"{ratio:.2f}", ratio <= target)])

    def at_least(what: str, ratio: float, target: float) -> None:
        reached.append([what, f"{target:g}x", mark(f"{ratio:.2f}x", ratio >= target)])

    by_name = {row.name: row for row in expanded}
    short = by_name.pop(SHORT.name, None)
    for t in threads if short is not None else []:
        what = f"time relative to memset, {t} thread{'s' if t > 1 else ''}"
        ratio = short.ratio(EXPAND, MEMSET, t)
        at_most(f"{what}, rows of 5", ratio, TARGET_SHORT_2 if t <= 2 else TARGET_SHORT)
        worst = max(row.ratio(EXPAND, MEMSET, t) for row in by_name.values())
        at_most(f"{what}, rows of 20 and more: the worst", worst, TARGET_MEMSET)
    if 2 in threads and expanded:
        gain = min(row.ratio(EXPAND, INTO, 2) for row in expanded)
        at_least("expand(out=...) over expand, 2 threads: the least", gain, TARGET_INTO)
        gain = by_name[ROWS_OF_20.name].ratio(EXPAND, BLOCKS, 2)
        at_least(f"{BLOCKS} over expand, {ROWS_OF_20.name}, 2 threads", gain, TARGET_BLOCKS)
    for row in counted:
        for t, target in ((2, TARGET_FIT_2), (16, TARGET_FIT_16)):
            if t in threads:
                at_least(f"observed fit, {row.name}, {t} threads over 1", row.gain(FIT, t), target)
        t = threads[-1]
        ratio = row.ratio(EXPAND, HASHED, t)
        at_least(f"hashed transform over expand, {row.name}, {t} threads", ratio, TARGET_HASHED)
    for row in fitted:
        for side in (LOGISTIC, RIDGE):
            if 16 in threads:
                what = f"{side}, {row.name}, 16 threads over 1"
                at_least(what, row.gain(side, 16), TARGET_MODEL_16)
    return reached


def read_threads(text: str) -> list[int]:
    """Read increasing numbers of threads, of which the first is 1."""
    threads = [int(number) for number in text.split(",")]
    if threads[0] != 1 or threads != sorted(set(threads)):
        raise argparse.ArgumentTypeError(f"must rise from 1; got {text}")
    return threads


def main() -> None:
    """Measure everything, then report."""
    cores = usable_cores()
    powers = [2**k for k in range(cores.bit_length()) if 2**k < cores]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--threads", type=read_threads, default=[*powers, cores], help="as in 1,2,4,8,16"
    )
    parser.add_argument("--repeats", type=int, default=5, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    kinds = {
        "expansions": (EXPANSIONS, time_expansion),
        "columns": (COUNTED, time_columns),
        "models": (MODELS, time_models),
    }
    parser.add_argument("--only", choices=kinds, help="measure nothing else")
    options = parser.parse_args()
    threads, found = options.threads, {}
    for kind, (cases, time) in kinds.items():
        found[kind] = []
        for case in cases if options.only in (None, kind) else []:
            say(case.name)
            found[kind].append(time(case, threads, options.repeats))
    expanded, counted, fitted = found.values()
    print(measure.describe_machine(threads_for(None, 10**9)))
    numbers = [f"{t} thread{'s' if t > 1 else ''}" for t in threads]
    table = partial(measure.format_table, markdown=options.markdown)
    over = [f"time / memset, {number}" for number in (numbers[0], numbers[-1])]
    gain = f"{numbers[-1]} over 1"
    if expanded:
        print("\nGB/s of output:\n")
        print(table(["expansion", *numbers, *over], expansion_table(expanded, threads)))
    if counted:
        print("\nNanoseconds per output of the expansion:\n")
        print(table(["columns", *numbers, gain], column_table(counted, threads)))
    if fitted:
        print("\nMilliseconds:\n")
        print(table(["models", *numbers, gain], model_table(fitted, threads)))
    reached = measures(expanded, counted, fitted, threads)
    if reached:
        print()
        print(table(["measure", "target", "reached"], reached))


if __name__ == "__main__":
    main()
