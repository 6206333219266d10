"""The paper's experiments: time against density, dimension and rows, sparse against dense.

`Sweep` says what is measured, `measure` measures it, `paper_page` says what the numbers mean.
"""

from __future__ import annotations

import csv
import ctypes
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures

from polysparse.basis import MonomialBasis
from polysparse.columns import AllColumns
from polysparse.expansion import expand
from polysparse.planning import ExpansionPlan

SPARSE, DENSE, SKLEARN, FILL = "sparse", "dense", "scikit-learn", "fill"
REUSED, FRESH = "reused", "fresh"
DENSITY = 0.2  # wherever it is not what is varied

# Results are compared on as many leading rows as have a dense expansion of this size.
CHECKED_BYTES = 10**9

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Point:
    """Random N x D matrices of density d, to be expanded to degree K with all lower degrees.

    Every row has exactly d D stored values, as in the paper's analysis.
    """

    K: int
    N: int
    D: int
    d: float

    @property
    def row_length(self) -> int:
        """Stored values in each row."""
        return round(self.d * self.D)

    def plan(self, side: str) -> ExpansionPlan:
        """What that side will write, known without a matrix."""
        lengths = None if side in (DENSE, FILL) else ((self.row_length, self.N),)
        return ExpansionPlan(
            AllColumns(MonomialBasis(self.D, self.K)), self.N, np.dtype(np.float64), lengths
        )

    def matrix(self, repetition: int) -> Any:
        """One of the matrices of this point, the same in every run."""
        n = self.row_length
        rng = np.random.default_rng([self.K, self.N, self.D, n, repetition])
        columns = np.argpartition(rng.random((self.N, self.D)), n - 1, axis=1)[:, :n]
        columns = np.sort(columns, axis=1).astype(np.int32)
        offsets = np.arange(0, self.N * n + 1, n, dtype=np.int32)
        values = rng.uniform(0.5, 1.5, self.N * n)
        return sparse.csr_array((values, columns.ravel(), offsets), shape=(self.N, self.D))


@dataclass(frozen=True)
class Sweep:
    """Points that differ in one parameter alone."""

    figure: str
    varied: str
    points: tuple[Point, ...]
    sides: tuple[str, ...]
    memory: str = REUSED

    @property
    def K(self) -> int:
        """Degree of all its points."""
        return self.points[0].K

    @property
    def values(self) -> NDArray[np.float64]:
        """The varied parameter at each point."""
        return np.array([getattr(point, self.varied) for point in self.points], dtype=float)


@dataclass(frozen=True)
class Measurement:
    """One timed call."""

    sweep: Sweep
    point: Point
    side: str
    repetition: int
    seconds: float

    def row(self) -> tuple[Any, ...]:
        """As a row of the CSV file."""
        at = self.point
        where = self.sweep.figure, at.K, self.side, at.N, at.D, at.d, self.repetition + 1
        return *where, f"{self.seconds:.9f}", self.sweep.memory


COLUMNS = "figure", "K", "side", "N", "D", "d", "repetition", "seconds", "memory"


# ------------------------------------------------------------------------------------------ sizes

EVERY_SIDE = SPARSE, DENSE, SKLEARN
DENSITIES = 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0


def vary(
    figure: str,
    varied: str,
    base: Point,
    values: Iterable[float],
    sides: tuple[str, ...] = EVERY_SIDE,
    memory: str = REUSED,
) -> Sweep:
    """Sweep of a base point, over values of one of its parameters."""
    points = tuple(replace(base, **dict[str, Any]({varied: value})) for value in values)
    return Sweep(figure, varied, points, sides, memory)


def plan_sweeps(*, quick: bool) -> list[Sweep]:
    """Everything that is measured. A quick run has every other point, of half the rows."""
    part, step = (2, -2) if quick else (1, -1)

    def thin(values: Sequence[float]) -> list[float]:
        return sorted(values[::step])

    def rows(n: int) -> int:
        return n // part

    by_density = {2: Point(2, rows(2000), 200, DENSITY), 3: Point(3, rows(600), 80, DENSITY)}
    planned = []
    for K, base in by_density.items():
        sides = (*EVERY_SIDE, FILL)
        planned += [
            vary("fixed cost", "N", Point(K, 1, 1, 1.0), [1]),
            vary("1", "d", base, thin(DENSITIES), sides),
            vary("fresh", "d", base, thin(DENSITIES[5:]), (SPARSE, DENSE, FILL), FRESH),
        ]
    thousands = [rows(n) for n in range(1000, 10_001, 1000)]
    return [
        *planned,
        vary("1", "D", Point(2, rows(2000), 0, DENSITY), thin(range(25, 301, 25))),
        vary("1", "D", Point(3, rows(300), 0, DENSITY), thin(range(20, 121, 10))),
        vary("1", "N", Point(2, 0, 200, DENSITY), thin([rows(n) for n in range(400, 4001, 400)])),
        vary("1", "N", Point(3, 0, 80, DENSITY), thin([rows(n) for n in range(100, 1001, 100)])),
        vary("2", "D", Point(2, rows(10_000), 0, DENSITY), thin(range(40, 401, 40)), (SPARSE,)),
        vary("2", "D", Point(3, rows(400), 0, DENSITY), thin(range(40, 401, 40)), (SPARSE,)),
        vary("2", "N", Point(2, 0, 400, DENSITY), thin(thousands), (SPARSE,)),
        vary("2", "N", Point(3, 0, 100, DENSITY), thin(thousands), (SPARSE,)),
    ]


