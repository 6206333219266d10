"""Plots: bars of terms, a matrix of pairs, whether the probabilities of a model are true."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from polysparse.basis.names import as_printable
from polysparse.extras import how_to_install

LINE, LINES = 46, 2  # characters in a line of a name, and lines; longer names lose their middle
COLOURS = {1: "#2166ac", -1: "#f4a582"}  # dark and light, so that signs differ in grey, too
INCHES_PER_BAR, INCHES_PER_LINE, WIDTH = 0.27, 0.14, 8.0


def draw_terms(
    table: dict[str, list[Any]],
    ax: Any = None,
    make_figure: Any = None,
    positive: Any = None,
    value: str = "weight",
    label: str = "weight",
) -> Any:
    """Draw a bar for each term of a table, the largest on top, and return the axes.

    Without axes, a figure is made: by default one that pyplot shows. `positive` is the class that
    positive weights are for, if there are two. `value` is the column with the lengths of bars.
    """
    weights, labels = table[value], _labels(table)
    if ax is None:
        ax = _new_axes(labels, make_figure or require_matplotlib("matplotlib.pyplot").figure)
    signs = [1 if weight > 0 else -1 for weight in weights]
    places = range(len(weights))
    ax.barh(places, weights, height=0.72, color=[COLOURS[sign] for sign in signs])
    if "low" in table:
        _draw_whiskers(ax, table)
    beside = [table[name] for name in ("low", "high") if name in table]
    ends = list(zip(weights, *beside, strict=True))  # numbers are written behind the whiskers
    for place, weight, sign in zip(places, weights, signs, strict=True):
        ax.annotate(
            f"{weight:.3g}".replace("-", "−"),
            (max(ends[place]) if sign > 0 else min(ends[place]), place),
            (3 * sign, 0),
            textcoords="offset points",
            ha="left" if sign > 0 else "right",
            va="center",
            fontsize="x-small",
            color="0.35",
        )
    ax.set_yticks(places, labels=labels, fontsize="small", linespacing=1.15)
    ax.set_ylim(max(len(weights), 1) - 0.4, -0.6)  # the heaviest on top
    ax.margins(x=0.16)  # room for the numbers
    ax.axvline(0, color="0.3", lw=0.8)
    ax.set_xlabel(label if positive is None else f"{label}, for class {_in_lines(str(positive))}")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.9", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def _draw_whiskers(ax: Any, table: dict[str, list[Any]]) -> None:
    """Draw the interval of each term; the weight may be outside of it."""
    places = range(len(table["low"]))
    ax.hlines(places, table["low"], table["high"], color="0.2", lw=1.2)
    for name in ("low", "high"):
        ax.plot(table[name], places, "|", color="0.2", ms=5, mew=1.2)


def _new_axes(labels: list[str], make_figure: Any) -> Any:
    """Return axes that are as high as the bars need."""
    n_lines = 1 + max((label.count("\n") for label in labels), default=0)
    height = INCHES_PER_BAR + INCHES_PER_LINE * (n_lines - 1)
    figure = make_figure(figsize=(WIDTH, 1 + height * len(labels)), layout="constrained")
    return figure.subplots()


def require_matplotlib(module: str) -> Any:
    """Import a module of matplotlib; raise ImportError with the way to get it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ImportError(
            f"Drawing needs matplotlib, which is not installed: {how_to_install('cli')}"
        ) from error


def _labels(table: dict[str, list[Any]]) -> list[str]:
    """Return the names of terms, with the class or target of each if there are several."""
    labels = list(map(_in_lines, table["name"]))
    for title in ("class", "target"):
        if title in table:
            rows = map(_in_lines, map(str, table[title]))
            labels = [" → ".join(pair) for pair in zip(labels, rows, strict=True)]
    return labels


def _in_lines(name: str) -> str:
    """Return a name in a line or two, as plain text; a longer one loses its middle."""
    name = as_printable(name)
    if len(name) > LINE * LINES:
        half = LINE * LINES // 2 - 4
        name = f"{name[:half]}… {name[-half:]}"
    lines = textwrap.wrap(name, LINE, break_on_hyphens=False)
    return "\n".join(lines).replace("$", r"\$")


# ------------------------------------------------------------------------------------------ paths


