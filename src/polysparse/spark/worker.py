"""The process of a Python worker, which Spark uses for one task after the other."""

from __future__ import annotations

import gc
import sys
from functools import cache


def except_from_garbage() -> None:
    """Except the objects that are there now, mostly modules, from the search for garbage.

    After each task Spark searches among all objects, which takes 100 ms for those of the modules
    that a worker imports: longer than many a task.
    """
    _freeze(len(sys.modules))


@cache
def _freeze(n_modules: int) -> None:
    """Do so once, and again when there are more modules."""
    gc.collect()
    gc.freeze()
