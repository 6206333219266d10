"""Random fits on hard numbers, judged in extended precision: a fit that does not warn is true.

    python tests/solver_fuzz.py --trials 10000 --seed 1

A fit that does not warn must be finite, not above its start, and within 2 tol of the best point
that Newton's method in extended precision finds. `objective_` must be the value at the solution,
and `objective_ - gap_` must not be above that of any point. A trial ends as one of: `true` (all of
that holds), `warned` (a ConvergenceWarning; the rest still holds), `refused` (ValueError), or what
is wrong. Exit status 1 if anything was wrong. A trial is repeated with `--seed SEED --trials 1`.

Columns without a penalty that are collinear up to a relative error of 1e-6 count as collinear, as
models document: the best point has no larger coefficients along their difference.
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

from polysparse import (
    PolynomialGammaRegressor,
    PolynomialLinearSVC,
    PolynomialLinearSVR,
    PolynomialLogisticRegression,
    PolynomialPoissonRegressor,
    PolynomialRidge,
    PolynomialTweedieRegressor,
)

Array = NDArray[Any]
LONG = np.longdouble
GOOD = ("true", "warned", "refused")
REFUSALS = re.compile(
    "has no weight|not zero for all rows|so large that|has 1 class|minus infinity|not finite|"
    "have degrees"
)
EPS = float(np.finfo(np.float64).eps)
COLLINEAR = 1e-12  # the squared relative error up to which columns without a penalty are collinear


@dataclass
class Problem:
    """A model and the data to fit it to."""

    model: Any
    X: Array
    y: Array
    weights: Array | None
    offset: Array | None = None

    def fit(self) -> str:
        """Fit the model; return "true" or "warned", and raise ValueError if it is refused."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            offset = () if self.offset is None else (self.offset,)
            self.model.fit(self.X, self.y, self.weights, *offset)
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
    if degree > 1 and rng.random() < 0.1:
        options["penalty_factors"] = {1: 0.0, 2: float(rng.choice([1.0, 1e3, 1e-3]))}
    signal = X[:, 0].astype(float) * rng.choice([1, 0, 3]) / (np.abs(X[:, 0]).max() or 1.0)
    if rng.random() < 0.5:
        alpha = float(rng.choice([0.0, 0.0, 10.0 ** rng.uniform(-12, 6), 1.0]))
        noise = rng.choice([0.0, 1e-6, 1.0, 1.0]) * rng.standard_normal(n_rows)
        y = (signal + noise) * rng.choice([1.0, 1.0, 1e-5, 1e5]) + rng.choice([0.0, 0.0, 30, 1000])
        return Problem(PolynomialRidge(alpha, **options), X, y, weights)
    if rng.random() < 0.3:
        return of_amounts(rng, X, signal, weights, options)
    C = float(10.0 ** rng.choice([0.0, rng.uniform(-8, 15), rng.uniform(-2, 3)]))
    C = np.inf if rng.random() < 0.1 else C
    is_logistic = rng.random() < 0.6
    if not is_logistic:
        options["intercept_scaling"] = float(rng.choice([1.0, 1.0, 100.0, np.inf]))
    if not is_logistic and rng.random() < 0.4:
        y = (signal + rng.standard_normal(n_rows)) * rng.choice([1.0, 1e3]) + rng.choice([0.0, 30])
        epsilon = float(rng.choice([0.0, 0.1, 1.0]))
        return Problem(PolynomialLinearSVR(C, epsilon=epsilon, **options), X, y, weights)
    n_classes = int(rng.choice([2, 2, 3]))
    noise = rng.choice([0.0, 0.3, 1.0]) * rng.logistic(size=n_rows)
    order = np.argsort(signal + noise + 1e-9 * rng.standard_normal(n_rows))
    y = np.empty(n_rows, dtype=np.int64)
    y[order] = np.arange(n_rows) * n_classes // n_rows
    make = PolynomialLogisticRegression if is_logistic else PolynomialLinearSVC
    return Problem(make(C, **options), X, y, weights)


