"""How many passes over the data logistic fits take, on problems that differ.

A pass is one matrix-vector product with the expansion and one with its transpose. Passes are
counted until a relative gap of 1e-6: for our solver until it stops, with its certificate, and also
until the value was that low; for L-BFGS with 30 pairs and for truncated Newton, on the same
operator, until the value is that low, which they do not know. With `--times`, fits are also timed
against scikit-learn's on the built matrix.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures

import measure
from bench_core import DATA, Reached, Report, say
from polysparse import PolynomialLogisticRegression
from polysparse.machine import threads_for
from polysparse.models import newton
from solver_problems import Problem, all_problems
from solver_rivals import MOST_PASSES, fewest_passes, losses_of

GAP = 1e-6
STRENGTHS = 0.1, 1.0, 10.0
TARGET_EACH, TARGET_MEAN = 1.2, 0.7
TARGET_TIME_EACH, TARGET_TIME_MEAN = 3.0, 8.0
A9A = {0.1: 148, 1.0: 226, 10.0: 461}  # passes of the solver before quasi-Newton steps
SOLVERS = "lbfgs", "newton-cg"
TOLS = 1e-4, 1e-5, 1e-6, 1e-7


@dataclass(frozen=True)
class Count:
    """Passes of one fit."""

    problem: Problem
    C: float
    until_low: float
    until_stop: float
    gap: float
    rivals: dict[str, float]

    @property
    def ratio(self) -> float:
        """Our passes over the fewest of the rivals, or over the most that these may take."""
        return self.until_stop / min(MOST_PASSES, *self.rivals.values())


def count(problem: Problem, X: Any, y: NDArray[Any], C: float) -> Count:
    """Count the passes of all solvers."""
    best, _, _ = minimize(X, y, C, 1e-9, 0.0)
    value, low, stop = minimize(X, y, C, GAP, best * (1 + GAP))
    rivals = fewest_passes(X, y, C, best * (1 + GAP))
    return Count(problem, C, low, stop, value / best - 1, rivals)


def minimize(
    X: Any, y: NDArray[Any], C: float, tol: float, enough: float
) -> tuple[float, float, float]:
    """Return the value, the passes until it was low enough as far as is known, and all passes."""
    losses, w = losses_of(X, y, C)
    start = 0.0 if w.ndim == 1 else np.zeros(w.shape[1])
    low = []
    move = losses.move

    def watched(coefficients: NDArray[Any]) -> float:
        change = move(coefficients)
        if losses.value + np.sum(coefficients**2) / 2 <= enough:
            low.append(losses.n_passes)
        return float(change)

    losses.move = watched
    fit = losses.rows.run(
        partial(newton.minimize, losses, w, start, tol=tol, max_iter=1_000, report=lambda *_: None)
    )
    return fit.value, low[0] if low else losses.n_passes, losses.n_passes


# -------------------------------------------------------------------------------------------- times


def time_fits(X: Any, y: NDArray[Any], C: float) -> tuple[float, float, str]:
    """Return our seconds, those of scikit-learn's fastest solver at the same gap, and its name."""
    best = PolynomialLogisticRegression(C, tol=1e-9, max_iter=1_000).fit(X, y).objective_
    ours = min(time_once(PolynomialLogisticRegression(C), X, y)[0] for _ in range(2))
    theirs, name = np.inf, "none reaches the gap"
    for solver in SOLVERS:
        for tol in TOLS:
            model = LogisticRegression(C=C, solver=solver, tol=tol, max_iter=5_000)
            seconds, value = time_once(model, X, y)
            if value <= best * (1 + GAP):
                theirs, name = min((theirs, name), (seconds, solver))
                break
    return ours, theirs, name


def time_once(model: Any, X: Any, y: NDArray[Any]) -> tuple[float, float]:
    """Fit; return the seconds, the expansion included, and the objective."""
    start = perf_counter()
    if isinstance(model, PolynomialLogisticRegression):
        model.fit(X, y)
        return perf_counter() - start, model.objective_
    built = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(built, y)
    seconds = perf_counter() - start
    classes = np.searchsorted(model.classes_, y)
    log_probabilities = model.predict_log_proba(built)[np.arange(len(y)), classes]
    penalty = np.sum(model.coef_**2) / 2
    return seconds, float(penalty - model.C * log_probabilities.sum())


