"""The resources of a pass over a file, and the interface through which it reports progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Progress(Protocol):
    """Receives reports on how far a pass has come."""

    def start(self, done: int, phase: str = "", stored: int = 0) -> None:
        """Report that a pass begins; an earlier run has done some rows, with `stored` values."""
        ...

    def advance(self, rows: int, stored: int, bytes_per_value: int) -> None:
        """Report that `rows` more rows were written, with `stored` stored values."""
        ...

    def advance_to(self, rows: int, text: str) -> None:
        """Report that `rows` rows were processed in total, and describe the result so far."""
        ...


class Silence:
    """A progress object that ignores every report."""

    def start(self, done: int, phase: str = "", stored: int = 0) -> None:
        """Ignore the report."""

    def advance(self, rows: int, stored: int, bytes_per_value: int) -> None:
        """Ignore the report."""

    def advance_to(self, rows: int, text: str) -> None:
        """Ignore the report."""


MEMORY = 2**30  # bytes of working memory, unless another limit is given


@dataclass(frozen=True)
class Resources:
    """The resources that a pass may use.

    Attributes
    ----------
    max_memory : int, optional
        Bytes of working memory. Without a limit, the working memory is 1 GiB, and counts of columns
        may take all available memory.
    n_jobs : int, optional
        Number of threads; by default every core.
    progress : Progress
        Object to report progress to.
    """

    max_memory: int | None = None
    n_jobs: int | None = None
    progress: Progress = Silence()  # noqa: RUF009

    @property
    def memory(self) -> int:
        """Bytes of working memory."""
        return MEMORY if self.max_memory is None else self.max_memory
