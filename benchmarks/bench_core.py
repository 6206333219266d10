"""What the core reaches: time and memory against scikit-learn, and against the memory itself.

Both sides run in one process, in turn; the best of several times counts; every timed result is
checked; ratios are printed, with versions, also where they miss their target.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import PolynomialFeatures

import measure
import polysparse
from polysparse.machine import format_bytes, threads_for

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
MB = 10**6
LARGE = 50 * MB  # from here on the speed of fresh memory is the limit
THEIRS, OURS, OURS_1 = "scikit-learn", "polysparse", "polysparse, n_jobs=1"
MEMSET, MEMSET_1 = "memset", "memset, 1 thread"
BLOCKS, INTO = "polysparse, in blocks", "polysparse, out="
TRANSFORM = "polysparse.PolynomialFeatures"

TARGET_SPEED, TARGET_SPEED_1, TARGET_EACH = 10.0, 6.0, 5.0
TARGET_MEMSET, TARGET_TINY, TARGET_SMALL, TARGET_DEGREE_4 = 1.25, 5.0, 5.0, 1000.0
TARGET_PEAK, TARGET_DENSE, TARGET_REUSE, TARGET_INTO, TARGET_WIDTH = 1.1, 3.0, 2.0, 2.0, 1.5


# ------------------------------------------------------------------------------------------ cases


@dataclass(frozen=True)
class Case:
    """A matrix to expand. The heavy ones are left out of a quick run."""

    name: str
    degree: int
    make: Callable[[], Any]
    heavy: bool = False
    sklearn: Literal["in turn", "once", "never"] = "in turn"


TINY = "100 x 20, 0.2, K=2 (tiny)"
DEGREE_4 = "200 x 30, 0.2, K=4"


def suite(data: Path) -> list[Case]:
    """The fixed suite: name, degree, matrix."""
    cases = [
        Case(TINY, 2, partial(uniform, 100, 20, 0.2)),
        Case("2,000 x 500, 0.02, K=2 (small)", 2, partial(uniform, 2_000, 500, 0.02)),
        Case("20,000 x 1,000, 0.02, K=2", 2, partial(uniform, 20_000, 1_000, 0.02)),
        Case("the same in float32", 2, partial(uniform, 20_000, 1_000, 0.02, np.float32)),
        Case("100,000 x 10,000, 0.002, K=2", 2, partial(uniform, 100_000, 10_000, 0.002)),
        Case("2,000 x 1,000, 0.1, K=2", 2, partial(uniform, 2_000, 1_000, 0.1)),
        Case("50,000 x 20,000, Zipf rows, K=2", 2, partial(zipf_rows, 50_000, 20_000)),
        Case("1,001 x 50,000, a 20,000-value row, K=2", 2, one_long_row, heavy=True),
        Case("5,000 x 1,000, 0.02, K=3", 3, partial(uniform, 5_000, 1_000, 0.02)),
        Case(
            "20,000 x 100,000, 0.0003, K=3", 3, partial(uniform, 20_000, 100_000, 3e-4), heavy=True
        ),
        Case(DEGREE_4, 4, partial(uniform, 200, 30, 0.2), heavy=True, sklearn="once"),
        Case("2,000 x 300, 0.05, K=4", 4, partial(uniform, 2_000, 300, 0.05), sklearn="never"),
    ]
    if (path := data / "a9a").exists():
        real = [Case(f"a9a (one-hot), K={k}", k, partial(svmlight, path)) for k in (2, 3)]
        return [*cases[:-2], *real, *cases[-2:]]
    say(f"a9a is left out: there is no {path}; name its folder with --data")
    return cases


def uniform(n_rows: int, n_features: int, density: float, dtype: Any = np.float64) -> Any:
    """Rows whose lengths are binomial, as when every cell is stored or not by chance."""
    rng = np.random.default_rng(0)
    return random_csr(rng, rng.binomial(n_features, density, n_rows), n_features, dtype)


def zipf_rows(n_rows: int, n_features: int) -> Any:
    """Most rows have one or two stored values, a few have a thousand."""
    rng = np.random.default_rng(0)
    return random_csr(rng, np.minimum(rng.zipf(2.0, n_rows), 1_000), n_features)


def one_long_row() -> Any:
    """One row has nearly all of the outputs."""
    rng = np.random.default_rng(0)
    return random_csr(rng, np.array([*[10] * 500, 20_000, *[10] * 500]), 50_000)


def equal_rows(n_features: int) -> Any:
    """20,000 rows of 30 stored values, over any number of features."""
    return random_csr(np.random.default_rng(0), np.full(20_000, 30), n_features)


MANY_ROWS = Case("200,000 x 10,000, 0.002, K=2", 2, partial(uniform, 200_000, 10_000, 0.002))


def svmlight(path: Path) -> Any:
    """A file as scikit-learn reads it."""
    return load_svmlight_file(str(path))[0]


def random_csr(
    rng: np.random.Generator, lengths: NDArray[Any], n_features: int, dtype: Any = np.float64
) -> Any:
    """Canonical CSR with rows of these lengths.

    Values are small multiples of 1/64: their products are exact in any order of multiplication,
    so that both sides must agree in every bit.
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    row = np.repeat(np.arange(len(lengths)), lengths)
    # Sorted draws with repetition, plus 0, 1, 2, ... along each row, are distinct.
    drawn = rng.integers(0, n_features - lengths[row] + 1) + row * n_features
    drawn.sort()
    columns = drawn - row * n_features + (np.arange(len(row)) - offsets[row])
    values = (rng.integers(1, 256, len(row)) / 64).astype(dtype)
    arrays = values, columns.astype(np.int32), offsets.astype(np.int32)
    return sparse.csr_array(arrays, shape=(len(lengths), n_features))


