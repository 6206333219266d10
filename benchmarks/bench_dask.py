"""What Dask costs: an expansion to a reduction, against the plain loop of iter_expand.

Both sides run in one process, in turn; the best of several times counts; every timed result is
checked; ratios are printed, with versions, also where they miss their target. Dask's threaded
scheduler has as many threads as the loop. Building the lazy result is a part of what is timed, and
is timed by itself for a matrix that no memory could hold.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import dask.array as da
import numpy as np
from scipy import sparse

import measure
import polysparse
from bench_core import DATA, Case, say, svmlight, uniform
from polysparse.machine import threads_for

LOOP, LOOP_REUSE, DASK = "iter_expand", "iter_expand, reuse=True", "dask"
TARGET, TARGET_MS = 1.15, 10.0
SMALL = "20,000 x 1,000, 0.02, K=2 (small)"  # to which the target does not apply
BLOCK_BYTES = 2**24  # of the expansion of a block
N_FEATURES, N_BLOCKS = 100_000, 10_000  # of the lazy result that is only built


def suite(data: Path) -> list[Case]:
    """Rows by chance, and real one-hot data. The last takes hardly longer than a graph of Dask."""
    cases = [
        Case("100,000 x 10,000, 0.002, K=2", 2, partial(uniform, 100_000, 10_000, 0.002)),
        Case("20,000 x 1,000, 0.02, K=3", 3, partial(uniform, 20_000, 1_000, 0.02)),
        Case(SMALL, 2, partial(uniform, 20_000, 1_000, 0.02)),
    ]
    if (path := data / "a9a").exists():
        real = [
            Case("a9a, 10 times, K=2", 2, lambda: sparse.vstack([svmlight(path)] * 10)),
            Case("a9a, K=3", 3, partial(svmlight, path)),
        ]
        return real + cases
    say(f"a9a is left out: there is no {path}; name its folder with --data")
    return cases


def in_blocks(X: Any, n_blocks: int) -> Any:
    """A dask array of rows that are in memory."""
    ends = np.linspace(0, X.shape[0], n_blocks + 1).astype(int)
    blocks = {("rows", i, 0): X[a:b] for i, (a, b) in enumerate(pairwise(ends))}
    chunks = tuple(int(n) for n in np.diff(ends)), (X.shape[1],)
    return da.Array(blocks, "rows", chunks, meta=X[:0, :0])


# --------------------------------------------------------------------------------------- measures


def reduce_block(block: Any) -> Any:
    """Stored values and their sum, which is exact for these matrices."""
    return np.array([[block.nnz, block.data.sum()]])


def by_loop(X: Any, degree: int, reuse: bool) -> Any:
    """The reduction, a block after the other, each by all threads."""
    blocks = polysparse.iter_expand(X, degree, reuse=reuse)
    return sum(reduce_block(block) for _, block in blocks).ravel()


def by_dask(rows: Any, degree: int, n_threads: int) -> Any:
    """The reduction, a block in each thread."""
    reduced = polysparse.expand(rows, degree).map_blocks(
        reduce_block, chunks=((1,) * rows.numblocks[0], (2,)), dtype=float, meta=np.empty((0, 0))
    )
    return reduced.sum(axis=0).compute(scheduler="threads", num_workers=n_threads)


def time_case(case: Case, n_threads: int, repeats: int) -> dict[str, float]:
    """Best times of all sides."""
    X, k = sparse.csr_array(case.make()), case.degree
    n_blocks = max(2 * n_threads, polysparse.plan(X, k).nbytes // BLOCK_BYTES)
    rows = in_blocks(X, n_blocks)
    sides: dict[str, Callable[[], Any]] = {
        LOOP: partial(by_loop, X, k, False),
        LOOP_REUSE: partial(by_loop, X, k, True),
        DASK: partial(by_dask, rows, k, n_threads),
    }
    expected = by_loop(X, k, False)

    def check(side: str, result: Any) -> None:
        if not np.array_equal(result, expected):
            raise AssertionError(f"{side} gives {result}, not {expected}")

    measure.allocate_fresh(False)
    return measure.best_times(sides, repeats=repeats, check=check)


def time_to_build(repeats: int) -> float:
    """Best time of making a lazy result, in milliseconds; nothing of it can be computed."""
    empty = sparse.csr_array((0, 0))
    chunks = (10**5,) * N_BLOCKS, (N_FEATURES,)
    rows = da.map_blocks(lambda: None, chunks=chunks, dtype=float, meta=empty)
    best = float("inf")
    for _ in range(max(3, repeats)):
        start = perf_counter()
        expanded = polysparse.expand(rows, 2)
        best = min(best, perf_counter() - start)
        if expanded.shape[1] != N_FEATURES * (N_FEATURES + 3) // 2 + 1:
            raise AssertionError(f"the lazy result has the shape {expanded.shape}")
    return best * 1e3


# ----------------------------------------------------------------------------------------- report


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has the file a9a")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    n_threads, rows, ratios = threads_for(None, 10**9), [], {}
    for case in suite(options.data):
        say(case.name)
        times = time_case(case, n_threads, options.repeats)
        ratios[case.name] = times[DASK] / times[LOOP]
        against = (ratios[case.name], times[DASK] / times[LOOP_REUSE])
        rows.append([case.name, *(f"{ratio:.2f}x" for ratio in against)])
    worst = max((name for name in ratios if name != SMALL), key=lambda name: ratios[name])
    milliseconds = time_to_build(options.repeats)
    reached = [
        [
            "expansion to a reduction on Dask's threads, time against iter_expand: the slowest",
            f"at most {TARGET:g}x",
            mark(f"{ratios[worst]:.2f}x ({worst})", ratios[worst] <= TARGET),
        ],
        [
            f"lazy result of {N_FEATURES:,} features in {N_BLOCKS:,} blocks",
            f"at most {TARGET_MS:g} ms",
            mark(f"{milliseconds:.1f} ms", milliseconds <= TARGET_MS),
        ],
    ]
    print(f"{measure.describe_machine(n_threads)}, dask {version('dask')}")
    header = ["rows x features, density, degree", f"time against {LOOP}", f"against {LOOP_REUSE}"]
    print(f"\n{measure.format_table(header, rows, options.markdown)}\n")
    print(measure.format_table(["measure", "target", "reached"], reached, options.markdown))


def mark(text: str, met: bool) -> str:
    """Put a mark on what misses its target."""
    return text if met else f"{text} \\*"


if __name__ == "__main__":
    main()