def of_amounts(
    rng: np.random.Generator, X: Array, signal: Array, weights: Array | None, options: Any
) -> Problem:
    """Counts and amounts, with exposures."""
    n = len(X)
    alpha = float(10.0 ** rng.choice([0.0, rng.uniform(-12, 6), rng.uniform(-4, 1)]))
    alpha = 0.0 if rng.random() < 0.15 else alpha
    scale = rng.choice([1.0, 1.0, 1e-3, 1e4])
    means = scale * np.exp(rng.choice([0.3, 1.0, 3.0]) * signal)
    offset = None
    if rng.random() < 0.5:
        offset = rng.choice([1.0, 1.0, 20.0, 200.0]) * rng.standard_normal(n)
        means = means * np.exp(np.minimum(offset, 20))
    power = float(rng.choice([1.0, 1.0, 2.0, 1.5, 1.01, 1.99]))
    y = rng.gamma(2, 0.5, n) * means + 1e-6 * scale
    if power < 2:
        y = rng.poisson(np.minimum(means, 1e9)).astype(float)
        y *= 1.0 if power == 1 else rng.gamma(2, 0.5, n)
    if power in (1.0, 2.0):
        make = PolynomialPoissonRegressor if power == 1 else PolynomialGammaRegressor
        return Problem(make(alpha, **options), X, y, weights, offset)
    model = PolynomialTweedieRegressor(power=power, alpha=alpha, **options)
    return Problem(model, X, y, weights, offset)


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
        self.kind = kind_of(model)
        self.is_ridge = self.kind == "ridge"
        self.has_intercept, self.intercept_penalty = model.fit_intercept, LONG(0)
        C = getattr(model, "C", 1.0)
        strength, has_penalty = LONG(C if np.isfinite(C) else 1.0), np.isfinite(C)
        if self.has_intercept and self.kind in ("svc", "svr") and has_penalty:
            self.intercept_penalty = 1 / LONG(model.intercept_scaling) ** 2
        weights = np.ones(len(problem.X)) if problem.weights is None else problem.weights
        keep = weights > 0
        X = problem.X.astype(LONG)[keep]
        self.A = expand(X, model.degree, model.interaction_only)
        self.weights = weights[keep].astype(LONG)
        y = problem.y[keep]
        if self.is_ridge:
            self.targets, self.penalty = y.astype(LONG)[:, np.newaxis], 2 * LONG(model.alpha)
            self.weights = 2 * self.weights
        elif self.kind in ("poisson", "gamma", "tweedie"):
            self.targets, self.penalty = y.astype(LONG)[:, np.newaxis], LONG(model.alpha)
            self.weights = self.weights / self.weights.sum()
            offset = np.zeros(len(keep)) if problem.offset is None else problem.offset
            self.offset, self.power = offset.astype(LONG)[keep], LONG(model._power)
        elif self.kind == "svr":
            self.targets, self.penalty = y.astype(LONG)[:, np.newaxis], LONG(1)
            self.weights, self.epsilon = 2 * strength * self.weights, LONG(model.epsilon)
        else:
            self.weights, self.penalty = strength * self.weights, LONG(1)
            classes = np.unique(problem.y)
            self.targets = (y[:, np.newaxis] == classes).astype(LONG)
            if len(classes) == 2:
                self.targets = self.targets[:, 1:]
            if self.kind == "svc":
                self.targets, self.weights = 2 * self.targets - 1, 2 * self.weights
        self.n_scores = self.targets.shape[1]
        factors = np.ones(self.A.shape[1], LONG) * has_penalty
        for d, factor in (model.penalty_factors or {}).items():
            factors[degrees_of(X.shape[1], model.degree, model.interaction_only) == d] *= factor
        self.penalty = self.penalty * factors
        has_free = not (self.is_ridge or self.penalty.all())
        self.least_curvature = LONG(COLLINEAR if has_free else 1e-18)

    def value(self, w: Array, b: Array) -> float:
        return float(self.exact_value(w, b))

    def exact_value(self, w: Array, b: Array) -> Any:
        """The objective at coefficients of shape (n_columns, n_scores) and intercepts."""
        z = self.A @ w + b
        if self.kind not in ("ridge", "logistic"):
            losses = self.single(z)[0].sum(axis=1)
        elif self.is_ridge:
            losses = (z - self.targets)[:, 0] ** 2 / 2
        elif self.n_scores == 1:
            s = np.where(self.targets[:, 0] > 0, -z[:, 0], z[:, 0])
            losses = np.maximum(s, 0) + np.log1p(np.exp(-np.abs(s)))
        else:
            top = z.max(axis=1)
            own = (z * self.targets).sum(axis=1)
            losses = np.log(np.exp(z - top[:, np.newaxis]).sum(axis=1)) + (top - own)
        penalties = (self.penalty @ (w * w)).sum() + self.intercept_penalty * (b * b).sum()
        return (self.weights * losses).sum() + penalties / 2

    def magnitudes(self) -> Array:
        """The squares of the numbers that scores are compared with."""
        y = self.targets
        if self.kind in ("poisson", "gamma", "tweedie"):
            safe = np.where(y > 0, y, 1)
            y = (1 + np.abs(np.log(safe))) * safe ** (1 - self.power / 2)
        return (y**2).sum(axis=1)

    def single(self, z: Array) -> tuple[Array, Array, Array]:
        """Losses of scores that do not depend on each other, their slopes and curvatures."""
        y = self.targets
        if self.kind == "svc":
            lack = np.maximum(1 - y * z, 0)
            return lack**2 / 2, -y * lack, (lack > 0).astype(LONG)
        if self.kind == "svr":
            beyond = np.maximum(np.abs(z - y) - self.epsilon, 0)
            return beyond**2 / 2, np.sign(z - y) * beyond, (beyond > 0).astype(LONG)
        z, p = z + self.offset[:, np.newaxis], self.power
        x = z - np.log(np.where(y > 0, y, 1))  # nothing cancels: above(x) = exp(x) - 1 - x
        scale = np.where(y > 0, y, 1) ** (2 - p)
        values, slopes, curvatures = (np.zeros_like(x) for _ in range(3))
        if p < 2:
            up = np.exp((2 - p) * x)
            values += np.where(y > 0, scale * above((2 - p) * x), up) / (2 - p)
            slopes += np.where(y > 0, scale * np.expm1((2 - p) * x), up)
            curvatures += (2 - p) * scale * up
        if p > 1:
            values += np.where(y > 0, scale * above((1 - p) * x) / (p - 1), 0)
            slopes -= np.where(y > 0, scale * np.expm1((1 - p) * x), 0)
            curvatures += np.where(y > 0, (p - 1) * scale * np.exp((1 - p) * x), 0)
        return values, slopes, curvatures

    def derivatives(self, w: Array, b: Array) -> tuple[Array, Array]:
        """The gradient and the Hessian of (intercept, coefficients), flat by classes."""
        z, k = self.A @ w + b, self.n_scores
        full = np.column_stack([np.full(len(z), LONG(self.has_intercept)), self.A])
        p = full.shape[1]
        if self.kind not in ("ridge", "logistic"):
            _, slopes, own = self.single(z)
            curvatures = own[:, :, np.newaxis] * np.eye(k, dtype=LONG)
        elif self.is_ridge:
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
        gradient[1:] += self.penalty[:, np.newaxis] * w
        gradient[0] += self.intercept_penalty * b
        hessian = np.zeros((k, p, k, p), LONG)
        for c in range(k):
            for d in range(k):
                hessian[c, :, d] = full.T @ (
                    (self.weights * curvatures[:, c, d])[:, np.newaxis] * full
                )
            hessian[c, :, c] += np.diag(np.append(self.intercept_penalty, self.penalty))
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
                step = -solve(scaled, gradient / scale, damping, self.least_curvature) / scale
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


