"""Run all experiments of the paper, draw the figures and write the page."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from polysparse.display.plotting import require_matplotlib
from polysparse.paper.experiments import (
    COLUMNS,
    REUSED,
    SPARSE,
    Measurement,
    Point,
    Sweep,
    plan_sweeps,
)
from polysparse.paper.measuring import CONTROLS_MEMORY, Progress, measure, reused_memory
from polysparse.paper.page import MADE_BY, made_by, page
from polysparse.paper.results import Results


def reproduce_paper(out: Path, *, quick: bool, command: str, progress: Progress) -> Path:
    """Run the experiments and write figures, measurements and page into a folder.

    Parameters
    ----------
    out : Path
        Created if it does not exist. Files of an earlier run are replaced, at the very end.
    quick : bool
        Use fewer and smaller matrices: less than a minute instead of a few.
    command : str
        The command line that the user typed, for the page.
    progress : callable
        Called with the fraction done, between 0 and 1, and a text on what is being measured.

    Returns
    -------
    Path
        Path of the page, paper.md.
    """
    n_matrices = 5 if quick else 20
    return reproduce(out, plan_sweeps(quick=quick), n_matrices, command, progress)


def reproduce(
    out: Path, sweeps: Sequence[Sweep], n_matrices: int, command: str, progress: Progress
) -> Path:
    """Measure the given sweeps and write all files."""
    require_matplotlib("matplotlib")
    out.mkdir(parents=True, exist_ok=True)
    if not CONTROLS_MEMORY:
        sweeps = [sweep for sweep in sweeps if sweep.memory == REUSED]
    largest = max(point.plan(SPARSE).nbytes for sweep in sweeps for point in sweep.points)
    with reused_memory(2 * largest):
        measured = list(measure(sweeps, n_matrices, progress))
    return write(out, measured, made_by(command))


def redraw_paper(out: Path) -> Path:
    """Draw the figures and write the page again, from the measurements of an earlier run.

    Parameters
    ----------
    out : Path
        The folder that the run wrote. Its paper.csv has the measurements; its paper.md states the
        machine.

    Returns
    -------
    Path
        Path of the page, paper.md.
    """
    require_matplotlib("matplotlib")
    made = (out / "paper.md").read_text(encoding="utf-8").partition(MADE_BY)[2].rstrip()
    return write(out, read_csv(out / "paper.csv"), made)


def write(out: Path, measured: Sequence[Measurement], made: str) -> Path:
    """Write measurements, figures and page, all of them or none."""
    from polysparse.paper.figures import write_figures

    results = Results(measured)
    aside = Path(tempfile.mkdtemp(prefix=".paper-", dir=out))
    try:
        write_csv(aside / "paper.csv", measured)
        (aside / "paper.md").write_text(page(results, made), encoding="utf-8")
        write_figures(aside, results)
        # The page is moved last, so that it is never older than the figures it shows.
        for file in sorted(aside.iterdir(), key=lambda file: file.suffix == ".md"):
            file.replace(out / file.name)
    finally:
        shutil.rmtree(aside)
    return out / "paper.md"


def write_csv(path: Path, measured: Iterable[Measurement]) -> None:
    """Write every measurement, in the order in which they were made."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(measurement.row() for measurement in measured)


def read_csv(path: Path) -> list[Measurement]:
    """Read the measurements that `write_csv` wrote."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or tuple(rows[0]) != COLUMNS:
        raise ValueError(f"{path} must have the columns {', '.join(COLUMNS)}, and measurements.")

    def point_of(row: dict[str, str]) -> Point:
        return Point(int(row["K"]), int(row["N"]), int(row["D"]), float(row["d"]))

    def key_of(row: dict[str, str]) -> tuple[str, ...]:
        return row["figure"], row["varied"], row["K"], row["memory"]

    points: dict[Any, dict[Point, None]] = {}  # as sets, but in the order of the file
    sides: dict[Any, dict[str, None]] = {}
    for row in rows:
        points.setdefault(key_of(row), {})[point_of(row)] = None
        sides.setdefault(key_of(row), {})[row["side"]] = None
    sweeps = {
        key: Sweep(key[0], key[1], tuple(points[key]), tuple(sides[key]), key[3]) for key in points
    }
    return [
        Measurement(
            sweeps[key_of(row)],
            point_of(row),
            row["side"],
            int(row["repetition"]) - 1,
            float(row["seconds"]),
        )
        for row in rows
    ]
