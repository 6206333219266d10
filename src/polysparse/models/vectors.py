"""Sums and updates of long flat vectors of float64, shared by threads.

Pieces of fixed lengths are added in their order, so that sums are bit-identical for any number of
threads. BLAS is not used: its sums depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.engine import cpu
from polysparse.machine import threads_for

Vector = NDArray[np.float64]
Table = NDArray[np.float64]  # whose rows are vectors, side by side


def dot(a: Vector, b: Vector, n_jobs: int | None) -> float:
    """Return the sum of a * b."""
    return cpu.dot(a, b, threads_for(n_jobs, a.size))


def dots(table: Table, x: Vector, n_jobs: int | None) -> Vector:
    """Return the inner products of x and the rows of a table."""
    sums = np.empty(len(table))
    cpu.dots(table, x, sums, threads_for(n_jobs, table.size))
    return sums


def add_rows(out: Vector, factors: Vector, table: Table, n_jobs: int | None) -> None:
    """Set out = out + factors @ table, in place."""
    cpu.add_rows(factors, table, out, threads_for(n_jobs, table.size))


def weighted_squares(weights: Vector, x: Vector, shift: float, n_jobs: int | None) -> float:
    """Return the sum of weights * (x - shift)**2."""
    return cpu.weighted_squares(weights, x, shift, threads_for(n_jobs, x.size))


def combine(
    a: float, x: Vector, b: float, y: Vector, n_jobs: int | None, shift: float = 0.0
) -> None:
    """Set x = a * x + b * (y - shift), in place."""
    cpu.combine(a, x, b, y, shift, threads_for(n_jobs, x.size))


def multiply(
    x: Vector, y: Vector, shift: float, n_jobs: int | None, out: Vector | None = None
) -> Vector:
    """Return x * (y - shift); it is written to `out`, if that is given."""
    out = np.empty_like(x) if out is None else out
    cpu.multiply(x, y, shift, out, threads_for(n_jobs, x.size))
    return out


def rescale(x: Vector, factor: float, shift: float, n_jobs: int | None) -> None:
    """Set x = factor * x + shift, in place."""
    cpu.rescale(x, factor, shift, threads_for(n_jobs, x.size))


def raise_shifted(x: Vector, shift: float, n_jobs: int | None) -> Vector:
    """Return (x + shift)**0.75, and 1 where x + shift is not positive."""
    out = np.empty_like(x)
    cpu.raise_shifted(x, shift, out, threads_for(n_jobs, x.size))
    return out


def center(squares: Vector, sums: Vector, totals: Any, n_jobs: int | None) -> None:
    """Turn sums of squares of columns into those about their means, and sums into means, in place.

    Both have a number for each column, or one for each class. Totals are the weights of all rows.
    """
    own = np.maximum(np.atleast_1d(totals), np.finfo(np.float64).tiny)
    cpu.center(squares.reshape(-1), sums.reshape(-1), own, threads_for(n_jobs, sums.size))


def divide(x: Vector, y: Vector, out: Vector, n_jobs: int | None) -> float:
    """Write x / y to `out`, and return the sum of x * out."""
    return cpu.divide(x, y, out, threads_for(n_jobs, x.size))