def degrees_of(n_features: int, degree: int, interaction_only: bool) -> Array:
    """The degree of each column of `expand`."""
    ones = np.ones((1, n_features), LONG)
    return np.repeat(
        np.arange(1, degree + 1),
        [
            expand(ones, d, interaction_only).shape[1]
            - (expand(ones, d - 1, interaction_only).shape[1] if d > 1 else 0)
            for d in range(1, degree + 1)
        ],
    )


def above(x: Array) -> Array:
    """exp(x) - 1 - x, by its series where x is small."""
    small = np.where(np.abs(x) < 0.1, x, 0)
    series, term = np.zeros_like(small), small * small / 2
    for k in range(3, 20):
        series, term = series + term, term * small / k
    return np.where(np.abs(x) < 0.1, series, np.expm1(x) - x)


def sigmoid(z: Array) -> Array:
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1 / (1 + e), e / (1 + e))


def solve(matrix: Array, vector: Array, damping: Any, least: Any) -> Array:
    """Solve a symmetric positive semidefinite system of a damped matrix, whose diagonal was 1.

    Directions with less than the least curvature are left out.
    """
    a, v = matrix.copy(), vector.copy()
    n = len(v)
    a[np.diag_indices(n)] += damping
    order: list[int] = []
    left = np.ones(n, bool)
    for _ in range(n):  # LDL' with diagonal pivots
        pivots = np.where(left, np.diag(a), -1)
        j = int(np.argmax(pivots))
        if not pivots[j] > least + damping:
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
    with np.errstate(all="ignore"):  # of exponentials far from the optimum
        return _judge(problem)


