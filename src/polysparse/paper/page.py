"""The page about the paper's experiments: fits, crossovers, figures and text."""

from __future__ import annotations

import platform
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from polysparse.machine import format_bytes, usable_cores
from polysparse.paper.experiments import (
    CHECKED_BYTES,
    DENSE,
    FILL,
    SKLEARN,
    SPARSE,
    Measurement,
    Sweep,
)

PAPER_CROSSOVERS = {2: 0.67, 3: 0.77}

# A point enters a fit if it takes this many times as long as a call with next to nothing to expand.
TIMES_FIXED_COST = 10

STYLE = {
    SPARSE: {"color": "tab:blue", "marker": "o", "zorder": 3},
    DENSE: {"color": "tab:red", "marker": "s", "zorder": 2},
    SKLEARN: {"color": "0.55", "marker": "^", "zorder": 1},
}
LABELS = {SPARSE: "sparse", DENSE: "dense (Algorithm 1)", SKLEARN: "scikit-learn, CSR"}
AXES = {"d": "density $d$", "D": "dimension $D$", "N": "rows $N$"}
BACKGROUND = {"color": "white", "alpha": 0.8, "pad": 1, "lw": 0}
RC: dict[Any, Any] = {
    "svg.hashsalt": "polysparse",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "lines.markersize": 3.5,
    "lines.linewidth": 1.3,
}

Floats = NDArray[np.float64]


class Results:
    """Times by sweep and side."""

    def __init__(self, measured: Sequence[Measurement]) -> None:
        self.sweeps = list(dict.fromkeys(m.sweep for m in measured))
        self.n_matrices = 1 + max(m.repetition for m in measured)
        self._seconds: dict[Any, dict[int, float]] = defaultdict(dict)
        for m in measured:
            self._seconds[m.sweep, m.point, m.side][m.repetition] = m.seconds

    def times(self, sweep: Sweep, side: str) -> Floats:
        """Return seconds as an array of points by matrices."""
        rows = [self._seconds[sweep, point, side] for point in sweep.points]
        return np.array([[row[i] for i in range(self.n_matrices)] for row in rows])

    def medians(self, sweep: Sweep, side: str) -> Floats:
        """Return the median seconds of each point."""
        median: Floats = np.median(self.times(sweep, side), axis=1)
        return median

    def select(self, figure: str, varied: str | None = None) -> list[Sweep]:
        """Return the sweeps of a figure, sorted by degree."""
        found = [s for s in self.sweeps if s.figure == figure and varied in (None, s.varied)]
        return sorted(found, key=lambda sweep: sweep.K)

    def fixed_cost(self, K: int, side: str) -> float:
        """Return the median seconds of a call on a matrix of one element."""
        return next(float(self.medians(s, side)[0]) for s in self.select("fixed cost") if s.K == K)


# ---------------------------------------------------------------------------- exponents, crossovers


@dataclass(frozen=True)
class Fit:
    """The power law y ~ x**exponent, fitted by least squares to the logarithms."""

    exponent: float
    error: float
    first: float
    last: float
    n_points: int


def fit_exponent(x: Floats, y: Floats) -> Fit | None:
    """Fit the exponent and its standard error; None for fewer than three points."""
    if len(x) < 3:
        return None
    u, v = np.log(x) - np.log(x).mean(), np.log(y) - np.log(y).mean()
    exponent = u @ v / (u @ u)
    residuals = v - exponent * u
    error = np.sqrt(residuals @ residuals / (len(x) - 2) / (u @ u))
    return Fit(float(exponent), float(error), float(x[0]), float(x[-1]), len(x))


def crossover(d: Floats, below: Floats, above: Floats) -> float | None:
    """Return where `below` first reaches `above`, interpolating logarithms; None if nowhere."""
    gap = np.log(below) - np.log(above)
    rises = np.flatnonzero((gap[:-1] < 0) & (gap[1:] >= 0))
    if len(rises) == 0:
        return None
    i = rises[0]
    return float(np.interp(0.0, gap[i : i + 2], d[i : i + 2]))


@dataclass(frozen=True)
class Crossing:
    """Where sparse and dense take equally long, with the numbers that explain it."""

    sweep: Sweep
    at: float | None
    quartiles: tuple[float, float] | None
    by_bytes: float | None
    cost_ratio: float | None


