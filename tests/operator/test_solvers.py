"""SciPy's solvers run on an operator, and find what they find on the built matrix."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg, lsmr, lsqr, svds

import polysparse
from column_kinds import SPACES, X
from polysparse import PolynomialOperator

spaces = pytest.mark.parametrize("space", ["all", "ranks", "observed", "hashed"])
DAMPING = 0.5


@pytest.fixture
def problem(space):
    """An operator, the same matrix built, a target, and the coefficients that are best."""
    columns = SPACES[space]()
    operator, A = PolynomialOperator(X, columns=columns), polysparse.expand(X, columns=columns)
    target = np.random.default_rng(0).standard_normal(60)
    dense = A.toarray()
    normal = dense.T @ dense + DAMPING**2 * np.eye(dense.shape[1])
    return operator, A, target, np.linalg.solve(normal, dense.T @ target)


@spaces
@pytest.mark.parametrize(("solver", "most"), [(lsqr, "iter_lim"), (lsmr, "maxiter")])
def test_least_squares(problem, solver, most):
    operator, A, target, best = problem
    options = {"damp": DAMPING, "atol": 1e-13, "btol": 1e-13, most: 1000}
    found, *_ = solver(operator, target, **options)
    np.testing.assert_allclose(found, best, atol=1e-8)
    np.testing.assert_allclose(found, solver(A, target, **options)[0], atol=1e-8)


@spaces
def test_conjugate_gradients(problem):
    operator, _, target, best = problem
    n = operator.shape[1]
    normal = operator.T @ operator + aslinearoperator(DAMPING**2 * np.eye(n))
    found, code = cg(normal, operator.T @ target, atol=1e-12, maxiter=20 * n)
    assert code == 0
    np.testing.assert_allclose(found, best, atol=2e-3)  # it stops at a residual of 1e-5


@pytest.mark.parametrize(
    ("space", "solver"),
    [("all", "arpack"), ("ranks", "arpack"), ("hashed", "arpack"), ("all", "lobpcg")],
)
def test_singular_values(problem, solver):
    """Lobpcg multiplies with several vectors at once."""
    operator, A, _, _ = problem
    v0 = np.random.default_rng(1).standard_normal(min(A.shape))
    u, s, vt = svds(operator, k=3, solver=solver, v0=v0, tol=1e-4 if solver == "lobpcg" else 0)
    exact = np.linalg.svd(A.toarray(), compute_uv=False)[:3]
    np.testing.assert_allclose(np.sort(s)[::-1], exact, rtol=1e-6)
    np.testing.assert_allclose(np.abs(A @ vt.T), np.abs(u * s), atol=1e-4)


def test_it_is_a_linear_operator():
    operator = PolynomialOperator(X)
    assert isinstance(operator, LinearOperator)
    assert aslinearoperator(operator) is operator