def _judge(problem: Problem) -> str:
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
    floor = (8 * EPS) ** 2 * (own.weights * own.magnitudes()).sum()
    if not own.penalty.all():  # what counts as no loss
        floor = floor + LONG(1e-14) * start
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
    if own.kind not in ("ridge", "logistic"):
        b[:] = best_intercept(own, w, b)
    elif own.is_ridge:
        b[:] = (own.weights[:, np.newaxis] * own.targets).sum(axis=0) / own.weights.sum()
    else:
        shares = (own.weights[:, np.newaxis] * own.targets).sum(axis=0) / own.weights.sum()
        shares = np.clip(shares, 1e-300, 1)
        b = np.log(shares) - (np.log1p(-shares) if own.n_scores == 1 else 0)
    return own.exact_value(w, b), w, b


def best_intercept(own: Judge, w: Array, b: Array) -> Array:
    """The best intercepts without coefficients, by bisection of the slopes."""
    high = np.full(len(b), LONG(1e4))
    if own.kind == "svr":
        high += 2 * np.abs(own.targets).max()
    low = -high
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(200):
            b = (low + high) / 2
            slopes = own.single(np.zeros((len(own.A), 1), LONG) + b)[1]
            total = (own.weights[:, np.newaxis] * slopes).sum(axis=0) + own.intercept_penalty * b
            low, high = np.where(total < 0, b, low), np.where(total < 0, high, b)
    return b


def kind_of(model: Any) -> str:
    """The name of the model on the command line."""
    return str(model._kind)


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
        kind = kind_of(problem(seed).model)
        counts[f"{kind}: {result}"] += 1
        if result not in GOOD:
            print(f"{kind} seed {seed}: {result}", flush=True)
    print(f"{arguments.trials} trials, {time.perf_counter() - start:.0f} s")
    for name, count in sorted(counts.items()):
        print(f"{count:7d}  {name}")
    return int(any(name.split(": ")[1] not in GOOD for name in counts))


if __name__ == "__main__":
    sys.exit(main())
