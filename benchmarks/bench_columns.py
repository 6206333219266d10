"""What observed and hashed columns reach, against scikit-learn's expansion and a selection from it.

Both sides run in one process, in turn; the best of several times counts; every timed result is
checked; ratios are printed, with versions, also where they miss their target. The way with
numpy.unique takes tens of seconds, so it runs once; a faster one, with a bincount as long as the
expansion is wide, is timed beside it where that fits.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures

import measure
import polysparse
from bench_core import DATA, Case, random_csr, say, svmlight, uniform
from polysparse import HashedPolynomialFeatures, ObservedPolynomialFeatures
from polysparse.machine import format_bytes, threads_for

UNIQUE, BINCOUNT, FIT_TRANSFORM = "unique", "bincount", "fit_transform"
SELECT, TRANSFORM, THEIRS = "select", "transform", "scikit-learn"
EXPAND, HASHED, COUNT_2, COUNT_1 = "expand", "hashed", "count, n_jobs=2", "count, n_jobs=1"

N_HASHED = 2**20
TARGET_FIT, TARGET_TRANSFORM, TARGET_PEAK = 4.0, 4.0, 0.5
TARGET_OF_EXPAND, TARGET_HASHED, TARGET_THREADS, TARGET_BYTES = 0.4, 2.0, 1.7, 2 * 10**9
TARGET_PRUNED_TIME, TARGET_PRUNED_BYTES = 2.0, 0.1


def suite(data: Path) -> list[Case]:
    """Real one-hot data, data as of a click log, and rows by chance, where most columns differ."""
    cases = [
        Case("20,000 x 1,000, 0.02, K=2", 2, partial(uniform, 20_000, 1_000, 0.02)),
        Case("100,000 x 10,000, 0.002, K=2", 2, partial(uniform, 100_000, 10_000, 0.002)),
        Case("100,000 x 20,000, Zipf columns, K=2", 2, partial(zipf_columns, 100_000, 20_000, 30)),
        Case("20,000 x 2,000, Zipf columns, K=3", 3, partial(zipf_columns, 20_000, 2_000, 20)),
    ]
    if (path := data / "a9a").exists():
        return [*(Case(f"a9a, K={k}", k, partial(svmlight, path)) for k in (2, 3)), *cases]
    say(f"a9a is left out: there is no {path}; name its folder with --data")
    return cases


def zipf_columns(n_rows: int, n_features: int, n_drawn: int) -> Any:
    """Rows of so many draws, in which feature j is about 1 / j as frequent as the first."""
    rng = np.random.default_rng(0)
    drawn = (n_features + 1.0) ** rng.random((n_rows, n_drawn)) - 1
    columns = np.minimum(drawn, n_features - 1).astype(np.int32).ravel()
    row = np.repeat(np.arange(n_rows), n_drawn)
    X = sparse.coo_array((np.ones(len(row)), (row, columns)), shape=(n_rows, n_features)).tocsr()
    X.data[:] = rng.integers(1, 256, X.nnz) / 64
    return X


# --------------------------------------------------------------------------------------- measures


def select_unique(theirs: PolynomialFeatures, X: Any) -> Any:
    """Their expansion, and of it the columns that occur."""
    expanded = theirs.transform(X)
    return expanded[:, np.unique(expanded.indices)]


def select_bincount(theirs: PolynomialFeatures, X: Any) -> Any:
    """The same, where a counter for every column fits into memory."""
    expanded = theirs.transform(X)
    counts = np.bincount(expanded.indices, minlength=expanded.shape[1])
    return expanded[:, np.flatnonzero(counts)]


def time_case(case: Case, repeats: int) -> dict[str, float]:
    """Best times of all sides."""
    X, k = sparse.csr_array(case.make()), case.degree
    theirs, observed = PolynomialFeatures(k).fit(X), ObservedPolynomialFeatures(k).fit(X)
    kept = observed.columns_
    hashed = HashedPolynomialFeatures(k, n_columns=N_HASHED)
    sides: dict[str, Callable[[], Any]] = {
        UNIQUE: partial(select_unique, theirs, X),
        BINCOUNT: partial(select_bincount, theirs, X),
        FIT_TRANSFORM: lambda: ObservedPolynomialFeatures(k).fit_transform(X),
        SELECT: lambda: theirs.transform(X)[:, kept],
        TRANSFORM: lambda: observed.transform(X),
        THEIRS: lambda: theirs.transform(X),
        EXPAND: lambda: polysparse.expand(X, k),
        HASHED: lambda: hashed.transform(X),
    }
    plan = polysparse.plan(X, k)
    same = measure.SameResult(plan.index_dtype)
    same_full = measure.SameResult(plan.index_dtype)
    same_hashed = measure.SameResult(np.dtype(np.int32))
    same_hashed("explicit", hash_explicitly(theirs.transform(X), theirs, hashed))

    def check(side: str, result: Any) -> None:
        if side == HASHED:
            same_hashed(side, result)
        elif side in (THEIRS, EXPAND):
            same_full(side, result)
        else:
            same(side, result)

    measure.allocate_fresh(plan.nbytes > 5 * 10**7)
    touched = 3 * plan.nbytes if plan.nbytes > 5 * 10**7 else 0
    once = (UNIQUE,)
    times = measure.best_times(sides, repeats=repeats, check=check, once=once, touched=touched)
    return times | time_counting(X, k, repeats)


def time_counting(X: Any, degree: int, repeats: int) -> dict[str, float]:
    """Best times of counting, in memory as it is given by default."""
    sides = {
        side: partial(count_columns, X, degree, n_jobs)
        for side, n_jobs in ((COUNT_1, 1), (COUNT_2, 2))
    }
    expected = count_columns(X, degree, None)

    def check(side: str, result: Any) -> None:
        if not np.array_equal(result, expected):
            raise AssertionError(f"{side} finds other columns")

    measure.allocate_fresh(False)
    return measure.best_times(sides, repeats=repeats, check=check)


def count_columns(X: Any, degree: int, n_jobs: int | None) -> Any:
    """The columns that occur."""
    return ObservedPolynomialFeatures(degree, n_jobs=n_jobs).fit(X).columns_


def hash_explicitly(
    expanded: Any, theirs: PolynomialFeatures, hashed: HashedPolynomialFeatures
) -> Any:
    """The hashed expansion by the book: the full one, its columns renamed and summed up."""
    occurring = np.flatnonzero(np.bincount(expanded.indices, minlength=expanded.shape[1]))
    basis = polysparse.MonomialBasis(theirs.n_features_in_, theirs.degree)
    columns, signs = hashed.column_of(basis.unrank(occurring), return_sign=True)
    place = np.searchsorted(occurring, expanded.indices)
    arrays = expanded.data * signs[place], columns[place].astype(np.int32), expanded.indptr
    out = sparse.csr_array(arrays, shape=(expanded.shape[0], hashed.n_columns))
    out.sum_duplicates()
    return out


def peak_of(case: Case, side: str) -> int:
    """Peak memory of fit and transform, X being there already."""
    X, k = sparse.csr_array(case.make()), case.degree
    theirs = PolynomialFeatures(k).fit(X)
    calls = {
        UNIQUE: partial(select_unique, theirs),
        FIT_TRANSFORM: lambda X: ObservedPolynomialFeatures(k).fit_transform(X),
    }
    calls[side](X[:100])  # what is loaded or set up once is no part of it
    return measure.peak_growth(partial(calls[side], X))


def peak_of_wide_fit() -> tuple[int, float, int]:
    """Peak memory and time of a fit whose columns nearly all differ, and how many are kept."""
    X = random_csr(np.random.default_rng(0), np.full(200_000, 30), 1_000_000)
    poly = ObservedPolynomialFeatures(min_count=2)
    poly.fit(X[:100])
    start = perf_counter()
    peak = measure.peak_growth(partial(poly.fit, X))
    return peak, perf_counter() - start, poly.n_output_features_


def cost_of_fit(make: Callable[[], Any], degree: int, **parameters: Any) -> tuple[int, float, int]:
    """Working memory and time of a fit, and how many columns it keeps: the result not included."""
    X = make()
    poly = ObservedPolynomialFeatures(degree, **parameters)
    poly.fit(X[:1000])
    start = perf_counter()
    peak = measure.peak_growth(partial(poly.fit, X))
    seconds = perf_counter() - start
    return peak - poly.columns_.nbytes - poly.counts_.nbytes, seconds, poly.n_output_features_


def rows_of_20() -> Any:
    """Rows in which nearly every product of three occurs once."""
    return random_csr(np.random.default_rng(0), np.full(100_000, 20), 10_000)


def pruned_fits(data: Path) -> list[list[str]]:
    """What remember_rejected=False saves, each fit in a process of its own."""
    say("pruned fits")
    (ours, seconds, kept), (theirs, whole, same) = (
        measure.in_new_process(
            partial(cost_of_fit, rows_of_20, 3, min_count=2, remember_rejected=remember)
        )
        for remember in (False, True)
    )
    if kept != same:
        raise AssertionError("a pruned fit keeps other columns")
    what = "100,000 x 10,000, 20 a row, K=3, min_count=2: remember_rejected=False against True"
    reached = [
        [f"time of fit, {what}", f"{TARGET_PRUNED_TIME:g}x",
         mark(f"{whole / seconds:.1f}x ({seconds:.1f} s)", whole / seconds >= TARGET_PRUNED_TIME)],
        [f"working memory of fit, {what}", f"at most {TARGET_PRUNED_BYTES:g}",
         mark(f"{ours / theirs:.2f} ({format_bytes(ours)})", ours <= TARGET_PRUNED_BYTES * theirs)],
    ]  # fmt: skip
    if (path := data / "a9a").exists():
        ours, seconds, kept = measure.in_new_process(
            partial(cost_of_fit, partial(svmlight, path), 5, min_count=100, remember_rejected=False)
        )
        cost = f"{seconds:.1f} s, {format_bytes(ours)} ({kept:,} kept)"
        what = "fit, a9a, K=5, min_count=100, remember_rejected=False"
        reached.append([f"time and working memory of {what}", "finishes", cost])
    return reached


# ----------------------------------------------------------------------------------------- report


def ratios_of(times: dict[str, float]) -> dict[str, float]:
    """What is compared with the targets."""
    return {
        "fit_transform": times[UNIQUE] / times[FIT_TRANSFORM],
        "bincount": times[BINCOUNT] / times[FIT_TRANSFORM],
        "transform": times[SELECT] / times[TRANSFORM],
        "of expand": times[EXPAND] / times[HASHED],
        "hashed": times[THEIRS] / times[HASHED],
        "threads": times[COUNT_1] / times[COUNT_2],
    }


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has the file a9a")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    cases, rows, all_ratios = suite(options.data), [], {}
    for case in cases:
        say(case.name)
        ratios = all_ratios[case.name] = ratios_of(time_case(case, options.repeats))
        rows.append([case.name, *(f"{r:.2f}x" if r < 10 else f"{r:.0f}x" for r in ratios.values())])
    reached = [
        lowest(all_ratios, "fit_transform", TARGET_FIT, "observed fit_transform against "
               "scikit-learn, numpy.unique and selection"),
        lowest(all_ratios, "transform", TARGET_TRANSFORM, "observed transform against "
               "scikit-learn and selection"),
        lowest(all_ratios, "of expand", TARGET_OF_EXPAND, "hashed transform against expand"),
        lowest(all_ratios, "hashed", TARGET_HASHED, "hashed transform against scikit-learn"),
        lowest(all_ratios, "threads", TARGET_THREADS, "counting with two threads against one"),
    ]  # fmt: skip
    if measure.can_measure_peaks():
        say("peak memory")
        case = next(case for case in cases if "Zipf columns, K=2" in case.name)
        ours, theirs = (
            measure.in_new_process(peak_of, case, side) for side in (FIT_TRANSFORM, UNIQUE)
        )
        reached.append([
            f"peak memory of fit_transform, {case.name}",
            f"at most {TARGET_PEAK:g} of scikit-learn's",
            mark(f"{ours / theirs:.2f} ({format_bytes(ours)})", ours <= TARGET_PEAK * theirs),
        ])  # fmt: skip
        reached += pruned_fits(options.data)
        peak, seconds, kept = measure.in_new_process(peak_of_wide_fit)
        reached.append([
            "peak memory of fit, 200,000 x 1,000,000, 30 a row, K=2, min_count=2",
            "at most 2 GB",
            mark(f"{format_bytes(peak)} ({seconds:.1f} s, {kept:,} kept)", peak <= TARGET_BYTES),
        ])  # fmt: skip
    print(measure.describe_machine(threads_for(None, 10**9)))
    header = [
        "rows x features, density, degree",
        "observed fit_transform against numpy.unique and selection",
        "against bincount and selection",
        "observed transform against selection",
        "hashed against expand",
        "hashed against scikit-learn",
        "counting, 2 threads against 1",
    ]
    print(f"\n{measure.format_table(header, rows, options.markdown)}\n")
    print(measure.format_table(["measure", "target", "reached"], reached, options.markdown))


def lowest(
    all_ratios: dict[str, dict[str, float]], name: str, target: float, what: str
) -> list[str]:
    """The case that comes off worst."""
    worst = min(all_ratios, key=lambda case: all_ratios[case][name])
    ratio = all_ratios[worst][name]
    text = f"{ratio:.2f}x ({worst})"
    return [f"{what}: the slowest", f"{target:g}x", mark(text, ratio >= target)]


def mark(text: str, met: bool) -> str:
    """Put a mark on what misses its target."""
    return text if met else f"{text} \\*"


if __name__ == "__main__":
    main()
