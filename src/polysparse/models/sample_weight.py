"""The parameter sample_weight."""

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
    weights = check_array(
        sample_weight,
        ensure_2d=False,
        dtype=np.float64,
        ensure_min_samples=0,
        input_name="sample_weight",
    )
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; one weight for each of the {n_rows} rows of "
            "X is needed."
        )
    return as_contiguous_aligned(weights)
