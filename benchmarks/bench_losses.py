"""Counts and margins on expansions that are never built, against fits to built matrices.

All sides run in one process, one after the other. A fit counts if its objective is within a gap of
the best one known; fits to built matrices include the expansion. The best of several times counts,
and the only one of a fit that takes long. Fits of counts to a built matrix are stopped when they
have taken more than their target times ours, so that their time is a lower bound.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import PoissonRegressor
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC

import measure
from bench_core import DATA, Reached, Report, random_csr, say
from bench_models import (
    GAP,
    OURS,
    Fitted,
    Problem,
    attempt_fit,
    find_tol,
    fit_ours,
    fit_theirs,
    print_fits,
    read,
    value_of,
)
from polysparse import PolynomialLinearSVC, PolynomialPoissonRegressor
from polysparse.machine import threads_for

LBFGS, GLUM = "PoissonRegressor, lbfgs", "glum, lbfgs"
DUAL, PRIMAL = "LinearSVC, dual", "LinearSVC, primal"
HINGE_GAP = 1e-4
TARGETS = {LBFGS: 5.0, GLUM: 3.0, DUAL: 2.0, PRIMAL: 2.0}
N_FEATURES, N_STORED = 3_000, 12
QUICK_ROWS, DEFAULT_ROWS, FULL_ROWS = 2_000, 200_000, 1_000_000
ALPHA = 1e-4
EXACT = 1e-8  # the tol of fits that tell the best objective
LONG = 5.0  # seconds of a fit that is not repeated
MARGIN, LEAST_LIMIT = 1.1, 10.0  # a fit is stopped after so many times its target, and seconds


def counts(n_rows: int) -> tuple[Any, NDArray[Any]]:
    """Rows of so many ones, and counts whose logarithms depend on features and their products."""
    rng = np.random.default_rng(0)
    X = random_csr(rng, np.full(n_rows, N_STORED), N_FEATURES)
    X.data[:] = 1
    single, left, right = rng.standard_normal((3, N_FEATURES))
    scores = X @ single + (X @ left) * (X @ right) / 4
    scores *= 0.5 / scores.std()
    return X, rng.poisson(np.exp(scores - 1))


def poisson_problem(X: Any, y: NDArray[Any], alpha: float) -> Problem:
    """A regression of counts."""
    built = PolynomialFeatures(2, include_bias=False).fit_transform(X)

    def objective(coefficients: NDArray[Any], intercept: Any) -> float:
        """Half the mean deviance, but for what only depends on y, plus the penalty."""
        scores = built @ coefficients + intercept
        return float(np.mean(np.exp(scores) - y * scores) + alpha * coefficients @ coefficients / 2)

    theirs = {LBFGS: partial(make_lbfgs, alpha)}
    if find_spec("glum"):
        theirs[GLUM] = partial(make_glum, alpha)
    tols = {OURS: 4e-6, LBFGS: 1e-6, GLUM: 1e-6}
    return Problem("Poisson", partial(make_ours, alpha), theirs, objective, tols, TARGETS[LBFGS])


def make_ours(alpha: float, tol: float) -> Any:
    """Our model."""
    return PolynomialPoissonRegressor(alpha, tol=tol)


def make_lbfgs(alpha: float, tol: float) -> Any:
    """scikit-learn's model; its newton-cholesky would need a Hessian of all pairs of columns."""
    return PoissonRegressor(alpha=alpha, tol=tol, max_iter=20_000)


def make_glum(alpha: float, tol: float) -> Any:
    """A model of glum's; its other solver of smooth penalties needs a Hessian, too."""
    from glum import GeneralizedLinearRegressor

    return GeneralizedLinearRegressor(
        alpha=alpha, family="poisson", solver="lbfgs", gradient_tol=tol, max_iter=20_000
    )


def hinge_problem(X: Any, y: NDArray[Any], C: float) -> Problem:
    """A support vector machine with squared hinge losses."""
    built = PolynomialFeatures(2, include_bias=False).fit_transform(X)

    def objective(coefficients: NDArray[Any], intercept: Any) -> float:
        """C times the squared hinge losses plus half the squared norm, with the intercept."""
        scores = built @ coefficients.ravel() + intercept
        losses = np.maximum(0, 1 - np.where(y > 0, scores, -scores)) ** 2
        squares = coefficients.ravel() @ coefficients.ravel() + float(intercept[0]) ** 2
        return float(C * losses.sum() + squares / 2)

    theirs = {DUAL: partial(make_liblinear, C, True), PRIMAL: partial(make_liblinear, C, False)}
    tols = {OURS: 1e-4, DUAL: 1e-1 if C < 1 else 3.2e-2, PRIMAL: 1.8e-3 if C < 1 else 5.6e-4}
    ours = partial(make_our_machine, C)
    return Problem(f"squared hinge, C={C:g}", ours, theirs, objective, tols, 2.0, HINGE_GAP)


def make_our_machine(C: float, tol: float) -> Any:
    """Our model."""
    return PolynomialLinearSVC(C, tol=tol)


