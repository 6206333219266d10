"""Random corruption, kills, forks and threads for some minutes: 0 wrong numbers, 0 crashes.

    python tests/soak.py --seconds 600 --seed 1

Every trial ends as one of: `same` (the right numbers), `refused` (our error), `wrong` (other
numbers, or an error that is not ours) or `crash` (the interpreter died). A trial is repeated with
`--only KIND --seed SEED --trials 1`. Exit status 1 if anything was wrong or crashed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import polysparse
import solver_fuzz
from polysparse import (
    HashedPolynomialFeatures,
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialOperator,
    PolynomialRidge,
    cli,
)

SAME, REFUSED, WRONG, CRASH = "same", "refused", "wrong", "crash"
REFUSALS = (ValueError, TypeError, MemoryError, OSError)


def matrix(rng: random.Random, n_rows: int = 12) -> sparse.csr_array:
    """A small random matrix."""
    dense = np.array(
        [[rng.choice([0, 0, 0, rng.random()]) for _ in range(7)] for _ in range(n_rows)]
    )
    return sparse.csr_array(dense)


def same_arrays(a: sparse.csr_array, b: sparse.csr_array) -> bool:
    """Whether two CSR matrices are equal in every bit."""
    return a.shape == b.shape and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ("indptr", "indices", "data")
    )


# ------------------------------------------------------------------------------------- the trials


def corrupted_matrix(rng: random.Random, folder: Path) -> str:
    """Change some entries of the arrays of a matrix, of any format and dtype, and use it."""
    X = matrix(rng).astype(rng.choice([np.float64, np.float32, np.int32, np.int8]))
    X = X.asformat(rng.choice(["csr", "csr", "csc", "bsr", "coo"]))
    names = ["row", "col"] if X.format == "coo" else ["indptr", "indices"]
    for _ in range(rng.choice([1, 1, 2, 5])):
        array = getattr(X, rng.choice(names))
        if len(array):
            extremes = [-(2**31), -1, 0, 1, 6, 11, 12, 200_000, 2**31 - 1]
            array[rng.randrange(len(array))] = rng.choice(extremes)
    transform, degree = rng.choice(
        [
            (lambda: polysparse.expand(X, 3), 3),
            (lambda: PolynomialFeatures(2).fit_transform(X), 2),
            (lambda: sparse.csr_array(PolynomialOperator(X) @ np.eye(36)), 2),
            (lambda: sparse.csr_array(PolynomialOperator(X).T @ np.eye(12)).T, 2),
            (lambda: ObservedPolynomialFeatures(2).fit_transform(X), None),
            (lambda: HashedPolynomialFeatures(2, n_columns=32).fit_transform(X), None),
        ]
    )
    try:
        result = transform()
    except REFUSALS:
        return REFUSED
    dense = X.toarray()  # not malformed, so SciPy can read it, too
    if degree is None:
        return SAME if result.shape[0] == len(dense) else WRONG
    expected = polysparse.expand(dense.astype(result.dtype), degree)
    return SAME if np.array_equal(result.toarray(), expected) else WRONG


def mutated_text(rng: random.Random, folder: Path) -> str:
    """Change some bytes of an svmlight file and expand it."""
    lines = [
        f"{rng.randint(-1, 1)} "
        + " ".join(f"{j}:{rng.random():.3g}" for j in sorted(rng.sample(range(1, 9), 4)))
        for _ in range(8)
    ]
    text = bytearray("\n".join(lines).encode() + b"\n")
    for _ in range(rng.choice([1, 2, 8])):
        text[rng.randrange(len(text))] = rng.choice(b" \n:#-.0159eqNx\x00\xff")
    (folder / "in.svm").write_bytes(bytes(text))
    command = ["expand", str(folder / "in.svm"), str(folder / "out"), "--quiet", "--force"]
    code = cli.main([*command, "--n-features", "1000000", "--one-based"])
    if code:
        return REFUSED if code in (1, 2) else WRONG
    n_rows = polysparse.load(folder / "out").shape[0]
    return SAME if n_rows <= text.count(b"\n") + 1 else WRONG  # lines may have been cut in two


def damaged_store(rng: random.Random, folder: Path) -> str:
    """Change, cut or lengthen a file of a store and read it part by part."""
    X, store = matrix(rng), folder / "store"
    sparse.save_npz(folder / "in.npz", X)
    if cli.main(["expand", str(folder / "in.npz"), str(store), "--degree", "3", "--quiet"]):
        return WRONG
    damage(rng, rng.choice(sorted(store.iterdir())))
    try:
        parts = [part for _, part, _ in polysparse.iter_load(store)]
    except REFUSALS:
        return REFUSED
    whole = sparse.vstack(parts, format="csr")
    return SAME if same_arrays(whole, polysparse.expand(X, 3)) else WRONG


def damaged_vocabulary(rng: random.Random, folder: Path) -> str:
    """Change, cut or lengthen the file of a fitted transformer and load it."""
    X, path = matrix(rng), folder / "saved"
    poly = ObservedPolynomialFeatures(2, min_count=2).fit(X)
    poly.save(path)
    damage(rng, path)
    try:
        again = ObservedPolynomialFeatures.load(path)
    except REFUSALS:
        return REFUSED
    return SAME if np.array_equal(again.columns_, poly.columns_) else WRONG


def damaged_model(rng: random.Random, folder: Path) -> str:
    """Change, cut or lengthen the file of a fitted model and load it."""
    X, path = matrix(rng), folder / "saved"
    columns = rng.choice(["all", "observed", HashedPolynomialFeatures(n_columns=64)])
    model = PolynomialRidge(columns=columns).fit(X, np.arange(X.shape[0]))
    model.save(path)
    damage(rng, path)
    try:
        again = polysparse.load_model(path)
    except REFUSALS:
        return REFUSED
    return SAME if np.array_equal(again.predict(X), model.predict(X)) else WRONG


def damage(rng: random.Random, path: Path) -> None:
    """Change some bytes of a file, cut it off, or append to it."""
    content = bytearray(path.read_bytes())
    kind = rng.choice(["change", "change", "zero", "cut", "append"])
    if kind == "change":
        for _ in range(rng.choice([1, 3])):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == "zero":
        start = rng.randrange(len(content))
        content[start : start + 16] = bytes(len(content[start : start + 16]))
    elif kind == "cut":
        del content[rng.randrange(len(content)) :]
    else:
        content += bytes(rng.randrange(1, 20))
    path.write_bytes(bytes(content))


def killed_run(rng: random.Random, folder: Path) -> str:
    """Kill runs over an older output at any moment; a reader sees the old or the new, whole."""
    old, new = matrix(rng), matrix(rng, n_rows=4000)
    out = folder / rng.choice(["out", "out.npz"])
    expected = {}
    for name, X in {"old": old, "new": new}.items():
        sparse.save_npz(folder / f"{name}.npz", X)
        expected[name] = polysparse.expand(X, 3)
    program = [sys.executable, "-m", "polysparse", "expand", "--degree", "3", "--quiet", "--force"]
    subprocess.run([*program, folder / "old.npz", out], check=True)
    for _ in range(3):
        run = subprocess.Popen(
            [*program, folder / "new.npz", out],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(rng.uniform(0.0, 0.8))
        run.kill()
        run.wait()
        found = polysparse.load(out) if out.suffix == "" else sparse.load_npz(out)
        if not any(same_arrays(found, each) for each in expected.values()):
            return WRONG
    subprocess.run([*program, folder / "new.npz", out], check=True)
    found = polysparse.load(out) if out.suffix == "" else sparse.load_npz(out)
    return SAME if same_arrays(found, expected["new"]) else WRONG


def killed_learner(rng: random.Random, folder: Path) -> str:
    """Kill an online learner at any moments, and go on; the model is that of a run in peace."""
    X = matrix(rng, n_rows=3000)
    y = [rng.randrange(2) for _ in range(X.shape[0])]
    dump_svmlight_file(X, y, str(folder / "in.svm"), zero_based=False)
    command = ["learn", str(folder / "in.svm"), "--quiet", "--hashed", "2^12", "--every", "20"]
    command += ["--passes", "5", "--resume", "-o"]
    begin = time.perf_counter()
    os.waitpid(forked([*command, str(folder / "whole.npz")]), 0)
    took, out = time.perf_counter() - begin, folder / "out.npz"
    for _ in range(4):
        child = forked([*command, str(out)])
        time.sleep(rng.uniform(0.0, took))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if os.waitpid(forked([*command, str(out)]), 0)[1]:
        return WRONG
    with np.load(folder / "whole.npz") as a, np.load(out) as b:
        names = set(a.files) - {"description"}  # it has how long the run took
        are_same = a.files == b.files and all(np.array_equal(a[n], b[n]) for n in names)
    return SAME if are_same else WRONG


def forked(command: list[str]) -> int:
    """Run a command in a child, which has imported everything; return its process id."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = cli.main(command)
        finally:
            os._exit(status)
    return child


