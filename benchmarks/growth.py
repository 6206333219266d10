"""Time and memory of a fit as rows grow, by expanding and by applying: measured, and drawn."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures

import measure
import polysparse
from bench_core import random_csr, say
from polysparse import PolynomialLogisticRegression
from polysparse.machine import available_bytes, total_bytes
from polysparse.paper.figures import RC

EXPANDING, APPLYING = "expanding", "applying"
LABELS = {
    EXPANDING: "expanding: scikit-learn's PolynomialFeatures and LogisticRegression",
    APPLYING: "applying: PolynomialLogisticRegression",
}
STYLE: dict[str, dict[str, Any]] = {
    EXPANDING: {"color": "0.45", "marker": "^"},
    APPLYING: {"color": "tab:blue", "marker": "o"},
}
N_FEATURES, N_STORED, C = 1_000, 20, 0.1
SIZES = 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000
EXPANDING_PEAK = 3.65  # of scikit-learn, over the expansion: docs/speed.md
TOL = {EXPANDING: 1e-5, APPLYING: 1e-6}  # the gaps that these reach are written, too
NAME = "models-growth"


@dataclass(frozen=True)
class Point:
    """What a fit took; its gap is relative to the best objective known."""

    n_rows: int
    side: str
    seconds: float
    peak: int
    n_iter: int
    gap: float


def clicks(n_rows: int, n_features: int, n_stored: int) -> tuple[Any, NDArray[Any]]:
    """Rows of so many ones, and labels that hang on products of features, and on chance."""
    rng = np.random.default_rng(0)
    X = random_csr(rng, np.full(n_rows, n_stored), n_features)
    X.data[:] = 1
    left, right = rng.standard_normal((2, n_features))
    scores = (X @ left) * (X @ right)
    noise = rng.logistic(size=n_rows) * np.abs(scores).mean() / 4
    return X, (scores + noise > 0).astype(np.int64)


def write_growth(folder: Path, quick: bool) -> None:
    """Measure, then write a table and the figure, as SVG and PNG."""
    points = []
    for n_rows in SIZES[:3] if quick else SIZES:
        say(f"{n_rows:,} rows")
        points += measure_size(n_rows)
    path = folder / f"{NAME}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Point)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, points))
    draw(points, folder)


def measure_size(n_rows: int) -> list[Point]:
    """Both sides on so many rows, each in a process of its own, if the expansion can be built."""
    sides = (EXPANDING, APPLYING) if measure.in_new_process(can_expand, n_rows) else (APPLYING,)
    taken = {side: measure.in_new_process(fit, n_rows, side) for side in sides}
    best = measure.in_new_process(best_objective, n_rows)
    return [
        Point(n_rows, side, seconds, peak, n_iter, value / best - 1)
        for side, (seconds, peak, n_iter, value) in taken.items()
    ]


def can_expand(n_rows: int) -> bool:
    """Whether scikit-learn's expansion of so many rows fits into the memory of this machine."""
    X, _ = clicks(n_rows, N_FEATURES, N_STORED)
    needed = EXPANDING_PEAK * polysparse.plan(X, include_bias=False).nbytes
    return needed < (available_bytes() or total_bytes())


def fit(n_rows: int, side: str) -> tuple[float, int, int, float]:
    """Seconds, bytes beside X, iterations and objective of a fit."""
    X, y = clicks(n_rows, N_FEATURES, N_STORED)
    models: list[Any] = []

    def call() -> None:
        tol = TOL[side]
        if side == APPLYING:
            models.append(PolynomialLogisticRegression(C, tol=tol).fit(X, y))
        else:
            expanded = PolynomialFeatures(include_bias=False).fit_transform(X)
            models.append(LogisticRegression(C=C, tol=tol, max_iter=20_000).fit(expanded, y))

    fit_small(X[:100, :50], y[:100])
    start = perf_counter()
    peak = measure.peak_growth(call)
    seconds = perf_counter() - start
    model = models[0]
    return seconds, peak, int(np.max(model.n_iter_)), objective(X, y, model)


def fit_small(X: Any, y: NDArray[Any]) -> None:
    """Load and set up what is needed once, on both sides."""
    PolynomialLogisticRegression().fit(X, y)
    LogisticRegression().fit(PolynomialFeatures().fit_transform(X), y)


def best_objective(n_rows: int) -> float:
    """The objective of a fit that is close to the optimum."""
    X, y = clicks(n_rows, N_FEATURES, N_STORED)
    return objective(X, y, PolynomialLogisticRegression(C, tol=1e-9).fit(X, y))


def objective(X: Any, y: NDArray[Any], model: Any) -> float:
    """C times the log losses plus half the squared norm, for either side."""
    w = model.coef_.ravel()
    operator = polysparse.PolynomialOperator(X, include_bias=False)
    scores = operator @ w + model.intercept_
    losses = np.logaddexp(0, np.where(y > 0, -scores, scores))
    return float(C * losses.sum() + w @ w / 2)


# ---------------------------------------------------------------------------------------- drawing


def draw(points: list[Point], folder: Path) -> None:
    """Draw time and memory against rows, side by side."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(10, 3.6), layout="constrained")
        panels = zip(
            figure.subplots(1, 2),
            ("seconds", "peak"),
            ("time of a fit", "memory beside X"),
            (partial(format_unit, units=SECONDS), partial(format_unit, units=BYTES)),
            strict=True,
        )
        for ax, what, title, formatter in panels:
            for side, style in STYLE.items():
                mine = [p for p in points if p.side == side]
                x, y = [p.n_rows for p in mine], [getattr(p, what) for p in mine]
                ax.plot(x, y, label=LABELS[side], **style)
                ends = x[-1] < max(p.n_rows for p in points)
                ax.annotate(
                    formatter(y[-1]) + ("\nmore does not fit" if ends else ""), (x[-1], y[-1]),
                    (6, 0), textcoords="offset points", va="center", color=style["color"],
                )  # fmt: skip
            ax.set(xscale="log", yscale="log", xlabel="rows")
            ax.set_title(title)
            ax.margins(x=0.16)
            ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _, f=formatter: f(value)))
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_minor_formatter(NullFormatter())
            ax.grid(color="0.9", lw=0.8)
            ax.set_axisbelow(True)
        handles, labels = ax.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
        figure.savefig(folder / f"{NAME}.svg", metadata={"Date": None})
        figure.savefig(folder / f"{NAME}.png", dpi=160)


SECONDS = {1: "s", 1e-3: "ms"}
BYTES = {1e9: "GB", 1e6: "MB"}


def format_unit(value: float, units: dict[float, str]) -> str:
    """A number of two digits with the largest unit that it has, or with the smallest."""
    size = next((size for size in units if value >= 0.9995 * size), min(units))
    number = value / size
    return f"{number:.0f} {units[size]}" if number >= 9.95 else f"{number:.2g} {units[size]}"
