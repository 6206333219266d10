"""Function calls that are sent to workers, which make them once for each block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polysparse.models.row_store import Function

GROUP_SIZE = 8  # blocks, or sums of blocks, that are added together
ONE_THREAD = 1  # because a cluster runs a task on every core


@dataclass(frozen=True, eq=False)
class Call:
    """A function and its arguments, to be called for each block when the result is needed.

    Attributes
    ----------
    function : callable
        A pure function.
    arguments : tuple
        Other calls, whose results for a block are passed, or references to what is kept of it.
    shared : dict
        Keyword arguments, the same for all blocks.
    """

    function: Function
    arguments: tuple[Any, ...]
    shared: dict[str, Any]

    @classmethod
    def now(cls, function: Function, arguments: tuple[Any, ...], shared: dict[str, Any]) -> Call:
        """Return a call with copies of shared arrays, because solvers change theirs in place."""
        own = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in shared.items()}
        return cls(function, arguments, own)

    def make(self, find: Callable[[Any], Any]) -> Any:
        """Call the function for a block; find(argument) returns the value of an argument."""
        shared = {name: find(value) for name, value in self.shared.items()}
        return self.function(*map(find, self.arguments), **shared)


def threads_in_task(n_jobs: int | None) -> int:
    """Return the number of threads of a task: n_jobs, by default 1."""
    return ONE_THREAD if n_jobs is None else n_jobs
