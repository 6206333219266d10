"""What a pass over a file may use, and whom it tells how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Progress(Protocol):
    """Is told how far a pass is."""

    def start(self, done: int, phase: str = "") -> None:
        """A pass begins; an earlier run has done so many rows of it."""
        ...

    def advance(self, rows: int, stored: int, bytes_per_value: int) -> None:
        """So many more rows were written, with so many stored values."""
        ...

    def advance_to(self, rows: int, text: str) -> None:
        """So many rows were looked at in all, and what was found in them."""
        ...


class Silence:
    """A progress that nobody looks at."""

    def start(self, done: int, phase: str = "") -> None:
        """Say nothing."""

    def advance(self, rows: int, stored: int, bytes_per_value: int) -> None:
        """Say nothing."""

    def advance_to(self, rows: int, text: str) -> None:
        """Say nothing."""


MEMORY = 2**30  # bytes to work in, unless another limit is given


@dataclass(frozen=True)
class Means:
    """What a pass may use.

    Attributes
    ----------
    max_memory : int, optional
        Bytes to work in. Without a limit, a gigabyte, and what is available for counts of columns.
    n_jobs : int, optional
        Threads; by default every core.
    progress : Progress
    """

    max_memory: int | None = None
    n_jobs: int | None = None
    progress: Progress = Silence()  # noqa: RUF009

    @property
    def memory(self) -> int:
        """Bytes to work in."""
        return MEMORY if self.max_memory is None else self.max_memory
