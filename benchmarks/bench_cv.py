"""What choosing a penalty takes, against a grid search and against scikit-learn on built matrices.

Every side fits the same penalties to the training rows of one of five splits, and scores the
held-out rows: a whole search takes five times as long. Sides run in one process, one after the
other, and their scores must agree. scikit-learn's solvers have about the largest `tol` that brings
single fits within 1e-6 of the minimum; the expansion that they need is not timed.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegressionCV, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

import measure
import polysparse
from bench_core import DATA, Reached, Report, say
from bench_models import N_FEATURES, read
from growth import clicks
from polysparse import (
    PolynomialLogisticRegression,
    PolynomialLogisticRegressionCV,
    PolynomialRidge,
    PolynomialRidgeCV,
)
from polysparse.machine import threads_for
from polysparse.models import least_squares

OURS, GRID, CG = "polysparse", "GridSearchCV with polysparse", "GridSearchCV with polysparse, by CG"
SCORES = 2e-3  # how far held-out scores may differ
Split = tuple[NDArray[np.intp], NDArray[np.intp]]


@contextmanager
def by_conjugate_gradients() -> Iterator[None]:
    """Fit ridge by conjugate gradients alone, as before all penalties shared a Krylov space."""
    plain = least_squares.most_vectors
    least_squares.most_vectors = lambda n_columns: 0
    try:
        yield
    finally:
        least_squares.most_vectors = plain


def grid_by_conjugate_gradients(search: Callable[[], Any]) -> Any:
    """Run a search in that way."""
    with by_conjugate_gradients():
        return search()


def run(search: Any, X: Any, y: NDArray[Any]) -> NDArray[np.float64]:
    """Fit, and return the score of each penalty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    if isinstance(search, GridSearchCV):
        return np.array(search.cv_results_["split0_test_score"])
    scores = search.scores_
    return np.ravel(next(iter(scores.values())) if isinstance(scores, dict) else scores)


def compare(name: str, sides: dict[str, Callable[[], NDArray[np.float64]]]) -> dict[str, float]:
    """Seconds of each side; scores must be those of the first."""
    found: dict[str, float] = {}
    first: Any = None
    for side, call in sides.items():
        start = perf_counter()
        scores = call()
        found[side] = perf_counter() - start
        first = scores if first is None else first
        far = float(np.abs(scores - first).max())
        say(f"{name}: {side}: {found[side]:.1f} s, scores within {far:.1g}")
        if not far <= SCORES:
            raise AssertionError(f"{side} has other scores: {scores}, not {first}.")
    return found


def logistic(X: Any, y: NDArray[Any], Cs: NDArray[Any], split: Split) -> dict[str, float]:
    """Ten penalties of a logistic regression."""
    built = polysparse.expand(X, 2, include_bias=False)
    how = {"cv": [split], "scoring": "neg_log_loss", "refit": False}
    sides = {
        OURS: partial(run, PolynomialLogisticRegressionCV(Cs, **how), X, y),
        GRID: partial(run, GridSearchCV(PolynomialLogisticRegression(), {"C": Cs}, **how), X, y),
    }
    for solver, tol in (("lbfgs", 3e-6), ("newton-cg", 3e-6)):
        theirs = LogisticRegressionCV(
            Cs=Cs,
            **how,
            solver=solver,
            tol=tol,
            max_iter=20_000,
            l1_ratios=(0,),
            use_legacy_attributes=False,
        )
        sides[f"LogisticRegressionCV, {solver}"] = partial(run, theirs, built, y)
    return compare("logistic, a9a", sides)