def find_crossing(results: Results, sweep: Sweep) -> Crossing:
    """Find the crossing of the medians; the quartiles are those of the single matrices."""
    d = sweep.values
    sparse, dense = results.times(sweep, SPARSE), results.times(sweep, DENSE)
    at = crossover(d, np.median(sparse, axis=1), np.median(dense, axis=1))
    each = [crossover(d, sparse[:, i], dense[:, i]) for i in range(results.n_matrices)]
    found = [value for value in each if value is not None]
    quartiles = None
    if 2 * len(found) > len(each):
        low, high = np.quantile(found, [0.25, 0.75])
        quartiles = float(low), float(high)
    by_bytes = crossover(d, *(_planned(sweep, side, "nbytes") for side in (SPARSE, DENSE)))
    cost_ratio = None
    if at is not None:
        outputs = [_planned(sweep, side, "nnz") for side in (DENSE, SPARSE)]
        cost_ratio = float(np.exp(np.interp(at, d, np.log(outputs[0] / outputs[1]))))
    return Crossing(sweep, at, quartiles, by_bytes, cost_ratio)


def _planned(sweep: Sweep, side: str, what: str) -> Floats:
    """Return an attribute of the plan of each point."""
    return np.array([getattr(point.plan(side), what) for point in sweep.points], dtype=float)


# ---------------------------------------------------------------------------------------- figures


def draw_figure_1(results: Results) -> Figure:
    """Draw all sides, with degrees as rows and varied parameters as columns, as in the paper."""
    sweeps = results.select("1")
    degrees, columns = sorted({s.K for s in sweeps}), list(AXES)
    figure = Figure(figsize=(10, 2.9 * len(degrees)), layout="constrained")
    axes = figure.subplots(len(degrees), len(columns), squeeze=False)
    for sweep in sweeps:
        ax = axes[degrees.index(sweep.K), columns.index(sweep.varied)]
        _draw_sweep(ax, results, sweep)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure


def _draw_sweep(ax: Any, results: Results, sweep: Sweep) -> None:
    """Draw medians with quartiles, on linear axes whose limits suit sparse and dense."""
    top = 0.0
    for side, style in STYLE.items():
        low, middle, high = 1e3 * np.quantile(results.times(sweep, side), [0.25, 0.5, 0.75], axis=1)
        ax.plot(sweep.values, middle, label=LABELS[side], **style)
        ax.fill_between(sweep.values, low, high, color=style["color"], alpha=0.25, lw=0)
        if side != SKLEARN:
            top = max(top, 1.15 * high.max())
        elif middle.max() > top:
            text = f"scikit-learn: up to {middle.max():.3g} ms"
            ax.text(
                0.02, 0.98, text, transform=ax.transAxes, va="top", color="0.4", bbox=BACKGROUND
            )
    at = find_crossing(results, sweep).at if sweep.varied == "d" else None
    if at is not None:
        ax.axvline(at, color="0.3", lw=0.8, ls=":")
        ax.annotate(f"{at:.2f} ", (at, 0.02 * top), ha="right", color="0.3")
    ax.set(xlim=(0, None), ylim=(0, top), xlabel=AXES[sweep.varied], ylabel="time (ms)")
    ax.set_title(f"$K={sweep.K}$,  {_held(sweep)}")


def _held(sweep: Sweep) -> str:
    """Return the parameters that a sweep does not vary, as text."""
    point = sweep.points[0]
    shown = {"N": f"N={point.N:,}", "D": f"D={point.D:,}", "d": f"d={point.d:g}"}
    held = (text.replace(",", "{,}") for name, text in shown.items() if name != sweep.varied)
    return ",  ".join(f"${text}$" for text in held)


