"""What as many processes as cores reach that share nothing: threads can hardly gain more.

Each process has its own matrix and multiplies with one thread. Cores that share caches, memory or
arithmetic units, as those of many virtual machines do, are slower together than one is alone.

    python benchmarks/bench_processes.py [--processes 16]
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from typing import Any

import numpy as np

import measure
import polysparse
from bench_threads import MODELS
from polysparse.machine import threads_for, usable_cores

SECONDS = 3.0


def multiply(case: int, starts: Any, found: Any) -> None:
    """Multiply for some seconds; put the least milliseconds of both products."""
    X, rng = MODELS[case].make(), np.random.default_rng(0)
    A = polysparse.PolynomialOperator(X, MODELS[case].degree, n_jobs=1)
    w, r = rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
    starts.wait()
    times: list[list[float]] = []
    while not times or time.perf_counter() - times[0][0] < SECONDS:
        begin = time.perf_counter()
        A.matvec(w)
        middle = time.perf_counter()
        A.rmatvec(r)
        times.append([begin, middle, time.perf_counter()])
    found.put(1e3 * np.min(np.diff(times), axis=0))


def time_products(case: int, n_processes: int) -> np.ndarray:
    """Return milliseconds of both products, the mean over processes that run at once."""
    spawn = multiprocessing.get_context("spawn")
    starts, found = spawn.Barrier(n_processes), spawn.SimpleQueue()
    processes = [
        spawn.Process(target=multiply, args=(case, starts, found)) for _ in range(n_processes)
    ]
    for process in processes:
        process.start()
    times = np.mean([found.get() for _ in processes], axis=0)
    for process in processes:
        process.join()
    return times


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=usable_cores())
    n = parser.parse_args().processes
    print(measure.describe_machine(threads_for(None, 10**9)), end="\n\n")
    header = ["matrix-vector products", "alone, ms", f"{n} processes, ms", f"{n} processes over 1"]
    rows = []
    for case, described in enumerate(MODELS):
        alone, together = time_products(case, 1), time_products(case, n)
        for name, one, many in zip(("A w", "A' r"), alone, together, strict=True):
            gain = f"{n * one / many:.1f}x"
            rows.append([f"{described.name}: {name}", f"{one:.1f}", f"{many:.1f}", gain])
    print(measure.format_table(header, rows, markdown=True))


if __name__ == "__main__":
    main()