def threads_and_forks(rng: random.Random, folder: Path) -> str:
    """Several threads learn at once, and the process forks while they do."""
    batches = [matrix(rng) for _ in range(12)]
    poly, outcomes = ObservedPolynomialFeatures(2, min_count=2), []

    def learn(own: list[sparse.csr_array]) -> None:
        for X in own:
            poly.partial_fit(X)
            outcomes.append(poly.transform(X).shape[0] == X.shape[0])

    threads = [threading.Thread(target=learn, args=(batches[i::3],)) for i in range(3)]
    for thread in threads:
        thread.start()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if not hasattr(poly, "_observed") or len(poly.columns_) >= 0 else 1)
    status = os.waitpid(child, 0)[1]
    for thread in threads:
        thread.join()
    whole = ObservedPolynomialFeatures(2, min_count=2).fit(sparse.vstack(batches, format="csr"))
    is_right = np.array_equal(poly.columns_, whole.columns_) and all(outcomes) and not status
    return SAME if is_right and np.array_equal(poly.counts_, whole.counts_) else WRONG


Trial = Callable[[random.Random, Path], str]


def hard_numbers(rng: random.Random, folder: Path) -> str:
    """Fit a model to hard numbers, and judge it in extended precision."""
    found = solver_fuzz.judge(solver_fuzz.problem(rng.randrange(2**31)))
    if found not in solver_fuzz.GOOD:
        raise AssertionError(found)
    return SAME if found == "true" else REFUSED