def draw_figure_2(results: Results) -> Figure:
    """Draw the sparse side alone, against D and against N."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    lines = {2: "--", 3: ":"}
    for ax, varied in zip(figure.subplots(1, 2), ("D", "N"), strict=True):
        for sweep in results.select("2", varied):
            low, middle, high = 1e3 * np.quantile(
                results.times(sweep, SPARSE), [0.25, 0.5, 0.75], axis=1
            )
            style = {**STYLE[SPARSE], "ls": lines[sweep.K], "marker": "os"[sweep.K - 2]}
            ax.plot(sweep.values, middle, label=f"$K={sweep.K}$,  {_held(sweep)}", **style)
            ax.fill_between(sweep.values, low, high, color="tab:blue", alpha=0.2, lw=0)
        ax.set(xlim=(0, None), ylim=(0, None), xlabel=AXES[varied], ylabel="time (ms)")
        ax.legend(frameon=False, loc="upper left", handlelength=3)
    return figure


def write(folder: Path, measured: Sequence[Measurement], command: str) -> None:
    """Write both figures and the page."""
    results = Results(measured)
    with mpl.rc_context(RC):
        for name, draw in {"figure1": draw_figure_1, "figure2": draw_figure_2}.items():
            figure = draw(results)
            figure.savefig(folder / f"paper-{name}.svg", metadata={"Date": None})
            figure.savefig(folder / f"paper-{name}.png", dpi=160)
    (folder / "paper.md").write_text(page(results, command), encoding="utf-8")


# ------------------------------------------------------------------------------------------- page


def page(results: Results, command: str) -> str:
    """Return the text of paper.md."""
    n = results.n_matrices
    parts = [
        "# The paper's experiments, reproduced",
        paragraph("""
            Nystrom and Hughes, "Leveraging Sparsity to Speed Up Polynomial Feature Expansions of
            CSR Matrices Using K-Simplex Numbers", measure the time of their sparse expansion and of
            a dense one against density d, dimension D and rows N, each varied alone. Here are the
            same measurements of polysparse, and of scikit-learn beside it. This page and its
            figures are written by the program, with the command at the end of the page; every
            measurement is in [paper.csv](paper.csv)."""),
        "![Time against density, dimension and rows](paper-figure1.svg)",
        paragraph(f"""
            *Figure 1. Sparse (blue), dense (red) and scikit-learn's CSR path (grey), quadratic
            (top) and cubic (bottom). Points are medians of {n} matrices, bands their quartiles. The
            axes are made for sparse and dense; where scikit-learn leaves them, its largest median
            is written in.*"""),
        "![Sparse times alone](paper-figure2.svg)",
        "*Figure 2. The sparse side alone, at d = 0.2, on larger matrices.*",
        "## How it was measured",
        paragraph(f"""
            {n} random matrices a point, float64, d D stored values in every row; all lower degrees
            and the bias are included. All sides run on one thread, and times are processor time,
            user and system: on an idle machine the time that passes, on a busy one without the
            waiting. The sides take turns on each matrix, and rounds go over all points, one matrix
            each, so that whatever else the machine does meets all alike. Making the matrix dense is
            not charged to the dense side. At every point the first matrix's results were compared,
            value by value, outside of the timing: sparse and dense were equal (on the leading rows
            where a dense result would be over {format_bytes(CHECKED_BYTES)}), and scikit-learn's,
            where timed, up to rounding."""),
    ]
    if results.select("fresh"):
        parts += [
            paragraph("""
            Results are written to memory that the process has used before, whatever their size, so
            that no curve has a step where the system begins to hand out new pages. The crossovers
            are given in such fresh memory too, which is what a large result gets by default.""")
        ]
    parts += [*_scaling(results), *_crossovers(results), *_made_by(command)]
    return "\n\n".join(parts) + "\n"


def paragraph(text: str, indent: str = "") -> str:
    """Wrap a text at 100 characters."""
    return textwrap.fill(" ".join(text.split()), 100, subsequent_indent=indent)


def _scaling(results: Results) -> Iterator[str]:
    yield "## How time scales"
    yield paragraph("""
        Exponents, fitted by least squares to the logarithms of the medians, with the standard error
        of the fit. *Of outputs* is the same fit to the exact number of values that are written,
        with all lower degrees: T_K(n) = n(n+1)...(n+K-1)/K! grows as n^K only for large n. *GB/s*
        is the speed at which the result is written, at the first and the last point of the fit:
        where it falls, time grows faster than outputs, and where it rises, slower.""")
    rows = [
        "| side | K | time against | expected | of outputs | measured | fitted over | GB/s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for side, figure, varied in (
        *((SPARSE, figure, varied) for figure, varied in (("1", "d"), ("2", "D"), ("2", "N"))),
        *((DENSE, "1", varied) for varied in AXES),
    ):
        rows += [_scaling_row(results, sweep, side) for sweep in results.select(figure, varied)]
    yield "\n".join(rows)
    costs = ", ".join(
        f"{1e6 * results.fixed_cost(s.K, side):.0f} µs ({side}, K={s.K})"
        for side in (SPARSE, DENSE)
        for s in results.select("fixed cost")
    )
    yield paragraph(f"""
        A fit takes the points whose median is at least {TIMES_FIXED_COST} times that of a call on
        a matrix of one element: {costs}. A call costs that much whatever it expands, so that
        below this limit the curves flatten towards it.""")


def _scaling_row(results: Results, sweep: Sweep, side: str) -> str:
    """Return a table row with fitted exponents of time and outputs next to the expected one."""
    x, seconds = sweep.values, results.medians(sweep, side)
    keep = seconds >= TIMES_FIXED_COST * results.fixed_cost(sweep.K, side)
    time = fit_exponent(x[keep], seconds[keep])
    outputs = fit_exponent(x[keep], _planned(sweep, side, "nnz")[keep])
    expected = {"N": 1, "D": sweep.K, "d": sweep.K if side == SPARSE else 0}[sweep.varied]
    start = f"| {side} | {sweep.K} | {sweep.varied} (figure {sweep.figure}) | {expected} |"
    if time is None or outputs is None:
        return f"{start} | | too few points ({keep.sum()} of {len(x)}) | |"
    speed = (_planned(sweep, side, "nbytes") / seconds / 1e9)[keep]
    return (
        f"{start} {_number(outputs.exponent)} | {_number(time.exponent)} ± {time.error:.2f} | "
        f"{sweep.varied} = {time.first:g} to {time.last:g}, {time.n_points} of {len(x)} points | "
        f"{speed[0]:.1f} to {speed[-1]:.1f} |"
    )


def _number(x: float | None) -> str:
    """Format a number with two decimals, without a negative zero."""
    return "none" if x is None else f"{round(x, 2) + 0.0:.2f}"


def _crossovers(results: Results) -> Iterator[str]:
    sweeps = *results.select("1", "d"), *results.select("fresh")
    crossings = [find_crossing(results, sweep) for sweep in sweeps]
    yield "## Where dense takes over"
    yield paragraph("""
        The density at which the medians of sparse and dense cross, interpolated in log time; in
        brackets the quartiles over the single matrices. *Cost of an output* is how many times as
        long a value of the sparse result takes as one of the dense result, at the crossover: dense
        outputs over sparse outputs, for the paper 1/d^K. *By bytes* is the density at which both
        results have equally many bytes.""")
    header = "| K | memory | crossover | the paper's | cost of an output | the paper's | by bytes |"
    yield "\n".join([header, "|---|---|---|---|---|---|---|", *map(_crossing_row, crossings)])
    yield "\n".join(paragraph(_explain(results, crossing), "  ") for crossing in crossings)


def _crossing_row(crossing: Crossing) -> str:
    K, paper = crossing.sweep.K, PAPER_CROSSOVERS[crossing.sweep.K]
    at = _number(crossing.at)
    if crossing.quartiles is not None:
        at += " ({:.2f} to {:.2f})".format(*crossing.quartiles)
    cells = K, crossing.sweep.memory, at, paper, _number(crossing.cost_ratio), f"{paper**-K:.2f}"
    return "| " + " | ".join(map(str, (*cells, _number(crossing.by_bytes)))) + " |"


def _explain(results: Results, crossing: Crossing) -> str:
    """Return a paragraph on why the crossing is where it is, as far as the numbers tell."""
    sweep = crossing.sweep
    seconds = {side: results.medians(sweep, side)[-1] for side in (SPARSE, DENSE, FILL)}
    speed = {side: _planned(sweep, side, "nbytes")[-1] / seconds[side] / 1e9 for side in seconds}
    size = {side: sweep.points[-1].plan(side).bytes_per_value for side in (SPARSE, DENSE)}
    share = seconds[FILL] / seconds[DENSE]
    mostly = "mostly" if share >= 0.5 else "less than half"
    return f"""
        - **K={sweep.K}, {sweep.memory} memory**: {_compare(results, crossing)} A sparse output is
        {size[SPARSE]} bytes, value and column, a dense one {size[DENSE]}:
        {size[SPARSE] / size[DENSE]:.2f} times as many; by bytes alone the crossover would be
        {_number(crossing.by_bytes)}. At d = {sweep.values[-1]:g} sparse writes {speed[SPARSE]:.1f}
        GB/s and dense {speed[DENSE]:.1f}. Filling the dense result with a constant takes
        {share:.0%} of the dense side's time, which is thus {mostly} writing."""


