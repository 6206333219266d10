"""What models on expansions that are never built reach, against scikit-learn's on built ones.

Both sides run in one process, in turn; the best of several times counts; every timed fit is
checked; ratios are printed, with versions, also where they miss their target. A fit counts if its
objective is within 1e-6 of the best one known: each solver has about the largest `tol` that reaches
this. scikit-learn's fits include the expansion, and no intercept is penalized.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.preprocessing import PolynomialFeatures

import measure
import polysparse
from bench_core import DATA, Reached, Report, say
from growth import clicks, write_growth
from polysparse import PolynomialLogisticRegression, PolynomialRidge
from polysparse.machine import format_bytes, threads_for

OURS = "polysparse"
LBFGS, NEWTON = "LogisticRegression, lbfgs", "LogisticRegression, newton-cg"
LSQR, SAG, SPARSE_CG = "Ridge, lsqr", "Ridge, sag", "Ridge, sparse_cg"
GAP = 1e-6
TOL_STEP = 10**0.25
MOST_TRIALS = 20
MOST_SECONDS = 60.0  # of a fit that does not reach the gap: then its solver is left out
# About the largest that reach the gap, with scikit-learn 1.9; if one does not, smaller ones follow.
FIRST_TOLS = {
    "logistic, C=0.1": {OURS: 3.2e-6, LBFGS: 4.2e-6, NEWTON: 5.6e-5},
    "logistic, C=1": {OURS: 4.2e-6, LBFGS: 2.4e-6, NEWTON: 3.2e-6},
    "ridge, alpha=1": {OURS: 2.4e-6, LSQR: 1.8e-6, SAG: 1.3e-4, SPARSE_CG: 1.8e-5},
    "ridge, alpha=10": {OURS: 5.6e-6, LSQR: 5.6e-6, SAG: 5.6e-4, SPARSE_CG: 5.6e-5},
}
N_FEATURES = 123  # of a9a
TARGET_LBFGS, TARGET_LOGISTIC, TARGET_RIDGE, TARGET_PREDICT = 10.0, 6.0, 3.0, 5.0
TARGET_PEAK, TARGET_BYTES, TARGET_ACCURACY, TARGET_LOSS = 1.3, 2 * 10**9, 0.8492, 0.3258


# ------------------------------------------------------------------------------------------- fits


@dataclass(frozen=True)
class Problem:
    """A fit that both sides make, and the objective that says how good it is."""

    name: str
    ours: Callable[[float], Any]  # a model from its tol
    theirs: dict[str, Callable[[float], Any]]
    objective: Callable[[NDArray[Any], Any], float]  # of coefficients and intercept
    first_tols: dict[str, float]  # for each side
    rule: float  # ours shall be so many times as fast as the best of theirs
    gap: float = GAP  # the relative gap that counts


@dataclass(frozen=True)
class Fitted:
    """How close a solver came, and in which time; None if that does not count."""

    tol: float
    n_iter: int | None  # which some solvers do not tell
    gap: float
    is_stopped: bool  # a smaller tol would change nothing, or take too long
    seconds: float | None = None
    is_over: bool = False  # it was stopped after these seconds


def problems(X: Any, y: NDArray[Any]) -> list[Problem]:
    """The fits to a9a."""
    built = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    found = []
    for C in (0.1, 1.0):
        theirs = {name: partial(make_logistic, C, name.split(", ")[1]) for name in (LBFGS, NEWTON)}
        ours = partial(make_our_logistic, C)
        value = partial(logistic_objective, built, y, C)
        name = f"logistic, C={C:g}"
        found.append(Problem(name, ours, theirs, value, FIRST_TOLS[name], TARGET_LOGISTIC))
    for alpha in (1.0, 10.0):
        theirs = {
            name: partial(make_ridge, alpha, name.split(", ")[1]) for name in (LSQR, SAG, SPARSE_CG)
        }
        ours = partial(make_our_ridge, alpha)
        value = partial(ridge_objective, built, y, alpha)
        name = f"ridge, alpha={alpha:g}"
        found.append(Problem(name, ours, theirs, value, FIRST_TOLS[name], TARGET_RIDGE))
    return found


def make_our_logistic(C: float, tol: float) -> Any:
    """Our model."""
    return PolynomialLogisticRegression(C, tol=tol)


def make_our_ridge(alpha: float, tol: float) -> Any:
    """Our model."""
    return PolynomialRidge(alpha, tol=tol)


def make_logistic(C: float, solver: str, tol: float) -> Any:
    """Their model."""
    return LogisticRegression(C=C, solver=solver, tol=tol, max_iter=20_000)


def make_ridge(alpha: float, solver: str, tol: float) -> Any:
    """Their model.

    With an intercept and sparse data scikit-learn fits by sparse_cg where sag is asked for, if
    max_iter is given or tol is 1e-4 or less.
    """
    if solver == "sag":
        return Ridge(alpha, solver=solver, tol=max(tol, 1.01e-4), random_state=0)
    return Ridge(alpha, solver=solver, tol=tol, max_iter=20_000)


def logistic_objective(
    built: Any, y: NDArray[Any], C: float, coefficients: NDArray[Any], intercept: Any
) -> float:
    """C times the log losses plus half the squared norm, from the built matrix."""
    scores = built @ coefficients.ravel() + intercept
    losses = np.logaddexp(0, np.where(y > 0, -scores, scores))
    return float(C * losses.sum() + coefficients.ravel() @ coefficients.ravel() / 2)


def ridge_objective(
    built: Any, y: NDArray[Any], alpha: float, coefficients: NDArray[Any], intercept: Any
) -> float:
    """Squared errors plus alpha times the squared norm, from the built matrix."""
    errors = y - built @ coefficients - intercept
    return float(errors @ errors + alpha * coefficients @ coefficients)


def fit_ours(model: Any, X: Any, y: NDArray[Any]) -> Any:
    """Fit to X itself."""
    return quietly(model.fit, X, y)


def fit_theirs(model: Any, X: Any, y: NDArray[Any]) -> Any:
    """Expand, then fit."""
    return quietly(model.fit, PolynomialFeatures(2, include_bias=False).fit_transform(X), y)


def quietly(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call without warnings that a fit was stopped or may take long: gap and seconds tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return call(*arguments)


def time_problem(problem: Problem, X: Any, y: NDArray[Any], repeats: int) -> dict[str, Fitted]:
    """Find the largest tol that reaches the gap for each side, then time fits with it."""

    def fit_with(side: str, tol: float) -> Any:
        """Fit a new model, so that nothing is left of the last fit."""
        if side == OURS:
            return fit_ours(problem.ours(tol), X, y)
        return fit_theirs(problem.theirs[side](tol), X, y)

    best = value_of(problem, fit_ours(problem.ours(1e-12).set_params(max_iter=20_000), X, y))
    found = {}
    for side in (OURS, *problem.theirs):
        attempt = partial(attempt_fit, problem, partial(fit_with, side), best)
        found[side] = find_tol(attempt, problem.first_tols[side], problem.gap)
        say(f"{problem.name}: {side}: tol={found[side].tol:.2g}, gap {found[side].gap:.2g}")

    def check(side: str, model: Any) -> None:
        gap = value_of(problem, model) / best - 1
        if not abs(gap) <= problem.gap:
            raise AssertionError(f"{side} is {gap:.2g} from the best objective.")

    good = {side: f for side, f in found.items() if f.gap <= problem.gap}
    sides = {side: partial(fit_with, side, f.tol) for side, f in good.items()}
    times = measure.best_times(sides, repeats=repeats, check=check)
    return {side: replace(f, seconds=times.get(side)) for side, f in found.items()}


def find_tol(attempt: Callable[[float], Fitted], tol: float, gap: float) -> Fitted:
    """Return the first fit that reaches the gap, with a smaller tol each time, or the last."""
    for trial in range(MOST_TRIALS):
        found = attempt(tol / TOL_STEP**trial)
        if found.gap <= gap or found.is_stopped:
            break
    return found


def attempt_fit(
    problem: Problem, fit_with: Callable[[float], Any], best: float, tol: float
) -> Fitted:
    """Fit once, and look how close it came."""
    start = perf_counter()
    model = fit_with(tol)
    seconds = perf_counter() - start
    n_iter = None if model.n_iter_ is None else int(np.max(model.n_iter_))
    is_stopped = n_iter == model.get_params()["max_iter"] or seconds > MOST_SECONDS
    return Fitted(tol, n_iter, value_of(problem, model) / best - 1, is_stopped, seconds)


def value_of(problem: Problem, model: Any) -> float:
    """The objective of a fitted model."""
    return problem.objective(model.coef_, model.intercept_)


def score_a9a(data: Path, X: Any, y: NDArray[Any]) -> tuple[float, float]:
    """Accuracy and log loss on a9a's test rows, at C=0.1."""
    X_test, y_test = read(data / "a9a.t")
    model = PolynomialLogisticRegression(0.1).fit(X, y)
    return model.score(X_test, y_test), log_loss(y_test, model.predict_proba(X_test))


