"""Ridge regression for many penalties from one Krylov space, against dense solutions."""

import numpy as np
import pytest
from scipy import sparse

from csr_zoo import random_csr
from inside import lower
from model_data import numbers_for
from polysparse import PolynomialRidge
from polysparse.models import krylov, least_squares
from polysparse.models.columns import make_columns
from polysparse.models.fitting import open_rows
from polysparse.models.krylov import KrylovSpace, most_vectors
from row_stores import LossyBlocks
from solver_fuzz import expand

ALPHAS = [1.0, 1e-4, 1e8, 30.0, 1e-8]


def normal(seed, n_rows, n_features):
    return np.random.default_rng(seed).standard_normal((n_rows, n_features))


def with_last(X, column):
    X[:, -1] = column
    return X


PROBLEMS = {
    "normal": normal(0, 60, 4),
    "collinear": with_last(normal(1, 60, 4), 2 * normal(1, 60, 4)[:, 0]),
    "constant column": with_last(normal(2, 60, 4), 3.0),
    "few rows": normal(3, 7, 6),
    "two rows": normal(4, 2, 3),
    "binary": (normal(5, 80, 6) > 0.5).astype(float),
    "far from 0": normal(6, 60, 3) + 30,
    "scaled": normal(7, 60, 4) * [1e-2, 1, 10, 1e2],
    "float32": normal(8, 60, 4).astype(np.float32),
}


def open_errors(X, y, weights=None, *, has_intercept=True, n_jobs=1, store=None):
    """The squared errors of a fit to the products of two features."""
    model = PolynomialRidge(n_jobs=n_jobs)
    with open_rows(model, X, y, weights) as rows:
        rows = rows if store is None else store(rows)
        columns = make_columns(model, rows)
        rows.set_targets(columns, model._make_loss(rows))
        return rows.squared_errors(has_intercept, n_jobs)


def path(errors, alphas=ALPHAS, tol=1e-6, max_iter=5_000):
    return least_squares.minimize_path(
        errors, alphas, tol=tol, max_iter=max_iter, report=lambda *_: None
    )


class Dense:
    """The objective in extended precision, and its minimum."""

    def __init__(self, X, y, weights, has_intercept):
        self.A = expand(X.astype(np.longdouble), 2, False)
        self.y = y.astype(np.longdouble)
        self.weights = np.ones(len(y)) if weights is None else weights
        self.has_intercept = has_intercept

    def value(self, solution, alpha):
        w = solution.coefficients.astype(np.longdouble)
        errors = self.y - self.A @ w - solution.intercept
        return (self.weights * errors**2).sum() + alpha * (w * w).sum()

    def minimum(self, alpha):
        """By singular values, of columns about their means."""
        A, y = self.A, self.y
        if self.has_intercept:
            A = A - self.weights @ A / self.weights.sum()
            y = y - self.weights @ y / self.weights.sum()
        root = np.sqrt(self.weights)
        U, s, _ = np.linalg.svd((A * root[:, None]).astype(float), full_matrices=False)
        along = U.T @ (root * y).astype(float)
        left = root * y - U @ along
        return left @ left + (along**2 * (alpha / (s**2 + alpha))).sum()


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_all_penalties_of_awkward_problems(name, is_weighted, has_intercept):
    X = PROBLEMS[name]
    y = X[:, 0] * 1.0 + normal(9, len(X), 1)[:, 0] + 2
    weights = np.arange(len(X)) % 3.0 if is_weighted else None
    dense = Dense(X, y, weights, has_intercept)
    errors = open_errors(X, y, weights, has_intercept=has_intercept)
    n_converged = 0
    for place, solution in path(errors):
        value, best = dense.value(solution, ALPHAS[place]), dense.minimum(ALPHAS[place])
        noise = 1e-11 * dense.minimum(1e30)
        assert solution.value == pytest.approx(float(value), rel=1e-6, abs=float(noise))
        assert best - noise <= value <= best + solution.gap + noise
        if solution.end == "converged":
            n_converged += 1
            assert value - best <= 2e-6 * best + noise
    assert n_converged >= 4


def test_penalties_from_the_strongest_to_the_weakest():
    X = random_csr(120, 8, 0.4)
    places = [place for place, _ in path(open_errors(X, numbers_for(X)))]
    assert [ALPHAS[place] for place in places] == sorted(ALPHAS, reverse=True)


