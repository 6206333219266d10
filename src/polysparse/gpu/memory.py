"""The memory of the device: what does not fit is refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cupy
import numpy as np

from polysparse.gpu.expansion import free_bytes
from polysparse.machine import format_bytes


def require_free(n: int, what: str, way_out: str) -> None:
    """Raise MemoryError if n bytes are not free on the current device."""
    if n <= cupy.get_default_memory_pool().free_bytes():
        return  # a query of the device takes longer
    free = free_bytes()
    if n > free:
        raise MemoryError(
            f"{what} would need {format_bytes(n)}; {format_bytes(free)} are free on the GPU. "
            f"{way_out}"
        )


def require_dense_room(shape: tuple[int, int], dtype: np.dtype[Any], way_out: str) -> None:
    """Raise MemoryError if a dense result does not fit."""
    what = f"A dense result of shape {shape[0]:,} x {shape[1]:,}"
    require_free(shape[0] * shape[1] * dtype.itemsize, what, way_out)


@contextmanager
def explaining_memory_errors(what: str, way_out: str) -> Iterator[None]:
    """Say what was being made when the memory of the device did not suffice."""
    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise MemoryError(
            f"{what} needs more memory than the {format_bytes(free_bytes())} that are free on the "
            f"GPU. {way_out}"
        ) from error
