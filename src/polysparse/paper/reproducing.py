"""Run all experiments of the paper, draw the figures and write the page."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from polysparse.paper.experiments import (
    COLUMNS,
    REUSED,
    SPARSE,
    Measurement,
    Sweep,
    plan_sweeps,
)
from polysparse.paper.measuring import CONTROLS_MEMORY, Progress, measure, reused_memory


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
    try:
        from polysparse.paper import page
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
        page.write(aside, measured, command)
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
