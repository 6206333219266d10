"""The page about the paper's experiments."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from polysparse.machine import format_bytes, usable_cores
from polysparse.paper.experiments import CHECKED_BYTES, DENSE, FILL, SPARSE, Sweep
from polysparse.paper.results import Crossing, Results, find_crossing, fit_exponent, planned

PAPER_CROSSOVERS = {2: 0.67, 3: 0.77}

# A point enters a fit if it takes this many times as long as a call with next to nothing to expand.
TIMES_FIXED_COST = 10

MADE_BY = "## Made by\n\n"


def page(results: Results, made: str) -> str:
    """Return the text of paper.md. `made` says by which command, and on which machine."""
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
            (top) and cubic (bottom). Points are medians of {n} matrices, bands their quartiles.
            Both axes are logarithmic: a power law is a straight line, and its slope the exponent.
            The dotted line is where sparse and dense cross.*"""),
        "![Sparse times alone](paper-figure2.svg)",
        paragraph("""
            *Figure 2. The sparse side alone, at d = 0.2, on larger matrices. The grey lines have
            the slopes that are expected: K against D, and 1 against N.*"""),
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
    parts += [*_scaling(results), *_crossovers(results), f"{MADE_BY}{made}"]
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
        *((DENSE, "1", varied) for varied in ("d", "D", "N")),
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
    outputs = fit_exponent(x[keep], planned(sweep, side, "nnz")[keep])
    expected = {"N": 1, "D": sweep.K, "d": sweep.K if side == SPARSE else 0}[sweep.varied]
    start = f"| {side} | {sweep.K} | {sweep.varied} (figure {sweep.figure}) | {expected} |"
    if time is None or outputs is None:
        return f"{start} | | too few points ({keep.sum()} of {len(x)}) | |"
    speed = (planned(sweep, side, "nbytes") / seconds / 1e9)[keep]
    return (
        f"{start} {_number(outputs.exponent)} | {_number(time.exponent)} ± {time.error:.2f} | "
        f"{sweep.varied} = {time.first:,g} to {time.last:,g}, {time.n_points} of {len(x)} points | "
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
    speed = {side: planned(sweep, side, "nbytes")[-1] / seconds[side] / 1e9 for side in seconds}
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


def made_by(command: str) -> str:
    """Return by which command and on which machine the measurements are made."""
    packages = "numpy", "scipy", "scikit-learn", "polysparse", "matplotlib"
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return "\n".join(
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
