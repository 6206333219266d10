"""Sums and updates of long vectors."""

import numpy as np
import pytest

from inside import lower
from polysparse.engine import cpu
from polysparse.models.vectors import (
    add_rows,
    center,
    combine,
    divide,
    dot,
    dots,
    multiply,
    raise_shifted,
    rescale,
    weighted_squares,
)

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


@pytest.mark.parametrize("k", [0, 1, 5])
@pytest.mark.parametrize("n", LENGTHS)
def test_tables_of_vectors(n, k):
    table, (x, _, _) = np.random.default_rng(n).standard_normal((k, n)), vectors(n)
    np.testing.assert_allclose(dots(table, x, 1), table @ x, atol=1e-9)
    factors, expected = np.arange(k) + 0.5, x.copy()
    for factor, row in zip(factors, table, strict=True):
        expected = expected + factor * row
    add_rows(x, factors, table, 1)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-14)  # products may be fused


@pytest.mark.parametrize("n", LENGTHS)
def test_updates_have_the_bits_of_numpy(n):
    a, b, c = vectors(n)
    np.testing.assert_array_equal(multiply(a, b, 0.3, 1), a * (b - 0.3))
    assert multiply(a, b, 0.0, 1, c) is c
    np.testing.assert_array_equal(c, a * b)
    expected = 0.7 * a + 1.1 * (b - 0.2)
    combine(0.7, a, 1.1, b, 1, 0.2)
    np.testing.assert_array_equal(a, expected)
    expected = 0.7 * b + 1.1
    rescale(b, 0.7, 1.1, 1)
    np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize("n", LENGTHS)
def test_powers_of_what_is_not_positive_are_one(n):
    a, _, c = vectors(n)
    np.testing.assert_allclose(raise_shifted(c, 0.5, 1), (c + 0.5) ** 0.75, rtol=1e-15)
    np.testing.assert_array_equal(raise_shifted(a, 0.0, 1)[a <= 0], 1)
    np.testing.assert_array_equal(raise_shifted(np.zeros(n), 0.0, 1), 1)


@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("n", LENGTHS)
def test_columns_are_centerd(n, k):
    """Of k classes; 0 stands for vectors."""
    rng = np.random.default_rng(n)
    values, totals = rng.standard_normal((n, k) if k else n), rng.uniform(1, 2, k or 1)
    squares, sums = 0.7 * values**2, values.copy()
    expected = np.maximum(squares - sums * sums / totals, 0), sums / totals
    center(squares, sums, totals if k else totals[0], 1)
    np.testing.assert_array_equal(squares, expected[0])
    np.testing.assert_array_equal(sums, expected[1])


def test_sums_without_weight_are_centerd_too():
    squares, sums = np.zeros(3), np.zeros(3)
    center(squares, sums, 0.0, 1)
    assert squares.tolist() == sums.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [0, 1, 40_003, (20_001, 2)])
def test_what_is_cleared_is_zero(shape, dtype):
    x = np.full(shape, np.nan, dtype)
    cpu.clear(x, 3)
    assert x.tobytes() == bytes(x.nbytes)


@pytest.mark.parametrize("n", LENGTHS)
def test_threads_change_no_bit_of_sums(n, monkeypatch):
    lower(monkeypatch, OUTPUTS_PER_THREAD=1)
    a, b, c = vectors(n)

    def found(n_jobs):
        x, out = a.copy(), np.empty(n)
        combine(0.5, x, 2.0, b, n_jobs)
        rescale(x, 0.3, 0.1, n_jobs)
        squares, means = a * a, b.copy()
        center(squares, means, 2.0, n_jobs)
        changed = x, squares, means, raise_shifted(a, 0.2, n_jobs)
        sums = dot(a, b, n_jobs), weighted_squares(c, a, 0.5, n_jobs), divide(a, c, out, n_jobs)
        table = np.stack([a, b, c])
        products = dots(table, a, n_jobs)
        add_rows(x, products, table, n_jobs)
        changed = *changed, out, multiply(a, b, 0.1, n_jobs), products
        return sums, [each.tobytes() for each in changed]

    alone = found(1)
    for n_jobs in (2, 3, 8):
        assert found(n_jobs) == alone


def test_what_is_not_finite_stays_so():
    a = np.ones(20)
    a[17] = np.inf
    assert dot(a, np.ones(20), 1) == np.inf
    squares, sums = a.copy(), a.copy()
    center(squares, sums, 2.0, 1)
    assert np.isnan(squares[17])
    assert sums[17] == np.inf
    a[3] = np.nan
    assert np.isnan(dot(a, np.ones(20), 1))
