"""Tables on standard output: with rich on a terminal, as plain text elsewhere."""

from __future__ import annotations

import sys
from typing import Any

from polysparse.basis.names import as_printable
from polysparse.display.tables import TermTable, as_cell

BAR = 16  # characters of the longest bar


def print_table(columns: dict[str, list[Any]], bar: str | None = None) -> None:
    """Print a table; `bar` is a column of numbers that a terminal shows as bars, too."""
    table = _rich_table(columns, bar) if sys.stdout.isatty() else None
    if table is None:
        print(TermTable(columns))
        return
    from rich.console import Console

    Console(file=sys.stdout).print(table)


def _rich_table(columns: dict[str, list[Any]], bar: str | None) -> Any:
    """Return a table of rich; None if that is not installed."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return None
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    cells = []
    for name, values in columns.items():
        is_text = any(isinstance(value, str) for value in values)
        justify: Any = "left" if is_text else "right"
        overflow: Any = "fold" if is_text else "ellipsis"
        table.add_column(Text(as_printable(name)), justify=justify, overflow=overflow)
        cells.append([Text(as_cell(value)) for value in values])
        if name == bar:
            table.add_column("", no_wrap=True, min_width=BAR)
            cells.append([Text(text, style=style) for text, style in _bars(values)])
    for row in zip(*cells, strict=True):
        table.add_row(*row)
    return table


def _bars(numbers: list[float]) -> list[tuple[str, str]]:
    """Return a bar for each number, as long as its size, and its color, by its sign."""
    largest = max(map(abs, numbers), default=0.0) or 1.0
    halves = [round(2 * BAR * abs(number) / largest) for number in numbers]
    bars = ["━" * (n // 2) + "╸" * (n % 2) for n in halves]
    colors = ["blue" if number >= 0 else "red" for number in numbers]
    return list(zip(bars, colors, strict=True))
