"""A pass of an online learner over interactions, against Vowpal Wabbit, and its progressive loss.

Vowpal Wabbit reads its cache, which is its fastest input, and hashes to as many columns. Passes run
in one process, in turn; the best of several times counts. It is left out where it is not installed:
pip install vowpalwabbit. Losses are progressive: of each row before it was learned from. Both sides
use their defaults alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_svmlight_file

import measure
from bench_core import DATA, Reached, Report, say
from polysparse import PolynomialFTRLClassifier, cli
from polysparse.machine import threads_for

BITS = 18
TARGET_SPEED = {1: 3.0, 2: 4.0}
TARGET_LOSS = {"a9a": 0.33, "agaricus": 0.0115, "breast cancer": 0.26}
WIDTHS = range(18, 27, 2)


def sets(data: Path) -> Iterator[tuple[str, Any, Any]]:
    """The rows of each set, in their order."""
    for name, file in (("a9a", "a9a"), ("agaricus", "agaricus.txt.train")):
        if (data / file).exists():
            yield name, *load_svmlight_file(str(data / file))
        else:
            say(f"{name} is left out: there is no {data / file}; name its folder with --data")
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", sparse.csr_array(X), y
    rng = np.random.default_rng(0)
    logs = 1.5 * rng.standard_normal((20_000, 10))
    score = logs[:, 0] - logs[:, 1] + logs[:, 2] * logs[:, 3] / 2
    y = score / 2 + rng.logistic(size=len(logs)) > 0
    yield "lognormal", sparse.csr_array(np.exp(logs)), y.astype(int)


def learner(**parameters: Any) -> PolynomialFTRLClassifier:
    """Return the model that is measured."""
    return PolynomialFTRLClassifier(**{"n_columns": 2**BITS, **parameters})


# ------------------------------------------------------------------------------ Vowpal Wabbit


def write_vw(X: Any, y: Any, path: Path) -> None:
    """Write rows as text for Vowpal Wabbit."""
    X, labels = sparse.csr_array(X), np.where(y == np.max(y), 1, -1)
    with path.open("w") as file:
        for r, label in enumerate(labels):
            row = slice(X.indptr[r], X.indptr[r + 1])
            pairs = zip(X.indices[row], X.data[row], strict=True)
            file.write(f"{label} |f {' '.join(f'{j}:{v:g}' for j, v in pairs)}\n")


def vw_pass(text: Path, how: str, *, is_cached: bool = True) -> float:
    """Learn from a file, by way of its cache if there is one, and return the progressive loss."""
    from vowpalwabbit import pyvw

    cache = f"--cache_file {text}{how.replace(' ', '')}.cache" if is_cached else ""
    options = f"--interactions ff -b {BITS} --loss_function logistic --quiet {how}"
    vw = pyvw.Workspace(f"-d {text} {cache} {options}")
    loss = vw.get_sum_loss() / vw.get_weighted_examples()
    vw.finish()
    return float(loss)


def has_vw() -> bool:
    """Whether Vowpal Wabbit is installed."""
    try:
        import vowpalwabbit  # noqa: F401
    except ImportError:
        say("Vowpal Wabbit is left out: pip install vowpalwabbit")
        return False
    return True


# ---------------------------------------------------------------------------------- measures


def time_passes(X: Any, y: Any, folder: Path | None, repeats: int) -> dict[str, float]:
    """Times of a pass, by what learns."""
    sides: dict[str, Callable[[], Any]] = {
        f"{name}, {n_jobs} thread(s)": partial(learner(n_jobs=n_jobs, **how).fit, X, y)
        for n_jobs in (1, 2)
        for name, how in (("defaults", {}), ("learning_rate=0.02", {"learning_rate": 0.02}))
    }
    if folder is not None:
        text = folder / "a9a.txt"
        write_vw(X, y, text)
        for name, how in (("VW, ftrl", "--ftrl"), ("VW, gd", "")):
            vw_pass(text, how)  # writes the cache
            sides[name] = partial(vw_pass, text, how)
    return measure.best_times(sides, repeats=repeats)


def main() -> None:
    """Measure everything, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="no timing")
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has a9a, agaricus")
    parser.add_argument("--repeats", type=int, default=5, help="rounds of which the best counts")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args()
    report, reached = Report(options.markdown), []
    found = {name: (X, y) for name, X, y in sets(options.data)}
    print(measure.describe_machine(threads_for(None, 10**9)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if has_vw() else None
        lines = []
        for name, (X, y) in found.items():
            say(f"loss: {name}")
            loss = learner().fit(X, y).progressive_loss_
            theirs = []
            if folder is not None:
                text = folder / name.replace(" ", "-")
                write_vw(X, y, text)
                theirs = [vw_pass(text, how) for how in ("--ftrl", "")]
            most = TARGET_LOSS.get(name, min(theirs, default=np.inf))
            met = loss <= most
            shown = [f"{each:.4f}" for each in theirs] or ["", ""]
            lines.append([name, report.mark(f"{loss:.4f}", met), *shown])
            target = f"at most {most:.4g}" if np.isfinite(most) else "that of Vowpal Wabbit"
            reached.append(Reached(f"progressive log loss, {name}", target, f"{loss:.4f}", met))
        report.heading("Progressive log loss, degree 2, all defaults")
        report.table("rows | polysparse | Vowpal Wabbit, ftrl | Vowpal Wabbit, gd", lines)
        if "a9a" in found and not options.quick:
            say("times")
            times = time_passes(*found["a9a"], folder, options.repeats)
            theirs_s = times.get("VW, ftrl", float("nan"))
            report.heading("A pass over a9a, degree 2, 2^18 columns")
            report.table(
                "learner | ms | against VW's ftrl",
                [[side, f"{1e3 * s:.1f}", f"{theirs_s / s:.2f}x"] for side, s in times.items()],
            )
            for n_jobs, least in TARGET_SPEED.items():
                if folder is None:
                    break
                ratio = theirs_s / times[f"defaults, {n_jobs} thread(s)"]
                what = f"a pass over a9a against VW's ftrl, {n_jobs} thread(s)"
                reached.append(Reached(what, f"{least:g}x", f"{ratio:.2f}x", ratio >= least))
            reached += from_text(report, *found["a9a"], folder, options.repeats)
            reached += memory(report)
            widths(report, *found["a9a"], options.repeats)
    report.reached(reached)


def from_text(report: Report, X: Any, y: Any, folder: Path | None, repeats: int) -> list[Reached]:
    """Report the time from svmlight text to a model, against Vowpal Wabbit from its text."""
    if folder is None:
        return []
    say("from text")
    text, svmlight = folder / "a9a-plain.txt", folder / "a9a.svm"
    write_vw(X, y, text)
    signs = np.where(y == np.max(y), 1, -1).astype(np.float64)
    dump_svmlight_file(X, signs, str(svmlight), zero_based=False)
    command = ["learn", str(svmlight), "-o", str(folder / "model.npz"), "--force", "--quiet"]
    command += ["--hashed", f"2^{BITS}", "--one-based", "--classes=-1,1", "--jobs", "1"]
    times = measure.best_times(
        {
            "polysparse learn, 1 thread": partial(learn_text, command),
            "VW, gd": partial(vw_pass, text, "", is_cached=False),
        },
        repeats=repeats,
    )
    ours, theirs = times.values()
    report.heading("a9a from text to a model")
    report.table("learner | ms", [[side, f"{1e3 * s:.1f}"] for side, s in times.items()])
    what = "a9a from text to a model, 1 thread, against VW's gd from its text"
    return [Reached(what, "2x", f"{theirs / ours:.2f}x", theirs / ours >= 2)]


def learn_text(command: list[str]) -> None:
    """Run the command `learn`."""
    if cli.main(command) != 0:
        raise SystemExit(f"{command} failed")


PEAK = """
import sys
import numpy as np
from scipy import sparse
from polysparse import PolynomialFTRLClassifier
rng = np.random.default_rng(0)
X = sparse.random_array((200_000, 1000), density=0.02, rng=rng, format="csr")
y = rng.integers(0, 2, X.shape[0])
how = {"learning_rate": 0.02, "n_columns": 2 ** int(sys.argv[1])}
PolynomialFTRLClassifier(n_columns=2, learning_rate=0.02).fit(X[:64], y[:64])
def kib(name):
    return next(int(s.split()[1]) for s in open("/proc/self/status") if s.startswith(name))
open("/proc/self/clear_refs", "w").write("5")  # the peak begins here
before = kib("VmRSS")
PolynomialFTRLClassifier(**how).fit(X, y)
print(1024 * (kib("VmHWM") - before))
"""


def memory(report: Report) -> list[Reached]:
    """Report the peak memory of a fit beyond X, and how much of it is not z and n."""
    say("memory")
    lines, most = [], 0
    for bits in (18, 22, 24):
        command = [sys.executable, "-c", PEAK, str(bits)]
        peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        most = max(most, peak - 8 * 2**bits)
        lines.append([f"2^{bits}", f"{peak / 1e6:.0f}", f"{8 * 2**bits / 1e6:.0f}"])
    report.heading("Peak memory of a fit in addition to X, MB (200,000 rows of 20 values)")
    report.table("columns | peak | of which z and n", lines)
    return [
        Reached("memory beyond 8 bytes per column", "100 MB", f"{most / 1e6:.0f} MB", most < 1e8)
    ]


def widths(report: Report, X: Any, y: Any, repeats: int) -> None:
    """Report how the speed falls as columns leave the caches."""
    say("widths")
    how = {"learning_rate": 0.02, "n_jobs": 1}
    times = measure.best_times(
        {bits: partial(learner(n_columns=2**bits, **how).fit, X, y) for bits in WIDTHS},
        repeats=repeats,
    )
    report.heading("Rows per second of a9a, degree 2, one thread")
    header = " | ".join(f"2^{bits} columns" for bits in WIDTHS)
    report.table(header, [[f"{X.shape[0] / times[bits]:,.0f}" for bits in WIDTHS]])


if __name__ == "__main__":
    main()
