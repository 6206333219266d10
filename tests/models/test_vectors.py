"""Sums and updates of long vectors."""

import numpy as np
import pytest

from inside import lower, pretend_elsewhere
from polysparse.models.vectors import combine, divide, dot, multiply, weighted_squares

LENGTHS = [0, 1, 7, 8, 9, 8192, 40_003]


def vectors(n):
    a, b, c = np.random.default_rng(n).standard_normal((3, n))
    return a, b, np.abs(c) + 0.1


@pytest.mark.parametrize("n", LENGTHS)
def test_sums_are_sums(n):
    a, b, c = vectors(n)
    out = np.empty(n)
    assert dot(a, b, 1) == pytest.approx(np.sum(a * b), abs=1e-9)
    assert weighted_squares(c, a, 0.5, 1) == pytest.approx(np.sum(c * (a - 0.5) ** 2))
    assert divide(a, c, out, 1) == pytest.approx(np.sum(a * a / c))
    np.testing.assert_array_equal(out, a / c)


@pytest.mark.parametrize("n", LENGTHS)
def test_updates_have_the_bits_of_numpy(n):
    a, b, c = vectors(n)
    np.testing.assert_array_equal(multiply(a, b, 0.3, 1), a * (b - 0.3))
    assert multiply(a, b, 0.0, 1, c) is c
    np.testing.assert_array_equal(c, a * b)
    expected = 0.7 * a + 1.1 * (b - 0.2)
    combine(0.7, a, 1.1, b, 1, 0.2)
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("n", LENGTHS)
def test_threads_change_no_bit_of_sums(n, monkeypatch):
    lower(monkeypatch, OUTPUTS_PER_THREAD=1)
    a, b, c = vectors(n)

    def found(n_jobs):
        x, out = a.copy(), np.empty(n)
        combine(0.5, x, 2.0, b, n_jobs)
        sums = dot(a, b, n_jobs), weighted_squares(c, a, 0.5, n_jobs), divide(a, c, out, n_jobs)
        return sums, x.tobytes(), out.tobytes(), multiply(a, b, 0.1, n_jobs).tobytes()

    alone = found(1)
    for n_jobs in (2, 3, 8):
        assert found(n_jobs) == alone


def test_what_is_not_finite_stays_so():
    a = np.ones(20)
    a[17] = np.inf
    assert dot(a, np.ones(20), 1) == np.inf
    a[3] = np.nan
    assert np.isnan(dot(a, np.ones(20), 1))


def test_vectors_elsewhere_take_the_same(monkeypatch):
    def found():
        a, b, c = vectors(50)
        out = np.empty(50)
        assert multiply(a, b, 0.3, 1, out) is out
        combine(0.7, a, 1.1, b, 1, 0.2)
        return dot(a, b, 1), weighted_squares(c, a, 0.5, 1), *a, *out, *multiply(b, c, 0.1, 1)

    here = found()
    pretend_elsewhere(monkeypatch)
    np.testing.assert_allclose(found(), here, rtol=1e-13)
