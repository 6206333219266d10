"""Results as HTML for notebooks. Colors and fonts are the notebook's, whether light or dark."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def html_table(columns: dict[str, list[str]], texts: Iterable[str] = ()) -> str:
    """Return a table with a heading; `texts` names the columns that are aligned to the left."""
    styles = [_align("left" if name in {*texts} else "right") for name in columns]
    head = "".join(
        f"<th{style}>{escape(name)}</th>" for name, style in zip(columns, styles, strict=True)
    )
    rows = (
        "".join(f"<td{style}>{escape(cell)}</td>" for cell, style in zip(row, styles, strict=True))
        for row in zip(*columns.values(), strict=True)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_properties(title: str, properties: dict[str, str]) -> str:
    """Return a title and a table with a line for each property."""
    left, right = _align("left"), _align("right")
    rows = "".join(
        f"<tr><th{left}>{escape(name)}</th><td{right}>{escape(value)}</td></tr>"
        for name, value in properties.items()
    )
    return f"<div><strong>{escape(title)}</strong><table><tbody>{rows}</tbody></table></div>"


def _align(where: str) -> str:
    return f' style="text-align: {where}"'
