"""Random fits on hard numbers, judged in extended precision: a fit that does not warn is true.

    python tests/solver_fuzz.py --trials 10000 --seed 1

A fit that does not warn must be finite, not above its start, and within 2 tol of the best point
that Newton's method in extended precision finds. `objective_` must be the value at the solution,
and `objective_ - gap_` must not be above that of any point. A trial ends as one of: `true` (all of
that holds), `warned` (a ConvergenceWarning; the rest still holds), `refused` (ValueError), or what
is wrong. Exit status 1 if anything was wrong. A trial is repeated with `--seed SEED --trials 1`.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from polysparse import PolynomialLogisticRegression, PolynomialRidge

Array = NDArray[Any]
LONG = np.longdouble
GOOD = ("true", "warned", "refused")
REFUSALS = re.compile("has no weight|not zero for all rows|so large that|has 1 class")
EPS = float(np.finfo(np.float64).eps)


@dataclass
class Problem:
    """A model and the data to fit it to."""

    model: Any
    X: Array
    y: Array
    weights: Array | None

    def fit(self) -> str:
        """Fit the model; return "true" or "warned", and raise ValueError if it is refused."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.model.fit(self.X, self.y, self.weights)
        others = [w for w in caught if not issubclass(w.category, ConvergenceWarning)]
        if others:
            raise AssertionError(f"unexpected warning: {others[0].message}")
        return "warned" if caught else "true"


# ----------------------------------------------------------------------------------- the problems


def problem(seed: int) -> Problem:
    """A random problem, hard in one way or several."""
    rng = np.random.default_rng(seed)
    degree = int(rng.choice([1, 1, 2, 2, 2, 3, 3, 4]))
    most = {1: 20, 2: 9, 3: 6, 4: 4}[degree]
    n_features = int(rng.choice([1, 2, 3, rng.integers(1, most + 1)]))
    n_rows = int(rng.choice([rng.integers(2, 8), rng.integers(8, 40), rng.integers(40, 200)]))
    X = features(rng, n_rows, min(n_features, most))
    weights = None
    if rng.random() < 0.3:
        weights = rng.exponential(size=n_rows) * (rng.random(n_rows) < 0.7)
        weights *= rng.choice([1.0, 1.0, 1e-6, 1e6])
    if rng.random() < 0.2:
        X = X.astype(np.float32)
    options: dict[str, Any] = {
        "degree": degree,
        "interaction_only": bool(rng.random() < 0.2),
        "fit_intercept": bool(rng.random() < 0.85),
        "tol": float(rng.choice([1e-6, 1e-6, 1e-6, 1e-3, 1e-9])),
        "n_jobs": 1,
    }
    signal = X[:, 0].astype(float) * rng.choice([1, 0, 3]) / (np.abs(X[:, 0]).max() or 1.0)
    if rng.random() < 0.5:
        alpha = float(rng.choice([0.0, 0.0, 10.0 ** rng.uniform(-12, 6), 1.0]))
        noise = rng.choice([0.0, 1e-6, 1.0, 1.0]) * rng.standard_normal(n_rows)
        y = (signal + noise) * rng.choice([1.0, 1.0, 1e-5, 1e5]) + rng.choice([0.0, 0.0, 30, 1000])
        return Problem(PolynomialRidge(alpha, **options), X, y, weights)
    C = float(10.0 ** rng.choice([0.0, rng.uniform(-8, 15), rng.uniform(-2, 3)]))
    n_classes = int(rng.choice([2, 2, 3]))
    noise = rng.choice([0.0, 0.3, 1.0]) * rng.logistic(size=n_rows)
    order = np.argsort(signal + noise + 1e-9 * rng.standard_normal(n_rows))
    y = np.empty(n_rows, dtype=np.int64)
    y[order] = np.arange(n_rows) * n_classes // n_rows
    return Problem(PolynomialLogisticRegression(C, **options), X, y, weights)


def features(rng: np.random.Generator, n_rows: int, n_features: int) -> Array:
    """Random columns: scaled, offset, collinear, constant, sparse."""
    X = rng.standard_normal((n_rows, n_features))
    if rng.random() < 0.3:
        X *= rng.random(X.shape) < 0.4
    if rng.random() < 0.3:
        X = (X > 0.3).astype(float)
    if rng.random() < 0.4:
        X *= 10.0 ** rng.uniform(-5, 5, n_features)
    if rng.random() < 0.4:
        X += rng.choice([1.0, 30.0, 1e3]) * (rng.random(n_features) < 0.6)
    if rng.random() < 0.2 and n_features > 1:
        X[:, -1] = X[:, 0] * rng.choice([1.0, 2.0, -3.0])
    if rng.random() < 0.1 and n_features > 2:
        X[:, -1] = X[:, 0] + X[:, 1]
    if rng.random() < 0.1:
        X[:, rng.integers(n_features)] = rng.choice([0.0, 1.0, 1e3])
    return X


