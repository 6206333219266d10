"""What tables of categories reach: against OneHotEncoder, and from CSV to a fitted model.

Both sides run in one process, in turn; the best of several times counts; every timed result is
checked; ratios are printed, with versions, also where they miss their target. Fits count as in
bench_models: each side has about the largest `tol` that reaches the same gap. polars is left out
where it is not installed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.preprocessing import PolynomialFeatures as SklearnPolynomialFeatures

import measure
import polysparse
from bench_core import Reached, Report, say
from bench_groups import is_installed, milliseconds
from bench_models import GAP, Fitted, find_tol
from polysparse.machine import format_bytes, threads_for

OURS, THEIRS = "TableEncoder", "OneHotEncoder"
TARGETS = {"pandas, object": 4.0, "pandas, str": 6.0, "polars, String": 12.0}
UNSHARED = "pandas, object, each row's own"  # strings that are equal, but not the same objects
TARGET_CODES, TARGET_CSV, TARGET_MEMORY, TARGET_FIT = 2.5, 5.0, 1 / 3, 1.3
SIZES = (2, 5, 7, 10, 16, 42, 100, 300, 1_000, 2_000, 5_000, 10_000)  # levels of the variables
C = 1.0  # the default of both
# About the largest that reach the gap; if one does not, smaller ones follow.
FIRST_TOLS = {OURS: 1.15e-6, THEIRS: 3.8e-6}


# ------------------------------------------------------------------------------------------- data


def make_text(n_rows: int) -> pd.DataFrame:
    """Return 12 columns of strings."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            f"v{i}": pd.Series(_levels(size)[rng.integers(size, size=n_rows)], dtype=object)
            for i, size in enumerate(SIZES)
        }
    )


def _levels(size: int) -> Any:
    return np.array([f"level {i}" for i in range(size)], dtype=object)


def _copied(level: str) -> str:
    """Return another object with the same characters."""
    return level[:1] + level[1:]


def make_people(n_rows: int) -> tuple[pd.DataFrame, Any]:
    """Return 12 variables of 2 to 16 levels, and classes that depend on them and two pairs.

    Level k of a variable has a frequency of 1/k, as some levels of real tables are rare.
    """
    rng = np.random.default_rng(0)
    sizes = (7, 16, 7, 14, 6, 5, 2, 12, 9, 8, 5, 4)
    frequencies = [1 / np.arange(1, size + 1) for size in sizes]
    codes = np.column_stack([rng.choice(len(f), n_rows, p=f / f.sum()) for f in frequencies])
    table = pd.DataFrame(
        {f"v{i}": _levels(size)[codes[:, i]] for i, size in enumerate(sizes)}, dtype="str"
    )
    first, second = rng.normal(size=(7, 16)), rng.normal(size=(14, 6))
    score = first[codes[:, 0], codes[:, 1]] + second[codes[:, 3], codes[:, 4]] - 1
    score += sum(rng.normal(size=size)[codes[:, i]] / 2 for i, size in enumerate(sizes))
    return table, np.where(score + rng.logistic(size=n_rows) > 0, "yes", "no")


# --------------------------------------------------------------------------------------- measures


@dataclass(frozen=True)
class Encoded:
    """Best times to learn and encode a kind of table."""

    name: str
    times: dict[str, float]

    @property
    def ratio(self) -> float:
        """How many times as fast as OneHotEncoder."""
        return self.times[THEIRS] / self.times[OURS]


