"""Paths of L1 penalties on all pairs of a9a, against solvers on the built expansion.

20 penalties, from the least one that leaves all coefficients 0 to a hundredth of it, each to a
relative gap of 1e-6. All sides run in one process, without an intercept, which not all of them
have, and have the built matrix for free. Solvers that are not installed are left out. A side counts
if its objective is within 1e-6 of the best known one at every penalty: each gets the largest `tol`
of a list with which it is, and a limit of time.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import measure
import polysparse
from bench_core import DATA, Reached, Report, say
from polysparse import PolynomialLasso, PolynomialLinearSVC, PolynomialLogisticRegression
from polysparse.machine import threads_for

OURS = "polysparse"
GAP, N_PENALTIES, WEAKEST = 1e-6, 20, 1e-2
TOLS = (1e-3, 1e-4, 1e-6)
MOST_SECONDS = 20.0  # of a path; a solver that takes longer is left out
TARGETS = {"logistic": 8.0, "lasso": 4.0, "svc": 4.0}
STEEPEST = {"logistic": 0.5, "lasso": 1.0, "svc": 2.0}  # gradient of a loss at a score of 0

Solve = Callable[[float], NDArray[Any]]  # the coefficients for a penalty on the sum of losses


class OutOfTime(Exception):
    """A path took too long."""


def objective(kind: str, A: Any, y: NDArray[Any], w: NDArray[Any], strength: float) -> float:
    """Losses plus the penalty."""
    scores = A @ w
    if kind == "lasso":
        losses = np.sum((y - scores) ** 2) / 2
    elif kind == "svc":
        losses = np.sum(np.maximum(1 - y * scores, 0) ** 2)
    else:
        losses = np.logaddexp(0, -y * scores).sum()
    return float(losses + strength * np.abs(w).sum())


def our_path(kind: str, X: Any, y: NDArray[Any], strengths: NDArray[Any]) -> list[NDArray[Any]]:
    """Solve with polysparse, from X."""
    if kind == "lasso":
        lasso = PolynomialLasso(fit_intercept=False)
        path = lasso.path(X, y, alphas=strengths / len(y))
    else:
        make = PolynomialLinearSVC if kind == "svc" else PolynomialLogisticRegression
        path = make(l1_ratio=1.0, fit_intercept=False).path(X, y, Cs=1 / strengths)
    return [path.coefs[[i]].toarray()[0] for i in range(len(strengths))]


def peers(kind: str, A: Any, y: NDArray[Any], tol: float) -> Iterator[tuple[str, Solve]]:
    """Yield solvers, which start from their last solution if they can."""
    n, how = len(y), {"fit_intercept": False, "warm_start": True, "tol": tol}
    if kind == "svc":
        svc = LinearSVC(penalty="l1", dual=False, fit_intercept=False, max_iter=5_000, tol=tol)
        own = A.tocsr()
        yield "liblinear", lambda s: svc.set_params(C=1 / s).fit(own, y).coef_.ravel()
        return
    if find_spec("skglm"):
        from skglm import Lasso, SparseLogisticRegression

        make = Lasso if kind == "lasso" else SparseLogisticRegression
        model = make(1.0, max_iter=1_000, **how)
        yield "skglm", lambda s: model.set_params(alpha=s / n).fit(A, y).coef_.ravel()
    if find_spec("celer"):
        import celer

        if kind == "lasso":
            lasso = celer.Lasso(1.0, max_iter=1_000, **how)
            yield "celer", lambda s: lasso.set_params(alpha=s / n).fit(A, y).coef_
        else:
            logistic = celer.LogisticRegression(1.0, max_iter=1_000, **how)
            yield "celer", lambda s: logistic.set_params(C=1 / s).fit(A, y).coef_.ravel()
    if kind == "logistic":
        rows = A.tocsr()
        one = LogisticRegression(l1_ratio=1.0, solver="liblinear", max_iter=1_000, **how)
        yield "liblinear", lambda s: one.set_params(C=1 / s).fit(rows, y).coef_.ravel()


def timed_path(solve: Solve, strengths: NDArray[Any]) -> tuple[float, list[NDArray[Any]]]:
    """Return seconds and coefficients of a path."""
    start, found = perf_counter(), []
    for strength in strengths.tolist():
        found.append(np.array(solve(strength)))
        if perf_counter() - start > MOST_SECONDS:
            raise OutOfTime
    return perf_counter() - start, found


def run(kind: str, X: Any, y: NDArray[Any], n_penalties: int) -> dict[str, float | None]:
    """Return seconds of each solver; None if it did not reach the gap in time."""
    A = polysparse.expand(X, 2, include_bias=False).tocsc()
    strongest = STEEPEST[kind] * np.abs(A.T @ y).max()
    strengths = np.geomspace(strongest, strongest * WEAKEST, n_penalties)
    say(f"{kind}: {OURS}")
    seconds = measure.best_times(
        {OURS: lambda: our_path(kind, X, y, strengths)}, repeats=2, seconds=0
    )
    best = [
        objective(kind, A, y, w, s)
        for w, s in zip(our_path(kind, X, y, strengths), strengths, strict=True)
    ]
    times: dict[str, float | None] = dict(seconds)
    for tol in TOLS:
        for name, solve in peers(kind, A, y, tol):
            if times.get(name, np.inf) != np.inf:  # it is done, or takes too long
                continue
            say(f"{kind}: {name}, tol={tol:g}")
            times[name] = time_peer(kind, A, y, solve, strengths, best)
    return {name: None if found in (None, np.inf) else found for name, found in times.items()}


def time_peer(
    kind: str, A: Any, y: NDArray[Any], solve: Solve, strengths: NDArray[Any], best: list[float]
) -> float | None:
    """Return seconds of a path; infinite if it misses the gap, None if it takes too long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve(strengths[0])  # compiles
        try:
            seconds, found = timed_path(solve, strengths)
        except OutOfTime:
            return None
    values = [objective(kind, A, y, w, s) for w, s in zip(found, strengths, strict=True)]
    worst = max(value / least - 1 for value, least in zip(values, best, strict=True))
    return seconds if worst <= 2 * GAP else np.inf


