"""What the command line reaches: from file to file, against scikit-learn and against the disk.

Ratios of one run, the best of several, both sides in turn; results are compared. The disk is the
one that holds --folder, and its speed is the limit of some rows: it is measured beside them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import PolynomialFeatures

import measure
import polysparse
from bench_core import random_csr

MIB = 2**20


def write_svmlight(path: Path, X: Any) -> None:
    """Text as a click log has it: integers and short decimals."""
    with open(path, "w") as file:
        columns, values = (X.indices + 1).tolist(), X.data.tolist()
        for row in range(X.shape[0]):
            start, stop = X.indptr[row], X.indptr[row + 1]
            pairs = zip(columns[start:stop], values[start:stop], strict=True)
            file.write(f"{row % 2} " + " ".join(f"{c}:{v:g}" for c, v in pairs) + "\n")


def command_line(*arguments: Any) -> None:
    """Run polysparse as a user does."""
    subprocess.run([sys.executable, "-m", "polysparse", *map(str, arguments)], check=True)


def in_turn(sides: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Best time of each side."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(repeats):
        for name, side in sides.items():
            start = perf_counter()
            side()
            best[name] = min(best[name], perf_counter() - start)
    return best


def end_to_end(folder: Path, repeats: int) -> list[str]:
    """Text to a directory, against scikit-learn's load, transform and save."""
    rng = np.random.default_rng(0)
    X = random_csr(rng, rng.binomial(10_000, 0.002, 100_000), 10_000)
    text = folder / "in.svmlight"
    write_svmlight(text, X)

    def theirs() -> None:
        matrix, _ = load_svmlight_file(str(text))
        sparse.save_npz(folder / "theirs.npz", PolynomialFeatures().fit_transform(matrix))

    def theirs_plain() -> None:
        matrix, _ = load_svmlight_file(str(text))
        expanded = PolynomialFeatures().fit_transform(matrix)
        sparse.save_npz(folder / "theirs.npz", expanded, compressed=False)

    best = in_turn(
        {
            "ours": lambda: command_line(
                "expand", text, folder / "ours", "--force", "--quiet", "--yes"
            ),
            "theirs": theirs,
            "theirs, uncompressed": theirs_plain,
        },
        repeats,
    )
    ours = polysparse.load(folder / "ours")
    theirs_result = sparse.load_npz(folder / "theirs.npz")
    if not (
        np.array_equal(ours.indices, theirs_result.indices) and (ours != theirs_result).nnz == 0
    ):
        raise AssertionError("the files differ")
    ratios = [best[side] / best["ours"] for side in ("theirs", "theirs, uncompressed")]
    return [
        f"svmlight ({text.stat().st_size / 1e6:.0f} MB) -> directory, "
        "including the start of Python",
        "5x",
        f"{ratios[0]:.1f}x (uncompressed npz: {ratios[1]:.1f}x)",
    ]


def streaming_overhead(folder: Path, repeats: int) -> list[str]:
    """Streaming .npz to a directory against expand and a raw write of the same bytes."""
    rng = np.random.default_rng(0)
    X = random_csr(rng, rng.binomial(10_000, 0.002, 200_000), 10_000)
    sparse.save_npz(folder / "in.npz", X, compressed=False)
    nbytes = polysparse.plan(X).nbytes

    from polysparse.cli import main

    def stream() -> None:
        arguments = ["expand", folder / "in.npz", folder / "ours", "--force", "--quiet", "--yes"]
        if main([str(a) for a in arguments]) != 0:
            raise AssertionError("the stream failed")

    def whole() -> None:
        result = polysparse.expand(sparse.load_npz(folder / "in.npz"))
        with open(folder / "raw", "wb", buffering=0) as file:
            for array in (result.indptr, result.indices, result.data):
                rest = memoryview(array).cast("B")
                while rest:
                    rest = rest[file.write(rest) :]

    best = in_turn({"stream": stream, "whole": whole}, repeats)
    return [
        f"streaming {nbytes / 1e6:.0f} MB over expand and a raw write",
        "at most 1.5x",
        f"{best['stream'] / best['whole']:.2f}x",
    ]


def open_a_store(folder: Path) -> list[str]:
    """Opening a directory of 2 GB."""
    rng = np.random.default_rng(0)
    X = random_csr(rng, np.full(200_000, 40), 10_000)
    sparse.save_npz(folder / "in.npz", X, compressed=False)
    command_line("expand", folder / "in.npz", folder / "ours", "--force", "--quiet", "--yes")
    nbytes = sum(file.stat().st_size for file in (folder / "ours").iterdir())
    best = in_turn({"load": lambda: polysparse.load(folder / "ours", verify=False)}, 5)
    return [f"load of {nbytes / 1e9:.1f} GB", "under 50 ms", f"{best['load'] * 1e3:.1f} ms"]


def peak_memory(folder: Path) -> list[str]:
    """The largest memory of a run with --max-memory 256MiB whose output is over 4 GB."""
    rng = np.random.default_rng(0)
    X = random_csr(rng, np.full(100_000, 80), 10_000)
    text = folder / "in.svmlight"
    write_svmlight(text, X)
    nbytes = polysparse.plan(X).nbytes
    program = (
        "import sys; from polysparse.cli import main; code = main(sys.argv[1:]); "
        "print(next(line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line)); "
        "sys.exit(code)"
    )
    arguments = [
        "expand",
        text,
        folder / "ours",
        "--force",
        "--quiet",
        "--yes",
        "--max-memory",
        "256MiB",
    ]
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )
    peak = int(done.stdout) * 1024
    return [
        f"peak memory, --max-memory 256MiB, {nbytes / 1e9:.1f} GB written",
        f"under {(256 * MIB + 150e6) / 1e6:.0f} MB",
        f"{peak / 1e6:.0f} MB",
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="where to write (default: the temporary folder)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="polysparse-bench-", dir=options.folder))
    try:
        rows = [
            end_to_end(folder, options.repeats),
            streaming_overhead(folder, options.repeats),
            open_a_store(folder),
            peak_memory(folder),
        ]
    finally:
        shutil.rmtree(folder)
    print(measure.describe_machine(polysparse.machine.usable_cores()))
    print()
    print(measure.format_table(["measure", "target", "reached"], rows, options.markdown))


if __name__ == "__main__":
    main()