def test_one_space_takes_the_passes_of_the_weakest_penalty():
    X = random_csr(300, 12, 0.4)
    y, alphas = numbers_for(X), list(np.geomspace(1e-3, 1e3, 20))
    one, many = open_errors(X, y), open_errors(X, y)
    least_squares.minimize(one, 1e-3, tol=1e-6, max_iter=5_000, report=lambda *_: None)
    found = [solution.end for _, solution in path(many, alphas)]
    assert found == ["converged"] * 20
    assert many.n_passes <= one.n_passes


def test_a_weakest_penalty_that_does_not_hold_makes_all_be_verified(monkeypatch):
    X = random_csr(120, 8, 0.4)
    y, found = numbers_for(X), []
    wanted = {place: s.value for place, s in path(open_errors(X, y), tol=1e-9)}
    verify = least_squares._Solver.verify

    def fail_at_first(self):
        found.append(self.alpha)
        return verify(self) if len(found) > 1 else None

    monkeypatch.setattr(least_squares._Solver, "verify", fail_at_first)
    for place, solution in path(open_errors(X, y)):
        assert solution.value == pytest.approx(wanted[place], rel=2e-6)
    assert found[:6] == [min(ALPHAS), *sorted(ALPHAS, reverse=True)]


@pytest.mark.parametrize("n_vectors", [0, 5])
def test_without_room_for_the_space(n_vectors, monkeypatch):
    """Conjugate gradients begin where the last penalty, or the space, ended."""
    X = random_csr(120, 8, 0.4)
    y = numbers_for(X)
    wanted = {place: s.value for place, s in path(open_errors(X, y), tol=1e-9)}
    monkeypatch.setattr(krylov, "FEWEST_VECTORS", 1)
    monkeypatch.setattr(krylov, "MOST_VECTORS", n_vectors)
    steps = []
    step = KrylovSpace._step
    monkeypatch.setattr(KrylovSpace, "_step", lambda self: steps.append(1) or step(self))
    for place, solution in path(open_errors(X, y)):
        assert solution.end == "converged"
        assert solution.value == pytest.approx(wanted[place], rel=2e-6)
    assert len(steps) == n_vectors


def test_no_penalty_among_others():
    X = random_csr(120, 5, 0.4)
    y = numbers_for(X)
    found = dict(path(open_errors(X, y), [0.0, 1.0]))
    A = np.column_stack([np.ones(120), expand(X.toarray(), 2, False).astype(float)])
    left = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    assert found[0].value == pytest.approx(left @ left, rel=1e-5)
    assert found[1].end == "converged"


@pytest.mark.parametrize("cuts", [[], [40, 41]])
def test_rows_in_blocks(cuts):
    X = random_csr(120, 8, 0.4)
    y, weights = numbers_for(X), np.arange(120) % 4.0
    wanted = dict(path(open_errors(X, y, weights)))
    errors = open_errors(X, y, weights, store=lambda rows: LossyBlocks(rows, cuts, 0.3))
    for place, solution in path(errors):
        assert solution.end == wanted[place].end
        assert solution.value == pytest.approx(wanted[place].value, rel=2e-6)


@pytest.mark.usefixtures("small_tasks")
def test_threads_change_no_bit(monkeypatch):
    lower(monkeypatch, OUTPUTS_PER_THREAD=1)
    X = random_csr(300, 24, 0.3)
    y = numbers_for(X)

    def found(n_jobs):
        errors = open_errors(X, y, n_jobs=n_jobs)
        return [(s.coefficients.tobytes(), s.value, s.gap) for _, s in path(errors)]

    assert found(3) == found(1)


@pytest.mark.parametrize("scales", [1.0, np.logspace(-3, 3, 8)])
def test_vectors_stay_orthogonal(scales):
    X = sparse.csr_array(random_csr(200, 8, 0.5) * scales)
    errors = open_errors(X, numbers_for(X))
    value, squares, _ = errors.start()
    residual = errors.gradient(np.zeros(len(squares)), None)
    space = KrylovSpace(errors, residual, value, np.array([1e-9]))
    space.grow(1e-15, 1_000, lambda *_: None)
    V = np.array([space.basis[i] for i in range(space.basis.n_vectors)])
    assert len(V) > 20
    assert np.abs(V @ V.T - np.eye(len(V))).max() < 1e-7


@pytest.mark.parametrize("n_columns", [1, 495, 501_500, 1_900_000, 10**7])
def test_memory_for_vectors_is_bounded(n_columns):
    n = most_vectors(n_columns)
    assert 8 * n_columns * (n + bool(n)) <= krylov.MOST_BYTES
    assert n == 0 or n >= krylov.FEWEST_VECTORS
    assert (n == 0) == (n_columns == 10**7)