# --------------------------------------------------------------------------------------- measures


@dataclass(frozen=True)
class Row:
    """Best times of several sides on one matrix."""

    name: str
    plan: polysparse.ExpansionPlan
    times: dict[str, float]

    def ratio(self, slow: str, fast: str) -> float:
        """How many times the first takes of the second's time."""
        return self.times[slow] / self.times[fast]


def time_case(case: Case, repeats: int) -> Row:
    """Both sides on a sparse matrix, and the filling of as much memory."""
    X, k = case.make(), case.degree
    plan = polysparse.plan(X, k)
    sides: dict[str, Callable[[], Any]] = {
        OURS: partial(polysparse.expand, X, k),
        OURS_1: partial(polysparse.expand, X, k, n_jobs=1),
    }
    if case.sklearn == "never":
        require_rows_right(X, k)
    else:
        sides[THEIRS] = partial(PolynomialFeatures(k).fit(X).transform, X)
    if is_large := plan.nbytes > LARGE:
        indices = plan.index_dtype
        arrays = [(plan.n_rows + 1, indices), (plan.nnz, indices), (plan.nnz, plan.dtype)]
        sides[MEMSET] = partial(measure.fill_fresh, arrays, threads_for(None, plan.nnz))
        sides[MEMSET_1] = partial(measure.fill_fresh, arrays, 1)
    measure.allocate_fresh(is_large)
    check = measure.SameResult(plan.index_dtype, but=(MEMSET, MEMSET_1))
    once = (THEIRS,) if case.sklearn == "once" else ()
    touched = 3 * plan.nbytes if is_large else 0  # what scikit-learn needs
    times = measure.best_times(sides, repeats=repeats, check=check, once=once, touched=touched)
    return Row(case.name, plan, times)


def require_rows_right(X: Any, degree: int) -> None:
    """Compare a few rows with the definition, where scikit-learn is too slow to be asked."""
    basis = polysparse.MonomialBasis(X.shape[1], degree)
    expanded = polysparse.expand(X, degree)
    for row in np.linspace(0, X.shape[0] - 1, 5).astype(int):
        (columns, values), (found_columns, found) = stored(X, row), stored(expanded, row)
        places = range(len(columns))
        chosen = [c for k in range(degree + 1) for c in combinations_with_replacement(places, k)]
        expected_columns = basis.rank([[int(columns[a]) for a in c] for c in chosen])
        expected = [prod(values[a] for a in c) for c in chosen]
        if not (np.array_equal(found_columns, expected_columns) and found.tolist() == expected):
            raise AssertionError(f"row {row} is not what the definition says")


