"""Time the points of sweeps, and check the results that were timed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import process_time
from typing import Any

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

from polysparse.expansion.functions import expand
from polysparse.paper.experiments import (
    CHECKED_BYTES,
    DENSE,
    FILL,
    FRESH,
    REUSED,
    SKLEARN,
    SPARSE,
    Measurement,
    Point,
    Sweep,
)

Progress = Callable[[float, str], None]  # called with the fraction done and a text


def measure(sweeps: Sequence[Sweep], n_matrices: int, progress: Progress) -> Iterator[Measurement]:
    """Time every side of every point in rounds, with one matrix per point and round.

    Rounds spread other load on the machine evenly over all points. Sweeps in fresh memory come
    last, because they return the memory that the others reuse.
    """
    ordered = sorted(sweeps, key=lambda sweep: sweep.memory == FRESH)
    groups = [[s for s in ordered if s.memory == memory] for memory in (REUSED, FRESH)]
    points = [(sweep, point) for sweep in sweeps for point in sweep.points]
    total = sum(n_matrices * _work(s, p) + _work_of_check(p) for s, p in points)
    done = 0.0
    for group in groups:
        for repetition in range(n_matrices):
            for sweep in group:
                for point in sweep.points:
                    progress(done / total, _label(sweep, point, repetition, n_matrices))
                    yield from measure_point(sweep, point, repetition)
                    done += _work(sweep, point) + (repetition == 0) * _work_of_check(point)
    progress(1.0, "done")


def _work(sweep: Sweep, point: Point) -> float:
    """Estimate how long a point takes, in bytes written."""
    weights = {SPARSE: 1, DENSE: 1, SKLEARN: 7, FILL: 1}
    written = sum(weights[side] * point.plan(side).nbytes for side in sweep.sides)
    slower = 5 if sweep.memory == FRESH else 1
    return 10**6 + 500 * point.N * point.D + slower * written


def _work_of_check(point: Point) -> float:
    """Estimate how long checking a point takes, in bytes written."""
    return 16 * min(CHECKED_BYTES, point.plan(DENSE).nbytes)


def _label(sweep: Sweep, point: Point, repetition: int, n_matrices: int) -> str:
    value = getattr(point, sweep.varied)
    return f"K={point.K}, {sweep.varied}={value:g}: matrix {repetition + 1} of {n_matrices}"


def measure_point(sweep: Sweep, point: Point, repetition: int) -> Iterator[Measurement]:
    """Time all sides on one matrix; each repetition begins with a different side.

    All sides run on one thread, so that their processor time is what they take on an idle machine.
    """
    calls = calls_on(point, point.matrix(repetition), sweep.sides)
    if repetition == 0:
        require_agreement(point, calls)
    turn = repetition % len(sweep.sides)
    for side in sweep.sides[turn:] + sweep.sides[:turn]:
        if sweep.memory == FRESH:
            give_back_memory(point.plan(side).nbytes)
        start = process_time()
        result = calls[side]()
        seconds = process_time() - start
        del result
        yield Measurement(sweep, point, side, repetition, seconds)


def calls_on(point: Point, X: Any, sides: tuple[str, ...]) -> dict[str, Callable[[], Any]]:
    """Return the calls to time, by side. The dense matrix is made here, outside of the timing."""
    K, n_values = point.K, point.plan(FILL).nnz
    calls: dict[str, Callable[[], Any]] = {SPARSE: lambda: expand(X, K, n_jobs=1)}
    if DENSE in sides:
        dense_X = X.toarray()
        calls[DENSE] = lambda: expand(dense_X, K, n_jobs=1)
    if SKLEARN in sides:
        theirs = PolynomialFeatures(K).fit(X)
        calls[SKLEARN] = lambda: theirs.transform(X)
    if FILL in sides:
        calls[FILL] = lambda: np.empty(n_values).fill(1.0)
    return calls


def require_agreement(point: Point, calls: dict[str, Callable[[], Any]]) -> None:
    """Raise RuntimeError if results differ: dense in any bit, scikit-learn by more than rounding.

    The CSR code of scikit-learn multiplies (a b) c; all others, including its own dense code,
    multiply a (b c).
    """
    n_rows = max(1, CHECKED_BYTES * point.N // point.plan(DENSE).nbytes)
    ours = calls[SPARSE]()
    dense_rows = expand(point.matrix(0)[:n_rows].toarray(), point.K, n_jobs=1)
    if not np.array_equal(dense_rows, ours[:n_rows].toarray()):
        raise RuntimeError(f"The sparse and the dense results differ at {point}.")
    del dense_rows
    if SKLEARN in calls:
        theirs = calls[SKLEARN]()
        theirs.sort_indices()
        same_columns = np.array_equal(theirs.indices, ours.indices)
        if not (same_columns and np.allclose(theirs.data, ours.data, rtol=1e-14, atol=0.0)):
            raise RuntimeError(f"The sparse and scikit-learn's results differ at {point}.")


# ------------------------------------------------------------------------------------------ memory

_LIBC: Any = ctypes.CDLL(None)
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # parameters of glibc's mallopt

# Without these functions nothing is measured in fresh memory, and reuse is up to the system.
CONTROLS_MEMORY = hasattr(_LIBC, "mallopt") and hasattr(_LIBC, "malloc_trim")


@contextmanager
def reused_memory(n_bytes: int) -> Iterator[None]:
    """Let arrays of any size reuse memory that was touched before, beginning with n_bytes of it.

    By default, glibc recycles only arrays of up to 32 MB. Above that, every page is fetched from
    the system again, which would put a step in the middle of each curve.
    """
    if not CONTROLS_MEMORY:
        yield
        return
    _LIBC.mallopt(_MMAP_MAX, 0)
    _LIBC.mallopt(_TRIM_THRESHOLD, -1)
    np.empty(n_bytes // 8).fill(0.0)
    try:
        yield
    finally:
        _LIBC.mallopt(_MMAP_MAX, 2**16)
        _LIBC.mallopt(_MMAP_THRESHOLD, 2**25)  # this and the next are the largest glibc itself sets
        _LIBC.mallopt(_TRIM_THRESHOLD, 2**26)
        give_back_memory()


def give_back_memory(touched: int = 0) -> None:
    """Return all free memory to the system, so that what is allocated next is fresh.

    First `touched` bytes are touched: a virtual machine may get its memory from the host only on
    first use, and the side that needs most would pay for that.
    """
    np.empty(touched // 8).fill(0.0)
    _LIBC.malloc_trim(0)