def _compare(results: Results, crossing: Crossing) -> str:
    """Return a comparison of the crossing with the paper's."""
    sweep, K = crossing.sweep, crossing.sweep.K
    first, last = sweep.values[[0, -1]]
    if crossing.at is None:
        gap = results.medians(sweep, SPARSE) - results.medians(sweep, DENSE)
        faster = SPARSE if gap[-1] < 0 else DENSE
        return f"no crossover from d = {first:g} to {last:g}; at the end {faster} is faster."
    paper = PAPER_CROSSOVERS[K]
    side = "higher" if crossing.at > paper else "lower"
    return (
        f"{abs(crossing.at - paper):.2f} {side} than in the paper. A sparse output costs "
        f"{_number(crossing.cost_ratio)} dense ones here, {paper**-K:.2f} there."
    )


def _made_by(command: str) -> Iterator[str]:
    packages = "numpy", "scipy", "scikit-learn", "polysparse", "matplotlib"
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    yield "## Made by"
    yield "\n".join(
        [
            f"- `{command}`, on {datetime.now(UTC):%Y-%m-%d}",
            f"- Python {platform.python_version()}, {versions}",
            f"- {processor()}, {usable_cores()} cores, {platform.system()} {platform.machine()}",
        ]
    )


def processor() -> str:
    """Return the name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or "unknown processor")
