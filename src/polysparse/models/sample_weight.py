"""The parameters sample_weight and offset."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from polysparse.engine.contiguous import as_contiguous_aligned


def as_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Read the weights of rows: None, a number, or one for each row. Their range is not checked."""
    if sample_weight is None or isinstance(sample_weight, Real):
        return np.full(n_rows, 1.0 if sample_weight is None else float(sample_weight))
    return _one_for_each("sample_weight", "weight", sample_weight, n_rows)


def as_offset(offset: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Read what is added to the scores of rows: None, a finite number, or one for each row."""
    if offset is None:
        return None
    if isinstance(offset, Real):
        if not np.isfinite(float(offset)):
            raise ValueError(f"offset must be finite; got {offset}.")
        return np.full(n_rows, float(offset))
    return _one_for_each("offset", "number", offset, n_rows)


def _one_for_each(name: str, what: str, values: Any, n_rows: int) -> NDArray[np.float64]:
    found = check_array(
        values, ensure_2d=False, dtype=np.float64, ensure_min_samples=0, input_name=name
    )
    if found.shape != (n_rows,):
        raise ValueError(
            f"{name} has shape {found.shape}; one {what} for each of the {n_rows} rows of X is "
            "needed."
        )
    return as_contiguous_aligned(found)
