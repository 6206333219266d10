"""The rows of a fit, in one block or in many: functions of blocks, and sums over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse.models.design import Design

Function = Callable[..., Any]  # of a block, of what is kept of it, and of what all blocks share


@dataclass(frozen=True)
class Block:
    """Some rows of the data: their expansion, which is never built, and what to fit it to.

    Attributes
    ----------
    design : Design
        Products with the expansion.
    targets : ndarray of shape (n_rows,)
        Numbers, or the class of each row, counted from 0.
    weights : ndarray of float64 of shape (n_rows,)
        Non-negative weights of the rows.
    """

    design: Design
    targets: NDArray[Any]
    weights: NDArray[np.float64]


class Blocks(Protocol):
    """All rows, wherever they are. A solver asks for sums over them and sees nothing else.

    Functions are pure: what they return depends on their arguments alone, so that a block, or what
    is kept of it, may be lost and made again.

    Attributes
    ----------
    are_here : bool
        Whether there is one block, in this process, so that its rows may be updated in place.
    """

    are_here: bool

    def keep(self, function: Function, *kept: Any, once: bool = False, **shared: Any) -> Any:
        """Keep function(block, *kept of the block, **shared) of every block, where the block is.

        Parameters
        ----------
        function : callable
            The function.
        *kept : object
            What was kept before.
        once : bool, default=False
            Whether only the next call of `total` needs it.
        **shared : object
            What all blocks are told. It may be changed after the call.

        Returns
        -------
        object
            What stands for it in later calls. It is dropped when nothing refers to it.
        """

    def total(self, function: Function, *kept: Any, out: Any = None, **shared: Any) -> Any:
        """Return the tuple of sums over blocks, in their order, of what the function returns.

        `out` is an earlier result that is not needed any more; it may be written to.
        """


class OneBlock:
    """A block in this process, as Blocks."""

    are_here = True

    def __init__(self, block: Block) -> None:
        self.block = block

    def keep(self, function: Function, *kept: Any, once: bool = False, **shared: Any) -> Any:
        """Return the rows themselves."""
        return function(self.block, *kept, **shared)

    def total(self, function: Function, *kept: Any, out: Any = None, **shared: Any) -> Any:
        """Return what the function returns."""
        more = {} if out is None else {"out": out}
        return function(self.block, *kept, **shared, **more)


def add_in_order(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the sums of tuples, from the first to the last. The tuples are not changed."""
    parts = iter(parts)
    out, are_own = list(next(parts)), False
    for part in parts:
        for i, each in enumerate(part):
            if are_own and isinstance(each, np.ndarray) and each.ndim:
                out[i] += each
            else:
                out[i] = out[i] + each
        are_own = True
    return tuple(out)
