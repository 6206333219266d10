"""Fits on a Dask cluster whose workers are killed: each has the bits of a fit without a kill.

    python tests/dask_kills.py --kills 50 --seed 1

Some or all workers get SIGKILL at a random moment of each fit, or of two fits at once. A kill
counts if it came before their end. Exit status 1 if a fit took longer than LIMIT or found other
coefficients.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import dask
import numpy as np
from distributed import Client

from csr_zoo import random_csr
from dask_blocks import lazily
from dask_cluster import local_workers
from model_data import classes_for
from polysparse import PolynomialLogisticRegression

LIMIT = 180.0  # seconds that a fit of one or two takes at most on a busy machine

# A LocalCluster closes a worker for good if it is restarting 15 s after an earlier restart.
KEEP_WORKERS = {"distributed.deploy.lost-worker-timeout": "1h"}


def kill_in_fits(
    client: Client, fit: Callable[[], Any], rng: random.Random
) -> Iterator[tuple[Any, float, bool]]:
    """Yield results of `fit`, the seconds that each took, and whether a kill came before that."""
    fit()  # workers import what they need
    start = time.monotonic()
    fit()
    usual = time.monotonic() - start
    n_workers = len(client.scheduler_info()["workers"])
    while True:
        pids = wait_for_workers(client, n_workers)
        victims = rng.sample(pids, rng.randint(1, len(pids)))
        timer = threading.Timer(rng.uniform(0, 0.7 * usual), kill, [victims])
        start = time.monotonic()
        timer.start()
        found = within(LIMIT, fit)
        seconds, was_killed = time.monotonic() - start, timer.finished.is_set()
        timer.join()
        yield found, seconds, was_killed


def wait_for_workers(client: Client, n_workers: int) -> list[int]:
    """Return the processes of the workers, once there are as many as before."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        pids = client.run(os.getpid, on_error="ignore")  # a dead worker may still be listed
        if len(pids) == n_workers:
            return list(pids.values())
        time.sleep(0.05)
    raise TimeoutError(f"a worker is not back after {LIMIT:g} s")


def kill(pids: list[int]) -> None:
    """SIGKILL for each process."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def within(seconds: float, function: Callable[[], Any]) -> Any:
    """Return function(), or raise TimeoutError if it takes longer."""
    done: Future[Any] = Future()

    def run() -> None:
        try:
            done.set_result(function())
        except Exception as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        raise TimeoutError(f"a fit takes longer than {seconds:g} s") from None


def survive(n_workers: int, n_kills: int, seed: int, n_at_once: int = 1) -> list[float]:
    """Run so many fits at once until so many kills counted; return the seconds that they took."""
    rng, X = random.Random(seed), random_csr(1600, 25, 0.3)
    rows, y = lazily(X, [200] * 8), classes_for(X, 2)

    def fit() -> Any:
        return PolynomialLogisticRegression(tol=1e-8).fit(rows, y)

    wanted, times = fit().coef_.tobytes(), []
    with (
        dask.config.set(KEEP_WORKERS),
        tempfile.TemporaryDirectory() as folder,
        # Dask logs every kill.
        local_workers(folder, n_workers, silence_logs=logging.CRITICAL) as client,
    ):

        def fit_at_once() -> list[Any]:
            with client.as_current(), ThreadPoolExecutor(n_at_once) as pool:
                # Not as_current in each thread: it changes settings of the whole process.
                contexts = [copy_context() for _ in range(n_at_once)]
                return list(pool.map(lambda context: context.run(fit), contexts))

        for found, seconds, was_killed in kill_in_fits(client, fit_at_once, rng):
            if any(model.coef_.tobytes() != wanted for model in found):
                raise AssertionError(f"other coefficients after {len(times)} kills")
            times += [seconds] * was_killed
            if len(times) == n_kills:
                return times
    raise AssertionError


def main() -> int:
    """Kill workers of clusters of one and of two; print how long fits took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for n_workers, n_at_once in ((1, 1), (2, 1), (2, 2)):
        times = survive(n_workers, options.kills, options.seed, n_at_once)
        print(
            f"{n_workers} Dask worker(s), {n_at_once} fit(s) at once, {len(times)} kills: same "
            f"bits; it took {np.median(times):.1f} s, at most {max(times):.1f} s",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    try:
        status = main()
    except (TimeoutError, AssertionError) as error:
        print(error, flush=True)
        status = 1
    sys.stdout.flush()
    os._exit(status)  # a fit that hangs would keep its cluster from closing
