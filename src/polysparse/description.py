"""What an expansion on disk is, as JSON: basis, columns, dtypes, where it came from."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis import MonomialBasis
from polysparse.columns import MAX_SELECTED, ChosenColumns, ColumnSpace, HashedColumns

VERSION = 1
ALL: dict[str, Any] = {"kind": "all"}  # also of what was written before there were other kinds


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
        "basis": basis_as_dict(columns.basis),
        "columns": columns_as_dict(columns),
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
    found = {"columns": ALL, **found}
    return description == {k: found.get(k) for k in description}


def basis_as_dict(basis: MonomialBasis) -> dict[str, Any]:
    """The arguments that make the basis again."""
    return {
        "n_features": basis.n_features,
        "degree": [basis.min_degree, basis.max_degree],
        "interaction_only": basis.interaction_only,
        "include_bias": basis.include_bias,
    }


def columns_as_dict(columns: ColumnSpace) -> dict[str, Any]:
    """Which columns of the basis there are."""
    if isinstance(columns, ChosenColumns):
        n_columns, digest = columns.n_columns, digest_of(columns.ranks)
        return {"kind": "observed", "n_columns": n_columns, "sha256": digest}
    if isinstance(columns, HashedColumns):
        return {
            "kind": "hashed",
            "n_columns": columns.n_columns,
            "alternate_sign": columns.alternate_sign,
            "seed": columns.seed,
        }
    return dict(ALL)


def digest_of(ranks: NDArray[np.int64]) -> str:
    """SHA-256 of chosen columns, the same on every machine."""
    return hashlib.sha256(np.ascontiguousarray(ranks, dtype="<i8").view(np.uint8).data).hexdigest()


def columns_in(description: dict[str, Any]) -> dict[str, Any]:
    """The part on columns; raise if it cannot be."""
    columns = description.get("columns", ALL)
    kind = columns.get("kind") if isinstance(columns, dict) else None
    if kind not in ("all", "observed", "hashed"):
        raise ValueError(f"their kind must be all, observed or hashed; it is {kind!r}")
    if kind != "all":
        n_columns = columns.get("n_columns")
        if type(n_columns) is not int or not 0 <= n_columns <= MAX_SELECTED:
            raise ValueError(f"their number must be in [0, {MAX_SELECTED}]; it is {n_columns!r}")
    if kind == "observed" and not isinstance(columns.get("sha256"), str):
        raise ValueError("observed ones must have a sha256")
    return dict(columns)


def n_columns_in(description: dict[str, Any]) -> int:
    """How many columns the expansion has."""
    columns = columns_in(description)
    if columns["kind"] == "all":
        return MonomialBasis(**description["basis"]).n_columns
    return int(columns["n_columns"])
