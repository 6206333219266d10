"""What an expansion on disk is, as JSON: basis, columns, dtypes, where it came from."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import MAX_COMPACT_COLUMNS, ColumnSpace

VERSION = 1


def describe(
    columns: ColumnSpace,
    index_dtype: np.dtype[Any],
    dtype: np.dtype[Any],
    *,
    has_labels: bool,
    origin: dict[str, Any],
) -> dict[str, Any]:
    """What must be the same for two runs to write the same, as JSON gives it back."""
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
    return dict(json.loads(json.dumps(description)))


def fits_description(found: Any, description: dict[str, Any]) -> bool:
    """Whether what was read from a file says all that the description says."""
    if not isinstance(found, dict):
        return False
    found = {**found, "columns": _columns_as_now(found)}
    return description == {k: found.get(k) for k in description}


def _columns_as_now(description: dict[str, Any]) -> Any:
    """The part on columns, of older files as it would be written now.

    They say nothing of columns if they have all, and called chosen ones observed.
    """
    columns = description.get("columns", {"kind": "all"})
    if isinstance(columns, dict) and columns.get("kind") == "observed":
        columns = {**columns, "kind": "chosen"}
    return columns


def columns_in(description: dict[str, Any]) -> dict[str, Any]:
    """The part on columns; raise if it makes no sense."""
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
        raise ValueError("chosen ones must have a sha256")
    return dict(columns)


def n_columns_in(description: dict[str, Any]) -> int:
    """How many columns the expansion has."""
    columns = columns_in(description)
    if columns["kind"] == "all":
        return MonomialBasis(**description["basis"]).n_columns
    return int(columns["n_columns"])