def reached(times: dict[str, dict[str, float | None]]) -> Iterator[Reached]:
    """Compare with the fastest peer."""
    for kind, found in times.items():
        own = found[OURS]
        rivals = {name: each for name, each in found.items() if name != OURS and each is not None}
        if not rivals or own is None:
            continue
        fastest = min(rivals, key=rivals.__getitem__)
        ratio, target = rivals[fastest] / own, TARGETS[kind]
        name = f"a9a, K=2: {kind} path, {N_PENALTIES} penalties, gap 1e-6, against {fastest}"
        yield Reached(name, f"{target:g}x", f"{ratio:.1f}x", ratio >= target)


def main() -> None:
    """Measure, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five penalties")
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has the file a9a")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    if not (options.data / "a9a").exists():
        say(f"a9a is left out: there is no {options.data / 'a9a'}; name its folder with --data")
        return
    X, y = load_svmlight_file(str(options.data / "a9a"), n_features=123)
    y = np.where(y > 0, 1.0, -1.0)
    n_penalties = 5 if options.quick else N_PENALTIES
    times = {kind: run(kind, X, y, n_penalties) for kind in TARGETS}
    print(measure.describe_machine(threads_for(None, 10**9)))
    report = Report(options.markdown)
    report.heading("Paths of L1 penalties")
    lines = [
        [
            kind,
            name,
            f"over {MOST_SECONDS:.0f}s, or does not reach the gap" if s is None else f"{s:.2f}",
        ]
        for kind, found in times.items()
        for name, s in found.items()
    ]
    report.table("path | solver | seconds", lines)
    report.reached(list(reached(times)))


if __name__ == "__main__":
    main()