def ridge(
    name: str, X: Any, y: NDArray[Any], alphas: NDArray[Any], split: Split, n_theirs: int
) -> dict[str, float]:
    """Twenty penalties of a ridge regression; theirs of some of them, scaled.

    sparse_cg and sag take longer than lsqr: see bench_models.py.
    """
    built = polysparse.expand(X, 2, include_bias=False)
    how = {"cv": [split], "refit": False}
    grid = partial(run, GridSearchCV(PolynomialRidge(), {"alpha": alphas}, **how), X, y)
    sides = {
        OURS: partial(run, PolynomialRidgeCV(alphas, **how), X, y),
        GRID: grid,
        CG: partial(grid_by_conjugate_gradients, grid),
    }
    found = compare(f"ridge, {name}", sides)
    some = alphas[:: len(alphas) // n_theirs]
    theirs = {
        f"Ridge, {solver}, {n_theirs} penalties": partial(
            run,
            GridSearchCV(Ridge(solver=solver, tol=tol, max_iter=20_000), {"alpha": some}, **how),
            built,
            y,
        )
        for solver, tol in (("lsqr", 2e-6),)
    }
    ours_some = partial(run, PolynomialRidgeCV(some, **how), X, y)
    for side, seconds in compare(f"ridge, {name}", {"some of ours": ours_some, **theirs}).items():
        if side != "some of ours":
            found[side] = seconds * len(alphas) / len(some)
    return found


def peaks(sides: dict[str, Callable[[], Any]]) -> dict[str, int]:
    """Bytes by which the memory rises during a call of each side, after one that is not measured.

    Empty where the system cannot measure it.
    """
    if not measure.can_measure_peaks():
        return {}
    found = {side: (call(), measure.peak_growth(call))[1] for side, call in sides.items()}
    measure.allocate_fresh(False)
    for side, n_bytes in found.items():
        say(f"peak: {side}: {n_bytes / 2**20:,.0f} MiB")
    return found


def sides_in_memory(search: Any, plain: Any, X: Any, y: NDArray[Any], split: Split) -> Any:
    """A search, the fit of one penalty to its training rows, and the copy of these rows."""
    training = split[0]
    slice_of_rows, targets = X[training], y[training]
    return {
        OURS: partial(run, search, X, y),
        "one fit": partial(plain.fit, slice_of_rows, targets),
        "a copy of the training rows": partial(X.__getitem__, training),
    }


def reached(name: str, times: dict[str, float], targets: dict[str, float]) -> Iterator[Reached]:
    """Ratios to the sides, the fastest of scikit-learn's solvers for one that is named so."""
    for side, target in targets.items():
        if side in times:
            ratio, what = times[side] / times[OURS], side
        else:
            theirs = {k: v for k, v in times.items() if k not in (OURS, GRID, CG)}
            best = min(theirs, key=theirs.__getitem__)
            ratio, what = (
                theirs[best] / times[OURS],
                f"the fastest of scikit-learn's solvers ({best})",
            )
        yield Reached(f"{name}, against {what}", f"{target:g}x", f"{ratio:.1f}x", ratio >= target)


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small cases")
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has a9a")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    report, measures = Report(options.markdown), []
    all_times: dict[str, dict[str, float]] = {}
    all_peaks: dict[str, dict[str, int]] = {}
    n_rows, n_Cs, n_alphas = (3_000, 4, 4) if options.quick else (100_000, 10, 20)
    if (options.data / "a9a").exists():
        X, y = read(options.data / "a9a")
        assert X.shape[1] == N_FEATURES
        split = next(StratifiedKFold(5).split(X, y))
        name = f"logistic, a9a, {n_Cs} penalties"
        all_times[name] = logistic(X, y, np.logspace(-4, 0.5, n_Cs), split)
        measures += reached(name, all_times[name], {GRID: 2.0, "scikit-learn": 15.0})
        how = {"cv": [split], "scoring": "neg_log_loss", "refit": False}
        search = PolynomialLogisticRegressionCV(np.logspace(-4, 0.5, n_Cs), **how)
        plain = PolynomialLogisticRegression(10**0.5)
        all_peaks[name] = peaks(sides_in_memory(search, plain, X, y, split))
        name = f"ridge, a9a, {n_alphas} penalties"
        all_times[name] = ridge("a9a", X, y, np.logspace(-1, 3, n_alphas), split, 4)
        measures += reached(name, all_times[name], {CG: 7.0, "scikit-learn": 30.0})
        search = PolynomialRidgeCV(np.logspace(-1, 3, n_alphas), cv=[split], refit=False)
        all_peaks[name] = peaks(sides_in_memory(search, PolynomialRidge(0.1), X, y, split))
    else:
        say(f"a9a is left out: there is no {options.data / 'a9a'}; name its folder with --data")
    X, y = clicks(n_rows, 1_000 if not options.quick else 50, 20)
    split = next(KFold(5).split(X))
    name = f"ridge, {n_rows:,} rows of 20, {n_alphas} penalties"
    all_times[name] = ridge("rows of 20", X, y, np.logspace(-1, 3, n_alphas), split, 4)
    measures += reached(name, all_times[name], {CG: 15.0, "scikit-learn": 30.0})
    search = PolynomialRidgeCV(np.logspace(-1, 3, n_alphas), cv=[split], refit=False)
    all_peaks[name] = peaks(sides_in_memory(search, PolynomialRidge(0.1), X, y, split))
    print(measure.describe_machine(threads_for(None, 10**9)))
    report.heading("Choose the penalty: fits and scores of one of five splits, degree 2")
    lines = [
        [f"{name}: {side}", f"{seconds:.3g}", f"{seconds / times[OURS]:.1f}x"]
        for name, times in all_times.items()
        for side, seconds in times.items()
    ]
    report.table("search | seconds | relative to polysparse", lines)
    report.heading("The same: peak memory above what was in use")
    lines = [
        [f"{name}: {side}", f"{n_bytes / 2**20:,.0f}"]
        for name, found in all_peaks.items()
        for side, n_bytes in found.items()
    ]
    report.table("search | MiB", lines)
    report.reached(measures)


if __name__ == "__main__":
    main()