def make_liblinear(C: float, dual: bool, tol: float) -> Any:
    """LIBLINEAR's model."""
    return LinearSVC(C=C, dual=dual, tol=tol, max_iter=20_000, random_state=0)


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so many seconds, once Python code runs."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def time_fits(problem: Problem, X: Any, y: NDArray[Any], repeats: int) -> dict[str, Fitted]:
    """Time each side with about the largest tol that reaches the gap."""
    best = value_of(problem, fit_ours(problem.ours(EXACT).set_params(max_iter=20_000), X, y))
    found: dict[str, Fitted] = {}
    for side in (OURS, *problem.theirs):
        most = 0.0 if side == OURS else MARGIN * TARGETS[side] * (found[OURS].seconds or 0.0)
        call = partial(timed, problem, side, X, y, best, max(most, LEAST_LIMIT))
        own = find_tol(call, problem.first_tols[side], problem.gap)
        times = [own.seconds or 0.0]
        while own.gap <= problem.gap and sum(times) < LONG and len(times) < repeats:
            times.append(call(own.tol).seconds or 0.0)
        found[side] = replace(own, seconds=min(times) if own.gap <= problem.gap else None)
        time = f"{'over ' if own.is_over else ''}{min(times):.3g} s"
        say(f"{problem.name}: {side}: tol={own.tol:.2g}, gap {own.gap:.2g}, {time}")
    return found


def timed(
    problem: Problem, side: str, X: Any, y: NDArray[Any], best: float, most: float, tol: float
) -> Fitted:
    """Fit a new model once; a fit to a built matrix takes so many seconds at most."""
    start = perf_counter()

    def fit(tol: float) -> Any:
        if side == OURS:
            return fit_ours(problem.ours(tol), X, y)
        with nullcontext() if problem.gap == HINGE_GAP else limit(most):  # not of LIBLINEAR's code
            return fit_theirs(problem.theirs[side](tol), X, y)

    try:
        return attempt_fit(problem, fit, best, tol)
    except TimeoutError:
        return Fitted(tol, None, 0.0, True, perf_counter() - start, is_over=True)


def reached(what: str, fits: dict[str, Fitted]) -> Iterator[Reached]:
    """Ratios to each of the other sides that reached the gap, and names of those that did not."""
    ours = fits[OURS].seconds
    for side, found in fits.items():
        if side == OURS:
            continue
        target = TARGETS[side]
        if ours is None or found.seconds is None:
            late = OURS if ours is None else side
            text = f"{late} ends with a gap of {fits[late].gap:.1g}"
            yield Reached(f"{what}, against {side}", f"{target:g}x", text, ours is not None)
            continue
        ratio, over = found.seconds / ours, "over " if found.is_over else ""
        yield Reached(
            f"{what}, against {side}", f"{target:g}x", f"{over}{ratio:.1f}x", ratio >= target
        )


def time_alone(X: Any, y: NDArray[Any]) -> dict[str, Fitted]:
    """Our fit alone, whose own bound of the gap counts."""
    start = perf_counter()
    model = make_ours(ALPHA, GAP).fit(X, y)
    seconds, gap = perf_counter() - start, model.gap_ / model.objective_
    return {OURS: Fitted(GAP, model.n_iter_, gap, True, seconds)}


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} rows of counts")
    sizes.add_argument(
        "--full",
        action="store_true",
        help=f"{FULL_ROWS:,} rows of counts for all sides; by default {DEFAULT_ROWS:,}, and "
        f"{FULL_ROWS:,} for ours alone",
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has a9a")
    parser.add_argument("--repeats", type=int, default=2, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    measure.allocate_fresh(False)
    report, measures, all_fits = Report(options.markdown), [], {}
    notes: list[str] = []
    n_rows = QUICK_ROWS if options.quick else FULL_ROWS if options.full else DEFAULT_ROWS
    if not find_spec("glum"):
        note = f"{GLUM}: not measured, because glum is not installed: pip install glum"
        say(note)
        notes.append(note)
    kind = f"rows of {N_STORED} ones, {N_FEATURES:,} features, K=2"
    if n_rows == DEFAULT_ROWS:
        what = f"Poisson, {FULL_ROWS:,} {kind}"
        say(f"{what}: {OURS} alone")
        all_fits[what] = time_alone(*counts(FULL_ROWS))
    X, y = counts(n_rows)
    what = f"Poisson, {n_rows:,} {kind}"
    say(what)
    all_fits[what] = time_fits(poisson_problem(X, y, ALPHA), X, y, options.repeats)
    measures += [*reached(what, all_fits[what])]
    if (options.data / "a9a").exists():
        X, y = read(options.data / "a9a")
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # LIBLINEAR
        for C in (0.1, 1.0):
            problem = hinge_problem(X, y, C)
            what = f"{problem.name}, a9a, K=2"
            all_fits[what] = time_fits(problem, X, y, options.repeats)
            measures += [*reached(what, all_fits[what])]
    else:
        say(f"a9a is left out: there is no {options.data / 'a9a'}; name its folder with --data")
    print(measure.describe_machine(threads_for(None, 10**9)))
    heading = f"Fits to a relative gap of {GAP:g}, squared hinge {HINGE_GAP:g}"
    print_fits(report, f"{heading}, expansion included", all_fits)
    for note in notes:
        print(f"\n{note}.")
    report.reached(measures)


if __name__ == "__main__":
    main()