def stored(X: Any, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Columns and values of a row."""
    where = slice(X.indptr[row], X.indptr[row + 1])
    return X.indices[where], X.data[where]


def time_dense(quick: bool, repeats: int) -> list[Row]:
    """Both sides on dense input in C order."""
    sizes = [(1_000, 20, 2), (5_000, 100, 2), (1_000, 20, 3), (2_000, 40, 3)]
    rows = []
    for n_rows, n_features, k in sizes if quick else [*sizes, (20_000, 100, 2)]:
        name = f"{n_rows:,} x {n_features}, K={k}"
        say(f"dense: {name}")
        X = np.random.default_rng(0).standard_normal((n_rows, n_features))
        plan = polysparse.plan(X, k)
        sides = {
            THEIRS: partial(PolynomialFeatures(k).fit(X).transform, X),
            OURS: partial(polysparse.expand, X, k),
            OURS_1: partial(polysparse.expand, X, k, n_jobs=1),
        }
        measure.allocate_fresh(plan.nbytes > LARGE)
        check = measure.SameResult()
        rows.append(Row(name, plan, measure.best_times(sides, repeats=repeats, check=check)))
    return rows


def time_small_calls(repeats: int) -> list[Row]:
    """The transformers of both sides on a few rows, as a server calls them."""
    matrices = {
        "100 x 20, 0.2, K=2": uniform(100, 20, 0.2),
        "1 x 1,000, 20 stored, K=2": random_csr(np.random.default_rng(0), np.array([20]), 1_000),
    }
    rows = []
    for name, X in matrices.items():
        say(f"small calls: {name}")
        sides = {
            THEIRS: partial(PolynomialFeatures().fit(X).transform, X),
            TRANSFORM: partial(polysparse.PolynomialFeatures().fit(X).transform, X),
            OURS: partial(polysparse.expand, X),
        }
        plan = polysparse.plan(X)
        measure.allocate_fresh(False)
        check = measure.SameResult(plan.index_dtype)
        rows.append(Row(name, plan, measure.best_times(sides, repeats=repeats, check=check)))
    return rows


def time_reuse(cases: list[Case], repeats: int) -> list[Row]:
    """Whole results, the same in memory of an earlier one, and in blocks that live in one room."""
    rows = []
    for case in [*cases, MANY_ROWS]:
        X, k = case.make(), case.degree
        plan = polysparse.plan(X, k)
        if plan.nbytes <= 100 * MB:
            continue
        say(f"reused memory: {case.name}")
        room = polysparse.expand(X, k)
        sides = {OURS: partial(polysparse.expand, X, k)}
        sides[INTO] = partial(polysparse.expand, X, k, out=room)
        if plan.nbytes > 300 * MB and case.make is not one_long_row:  # a row is never divided
            require_blocks_right(X, k)
            sides[BLOCKS] = partial(consume, X, k)
        check = measure.SameResult(plan.index_dtype, but=(BLOCKS,))
        measure.allocate_fresh(True)
        rows.append(Row(case.name, plan, measure.best_times(sides, repeats=repeats, check=check)))
    return rows


def consume(X: Any, degree: int, n_jobs: int | None = None) -> int:
    """Go through all blocks without a look at their values."""
    blocks = polysparse.iter_expand(X, degree, n_jobs=n_jobs, reuse=True)
    return sum(block.nnz for _, block in blocks)


def require_blocks_right(X: Any, degree: int) -> None:
    """Compare the blocks, one after the other, with the whole."""
    whole = polysparse.expand(X, degree)
    last = 0
    for rows, block in polysparse.iter_expand(X, degree, reuse=True):
        where = slice(whole.indptr[rows.start], whole.indptr[rows.stop])
        columns, values = whole.indices[where], whole.data[where]
        same = np.array_equal(block.indices, columns) and np.array_equal(block.data, values)
        if not same or rows.start != last:
            raise AssertionError(f"the block of rows {rows} differs from the whole")
        last = rows.stop
    if last != X.shape[0]:
        raise AssertionError(f"the blocks end at row {last}")


def time_widths(quick: bool, repeats: int) -> list[Row]:
    """Equal stored values per row, from a thousand features to a thousand million."""
    say("from 10^3 to 10^9 features")
    exponents = (3, 4, 5, 9) if quick else range(3, 10)
    matrices = {f"D = 10^{e}": equal_rows(10**e) for e in exponents}
    sides = {
        (name, side): partial(polysparse.expand, X, n_jobs=n_jobs)
        for name, X in matrices.items()
        for side, n_jobs in ((OURS, None), (OURS_1, 1))
    }
    checks = {
        name: measure.SameResult(polysparse.plan(X).index_dtype) for name, X in matrices.items()
    }
    for name, X in matrices.items():
        checks[name](THEIRS, PolynomialFeatures().fit_transform(X))
    measure.allocate_fresh(True)
    best = measure.best_times(
        sides, repeats=repeats, check=lambda key, result: checks[key[0]](key[1], result)
    )
    return [
        Row(name, polysparse.plan(X), {side: best[name, side] for side in (OURS, OURS_1)})
        for name, X in matrices.items()
    ]


def peaks_over_output(cases: list[Case]) -> dict[str, dict[str, float]]:
    """Peak memory relative to the output's size, of each side in a process of its own."""
    if not measure.can_measure_peaks():
        say("peak memory is left out: this system does not let a process set its peak back")
        return {}
    peaks = {}
    for case in cases:
        if polysparse.plan(case.make(), case.degree).nbytes > 100 * MB:
            say(f"peak memory: {case.name}")
            sides = [OURS] if case.sklearn == "never" else [OURS, THEIRS]
            peaks[case.name] = {s: measure.in_new_process(peak_of, case, s) for s in sides}
    return peaks


def peak_of(case: Case, side: str) -> float:
    """Peak memory of one call over the output's size, X being there already."""
    X, k = case.make(), case.degree
    nbytes = polysparse.plan(X, k).nbytes
    theirs = PolynomialFeatures(k).fit(X)
    call = theirs.transform if side == THEIRS else partial(polysparse.expand, degree=k)
    call(X[:100])  # what is loaded or set up once is no part of it
    return measure.peak_growth(partial(call, X)) / nbytes


# ----------------------------------------------------------------------------------------- report


@dataclass(frozen=True)
class Reached:
    """A measure, its target, and what came of it."""

    measure: str
    target: str
    reached: str
    met: bool


def against_sklearn(rows: list[Row]) -> Iterator[Reached]:
    """Speed of sparse cases."""
    peers = [row for row in rows if THEIRS in row.times and row.plan.basis.max_degree in (2, 3)]
    for side, target in ((OURS, TARGET_SPEED), (OURS_1, TARGET_SPEED_1)):
        speeds = {row.name: row.ratio(THEIRS, side) for row in peers}
        mean, worst = measure.geometric_mean(speeds.values()), min(speeds, key=speeds.__getitem__)
        settings = "default settings" if side == OURS else "n_jobs=1"
        yield Reached(
            f"speedup over scikit-learn, {settings}, geometric mean of K=2 and K=3",
            f"{target:g}x",
            f"{mean:.1f}x",
            mean >= target,
        )
        if side == OURS:
            yield Reached(
                "slowest of these cases",
                f"{TARGET_EACH:g}x",
                f"{speeds[worst]:.1f}x ({worst})",
                speeds[worst] >= TARGET_EACH,
            )


def against_memset(rows: list[Row]) -> Iterator[Reached]:
    """Time of sparse cases over that of zeroing the same memory."""
    for side, memset in ((OURS, MEMSET), (OURS_1, MEMSET_1)):
        ratios = {row.name: row.ratio(side, memset) for row in rows if memset in row.times}
        worst = max(ratios, key=ratios.__getitem__)
        mean = measure.geometric_mean(ratios.values())
        settings = "every core" if side == OURS else "1 thread"
        yield Reached(
            "time relative to memset of newly allocated memory, outputs over 50 MB, "
            f"{settings}: the worst",
            f"at most {TARGET_MEMSET:g}",
            f"{ratios[worst]:.2f} ({worst}); geometric mean {mean:.2f}",
            ratios[worst] <= TARGET_MEMSET,
        )


def cores_were_free(rows: list[Row]) -> bool:
    """Whether several threads filled memory clearly faster than one: else others were at work."""
    gains = [row.ratio(MEMSET_1, MEMSET) for row in rows if MEMSET in row.times]
    return threads_for(None, 10**9) == 1 or min(gains) > 1.4


def single_cases(rows: list[Row]) -> Iterator[Reached]:
    """The tiny case, and degree 4."""
    by_name = {row.name: row for row in rows}
    what = {
        TINY: ("tiny case, expand against scikit-learn's transform", TARGET_TINY),
        DEGREE_4: (f"{DEGREE_4}, against scikit-learn", TARGET_DEGREE_4),
    }
    for name, (text, target) in what.items():
        if name in by_name:
            speed = by_name[name].ratio(THEIRS, OURS)
            yield Reached(
                text, f"{target:,g}x", f"{speed:,.{0 if speed > 100 else 1}f}x", speed >= target
            )


def small_calls(rows: list[Row]) -> Iterator[Reached]:
    """The transformer on a few rows."""
    for row in rows:
        speed = row.ratio(THEIRS, TRANSFORM)
        what = f"PolynomialFeatures.transform against scikit-learn's, {row.name}"
        yield Reached(what, f"{TARGET_SMALL:g}x", f"{speed:.1f}x", speed >= TARGET_SMALL)


def others(
    peaks: dict[str, dict[str, float]], dense: list[Row], reused: list[Row], widths: list[Row]
) -> Iterator[Reached]:
    """Memory, dense input, reused memory and widths."""
    if peaks:
        worst = max(peak[OURS] for peak in peaks.values())
        yield Reached(
            "peak memory relative to the output's size, outputs over 100 MB: the worst",
            f"at most {TARGET_PEAK:g}",
            f"{worst:.2f} (scikit-learn: {max(p.get(THEIRS, 0) for p in peaks.values()):.2f})",
            worst <= TARGET_PEAK,
        )
    slowest = min(row.ratio(THEIRS, OURS) for row in dense)
    yield Reached(
        "dense input, C order, K=2 and 3, against scikit-learn: the slowest",
        f"{TARGET_DENSE:g}x",
        f"{slowest:.1f}x",
        slowest >= TARGET_DENSE,
    )
    for side, what, target in (
        (INTO, "expand(out=...) over expand, outputs over 100 MB", TARGET_INTO),
        (BLOCKS, "iter_expand(reuse=True) over expand, outputs over 300 MB", TARGET_REUSE),
    ):
        gains = {row.name: row.ratio(OURS, side) for row in reused if side in row.times}
        worst = min(gains, key=gains.__getitem__)
        yield Reached(
            f"{what}: the slowest",
            f"{target:g}x",
            f"{gains[worst]:.2f}x ({worst})",
            gains[worst] >= target,
        )
    for dtype in ("int32", "int64"):
        spread = max(width_spread(widths, dtype, side) for side in (OURS, OURS_1))
        yield Reached(
            f"cost per output from D = 10^3 to 10^9, {dtype} indices: highest over lowest",
            f"at most {TARGET_WIDTH:g}",
            f"{spread:.2f}",
            spread <= TARGET_WIDTH,
        )


def width_spread(widths: list[Row], index_dtype: str, side: str) -> float:
    """Dearest over cheapest output among the widths with such indices."""
    costs = [
        row.times[side] / row.plan.nnz for row in widths if row.plan.index_dtype == index_dtype
    ]
    return max(costs) / min(costs)


NOTES = """\
An asterisk marks results that miss their target. Times are the best of several runs, taking turns,
and every timed result was checked against the other library's. `memset` is the time to zero newly
allocated memory of the output's size with the same number of threads. Outputs over 50 MB are
written to newly allocated memory in both libraries."""


class Report:
    """Writes tables, for a terminal or in Markdown."""

    def __init__(self, markdown: bool) -> None:
        self.markdown = markdown

    def heading(self, text: str) -> None:
        """Begin a section."""
        print(f"\n### {text}\n" if self.markdown else f"\n{text}\n{'=' * len(text)}")

    def table(self, header: str, rows: list[list[str]]) -> None:
        """Write a table; the header's cells stand between bars."""
        print(measure.format_table(header.split(" | "), rows, self.markdown))

    def mark(self, text: str, met: bool) -> str:
        """Put a mark on what misses its target."""
        return text if met else f"{text} \\*" if self.markdown else f"{text} *"

    def sparse_cases(self, rows: list[Row]) -> None:
        self.heading("CSR in, CSR out")
        lines = []
        for row in rows:
            cells = [row.name, size(row), "does not finish", milliseconds(row, OURS), *[""] * 4]
            if THEIRS in row.times:
                speed = row.ratio(THEIRS, OURS)
                cells[2] = milliseconds(row, THEIRS)
                cells[4] = self.mark(f"{speed:,.1f}x", speed >= TARGET_EACH)
                cells[5] = f"{row.ratio(THEIRS, OURS_1):,.1f}x"
            if MEMSET in row.times:
                ratios = row.ratio(OURS, MEMSET), row.ratio(OURS_1, MEMSET_1)
                cells[6:] = [self.mark(f"{r:.2f}", r <= TARGET_MEMSET) for r in ratios]
            lines.append(cells)
        self.table(
            "rows x features, density, degree | output | scikit-learn, ms | polysparse, ms | "
            "speedup | speedup, n_jobs=1 | time / memset | time / memset, n_jobs=1",
            lines,
        )
        print(f"\n{NOTES}")

    def dense_cases(self, rows: list[Row]) -> None:
        self.heading("Dense in, dense out")
        lines = []
        for row in rows:
            speed, speed_1 = row.ratio(THEIRS, OURS), row.ratio(THEIRS, OURS_1)
            times = milliseconds(row, THEIRS), milliseconds(row, OURS)
            marked = self.mark(f"{speed:.1f}x", speed >= TARGET_DENSE)
            lines.append([row.name, size(row), *times, marked, f"{speed_1:.1f}x"])
        self.table(
            "rows x features, degree | output | scikit-learn, ms | polysparse, ms | speedup | "
            "speedup, n_jobs=1",
            lines,
        )

    def peaks(self, peaks: dict[str, dict[str, float]]) -> None:
        self.heading("Peak memory relative to the output's size")
        lines = []
        for name, peak in peaks.items():
            ours = self.mark(f"{peak[OURS]:.2f}", peak[OURS] <= TARGET_PEAK)
            lines.append([name, ours, f"{peak[THEIRS]:.2f}" if THEIRS in peak else ""])
        self.table("rows x features, density, degree | polysparse | scikit-learn", lines)

    def small_calls(self, rows: list[Row]) -> None:
        self.heading("Small calls")
        lines = []
        for row in rows:
            times = [f"{row.times[side] * 1e6:.0f}" for side in (THEIRS, TRANSFORM, OURS)]
            speed = row.ratio(THEIRS, TRANSFORM)
            lines.append([row.name, *times, self.mark(f"{speed:.1f}x", speed >= TARGET_SMALL)])
        self.table(
            "rows x features | scikit-learn's transform, µs | ours, µs | expand, µs | speedup",
            lines,
        )

    def reused(self, rows: list[Row]) -> None:
        self.heading("Reused memory")
        lines = []
        for row in rows:
            cells = [row.name, size(row), milliseconds(row, OURS), *[""] * 4]
            for place, side, target in ((3, INTO, TARGET_INTO), (5, BLOCKS, TARGET_REUSE)):
                if side in row.times:
                    gain = row.ratio(OURS, side)
                    marked = self.mark(f"{gain:.2f}x", gain >= target)
                    cells[place : place + 2] = milliseconds(row, side), marked
            lines.append(cells)
        self.table(
            "rows x features, density, degree | output | expand, ms | out=, ms | gain | "
            "iter_expand, ms | gain",
            lines,
        )

    def widths(self, rows: list[Row]) -> None:
        self.heading("Cost per output: 20,000 rows of 30 stored values, K=2")
        lines = [
            [row.name, f"{row.plan.shape[1]:,}", str(row.plan.index_dtype)]
            + [f"{row.times[side] / row.plan.nnz * 1e9:.2f}" for side in (OURS, OURS_1)]
            for row in rows
        ]
        self.table("features | columns | indices | ns | ns, n_jobs=1", lines)

    def reached(self, all_reached: list[Reached]) -> None:
        self.heading("Measures")
        lines = [
            [each.measure, each.target, self.mark(each.reached, each.met)] for each in all_reached
        ]
        self.table("measure | target | reached", lines)


def size(row: Row) -> str:
    """Size of the output, for people."""
    return format_bytes(row.plan.nbytes)


def milliseconds(row: Row, side: str) -> str:
    """A time with three digits that count."""
    time = row.times[side] * 1e3
    return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"


def say(text: str) -> None:
    """Show where the run is."""
    print(text, file=sys.stderr, flush=True)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave the heavy cases out")
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has the file a9a")
    parser.add_argument("--repeats", type=int, default=5, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    return parser.parse_args()


def main() -> None:
    """Measure everything, then report."""
    options = parse_arguments()
    repeats, report = options.repeats, Report(options.markdown)
    cases = [case for case in suite(options.data) if not (options.quick and case.heavy)]
    rows = []
    for case in cases:
        say(case.name)
        rows.append(time_case(case, repeats))
    small = time_small_calls(repeats)
    reused = time_reuse(cases, repeats)
    widths = time_widths(options.quick, repeats)
    dense = time_dense(options.quick, repeats)
    peaks = peaks_over_output(cases)

    print(measure.describe_machine(threads_for(None, 10**9)))
    if not cores_were_free(rows):
        print("\nOTHER WORK KEPT THE CORES BUSY: only what was measured with n_jobs=1 counts.")
    report.sparse_cases(rows)
    report.small_calls(small)
    report.dense_cases(dense)
    report.reused(reused)
    report.widths(widths)
    if peaks:
        report.peaks(peaks)
    all_reached = [*against_sklearn(rows), *against_memset(rows), *single_cases(rows)]
    report.reached([*all_reached, *small_calls(small), *others(peaks, dense, reused, widths)])


if __name__ == "__main__":
    main()
