"""The figures of the paper, on logarithmic axes: the slope of a curve is its exponent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from polysparse.paper.experiments import DENSE, SKLEARN, SPARSE, Sweep
from polysparse.paper.results import Results, find_crossing

STYLE: dict[str, dict[str, Any]] = {
    SPARSE: {"color": "tab:blue", "marker": "o", "zorder": 3},
    DENSE: {"color": "tab:red", "marker": "s", "zorder": 2},
    SKLEARN: {"color": "0.55", "marker": "^", "zorder": 1},
}
LABELS = {SPARSE: "sparse", DENSE: "dense (Algorithm 1)", SKLEARN: "scikit-learn, CSR"}
AXES = {"d": "density $d$", "D": "dimension $D$", "N": "rows $N$"}
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
LINES = {2: "--", 3: ":"}  # of degrees, where all curves are of one side


def write_figures(folder: Path, results: Results) -> None:
    """Write both figures, each as SVG and PNG."""
    with mpl.rc_context(RC):
        for name, draw in {"figure1": draw_figure_1, "figure2": draw_figure_2}.items():
            figure = draw(results)
            figure.savefig(folder / f"paper-{name}.svg", metadata={"Date": None})
            figure.savefig(folder / f"paper-{name}.png", dpi=160)


def draw_figure_1(results: Results) -> Figure:
    """Draw all sides, with degrees as rows and varied parameters as columns, as in the paper."""
    sweeps = results.select("1")
    degrees, columns = sorted({s.K for s in sweeps}), list(AXES)
    figure = Figure(figsize=(10, 2.9 * len(degrees)), layout="constrained")
    axes = figure.subplots(len(degrees), len(columns), squeeze=False)
    for sweep in sweeps:
        ax = axes[degrees.index(sweep.K), columns.index(sweep.varied)]
        for side, style in STYLE.items():
            _draw_times(ax, results, sweep, side, label=LABELS[side], **style)
        _scale(ax, sweep.varied)
        ax.set_title(f"$K={sweep.K}$,  {_held(sweep)}")
        if sweep.varied == "d":
            _mark_crossing(ax, find_crossing(results, sweep).at)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure


def draw_figure_2(results: Results) -> Figure:
    """Draw the sparse side alone, against D and against N, above the slopes it should have."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    for ax, varied in zip(figure.subplots(1, 2), ("D", "N"), strict=True):
        sweeps = results.select("2", varied)
        for sweep in sweeps:
            style = {**STYLE[SPARSE], "ls": LINES[sweep.K], "marker": "os"[sweep.K - 2]}
            label = f"$K={sweep.K}$,  {_held(sweep)}"
            _draw_times(ax, results, sweep, SPARSE, label=label, **style)
        lowest = 1e3 * min(results.medians(sweep, SPARSE)[-1] for sweep in sweeps)
        slopes = {sweep.K: LINES[sweep.K] for sweep in sweeps} if varied == "D" else {1: "-"}
        for slope, line in slopes.items():
            x = sweeps[0].values[-1] * np.array([1 / 3, 1])
            y = lowest / 3 * (x / x[-1]) ** slope
            ax.plot(x, y, color="0.5", lw=1, ls=line, label=f"slope {slope}")
        _scale(ax, varied)
        ax.legend(frameon=False, loc="upper left", handlelength=3)
    return figure


def _draw_times(ax: Any, results: Results, sweep: Sweep, side: str, **style: Any) -> None:
    """Draw medians in milliseconds, with a band of quartiles."""
    low, middle, high = 1e3 * results.quartiles(sweep, side)
    ax.plot(sweep.values, middle, **style)
    ax.fill_between(sweep.values, low, high, color=style["color"], alpha=0.25, lw=0)


def _scale(ax: Any, varied: str) -> None:
    """Make both axes logarithmic, with a few plain numbers at their ticks."""
    ax.set(xscale="log", yscale="log", xlabel=AXES[varied], ylabel="time (ms)")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


def _mark_crossing(ax: Any, at: float | None) -> None:
    """Mark where sparse and dense cross. The curves are far above the foot of the line."""
    if at is not None:
        ax.axvline(at, color="0.3", lw=0.8, ls=":", zorder=0)
        foot = ax.get_xaxis_transform()
        ax.annotate(
            f"{at:.2f}", (at, 0.02), (-3, 0), foot, "offset points", ha="right", color="0.3"
        )


def _held(sweep: Sweep) -> str:
    """Return the parameters that a sweep does not vary, as text."""
    point = sweep.points[0]
    shown = {"N": f"N={point.N:,}", "D": f"D={point.D:,}", "d": f"d={point.d:g}"}
    held = (text.replace(",", "{,}") for name, text in shown.items() if name != sweep.varied)
    return ",  ".join(f"${text}$" for text in held)
