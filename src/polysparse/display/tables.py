"""Tables of results: a DataFrame, or a small table that prints well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from polysparse.basis.names import as_printable
from polysparse.notebook import html_table


def as_table(columns: dict[str, list[Any]]) -> Any:
    """Return a pandas DataFrame, or a TermTable where pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        return TermTable(columns)
    return pd.DataFrame(columns)


@dataclass(frozen=True, repr=False)
class TermTable:
    """A small table that prints well, and is read as a DataFrame is.

    `table["weight"]` is a column, a list; iterating yields the names of columns, and the length is
    the number of rows.

    Attributes
    ----------
    columns : dict of str to list
        The columns by their names.
    """

    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]

    def __repr__(self) -> str:
        """Return a line for each row: texts to the left, numbers to the right."""
        columns = []
        for name, values in self.columns.items():
            cells = [name, *map(as_cell, values)]
            width, is_text = max(map(len, cells)), self._is_text(name)
            columns.append([c.ljust(width) if is_text else c.rjust(width) for c in cells])
        return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        cells = {name: list(map(as_cell, values)) for name, values in self.columns.items()}
        return html_table(cells, filter(self._is_text, self.columns))

    def _is_text(self, name: str) -> bool:
        return any(isinstance(value, str) for value in self.columns[name])


def as_cell(value: Any) -> str:
    """Return a value of a table as text: one line, six digits."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return as_printable(str(value))