def read(path: Path) -> tuple[Any, NDArray[Any]]:
    """Rows and labels of a file."""
    X, y = load_svmlight_file(str(path), n_features=N_FEATURES)
    return sparse.csr_array(X), y


# ----------------------------------------------------------------------------------------- memory


def peak_of_wide_fit(n_rows: int, n_features: int) -> tuple[float, int]:
    """Peak memory over X and eight vectors of coefficients, and the number of columns."""
    X, y = clicks(n_rows, n_features, 20)
    model = PolynomialLogisticRegression(0.1)
    model.fit(X[:100, :50], y[:100])  # what is loaded or set up once is no part of it
    of_X = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    growth = measure.peak_growth(partial(model.fit, X, y))
    return (of_X + growth) / (of_X + 8 * model.coef_.nbytes), model.coef_.size


def fit_large(n_rows: int) -> tuple[int, int, float, float]:
    """Bytes of the expansion, peak of the process, seconds and accuracy, of a fit to many rows."""
    X, y = clicks(n_rows, 1_000, 28)
    model = PolynomialLogisticRegression(1e-3, tol=1e-4)
    start = perf_counter()
    peak = measure.peak_of_process(partial(model.fit, X, y))
    seconds = perf_counter() - start
    return polysparse.plan(X).nbytes, peak, seconds, model.score(X, y)


