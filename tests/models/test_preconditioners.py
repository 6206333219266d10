"""Preconditioners are symmetric and positive, and sketches are close to what they are made of."""

import numpy as np
import pytest

from csr_zoo import random_csr
from model_data import classes_for, numbers_for
from polysparse import PolynomialLogisticRegression, PolynomialRidge
from polysparse.models import krylov, newton, preconditioners
from polysparse.models.preconditioners import Diagonal, Sketch, sketch_of

N = 300
rng = np.random.default_rng(0)


def psd(eigenvalues):
    q = np.linalg.qr(rng.standard_normal((N, N)))[0]
    return (q * eigenvalues) @ q.T


def as_matrix(preconditioner, n=N):
    """Divide each unit vector; check the inner product that is returned."""
    columns = []
    for unit in np.eye(n):
        out = np.empty(n)
        assert preconditioner.divide(unit, out) == pytest.approx(unit @ out)
        columns.append(out)
    return np.array(columns)


def test_a_diagonal_divides():
    scale = rng.uniform(1, 2, N)
    np.testing.assert_allclose(as_matrix(Diagonal(scale)), np.diag(1 / scale), rtol=1e-15)


def test_the_sketch_of_a_matrix_of_low_rank_is_exact():
    matrix, scale = psd(np.r_[np.logspace(0, 3, 20), np.zeros(N - 20)]), rng.uniform(1, 2, N)
    inverse = np.linalg.inv(matrix + np.diag(scale))
    found = as_matrix(Sketch(lambda v: matrix @ v, scale, 30))
    np.testing.assert_allclose(found, inverse, atol=1e-7)


def test_a_sketch_narrows_the_spectrum():
    matrix = psd(np.logspace(6, -3, N))
    sketched = as_matrix(Sketch(lambda v: matrix @ v, np.ones(N), 64))
    np.testing.assert_allclose(sketched, sketched.T, atol=1e-9)
    spectrum = np.linalg.eigvals(sketched @ (matrix + np.eye(N))).real
    assert spectrum.min() > 0.9
    assert spectrum.max() < 5e4  # instead of 1e6


@pytest.mark.parametrize("size", [0.0, 1e-300, 1.0, 1e150])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_sketch_stays_positive(size, penalty):
    matrix = size * psd(np.r_[np.logspace(0, 3, 5), np.zeros(N - 5)])
    sketch = sketch_of(lambda v: matrix @ v, np.diag(matrix).copy(), penalty)
    found = as_matrix(sketch)
    assert np.isfinite(found).all()
    assert np.linalg.eigvalsh((found + found.T) / 2).min() >= 0


def test_classes_are_divided_one_by_one():
    matrix = psd(np.logspace(3, -3, N))
    sketch = sketch_of(lambda v: matrix @ v, np.ones((N, 3)), 1.0)
    residual, out = rng.standard_normal((N, 3)), np.empty((N, 3))
    assert sketch.divide(residual, out) == pytest.approx(np.sum(residual * out))
    for k in range(3):
        own, alone = np.ascontiguousarray(residual[:, k]), np.empty(N)
        sketch.divide(own, alone)
        np.testing.assert_array_equal(out[:, k], alone)


def test_no_sketch_of_few_columns_nor_of_very_many(monkeypatch):
    assert sketch_of(None, np.ones(4 * preconditioners.MOST_VECTORS - 1), 1.0) is None
    monkeypatch.setattr(preconditioners, "MOST_BYTES", 8 * N * (preconditioners.FEWEST_VECTORS - 1))
    assert sketch_of(None, np.ones(N), 1.0) is None


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("kind", ["two classes", "three classes", "ridge"])
def test_a_fit_with_a_sketch_has_the_same_bits_for_any_number_of_threads(kind, monkeypatch):
    X = random_csr(300, 24, 0.3)
    made = []
    monkeypatch.setattr(newton, "MANY_CG_STEPS", 3)
    monkeypatch.setattr(krylov, "MOST_BYTES", 0)
    init = Sketch.__init__
    monkeypatch.setattr(Sketch, "__init__", lambda self, *args: made.append(1) or init(self, *args))

    def fit(n_jobs):
        if kind == "ridge":
            return PolynomialRidge(1e-3, n_jobs=n_jobs).fit(X, numbers_for(X))
        classes = classes_for(X, 3 if kind == "three classes" else 2)
        return PolynomialLogisticRegression(10.0, n_jobs=n_jobs).fit(X, classes)

    alone, shared = fit(1), fit(3)
    assert len(made) == 2
    assert alone.coef_.tobytes() == shared.coef_.tobytes()
    assert alone.objective_ == shared.objective_