# --------------------------------------------------------------------------------------- measuring


def measure(sweeps: Sequence[Sweep], n_matrices: int, progress: Progress) -> Iterator[Measurement]:
    """Time every side of every point, round after round, one matrix a point and round.

    Rounds spread whatever else the machine does over all points alike. Sweeps in fresh memory come
    last, because they give back what the others reuse.
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
    """About how long a point takes, in bytes written."""
    weights = {SPARSE: 1, DENSE: 1, SKLEARN: 7, FILL: 1}
    written = sum(weights[side] * point.plan(side).nbytes for side in sweep.sides)
    slower = 5 if sweep.memory == FRESH else 1
    return 10**6 + 500 * point.N * point.D + slower * written


def _work_of_check(point: Point) -> float:
    return 16 * min(CHECKED_BYTES, point.plan(DENSE).nbytes)


def _label(sweep: Sweep, point: Point, repetition: int, n_matrices: int) -> str:
    value = getattr(point, sweep.varied)
    return f"K={point.K}, {sweep.varied}={value:g}: matrix {repetition + 1} of {n_matrices}"


def measure_point(sweep: Sweep, point: Point, repetition: int) -> Iterator[Measurement]:
    """Time all sides on one matrix, each round beginning with another side.

    All run on one thread, so that their processor time is what they take on an idle machine.
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
    """What is timed, by side. The dense matrix is made here, outside of the timing."""
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
    """Raise if the results differ: dense in any bit, scikit-learn by more than rounding.

    Its CSR path multiplies (a b) c, and all others, its own dense path too, a (b c).
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
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # of glibc's mallopt

# Without these nothing is measured in fresh memory, and what is reused is up to the system.
CONTROLS_MEMORY = hasattr(_LIBC, "mallopt") and hasattr(_LIBC, "malloc_trim")


@contextmanager
def reused_memory(n_bytes: int) -> Iterator[None]:
    """Let arrays of any size reuse memory that was touched before, so much of it to begin with.

    Else glibc recycles arrays of up to 32 MB only; above, every page is fetched from the system
    anew, which would be a step in the middle of each curve.
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
        _LIBC.mallopt(_MMAP_THRESHOLD, 2**25)  # both are where glibc takes itself
        _LIBC.mallopt(_TRIM_THRESHOLD, 2**26)
        give_back_memory()


def give_back_memory(touched: int = 0) -> None:
    """Return all free memory to the system: what is allocated next is fresh.

    So many bytes are touched before: a virtual machine may get its memory from the host on first
    use only, and whoever needs most would pay for that.
    """
    np.empty(touched // 8).fill(0.0)
    _LIBC.malloc_trim(0)


# --------------------------------------------------------------------------------------- the whole


def run(out: Path, *, quick: bool, progress: Progress) -> Path:
    """Measure, and write the figures, the measurements and the page into a folder.

    Parameters
    ----------
    out : Path
        Made if need be. Files of an earlier run are replaced, at the very end.
    quick : bool
        Fewer and smaller matrices: less than a minute instead of a few.
    progress : callable
        Called with the fraction done, between 0 and 1, and what is being measured.

    Returns
    -------
    Path
        Of the page, paper.md.
    """
    shown = out.name if out.is_absolute() else out.as_posix()
    command = f"polysparse paper{' --quick' if quick else ''} --out {shown}"
    n_matrices = 5 if quick else 20
    return reproduce(out, plan_sweeps(quick=quick), n_matrices, command, progress)


def reproduce(
    out: Path, sweeps: Sequence[Sweep], n_matrices: int, command: str, progress: Progress
) -> Path:
    """Measure the sweeps given, and write all files."""
    try:
        from polysparse import paper_page
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ImportError(
            "The figures are drawn by matplotlib, which is not installed: "
            "pip install 'polysparse[cli]'"
        ) from error
    out.mkdir(parents=True, exist_ok=True)
    if not CONTROLS_MEMORY:
        sweeps = [sweep for sweep in sweeps if sweep.memory == REUSED]
    largest = max(point.plan(SPARSE).nbytes for sweep in sweeps for point in sweep.points)
    with reused_memory(2 * largest):
        measured = list(measure(sweeps, n_matrices, progress))
    aside = Path(tempfile.mkdtemp(prefix=".paper-", dir=out))
    try:
        write_csv(aside / "paper.csv", measured)
        paper_page.write(aside, measured, command)
        # The page comes last: it is never older than what it shows.
        for file in sorted(aside.iterdir(), key=lambda file: file.suffix == ".md"):
            file.replace(out / file.name)
    finally:
        shutil.rmtree(aside)
    return out / "paper.md"


def write_csv(path: Path, measured: Iterable[Measurement]) -> None:
    """Every measurement, in the order in which it was made."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(measurement.row() for measurement in measured)
