"""The process of a Python worker, which Spark uses for one task after the other."""

from __future__ import annotations

import gc
import sys
from functools import cache

import numpy as np


def settle() -> None:
    """Spare this process what it would do again and again, in each task."""
    _except_from_garbage(len(sys.modules))
    _keep_freed_memory()


@cache
def _except_from_garbage(n_modules: int) -> None:
    """Except the objects that are there now, mostly modules, from the search for garbage.

    After each task Spark searches among all objects, which takes 100 ms for those of the modules
    that a worker imports: longer than many a task. More modules are excepted once they are there.
    """
    gc.collect()
    gc.freeze()


@cache
def _keep_freed_memory() -> None:
    """Let the C library keep the memory of arrays that are freed, for those of the next batch.

    glibc gives arrays back to the system, and the next ones are new pages, whose first use takes
    longer than to fill them, unless an array as large as the largest that it would keep was freed.
    Where another library does not do so, nothing happens: the array is never touched.
    """
    np.empty(2**25 - 2**16, np.uint8)
