"""Arrays as kernels read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_contiguous_aligned(array: Any, dtype: np.dtype[Any] | type | None = None) -> NDArray[Any]:
    """Return a contiguous and aligned array; a copy only if it must be one.

    numpy.require takes ten times as long.
    """
    out: NDArray[Any] = np.ascontiguousarray(array, dtype)
    return out if out.flags.aligned else out.copy()
