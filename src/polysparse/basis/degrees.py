"""Parse the argument `degree`, an int or a pair."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

Degree = int | Iterable[int]


def as_degree_range(degree: Any) -> tuple[int, int]:
    """Read `degree` as (min_degree, max_degree)."""
    if isinstance(degree, Integral):
        pair: list[Any] = [0, degree]
    elif isinstance(degree, tuple | list) or (isinstance(degree, np.ndarray) and degree.ndim == 1):
        pair = list(degree)
    else:
        pair = []
    if len(pair) != 2 or not all(isinstance(d, Integral) and int(d) >= 0 for d in pair):
        raise ValueError(
            "degree must be a non-negative int, or a pair (min_degree, max_degree) of them; "
            f"got {degree!r}."
        )
    low, high = map(int, pair)
    if low > high:
        raise ValueError(
            f"degree=(min_degree, max_degree) must fulfil min_degree <= max_degree; got {degree!r}."
        )
    return low, high