def time_encoding(n_rows: int, repeats: int) -> list[Encoded]:
    """Encode the same strings from tables of every kind; the result must be the same."""
    text = make_text(n_rows)
    as_str = text.astype("str")
    tables: dict[str, Any] = {"pandas, object": text, UNSHARED: text.map(_copied).astype(object)}
    tables["pandas, str"] = as_str
    tables["pandas, category"] = text.astype("category")
    if is_installed("pyarrow"):
        import pyarrow as pa

        arrow = pa.Table.from_pandas(as_str, preserve_index=False)
        tables["pyarrow, string"] = arrow
        coded = [column.combine_chunks().dictionary_encode() for column in arrow.columns]
        tables["pyarrow, dictionary"] = pa.table(coded, names=arrow.column_names)
    if is_installed("polars"):
        import polars as pl

        tables["polars, String"] = pl.from_pandas(as_str)
        tables["polars, Categorical"] = tables["polars, String"].cast(pl.Categorical)
    found, check = [], measure.SameResult(np.dtype(np.int32))
    for name, table in tables.items():
        say(name)
        sides: dict[str, Callable[[], Any]] = {
            OURS: lambda table=table: polysparse.TableEncoder().fit_transform(table)
        }
        if name in TARGETS or name == UNSHARED:
            sides[THEIRS] = lambda table=table: OneHotEncoder().fit_transform(table)
        best = measure.best_times(sides, repeats=repeats, check=check)
        found.append(Encoded(name, best))
    return found


@dataclass(frozen=True)
class FromCsv:
    """From a file to a fitted model: seconds, peak memory and tol of each side."""

    name: str
    seconds: dict[str, float]
    peaks: dict[str, int]
    tols: dict[str, float]


def fit_ours(path: Path, tol: float) -> Any:
    """Read a table and fit to it."""
    table = pd.read_csv(path)
    y = table.pop("y")
    model = polysparse.PolynomialLogisticRegression(C, interaction_only=True, tol=tol)
    return model.fit(table, y)


def fit_theirs(path: Path, tol: float) -> Any:
    """Read a table, encode and expand it, and fit to that."""
    table = pd.read_csv(path)
    y = table.pop("y")
    model = LogisticRegression(C=C, tol=tol, max_iter=100_000)
    expand = SklearnPolynomialFeatures(interaction_only=True, include_bias=False)
    return make_pipeline(OneHotEncoder(), expand, model).fit(table, y)


