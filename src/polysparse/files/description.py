"""Description of an expansion on disk, as JSON: basis, columns, dtypes and origin."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import MAX_COMPACT_COLUMNS, ColumnSpace
from polysparse.tables.encoding import TableEncoding

VERSION = 1
TABLE = "table"  # key of the encoding of a table


def describe(
    columns: ColumnSpace,
    index_dtype: np.dtype[Any],
    dtype: np.dtype[Any],
    *,
    has_labels: bool,
    origin: dict[str, Any],
    table: TableEncoding | None = None,
) -> dict[str, Any]:
    """Return what must be equal for two runs to write the same, as it reads back from JSON.

    `table` is how the table was encoded, if the data are one.
    """
    description = {
        "format": "polysparse.store",
        "version": VERSION,
        "basis": columns.basis.as_dict(),
        "columns": columns.describe(),
        "index_dtype": index_dtype.str,
        "dtype": dtype.str,
        "labels": has_labels,
        "origin": origin,
    }
    if table is not None:
        description[TABLE] = table.as_dict()
    return dict(json.loads(json.dumps(description)))


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; raise ValueError, and nothing else, if it is damaged."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def fits_description(found: Any, description: dict[str, Any]) -> bool:
    """Return whether what was read from a file agrees with all entries of the description."""
    if not isinstance(found, dict):
        return False
    found = {**found, "columns": _columns_as_now(found)}
    return description == {k: found.get(k) for k in description}


def _columns_as_now(description: dict[str, Any]) -> Any:
    """Return the entry on columns, in the form in which it would be written now.

    Older files have no such entry if they have all columns, and call chosen columns observed.
    """
    columns = description.get("columns", {"kind": "all"})
    if isinstance(columns, dict) and columns.get("kind") == "observed":
        columns = {**columns, "kind": "chosen"}
    return columns


def columns_in(description: dict[str, Any]) -> dict[str, Any]:
    """Return the entry on columns; raise ValueError if it is invalid."""
    columns = _columns_as_now(description)
    kind = columns.get("kind") if isinstance(columns, dict) else None
    if kind not in ("all", "chosen", "hashed"):
        raise ValueError(f"their kind must be all, chosen or hashed; it is {kind!r}")
    if kind != "all":
        n_columns = columns.get("n_columns")
        if type(n_columns) is not int or not 0 <= n_columns <= MAX_COMPACT_COLUMNS:
            raise ValueError(
                f"their number must be in [0, {MAX_COMPACT_COLUMNS}]; it is {n_columns!r}"
            )
    if kind == "chosen" and not isinstance(columns.get("sha256"), str):
        raise ValueError("chosen columns must have a sha256")
    return dict(columns)


def n_columns_in(description: dict[str, Any]) -> int:
    """Return the number of columns of the expansion."""
    columns = columns_in(description)
    if columns["kind"] == "all":
        return MonomialBasis(**description["basis"]).n_columns
    return int(columns["n_columns"])
