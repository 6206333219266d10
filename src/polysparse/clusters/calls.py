"""Descriptions of calls that workers make, one for each block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polysparse.models.row_store import Function

GROUP_SIZE = 8  # blocks, or sums of blocks, that are added together
ONE_THREAD = 1  # a task already has a core of its own


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a function for every block, to be made when its result is needed.

    Attributes
    ----------
    function : callable
        A pure function.
    arguments : tuple
        Other calls, and what else stands for something that is known of a block.
    shared : dict
        Keyword arguments, the same for all blocks.
    """

    function: Function
    arguments: tuple[Any, ...]
    shared: dict[str, Any]

    @classmethod
    def now(cls, function: Function, arguments: tuple[Any, ...], shared: dict[str, Any]) -> Call:
        """Describe a call with arrays as they are now: a solver goes on to change them."""
        own = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in shared.items()}
        return cls(function, arguments, own)

    def make(self, find: Callable[[Any], Any]) -> Any:
        """Make the call for a block: find(argument) is what an argument stands for."""
        shared = {name: find(value) for name, value in self.shared.items()}
        return self.function(*map(find, self.arguments), **shared)


def threads_in_task(n_jobs: int | None) -> int:
    """Return n_jobs for a task: a single thread, unless another number was given."""
    return ONE_THREAD if n_jobs is None else n_jobs