# -------------------------------------------------------------------------------------- prediction


def time_prediction(n_rows: int, repeats: int) -> dict[str, float]:
    """Probabilities from X itself, and from its expansion by scikit-learn's model."""
    X, y = clicks(n_rows, 200, 14)
    model = PolynomialLogisticRegression(0.1).fit(X[:20_000], y[:20_000])
    theirs = LogisticRegression()
    theirs.coef_, theirs.intercept_, theirs.classes_ = model.coef_, model.intercept_, model.classes_
    poly = PolynomialFeatures(2, include_bias=False).fit(X[:10])
    sides = {
        OURS: lambda: model.predict_proba(X),
        "expand": lambda: theirs.predict_proba(polysparse.expand(X, 2, include_bias=False)),
        "scikit-learn": lambda: theirs.predict_proba(poly.transform(X)),
    }
    expected = sides["expand"]()

    def check(side: str, result: Any) -> None:
        if not np.allclose(result, expected, rtol=1e-9, atol=1e-12):
            raise AssertionError(f"{side} predicts other probabilities.")

    return measure.best_times(sides, repeats=repeats, check=check)


# ----------------------------------------------------------------------------------------- report


def print_fits(report: Report, heading: str, all_fits: dict[str, dict[str, Fitted]]) -> None:
    """Write a table of fits."""
    report.heading(heading)
    lines = []
    for name, fits in all_fits.items():
        ours = fits[OURS].seconds
        for side, found in fits.items():
            cells = [
                f"{name}: {side}",
                f"{found.tol:.2g}",
                f"{found.n_iter:,}" if found.n_iter else "",
            ]
            if found.seconds is None or ours is None:
                cells += [f"gap {found.gap:.1g}", ""]
            else:
                over = "over " if found.is_over else ""
                cells += [f"{over}{found.seconds:.3g}", f"{over}{found.seconds / ours:.1f}x"]
            lines.append(cells)
    report.table("fit | tol | iterations | seconds | relative to polysparse", lines)


def fits_reached(
    all_problems: list[Problem], all_fits: dict[str, dict[str, Fitted]]
) -> Iterator[Reached]:
    """Speed of fits."""
    for problem in all_problems:
        fits = all_fits[problem.name]
        ours = fits[OURS].seconds
        if ours is None:
            yield Reached(f"{problem.name}, a9a", f"gap {GAP:g}", f"{fits[OURS].gap:.1g}", False)
            continue
        ratios = {
            side: found.seconds / ours
            for side, found in fits.items()
            if found.seconds is not None and side != OURS
        }
        if LBFGS in ratios:
            ratio = ratios[LBFGS]
            yield Reached(
                f"{problem.name}, a9a, against {LBFGS}",
                f"{TARGET_LBFGS:g}x",
                f"{ratio:.1f}x",
                ratio >= TARGET_LBFGS,
            )
        best = min(ratios, key=ratios.__getitem__)
        yield Reached(
            f"{problem.name}, a9a, against the fastest of scikit-learn's solvers",
            f"{problem.rule:g}x",
            f"{ratios[best]:.1f}x ({best})",
            ratios[best] >= problem.rule,
        )


