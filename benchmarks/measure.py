"""Instruments of the benchmarks: best times taken in turn, fresh memory, peaks, fingerprints."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import platform
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from random import Random
from threading import Barrier
from time import perf_counter
from typing import Any

import numpy as np

_LIBC = ctypes.CDLL(None)
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt


def allocate_fresh(fresh: bool) -> None:
    """Whether every array over 128 kB shall be new memory, whichever side asks for it.

    By default glibc recycles arrays of up to 32 MB, once it has adapted itself, and whoever runs
    next to a freed one wins. That is what users have, and so do small cases here; the limits of
    fresh memory can only be told without. Where there is no mallopt nothing happens.
    """
    _mallopt(_MMAP_THRESHOLD, 2**17 if fresh else 2**25)
    _mallopt(_TRIM_THRESHOLD, 2**17 if fresh else 2**26)
    if fresh and hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)


def _mallopt(parameter: int, value: int) -> None:
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(parameter, value)


def best_times(
    sides: dict[Any, Callable[[], Any]],
    *,
    repeats: int,
    check: Callable[[Any, Any], None] = lambda _side, _result: None,
    once: tuple[Any, ...] = (),
    touched: int = 0,
    seconds: float = 2.0,
) -> dict[Any, float]:
    """Best time of each side, all of them taken in turn, every timed result given to `check`.

    There are at least so many rounds, and more until all sides together took so many `seconds`;
    those named in `once` run in the first only, and are not counted. A result is freed before the
    next is made. Before each call so many bytes are `touched` and freed: a virtual machine may get
    its memory from the host on first use only, and whoever needs most would pay for that.
    """
    best = dict.fromkeys(sides, math.inf)
    order, rounds, spent = list(sides), 0, 0.0
    shuffle = Random(0).shuffle
    gc.collect()
    gc.disable()
    try:
        while rounds < repeats or spent < seconds:
            shuffle(order)  # nobody always finds the memory that the same one has left
            for side in order:
                if rounds and side in once:
                    continue
                if touched:
                    fill_fresh([(touched, np.dtype(np.int8))], 2)
                start = perf_counter()
                result = sides[side]()
                elapsed = perf_counter() - start
                check(side, result)
                del result
                best[side] = min(best[side], elapsed)
                spent += 0 if side in once else elapsed
            rounds += 1
    finally:
        gc.enable()
    return best


def fill_fresh(arrays: Iterable[tuple[int, np.dtype[Any]]], n_threads: int) -> list[Any]:
    """Allocate arrays of these lengths and dtypes and zero them: what no result can be faster than.

    NumPy's fill lets go of the GIL, so that threads do work side by side.
    """
    made = [np.empty(n, dtype) for n, dtype in arrays]
    if n_threads == 1:
        for array in made:
            array.fill(0)
        return made

    def fill_part(part: int) -> None:
        for array in made:
            n = len(array)
            array[n * part // n_threads : n * (part + 1) // n_threads].fill(0)

    list(_threads(n_threads).map(fill_part, range(n_threads)))
    return made


@cache
def _threads(n: int) -> ThreadPoolExecutor:
    """Threads that are running already: starting them is not what is measured."""
    pool = ThreadPoolExecutor(n)
    barrier = Barrier(n)
    list(pool.map(lambda _: barrier.wait(), range(n)))
    return pool


def fingerprint(result: Any, index_dtype: np.dtype[Any] | None = None) -> tuple[Any, ...]:
    """Shape and checksums of a CSR matrix's arrays, or of a dense array: equal for equal ones."""
    if index_dtype is None:
        return result.shape, zlib.crc32(result.reshape(-1))
    offsets, columns = (a.astype(index_dtype, copy=False) for a in (result.indptr, result.indices))
    arrays = offsets, columns, result.data
    # Threads that have just run would disturb what is timed next, if it is short.
    sums = (_threads(2).map if result.nnz > 10**6 else map)(zlib.crc32, arrays)
    return result.shape, str(result.dtype), *sums


class SameResult:
    """A `check` that raises unless every result has the fingerprint of the first."""

    def __init__(self, index_dtype: np.dtype[Any] | None = None, but: tuple[str, ...] = ()) -> None:
        self.index_dtype, self.but = index_dtype, but
        self.first: tuple[str, tuple[Any, ...]] | None = None

    def __call__(self, side: str, result: Any) -> None:
        if side in self.but:
            return
        found = fingerprint(result, self.index_dtype)
        if self.first is None:
            self.first = side, found
        elif found != self.first[1]:
            raise AssertionError(f"{side} disagrees with {self.first[0]}.")


def peak_growth(call: Callable[[], Any]) -> int:
    """Bytes by which the memory of this process rises above where it stood, during the call."""
    before, peak = _before_and_peak(call)
    return peak - before


def peak_of_process(call: Callable[[], Any]) -> int:
    """Most bytes that this process has during the call, the program itself included."""
    return _before_and_peak(call)[1]


def _before_and_peak(call: Callable[[], Any]) -> tuple[int, int]:
    gc.collect()
    allocate_fresh(True)
    Path("/proc/self/clear_refs").write_text("5")  # sets the peak back to the present
    before = _status_bytes("VmRSS")
    result = call()
    peak = _status_bytes("VmHWM")
    del result
    return before, peak


def _status_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def can_measure_peaks() -> bool:
    """Whether the system lets a process set its memory peak back: Linux does."""
    return os.access("/proc/self/clear_refs", os.W_OK)


def in_new_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call where nothing else has run before."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def describe_machine(n_threads: int) -> str:
    """Versions, processor and threads, on two lines."""
    packages = ("numpy", "scipy", "scikit-learn", "polysparse")
    versions = [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
    cores = os.cpu_count()
    return f"{', '.join(versions)}\n{_processor()}, {cores} cores, {n_threads} threads by default"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def geometric_mean(values: Iterable[float]) -> float:
    """The mean for ratios."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def format_table(header: list[str], rows: list[list[str]], markdown: bool) -> str:
    """Align a table for a terminal, or write it in Markdown; the first column is text."""
    if markdown:
        rule = ["---", *["---:"] * (len(header) - 1)]
        return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in (header, rule, *rows)
    )
