"""The resources of a pass over a file, and the interface through which it reports progress."""

from __future__ import annotations

from dataclasses import dataclass

from polysparse.machine import available_if_less


class Progress:
    """Receives reports on how far a pass has come, and ignores them."""

    def start(self, done: int, phase: str = "", stored: int = 0) -> None:
        """Report that a pass begins; an earlier run has done some rows, with `stored` values."""

    def advance(self, rows: int, stored: int, bytes_per_value: int) -> None:
        """Report that `rows` more rows were written, with `stored` stored values."""

    def advance_to(self, rows: int, text: str) -> None:
        """Report that `rows` rows were processed in total, and describe the result so far."""


MEMORY = 2**30  # bytes of working memory, unless another limit is given


@dataclass(frozen=True)
class Resources:
    """The resources that a pass may use, and where it reports its progress.

    Without a limit, the working memory is MEMORY, and counts of columns may take all that is
    available.
    """

    max_memory: int | None = None
    n_jobs: int | None = None  # by default every core
    progress: Progress = Progress()  # noqa: RUF009

    @property
    def limit(self) -> int:
        """Bytes of working memory that may be used."""
        return MEMORY if self.max_memory is None else self.max_memory

    @property
    def memory(self) -> int:
        """Bytes of working memory to use: a limit may be far above what is available."""
        available = available_if_less(self.limit)
        return self.limit if available is None else available
