"""Preparation of a Python worker's process, which Spark uses for many tasks."""

from __future__ import annotations

import gc
import sys
from functools import cache

import numpy as np


def prepare_process() -> None:
    """Make later tasks in this process cheaper. Calls after the first cost nothing."""
    _exclude_from_garbage_collection(len(sys.modules))
    _keep_freed_memory()


@cache
def _exclude_from_garbage_collection(n_modules: int) -> None:
    """Exclude the objects that exist now, mostly of modules, from garbage collection.

    Spark collects garbage after each task, which takes 100 ms for the objects of the modules that a
    worker imports: longer than many tasks. Modules that are imported later are excluded then.
    """
    gc.collect()
    gc.freeze()


@cache
def _keep_freed_memory() -> None:
    """Let the C library reuse the memory of freed arrays for the next batch.

    glibc returns large arrays to the system, and page faults of new ones take longer than filling
    them. Its threshold rises to the size of the largest array that was freed, up to 32 MB. With
    other C libraries this has no effect; the array is never touched.
    """
    np.empty(2**25 - 2**16, np.uint8)