# -------------------------------------------------------------------------------------- the judge


class Judge:
    """The objective of a problem in extended precision, by dense arrays."""

    def __init__(self, problem: Problem) -> None:
        model = problem.model
        self.is_ridge = isinstance(model, PolynomialRidge)
        self.has_intercept = model.fit_intercept
        weights = np.ones(len(problem.X)) if problem.weights is None else problem.weights
        keep = weights > 0
        X = problem.X.astype(LONG)[keep]
        self.A = expand(X, model.degree, model.interaction_only)
        self.weights = weights[keep].astype(LONG)
        y = problem.y[keep]
        if self.is_ridge:
            self.targets, self.penalty = y.astype(LONG)[:, np.newaxis], 2 * LONG(model.alpha)
            self.weights = 2 * self.weights
        else:
            self.weights, self.penalty = LONG(model.C) * self.weights, LONG(1)
            classes = np.unique(problem.y)
            self.targets = (y[:, np.newaxis] == classes).astype(LONG)
            if len(classes) == 2:
                self.targets = self.targets[:, 1:]
        self.n_scores = self.targets.shape[1]

    def value(self, w: Array, b: Array) -> float:
        return float(self.exact_value(w, b))

    def exact_value(self, w: Array, b: Array) -> Any:
        """The objective at coefficients of shape (n_columns, n_scores) and intercepts."""
        z = self.A @ w + b
        if self.is_ridge:
            losses = (z - self.targets)[:, 0] ** 2 / 2
        elif self.n_scores == 1:
            s = np.where(self.targets[:, 0] > 0, -z[:, 0], z[:, 0])
            losses = np.maximum(s, 0) + np.log1p(np.exp(-np.abs(s)))
        else:
            top = z.max(axis=1)
            own = (z * self.targets).sum(axis=1)
            losses = np.log(np.exp(z - top[:, np.newaxis]).sum(axis=1)) + (top - own)
        return (self.weights * losses).sum() + self.penalty / 2 * (w * w).sum()

    def derivatives(self, w: Array, b: Array) -> tuple[Array, Array]:
        """The gradient and the Hessian of (intercept, coefficients), flat by classes."""
        z, k = self.A @ w + b, self.n_scores
        full = np.column_stack([np.full(len(z), LONG(self.has_intercept)), self.A])
        p = full.shape[1]
        if self.is_ridge:
            slopes, curvatures = z - self.targets, np.ones((len(z), 1, 1), LONG)
        elif k == 1:
            probability = sigmoid(z)
            slopes = np.where(self.targets > 0, -sigmoid(-z), probability)
            curvatures = (probability * sigmoid(-z))[:, :, np.newaxis]
        else:
            e = np.exp(z - z.max(axis=1, keepdims=True))
            probability = e / e.sum(axis=1, keepdims=True)
            slopes = probability - self.targets
            curvatures = -probability[:, :, np.newaxis] * probability[:, np.newaxis, :]
            for c in range(k):
                curvatures[:, c, c] += probability[:, c]
        gradient = full.T @ (self.weights[:, np.newaxis] * slopes)
        gradient[1:] += self.penalty * w
        hessian = np.zeros((k, p, k, p), LONG)
        for c in range(k):
            for d in range(k):
                hessian[c, :, d] = full.T @ (
                    (self.weights * curvatures[:, c, d])[:, np.newaxis] * full
                )
            hessian[c, :, c] += self.penalty * np.diag(np.arange(p) > 0)
        return gradient.T.reshape(-1), hessian.reshape(k * p, k * p)

    def improve(self, w: Array, b: Array, n_steps: int) -> tuple[Any, Array, Array]:
        """Newton's method from a point; return the best value, and where it is."""
        value, k = self.exact_value(w, b), self.n_scores
        damping = LONG(0)
        for _ in range(n_steps):
            gradient, hessian = self.derivatives(w, b)
            scale = np.sqrt(np.maximum(np.diag(hessian), 0))
            scale = np.where(scale > 0, scale, 1)
            scaled = hessian / scale / scale[:, np.newaxis]
            for damping in (LONG(0), LONG(1e-12), LONG(1e-6)):
                step = -solve(scaled, gradient / scale, damping) / scale
                table = step.reshape(k, -1).T
                found = None
                for size in (1.0, 0.5, 0.1, 0.01):
                    new_b = b + size * table[0] * self.has_intercept
                    new = self.exact_value(w + size * table[1:], new_b)
                    if new < value:
                        found = (new, w + size * table[1:], new_b)
                        break
                if found:
                    break
            if not found:
                break
            done = value - found[0] <= 1e-13 * abs(found[0])
            value, w, b = found
            if done:
                break
        return value, w, b


