"""Ridge regression from one Krylov space, against conjugate gradients, and against single fits.

    python benchmarks/bench_ridge.py --quick

Passes over the data are counted, and fits are timed in turns. Everything is fitted to a relative
gap of 1e-6, and every objective is checked against that of the other side.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import measure
from bench_core import DATA, Reached, Report, say
from bench_models import read
from growth import clicks
from polysparse import PolynomialRidge
from polysparse.machine import threads_for
from polysparse.models import krylov, least_squares
from polysparse.models.columns import make_columns
from polysparse.models.fitting import open_rows

GAP = 1e-6
KRYLOV, BEFORE = "Krylov space", "conjugate gradients"
PATH, SINGLE = "one path", "a fit for each"
PENALTIES = (0.1, 1.0, 10.0)
RANGE = np.geomspace(0.1, 1000, 20)
TARGETS = {"a9a": (1.5, 7.0), "rand": (3.0, 15.0)}  # of one fit at alpha=1, and of the path


def errors_of(X: Any, y: NDArray[Any]) -> Any:
    """The objective of degree 2."""
    model = PolynomialRidge()
    with open_rows(model, X, y, None) as rows:
        columns = make_columns(model, rows)
        rows.set_targets(columns, model._make_loss(rows))
        return rows.squared_errors(True, None)


@contextmanager
def without_space() -> Any:
    """Fit by conjugate gradients alone."""
    kept, krylov.MOST_BYTES = krylov.MOST_BYTES, 0
    try:
        yield
    finally:
        krylov.MOST_BYTES = kept


def fit(X: Any, y: NDArray[Any], alphas: Any, side: str) -> tuple[list[float], float]:
    """Return the objective for each penalty, and the passes over the data."""
    errors, found = errors_of(X, y), {}
    solve = partial(least_squares.minimize_path, errors, tol=GAP, max_iter=20_000, report=ignore)

    def solve_all() -> None:
        for each in [alphas] if side in (KRYLOV, PATH) else [[alpha] for alpha in alphas]:
            for place, solution in solve(each):
                if solution.gap > 1.01 * GAP * solution.value:
                    raise AssertionError(f"alpha={each[place]:g}: gap {solution.gap:.2g}")
                found[each[place]] = solution.value

    with without_space() if side in (BEFORE, SINGLE) else nullcontext():
        errors.rows.run(solve_all)
    return [found[alpha] for alpha in alphas], errors.n_passes


def ignore(*_: Any) -> None:
    """Print nothing."""


def compare(X: Any, y: NDArray[Any], alphas: Any, sides: tuple[str, str], repeats: int) -> Any:
    """Return the passes and the best times of both sides."""
    passes: dict[str, float] = {}
    values: dict[str, NDArray[Any]] = {}

    def check(side: str, result: tuple[list[float], float]) -> None:
        values[side], passes[side] = np.array(result[0]), result[1]
        for other in values.values():
            if not np.all(np.abs(values[side] / other - 1) <= 2 * GAP):
                raise AssertionError(f"{side}: {values}")

    calls: dict[str, Callable[[], Any]] = {side: partial(fit, X, y, alphas, side) for side in sides}
    return passes, measure.best_times(calls, repeats=repeats, check=check)


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small cases")
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has the file a9a")
    parser.add_argument("--repeats", type=int, default=2, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    X, labels = clicks(10_000 if options.quick else 100_000, 1_000, 20)
    cases = {"rand": (X, labels.astype(np.float64))}
    if (options.data / "a9a").exists():
        cases = {"a9a": read(options.data / "a9a"), **cases}
    else:
        say(f"a9a is left out: there is no {options.data / 'a9a'}; name its folder with --data")
    lines, reached = [], []
    for name, (X, y) in cases.items():
        jobs: list[tuple[str, Any, tuple[str, str]]] = [
            (f"alpha={alpha:g}", [alpha], (KRYLOV, BEFORE)) for alpha in PENALTIES
        ]
        if not options.quick:
            jobs.append((f"{len(RANGE)} penalties", list(RANGE), (PATH, SINGLE)))
        for what, alphas, sides in jobs:
            say(f"{name}, {what}")
            passes, times = compare(X, y, alphas, sides, options.repeats)
            new, old = sides
            ratio = times[old] / times[new]
            cells = [f"{passes[new]:,.0f}", f"{passes[old]:,.0f}", f"{times[new]:.3g}"]
            lines.append([f"{name}, {what}", *cells, f"{times[old]:.3g}", f"{ratio:.1f}x"])
            if what == "alpha=1" or new == PATH:
                target = TARGETS[name][new == PATH]
                label = f"ridge, {name}, {what}, against {old} by {BEFORE}"
                label = f"ridge, {name}, {what}, against {BEFORE}" if new == KRYLOV else label
                reached.append(Reached(label, f"{target:g}x", f"{ratio:.1f}x", ratio >= target))
    report = Report(options.markdown)
    print(measure.describe_machine(threads_for(None, 10**9)))
    report.heading("K=2: ridge regression to a relative gap of 1e-6")
    report.table(
        "fit | passes | passes, conjugate gradients | seconds | seconds, conjugate gradients | "
        "speedup",
        lines,
    )
    report.reached(reached)


if __name__ == "__main__":
    main()