KINDS: dict[str, tuple[Trial, int]] = {  # and how many trials a process makes
    "corrupted matrix": (corrupted_matrix, 300),
    "mutated text": (mutated_text, 60),
    "damaged store": (damaged_store, 60),
    "damaged vocabulary": (damaged_vocabulary, 100),
    "damaged model": (damaged_model, 100),
    "killed run": (killed_run, 2),
    "killed learner": (killed_learner, 2),
    "threads and forks": (threads_and_forks, 10),
    "hard numbers": (hard_numbers, 50),
}


# ---------------------------------------------------------------------------------------- the soak


def run_trials(kind: str, seed: int, n_trials: int) -> None:
    """Make trials in this process, and print how each ended."""
    trial, _ = KINDS[kind]
    for i in range(n_trials):
        folder = Path(tempfile.mkdtemp(prefix="polysparse-soak-"))
        try:
            outcome = trial(random.Random(seed + i), folder)
        except Exception as error:
            outcome = WRONG
            print(f"seed {seed + i}: {error!r}", file=sys.stderr)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{seed + i} {outcome}", flush=True)


def soak(seconds: float, seed: int, only: str | None) -> Counter[tuple[str, str]]:
    """Start processes that make trials, one after the other, until the time is over."""
    counts: Counter[tuple[str, str]] = Counter()
    end, kinds = time.monotonic() + seconds, [only] if only else list(KINDS)
    while time.monotonic() < end:
        for kind in kinds:
            n_trials = KINDS[kind][1]
            command = [sys.executable, "-W", "ignore", __file__, "--only", kind]
            command += ["--seed", str(seed), "--trials", str(n_trials)]
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=600
            )
            lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
            counts.update((kind, outcome) for _, outcome in lines)
            for trial, outcome in lines:
                if outcome == WRONG:
                    print(f"WRONG: {kind}, seed {trial}", done.stderr[-500:], flush=True)
            if done.returncode:
                counts[kind, CRASH] += 1
                at = seed + len(lines)
                print(f"CRASH: {kind}, seed {at}: status {done.returncode}", done.stderr[-500:])
            seed += n_trials
    return counts


def main() -> int:
    """Make the trials, and print how many ended how."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=list(KINDS))
    parser.add_argument("--trials", type=int, help="make so many of --only in this process")
    options = parser.parse_args()
    if options.trials:
        run_trials(options.only, options.seed, options.trials)
        return 0
    counts = soak(options.seconds, options.seed, options.only)
    print(f"{'':<20}" + "".join(f"{outcome:>10}" for outcome in (SAME, REFUSED, WRONG, CRASH)))
    for kind in KINDS:
        row = [counts[kind, outcome] for outcome in (SAME, REFUSED, WRONG, CRASH)]
        print(f"{kind:<20}" + "".join(f"{n:>10,}" for n in row))
    return int(any(counts[kind, bad] for kind in KINDS for bad in (WRONG, CRASH)))


if __name__ == "__main__":
    sys.exit(main())