def draw_path(parameter: str, values: Any, weights: Any, names: list[str], ax: Any = None) -> Any:
    """Draw a line for each column of weights, and return the axes; the first ones have names."""
    if ax is None:
        figure = require_matplotlib("matplotlib.pyplot").figure
        ax = figure(figsize=(WIDTH, 5), layout="constrained").subplots()
    for line in weights.T[len(names) :]:
        ax.plot(values, line, color="0.8", lw=0.8)
    for name, line in zip(names, weights.T, strict=False):
        ax.plot(values, line, label=_in_lines(name))
    ax.axhline(0, color="0.3", lw=0.8)
    ax.set_xscale("log")
    if parameter == "alpha":
        ax.invert_xaxis()  # the strongest penalty on the left
    ax.set_xlabel(parameter)
    ax.set_ylabel("weight")
    if names:
        ax.legend(fontsize="small", frameon=False, loc="upper left")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


# --------------------------------------------------------------------------------------- progress


def draw_progress(table: dict[str, list[Any]], ax: Any = None, *, label: str) -> Any:
    """Draw the loss of each stretch of a stream, and the mean so far, and return the axes."""
    if ax is None:
        figure = require_matplotlib("matplotlib.pyplot").figure
        ax = figure(figsize=(WIDTH, 4), layout="constrained").subplots()
    marker = "." if len(table["rows"]) < 2 else None  # a line needs two points
    ax.plot(table["rows"], table["loss"], color="0.6", lw=0.8, marker=marker, label="each stretch")
    ax.plot(table["rows"], table["mean_loss"], color=COLOURS[1], lw=1.6, label="all rows so far")
    ax.set_xlabel("rows")
    ax.set_ylabel(f"{label} before learning")
    ax.legend(fontsize="small", frameon=False)
    ax.grid(axis="y", color="0.9", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


# ------------------------------------------------------------------------------------- heat maps

MOST_GROUPS = 30  # of a heat map; the others are left out
INCHES_PER_CELL = 0.42


def draw_importance(table: dict[str, list[Any]], ax: Any = None, make_figure: Any = None) -> Any:
    """Draw the shares of groups and of pairs of groups as a heat map, and return the axes.

    Without axes, a figure is made, as in `draw_terms`.
    """
    shares = {
        tuple(groups): share for groups, share in zip(table["groups"], table["share"], strict=True)
    }
    if all(len(groups) > 2 for groups in shares):
        raise ValueError(
            "A heat map has groups and pairs of groups, and all terms of this model have three or "
            "more: list them with importance()."
        )
    percent = {groups: 100 * share for groups, share in shares.items() if len(groups) <= 2}
    return draw_matrix(
        percent, ax, make_figure, label="share of variance, %", least=0.1, text="{:.1f}"
    )


def draw_matrix(
    cells: dict[tuple[str, ...], float],
    ax: Any = None,
    make_figure: Any = None,
    *,
    label: str,
    least: float = 0.0,
    text: str = "{:.2g}",
) -> Any:
    """Draw numbers of single things and of pairs as a heat map, and return the axes.

    Things with the largest sums come first. Numbers below `least` are not written into their cells.
    """
    totals: dict[str, float] = {}
    for members, number in cells.items():
        for member in {*members}:
            totals[member] = totals.get(member, 0.0) + number
    labels = sorted(totals, key=lambda member: -totals[member])[:MOST_GROUPS]
    numbers = np.full((len(labels), len(labels)), np.nan)
    for members, number in cells.items():
        if all(member in labels for member in members):
            places = sorted(labels.index(member) for member in members)
            row, column = places[-1], places[0]
            numbers[row, column] = np.nansum([numbers[row, column], number])
    if ax is None:
        side = 2.2 + INCHES_PER_CELL * len(labels)
        make_figure = make_figure or require_matplotlib("matplotlib.pyplot").figure
        figure = make_figure(figsize=(side + 1, side), layout="constrained")
        ax = figure.subplots()
    image = ax.imshow(numbers, cmap="Blues", vmin=0)
    ax.figure.colorbar(image, ax=ax, label=label, shrink=0.7)
    names = [_in_lines(name) for name in labels]
    ax.set_xticks(range(len(labels)), labels=names, rotation=45, ha="right", fontsize="small")
    ax.set_yticks(range(len(labels)), labels=names, fontsize="small")
    largest = np.nanmax(numbers, initial=0.0)
    for row, column in np.argwhere(numbers >= least):
        ax.text(
            column,
            row,
            text.format(numbers[row, column]),
            ha="center",
            va="center",
            fontsize="x-small",
            color="white" if numbers[row, column] > 0.6 * largest else "0.2",
        )
    ax.spines[:].set_visible(False)
    ax.grid(False)  # a style may have turned it on
    ax.tick_params(length=0)
    return ax


# ------------------------------------------------------------------------------------ calibration

SMALLEST, LARGEST = 4.0, 12.0  # markers, of bins with few and with most rows


def draw_calibration(bins: dict[Any, Any], ax: Any = None, make_figure: Any = None) -> Any:
    """Draw a line for each class, given its CalibrationBins, and return the axes.

    Without axes, a figure is made, as in `draw_terms`.
    """
    if ax is None:
        make_figure = make_figure or require_matplotlib("matplotlib.pyplot").figure
        ax = make_figure(figsize=(5.0, 5.0), layout="constrained").subplots()
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--")
    for label, own in bins.items():
        _draw_bins(own, ax, label=_in_lines(str(label)))
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set_xlabel("predicted probability")
    ax.set_ylabel("share of rows in which it is true")
    ax.legend(title="class", frameon=False)
    return _with_grid(ax)


def draw_means(bins: Any, ax: Any = None, make_figure: Any = None) -> Any:
    """Draw observed against predicted means, given CalibrationBins, and return the axes.

    Without axes, a figure is made, as in `draw_terms`.
    """
    if ax is None:
        make_figure = make_figure or require_matplotlib("matplotlib.pyplot").figure
        ax = make_figure(figsize=(5.0, 5.0), layout="constrained").subplots()
    predicted, observed, _ = bins.points()
    if (predicted > 0).all() and (observed > 0).all():
        ax.set(xscale="log", yscale="log")
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_major_locator().set_params(subs=(1, 2, 5))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")
    ax.axline((1, 1), (2, 2), color="0.6", lw=1, ls="--")
    _draw_bins(bins, ax)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel("predicted mean")
    ax.set_ylabel("observed mean")
    return _with_grid(ax)


def _draw_bins(bins: Any, ax: Any, **line_options: Any) -> None:
    """Draw a line, and a marker for each bin, as large as it has rows."""
    predicted, observed, which = bins.points()
    (line,) = ax.plot(predicted, observed, lw=1.2, **line_options)
    shares = bins.weights[which] / bins.weights.max(initial=1.0)
    sizes = (SMALLEST + (LARGEST - SMALLEST) * np.sqrt(shares)) ** 2
    ax.scatter(predicted, observed, sizes, color=line.get_color(), edgecolor="white", zorder=3)


def _with_grid(ax: Any) -> Any:
    """Return the axes, with a grid behind what is drawn."""
    ax.grid(color="0.9", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


# ---------------------------------------------------------------------------- cross-validation


def draw_scores(
    penalties: Any,
    choice: Any,
    chosen: int,
    name: str,
    what: str,
    ax: Any = None,
    make_figure: Any = None,
) -> Any:
    """Draw the mean score of each penalty with its standard error, and return the axes.

    `choice` is a `choosing.Choice`, and `chosen` the number of a penalty. Without axes, a figure is
    made, as in `draw_terms`.
    """
    if ax is None:
        make_figure = make_figure or require_matplotlib("matplotlib.pyplot").figure
        ax = make_figure(figsize=(6.5, 4.2), layout="constrained").subplots()
    places = np.asarray(penalties, dtype=np.float64)
    if np.all((places > 0) & np.isfinite(places)):
        ax.set_xscale("log")
    else:  # 0 and infinity have no place on such an axis
        labels = [f"{value:.3g}" for value in np.sort(places)]
        ax.set_xticks(range(len(labels)), labels=labels, fontsize="small")
        places = np.argsort(np.argsort(places, kind="stable")).astype(np.float64)
    order = np.argsort(places, kind="stable")
    ax.errorbar(
        places[order],
        choice.means[order],
        choice.errors[order],
        color=COLOURS[1],
        marker="o",
        markerfacecolor="white",
        capsize=3,
        lw=1.2,
        label="mean and standard error",
    )
    highest = choice.means[choice.best] - choice.errors[choice.best]
    ax.axhline(highest, color="0.6", lw=0.8, ls=":", label="one standard error below the best")
    for which, style, label in (
        (choice.best, "--", "best"),
        (choice.within_error, "-.", "one standard error"),
    ):
        label = f"{label}: {name}={penalties[which]:.3g}"
        ax.axvline(places[which], color="0.4", lw=1, ls=style, label=label)
    ax.plot(places[chosen], choice.means[chosen], "o", color=COLOURS[1], zorder=3)
    ax.set_xlabel(name)
    ax.set_ylabel(_in_lines(what))
    ax.legend(frameon=False, fontsize="small")
    ax.grid(color="0.9", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