def scores_reached(scores: tuple[float, float]) -> Iterator[Reached]:
    """Accuracy and log loss."""
    accuracy, loss = scores
    yield Reached(
        "a9a, K=2, C=0.1: accuracy on the test rows",
        f"at least {TARGET_ACCURACY:g}",
        f"{accuracy:.4f}",
        round(accuracy, 4) >= TARGET_ACCURACY,
    )
    yield Reached(
        "a9a, K=2, C=0.1: log loss on the test rows",
        f"at most {TARGET_LOSS:g}",
        f"{loss:.4f}",
        round(loss, 4) <= TARGET_LOSS,
    )


def memory_reached(quick: bool) -> Iterator[Reached]:
    """Peaks, each in a process of its own."""
    if not measure.can_measure_peaks():
        say("peak memory is left out: this system does not let a process set its peak back")
        return
    n_rows, n_features = (5_000, 1_000) if quick else (50_000, 3_000)
    say("peak memory of a fit")
    ratio, n_columns = measure.in_new_process(peak_of_wide_fit, n_rows, n_features)
    yield Reached(
        f"peak memory of a logistic fit over X and 8 vectors of {n_columns:,} coefficients",
        f"at most {TARGET_PEAK:g}",
        f"{ratio:.2f}",
        ratio <= TARGET_PEAK,
    )
    n_rows = 100_000 if quick else 2_000_000
    say(f"a fit to {n_rows:,} rows")
    nbytes, peak, seconds, accuracy = measure.in_new_process(fit_large, n_rows)
    yield Reached(
        f"peak memory of the process, {n_rows:,} rows of 28, 1,000 features, K=2: the expansion "
        f"has {format_bytes(nbytes)}",
        f"under {format_bytes(TARGET_BYTES)}",
        f"{format_bytes(peak)} ({seconds:.0f} s, accuracy {accuracy:.3f})",
        peak < TARGET_BYTES,
    )


def prediction_reached(n_rows: int, times: dict[str, float]) -> Iterator[Reached]:
    """Speed of prediction."""
    ratio = times["expand"] / times[OURS]
    theirs = times["scikit-learn"] / times[OURS]
    yield Reached(
        f"predict_proba, {n_rows:,} rows of 14, K=2, against expand and scikit-learn's",
        f"{TARGET_PREDICT:g}x",
        f"{ratio:.1f}x (with scikit-learn's expansion {theirs:.1f}x)",
        ratio >= TARGET_PREDICT,
    )


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small cases, the easy fits only")
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has a9a and a9a.t")
    parser.add_argument("--repeats", type=int, default=2, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    parser.add_argument(
        "--figure", type=Path, metavar="FOLDER", help="measure how fits grow, and draw that instead"
    )
    options = parser.parse_args()
    if options.figure is not None:
        write_growth(options.figure, options.quick)
        return
    measure.allocate_fresh(False)
    report, reached = Report(options.markdown), []
    all_fits: dict[str, dict[str, Fitted]] = {}
    if (options.data / "a9a").exists():
        X, y = read(options.data / "a9a")
        all_problems = problems(X, y)
        if options.quick:
            all_problems = [p for p in all_problems if p.name in ("logistic, C=0.1",)]
        for problem in all_problems:
            all_fits[problem.name] = time_problem(problem, X, y, options.repeats)
        reached += [*fits_reached(all_problems, all_fits)]
        reached += [*scores_reached(score_a9a(options.data, X, y))]
    else:
        say(f"a9a is left out: there is no {options.data / 'a9a'}; name its folder with --data")
    n_rows = 50_000 if options.quick else 1_000_000
    say("prediction")
    reached += [*prediction_reached(n_rows, time_prediction(n_rows, options.repeats))]
    reached += [*memory_reached(options.quick)]
    print(measure.describe_machine(threads_for(None, 10**9)))
    if all_fits:
        print_fits(report, "a9a, K=2: fits to a relative gap of 1e-6, expansion included", all_fits)
    report.reached(reached)


if __name__ == "__main__":
    main()