def expand(X: Array, degree: int, interaction_only: bool) -> Array:
    """All monomials of degrees 1 to `degree`."""
    columns = []
    for k in range(1, degree + 1):
        for features in combinations_with_replacement(range(X.shape[1]), k):
            if not interaction_only or len(set(features)) == k:
                columns.append(np.prod(X[:, features], axis=1, dtype=LONG))
    return np.column_stack(columns)


def sigmoid(z: Array) -> Array:
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1 / (1 + e), e / (1 + e))


def solve(matrix: Array, vector: Array, damping: Any) -> Array:
    """Solve a symmetric positive semidefinite system; directions of no curvature are left out."""
    a, v = matrix.copy(), vector.copy()
    n = len(v)
    a[np.diag_indices(n)] += damping
    order: list[int] = []
    left = np.ones(n, bool)
    for _ in range(n):  # LDL' with diagonal pivots
        pivots = np.where(left, np.diag(a), -1)
        j = int(np.argmax(pivots))
        if not pivots[j] > 1e-18:
            break
        order.append(j)
        left[j] = False
        factor = np.where(left, a[:, j] / a[j, j], 0)
        a -= factor[:, np.newaxis] * np.where(left, a[j], 0)
        v -= factor * v[j]
    x = np.zeros(n, LONG)
    for j in reversed(order):
        x[j] = (v[j] - (matrix_row(a, j, order, x))) / a[j, j]
    return x


def matrix_row(a: Array, j: int, order: list[int], x: Array) -> Any:
    """The part of a row's product with what is solved already."""
    return (a[j] * x).sum() - a[j, j] * x[j]


def judge(problem: Problem) -> str:
    """Fit, and say how it ended."""
    model = problem.model
    try:
        outcome = problem.fit()
    except ValueError as error:
        return "refused" if REFUSALS.search(str(error)) else f"another error: {error}"
    if problem.weights is not None and not (problem.weights > 0).any():
        return "no weights, but fitted"
    w = np.asarray(model.coef_, dtype=LONG)
    w = w.reshape(-1, w.shape[-1]).T
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=LONG))
    if not (np.isfinite(w).all() and np.isfinite(b).all() and np.isfinite(model.objective_)):
        return "not finite"
    own = Judge(problem)
    zero = np.zeros_like(w)
    value = own.exact_value(w, b)
    start = own.exact_value(zero, np.zeros_like(b))
    if own.has_intercept:
        start = min(start, own_intercept(own)[0])
    # In a perfect fit, what is left of the targets is what float64 cannot represent.
    floor = (8 * EPS) ** 2 * (own.weights * (own.targets**2).sum(axis=1)).sum()
    if value > start * (1 + LONG(1e-9)) + floor:
        return f"above the start ({outcome})"
    if outcome == "true" and abs(model.objective_ - value) > model.tol / 2 * value + floor:
        return f"objective_ ({outcome})"
    best = min(own.improve(w, b, 15)[0], own.improve(*own_intercept(own)[1:], 60)[0])
    tol = 2 * model.tol
    if outcome == "true" and value - best > tol * best + floor:
        return "gap (true)"
    if value - best > model.gap_ * (1 + 1e-9) + floor:
        return f"gap_ ({outcome})"
    return outcome


def own_intercept(own: Judge) -> tuple[Any, Array, Array]:
    """The best intercept without coefficients."""
    w, b = np.zeros((own.A.shape[1], own.n_scores), LONG), np.zeros(own.n_scores, LONG)
    if not own.has_intercept:
        return own.exact_value(w, b), w, b
    if own.is_ridge:
        b[:] = (own.weights[:, np.newaxis] * own.targets).sum(axis=0) / own.weights.sum()
    else:
        shares = (own.weights[:, np.newaxis] * own.targets).sum(axis=0) / own.weights.sum()
        shares = np.clip(shares, 1e-300, 1)
        b = np.log(shares) - (np.log1p(-shares) if own.n_scores == 1 else 0)
    return own.exact_value(w, b), w, b


def main() -> int:
    """Run trials; print how many ended in which way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    start = time.perf_counter()
    for seed in range(arguments.seed, arguments.seed + arguments.trials):
        result = judge(problem(seed))
        kind = "ridge" if isinstance(problem(seed).model, PolynomialRidge) else "logistic"
        counts[f"{kind}: {result}"] += 1
        if result not in GOOD:
            print(f"{kind} seed {seed}: {result}", flush=True)
    print(f"{arguments.trials} trials, {time.perf_counter() - start:.0f} s")
    for name, count in sorted(counts.items()):
        print(f"{count:7d}  {name}")
    return int(any(name.split(": ")[1] not in GOOD for name in counts))


if __name__ == "__main__":
    sys.exit(main())
