"""Secants: quasi-Newton directions, and a bound of the gap, on quadratic functions."""

import numpy as np
import pytest

from polysparse.models.recent_secants import RecentSecants
from polysparse.models.secants import MOST_DRIFT, Secants

N = 60


class Quadratic:
    """A quadratic function whose Hessian has eigenvalues of at least 1, and exact line searches."""

    def __init__(self, seed, rank=N, power=3.0):
        rng = np.random.default_rng(seed)
        q = np.linalg.qr(rng.standard_normal((N, N)))[0]
        values = np.r_[np.logspace(0, power, rank), np.ones(N - rank)]
        self.hessian = (q * values) @ q.T
        self.w, self.solution = np.zeros(N), rng.standard_normal(N)

    @property
    def gap(self):
        error = self.w - self.solution
        return error @ self.hessian @ error / 2

    @property
    def gradient(self):
        return self.hessian @ (self.w - self.solution)

    def descend(self, secants, n_steps, drift=0.0, recent=None):
        """Yield the gap and its bound after each step."""
        secants.observe(self.gradient, None)
        direction = np.empty(N)
        if recent is not None:
            recent.observe(self.gradient, direction, None, 0.0)
        for _ in range(n_steps):
            slope = secants.find_direction(direction)
            assert slope == pytest.approx(self.gradient @ direction, rel=1e-6)
            assert slope < 0
            step = -slope / (direction @ self.hessian @ direction)
            self.w = self.w + step * direction
            secants.observe(self.gradient, step, drift)
            if recent is not None:
                recent.observe(self.gradient, direction, step, drift)
            yield self.gap, (recent or secants).gap()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_recent", [None, 16])
def test_the_bound_is_above_the_gap_and_close(seed, n_recent):
    own = Quadratic(seed)
    recent = n_recent and RecentSecants(None, N, n_recent, 1)
    scale = np.sqrt(np.diag(own.hessian)) if recent else np.ones(N)
    found = list(own.descend(Secants(scale, N + 5), 30, recent=recent))
    for gap, bound in found:
        assert bound >= gap * (1 - 1e-6)
    assert found[-1][1] < 3 * found[-1][0]
    assert found[-1][0] < 0.1 * found[0][0]


def observe_random_steps(own, recent, units, drift=0.0):
    """Return the bound after 12 steps, of coefficients that are divided by these units."""
    rng = np.random.default_rng(0)
    recent.observe(own.gradient * units, np.zeros(N), None, 0.0)
    for _ in range(12):
        direction = rng.standard_normal(N) / 10
        own.w = own.w + 0.5 * direction
        recent.observe(own.gradient * units, direction / units, 0.5, drift)
    return recent.gap()


def test_the_bound_does_not_depend_on_the_units_of_coefficients():
    units = np.logspace(-2, 2, N)
    bound = observe_random_steps(Quadratic(3), RecentSecants(None, N, 8, 1), np.ones(N))
    scaled = observe_random_steps(Quadratic(3), RecentSecants(units**2, N, 8, 1), units)
    assert scaled == pytest.approx(bound, rel=1e-9)


def test_secants_of_a_hessian_that_has_changed_are_left_out():
    own = Quadratic(3)
    drift = 0.6 * MOST_DRIFT  # all but the last secant are too old
    bound = observe_random_steps(own, RecentSecants(None, N, 8, 1), np.ones(N), drift)
    own = Quadratic(3)
    assert bound == pytest.approx(
        observe_random_steps(own, RecentSecants(None, N, 1, 1), np.ones(N)), rel=1e-9
    )
    assert bound < own.gradient @ own.gradient / 2


def test_few_eigenvalues_take_few_steps():
    """As with conjugate gradients: one step for each eigenvalue, and one for all that are 1."""
    own = Quadratic(0, rank=8)
    gaps = [gap for gap, _ in own.descend(Secants(np.ones(N), N), 9)]
    assert gaps[-1] < 1e-10 * gaps[0]
    assert gaps[-3] > 1e-8 * gaps[0]


@pytest.mark.parametrize("capacity", [16, 24])
def test_with_little_memory_it_goes_on_after_restarts(capacity):
    own = Quadratic(1, power=2.0)
    secants = Secants(np.ones(N), capacity)
    found = list(own.descend(secants, 120))
    assert found[-1][0] < 1e-6 * found[0][0]
    assert found[-1][1] < 1e-5 * found[0][0]
    used = secants.basis[: secants.size]
    np.testing.assert_allclose(used @ used.T, np.eye(secants.size), atol=1e-9)


def test_more_secants_than_vectors():
    own = Quadratic(2)
    own.hessian[:, 3:] = own.hessian[3:] = 0
    own.hessian += np.eye(N)
    own.solution[3:] = 0
    secants = Secants(np.ones(N), 16)
    for _ in range(15):
        own.solution[:3] = np.random.default_rng(secants.n_secants).standard_normal(3)
        for _ in own.descend(secants, 2):
            pass
    assert secants.size <= 16


def test_secants_of_a_hessian_that_has_changed_do_not_count():
    steady, drifting = Quadratic(3), Quadratic(3)
    *_, (_, bound) = steady.descend(Secants(np.ones(N), N), 20)
    *_, (_, without) = drifting.descend(Secants(np.ones(N), N), 20, drift=0.5)
    assert steady.gap == drifting.gap
    assert without == pytest.approx(drifting.gradient @ drifting.gradient / 2)
    assert bound < without / 2


def test_a_gradient_of_0():
    secants = Secants(np.ones(4), 16)
    secants.observe(np.zeros(4), None)
    direction = np.ones(4)
    assert secants.find_direction(direction) == 0
    assert secants.gap() == 0
    np.testing.assert_array_equal(direction, 0)
