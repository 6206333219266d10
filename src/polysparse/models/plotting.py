"""Plots of a model: its heaviest terms, its pairs of groups, whether its probabilities are true."""

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
) -> Any:
    """Draw a bar for each term of a table, the heaviest on top, and return the axes.

    Without axes, a figure is made: by default one that pyplot shows. `positive` is the class that
    positive weights speak for, if there are two.
    """
    weights, labels = table["weight"], _labels(table)
    if ax is None:
        ax = _new_axes(labels, make_figure or require_matplotlib("matplotlib.pyplot").figure)
    signs = [1 if weight > 0 else -1 for weight in weights]
    places = range(len(weights))
    ax.barh(places, weights, height=0.72, color=[COLOURS[sign] for sign in signs])
    for place, weight, sign in zip(places, weights, signs, strict=True):
        ax.annotate(
            f"{weight:.3g}".replace("-", "−"),
            (weight, place),
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
    ax.set_xlabel("weight" if positive is None else f"weight, for {_in_lines(str(positive))}")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.9", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


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
    totals: dict[str, float] = {}
    for groups, share in shares.items():
        for group in {*groups} if len(groups) <= 2 else ():
            totals[group] = totals.get(group, 0.0) + share
    if not totals:
        raise ValueError(
            "A heat map has groups and pairs of groups, and all terms of this model have three or "
            "more: list them with importance()."
        )
    labels = sorted(totals, key=lambda group: -totals[group])[:MOST_GROUPS]
    cells = np.full((len(labels), len(labels)), np.nan)
    for groups, share in shares.items():
        if len(groups) <= 2 and all(group in labels for group in groups):
            places = sorted(labels.index(group) for group in groups)
            row, column = places[-1], places[0]
            cells[row, column] = np.nansum([cells[row, column], 100 * share])
    if ax is None:
        side = 2.2 + INCHES_PER_CELL * len(labels)
        make_figure = make_figure or require_matplotlib("matplotlib.pyplot").figure
        figure = make_figure(figsize=(side + 1, side), layout="constrained")
        ax = figure.subplots()
    image = ax.imshow(cells, cmap="Blues", vmin=0)
    ax.figure.colorbar(image, ax=ax, label="share of variance, %", shrink=0.7)
    names = [_in_lines(label) for label in labels]
    ax.set_xticks(range(len(labels)), labels=names, rotation=45, ha="right", fontsize="small")
    ax.set_yticks(range(len(labels)), labels=names, fontsize="small")
    largest = np.nanmax(cells, initial=0.0)
    for row, column in np.argwhere(cells >= 0.1):
        is_dark = cells[row, column] > 0.6 * largest
        text = f"{cells[row, column]:.1f}"
        ax.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize="x-small",
            color="white" if is_dark else "0.2",
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
        predicted, observed, which = own.points()
        (line,) = ax.plot(predicted, observed, lw=1.2, label=_in_lines(str(label)))
        shares = own.weights[which] / own.weights.max(initial=1.0)
        sizes = (SMALLEST + (LARGEST - SMALLEST) * np.sqrt(shares)) ** 2
        ax.scatter(predicted, observed, sizes, color=line.get_color(), edgecolor="white", zorder=3)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set_xlabel("predicted probability")
    ax.set_ylabel("share of rows in which it is true")
    ax.legend(title="class", frameon=False)
    ax.grid(color="0.9", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
