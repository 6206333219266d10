"""Pictures of what a model has learned, for the commands `fit` and `terms`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from polysparse.files.atomic import replacing
from polysparse.files.errors import UnknownExtension
from polysparse.files.targets import require_writable_file

ENDINGS = ".png", ".svg", ".pdf"


def require_picture(path: Path, *, force: bool, sources: Sequence[str]) -> None:
    """Raise an error if a picture cannot be drawn into a file, before anything takes long."""
    from polysparse.display.plotting import require_matplotlib

    require_writable_file(path, force=force, sources=sources)
    if path.suffix not in ENDINGS:
        raise UnknownExtension(f"{path}: unknown ending. Known are {', '.join(ENDINGS)}.")
    require_matplotlib("matplotlib.figure")


def draw(table: dict[str, list[Any]], path: Path, *, by_group: bool, positive: Any = None) -> None:
    """Draw a table of groups as a heat map, or one of terms as bars.

    `positive` is the class that positive weights are for, if there are two.
    """
    from polysparse.display.plotting import draw_importance, draw_terms

    bars = partial(draw_terms, positive=positive)
    draw_into(path, partial(draw_importance if by_group else bars, table))


def draw_into(path: Path, draw_axes: Callable[..., Any]) -> None:
    """Write what `draw_axes(make_figure=...)` draws, which returns axes, into a picture."""
    from polysparse.display.plotting import require_matplotlib

    figure = draw_axes(make_figure=require_matplotlib("matplotlib.figure").Figure).figure
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=160)