def objective(model: Any, table: Any, y: Any) -> float:
    """Return what both sides minimize."""
    p = model.predict_proba(table)
    of_class = p[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    coefficients = model[-1].coef_ if isinstance(model, Pipeline) else model.coef_
    return float(-C * np.log(of_class).sum() + 0.5 * (coefficients**2).sum())


def time_csv(n_rows: int, repeats: int) -> FromCsv:
    """Fit to a CSV file, with the same gap."""
    table, y = make_people(n_rows)
    fits: dict[str, Callable[..., Any]] = {OURS: fit_ours, THEIRS: fit_theirs}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        table.assign(y=y).to_csv(path, index=False)
        model = fit_ours(path, 1e-10)
        best, n_terms = objective(model, table, y), model.coef_.size

        def gap(model: Any) -> float:
            return objective(model, table, y) / best - 1

        def attempt(side: str, tol: float) -> Fitted:
            return Fitted(tol, None, gap(fits[side](path, tol)), is_stopped=False)

        def check(side: str, model: Any) -> None:
            if not abs(gap(model)) <= GAP:
                raise AssertionError(f"{side} is {gap(model):.2g} from the best objective.")

        tols = {side: find_tol(partial(attempt, side), FIRST_TOLS[side], GAP).tol for side in fits}
        sides = {side: partial(fit, path, tols[side]) for side, fit in fits.items()}
        seconds = measure.best_times(sides, repeats=repeats, check=check)
        peaks = {}
        if measure.can_measure_peaks():
            for side, fit in fits.items():
                peaks[side] = measure.in_new_process(peak_of, fit, path, tols[side])
    name = f"{n_rows:,} rows, 12 variables, {n_terms:,} terms"
    return FromCsv(name, seconds, peaks, tols)


def peak_of(function: Callable[..., Any], path: Path, *arguments: Any) -> int:
    """Return by how many bytes memory grows during a call, after one on a few rows."""
    few = path.with_name("few.csv")
    pd.read_csv(path, nrows=100).to_csv(few, index=False)
    function(few, *arguments)
    return measure.peak_growth(partial(function, path, *arguments))


def time_fit(n_rows: int, repeats: int) -> dict[str, float]:
    """Fit to a table, and to the same rows when they are encoded already."""
    table, y = make_people(n_rows)
    encoder = polysparse.TableEncoder().fit(table)
    X = encoder.transform(table)
    plain = polysparse.PolynomialLogisticRegression(C, groups=encoder.groups_)
    tabular = polysparse.PolynomialLogisticRegression(C)
    coefficients = plain.fit(X, y).coef_

    def check(side: str, result: Any) -> None:
        if side != "encode" and not np.array_equal(result.coef_, coefficients):
            raise AssertionError(f"{side} has other coefficients.")

    sides: dict[str, Callable[[], Any]] = {
        "table": lambda: tabular.fit(table, y),
        "CSR": lambda: plain.fit(X, y),
        "encode": lambda: polysparse.TableEncoder().fit_transform(table),
    }
    return measure.best_times(sides, repeats=repeats, check=check)


# ----------------------------------------------------------------------------------------- report


def print_encoding(report: Report, n_rows: int, rows: list[Encoded]) -> None:
    """Write a table of times to encode."""
    report.heading(f"Encode {n_rows:,} rows of 12 variables, 2 to 10,000 levels")
    lines = []
    for row in rows:
        cells = [row.name, milliseconds(row.times[OURS]), "", ""]
        if THEIRS in row.times:
            is_met = row.ratio >= TARGETS.get(row.name, 0.0)
            cells[2:] = [
                milliseconds(row.times[THEIRS]),
                report.mark(f"{row.ratio:.1f}x", is_met),
            ]
        lines.append(cells)
    report.table(f"table | {OURS}, ms | {THEIRS}, ms | speedup", lines)


def reached(
    encoded: list[Encoded], csv: FromCsv, name: str, fits: dict[str, float]
) -> Iterator[Reached]:
    """The measures that have targets."""
    times = {row.name: row.times[OURS] for row in encoded}
    for row in encoded:
        if row.name in TARGETS:
            target = TARGETS[row.name]
            what = f"{OURS} against {THEIRS}, {row.name}"
            yield Reached(what, f"{target:g}x", f"{row.ratio:.1f}x", row.ratio >= target)
    for codes, text in (
        ("pandas, category", "pandas, str"),
        ("pyarrow, dictionary", "pyarrow, string"),
    ):
        if codes in times:
            ratio = times[text] / times[codes]
            what = f"{codes} against {text}"
            yield Reached(what, f"{TARGET_CODES:g}x", f"{ratio:.1f}x", ratio >= TARGET_CODES)
    speed = csv.seconds[THEIRS] / csv.seconds[OURS]
    yield Reached(
        f"CSV to a fitted model ({csv.name}), to a gap of {GAP:g}, against read_csv, {THEIRS}, "
        f"PolynomialFeatures and LogisticRegression (tol={csv.tols[OURS]:.2g} and "
        f"{csv.tols[THEIRS]:.2g})",
        f"{TARGET_CSV:g}x",
        f"{speed:.1f}x ({csv.seconds[OURS]:.2f} s)",
        speed >= TARGET_CSV,
    )
    if csv.peaks:
        share = csv.peaks[OURS] / csv.peaks[THEIRS]
        yield Reached(
            "the same, memory",
            "1/3",
            f"{share:.2f} ({format_bytes(csv.peaks[OURS])})",
            share <= TARGET_MEMORY,
        )
    ratio = fits["table"] / (fits["CSR"] + fits["encode"])
    yield Reached(
        f"fit to a table over encoding and a fit to CSR ({name})",
        f"at most {TARGET_FIT:g}x",
        f"{ratio:.2f}x",
        ratio <= TARGET_FIT,
    )


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    parser.add_argument("--repeats", type=int, default=5, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    n_encoded, n_fitted = (100_000, 5_000) if options.quick else (1_000_000, 200_000)
    encoded = time_encoding(n_encoded, options.repeats)
    say("CSV to a fitted model")
    csv = time_csv(n_fitted, options.repeats)
    say("fit to a table")
    fits = time_fit(n_fitted, options.repeats)

    report = Report(options.markdown)
    print(measure.describe_machine(threads_for(None, 10**9)))
    print_encoding(report, n_encoded, encoded)
    report.reached([*reached(encoded, csv, f"{n_fitted:,} rows", fits)])


if __name__ == "__main__":
    main()
