"""The command `paper`, which repeats the paper's experiments."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from polysparse.cli.progress_bar import ProgressBar


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "paper",
        help="repeat the experiments of the paper",
        description="Measure and draw both figures of Nystrom and Hughes' paper.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer and smaller matrices, in about a minute"
    )
    parser.add_argument(
        "--redraw", action="store_true", help="draw the measurements in DIR/paper.csv again"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("docs"),
        help="folder to write (default: docs)",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Repeat the experiments and print the path of the page."""
    from polysparse.paper.reproducing import redraw_paper, reproduce_paper

    if options.redraw:
        print(redraw_paper(options.out))
        return
    out, quick = options.out, options.quick
    shown = out.name if out.is_absolute() else out.as_posix()
    command = f"polysparse paper{' --quick' if quick else ''} --out {shown}"
    with ProgressBar(options.quiet, 1000, unit="") as bar:
        page = reproduce_paper(out, quick=quick, command=command, progress=bar.set_fraction)
    print(page)