# ------------------------------------------------------------------------------------------- report


def print_counts(report: Report, counts: list[Count]) -> None:
    """Write a table of passes."""
    report.heading("Logistic regression, K=2: passes to a relative gap of 1e-6")
    lines = []
    for each in counts:
        rivals = [
            f"{v:g}" if np.isfinite(v) else f"> {MOST_PASSES:,}" for v in each.rivals.values()
        ]
        ratio = report.mark(f"{each.ratio:.2f}", each.ratio <= TARGET_EACH)
        cells = [f"{each.problem.name}, C={each.C:g}", f"{each.until_stop:g}"]
        lines.append([*cells, f"{each.until_low:g}", f"{each.gap:.1g}", *rivals, ratio])
    report.table(
        "problem | polysparse, until it stops | until the gap is reached | gap reached | "
        "L-BFGS, 30 pairs | truncated Newton | polysparse / fewest",
        lines,
    )


def reached_by(counts: list[Count]) -> Iterator[Reached]:
    """Compare the counts with their targets."""
    for is_held_out, words in ((False, ""), (True, ", problems held out")):
        ratios = [c.ratio for c in counts if c.problem.is_held_out == is_held_out]
        if not ratios:
            continue
        mean = measure.geometric_mean(ratios)
        yield Reached(
            f"logistic, passes over the fewest of L-BFGS and truncated Newton: mean{words}",
            f"at most {TARGET_MEAN:g}",
            f"{mean:.2f}",
            mean <= TARGET_MEAN,
        )
        yield Reached(
            f"the same, maximum{words}",
            f"at most {TARGET_EACH:g}",
            f"{max(ratios):.2f}",
            max(ratios) <= TARGET_EACH,
        )
    for each in counts:
        if each.problem.name == "a9a":
            most = A9A[each.C]
            met = each.until_stop <= most
            yield Reached(f"a9a, C={each.C:g}: passes", f"{most}", f"{each.until_stop:g}", met)


def print_times(report: Report, times: dict[str, tuple[float, float, str]]) -> list[Reached]:
    """Write a table of times."""
    report.heading("The same: seconds, the expansion included")
    lines = [
        [name, f"{ours:.3g}", f"{theirs:.3g}", solver, f"{theirs / ours:.1f}x"]
        for name, (ours, theirs, solver) in times.items()
    ]
    report.table("problem | ours | scikit-learn | its solver | ratio", lines)
    ratios = [theirs / ours for ours, theirs, _ in times.values() if np.isfinite(theirs)]
    mean, least = measure.geometric_mean(ratios), min(ratios, default=np.nan)
    return [
        Reached(
            "logistic, times: mean",
            f"{TARGET_TIME_MEAN:g}x",
            f"{mean:.1f}x",
            mean >= TARGET_TIME_MEAN,
        ),
        Reached(
            "logistic, times: least",
            f"{TARGET_TIME_EACH:g}x",
            f"{least:.1f}x",
            least >= TARGET_TIME_EACH,
        ),
    ]


def main() -> None:
    """Count passes, and measure times if they are wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every C, not only C=1")
    parser.add_argument("--times", action="store_true", help="also time scikit-learn's solvers")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="problems with such names")
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has a9a")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    report, counts = Report(options.markdown), []
    times: dict[str, tuple[float, float, str]] = {}
    for problem in all_problems(options.data):
        if options.only and not any(name in problem.name for name in options.only):
            continue
        X, y = problem.make()
        for C in STRENGTHS if options.all else (1.0,):
            say(f"{problem.name}, C={C:g}")
            counts.append(count(problem, X, y, C))
            if options.times:
                times[f"{problem.name}, C={C:g}"] = time_fits(X, y, C)
    print(measure.describe_machine(threads_for(None, 10**9)))
    print_counts(report, counts)
    reached = [*reached_by(counts)]
    if times:
        reached += print_times(report, times)
    report.reached(reached)


if __name__ == "__main__":
    main()
