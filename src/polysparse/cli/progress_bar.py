"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from polysparse.stream.resources import Progress


class ProgressBar(Progress):
    """Shows rows done, stored values, bytes per second and time left, if on a terminal."""

    def __init__(self, quiet: bool, total: int, unit: str = "rows") -> None:
        self.total, self.done, self.stored, self.bytes = total, 0, 0, 0
        self.phase = ""
        self.bar: Any = None
        if not quiet and sys.stderr.isatty():
            self.bar = _make_bar()
            self.task = self.bar and self.bar.add_task("", total=total, text=unit)

    def __enter__(self) -> ProgressBar:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()

    @property
    def is_shown(self) -> bool:
        """Whether the user sees the bar."""
        return self.bar is not None

    def start(self, done: int, phase: str = "", stored: int = 0) -> None:
        # Rows of an earlier run do not count towards the speed.
        self.done, self.stored, self.bytes = done, stored, 0
        self.phase = f"{phase}: " if phase else ""
        if self.bar:
            self.bar.reset(self.task, completed=done, text=f"{self.phase}rows")

    def advance(self, rows: int, stored: int, bytes_per_value: int) -> None:
        self.done += rows
        self.stored += stored
        self.bytes += stored * bytes_per_value
        if self.bar:
            elapsed = self.bar.tasks[0].elapsed or 1e-9
            speed = f"{self.bytes / elapsed / 1e6:,.0f} MB/s"
            text = f"{self.phase}{self.done:,} rows, {self.stored:,} values, {speed}"
            self.bar.update(self.task, completed=self.done, text=text)

    def advance_to(self, rows: int, text: str) -> None:
        self.done = rows
        if self.bar:
            self.bar.update(self.task, completed=rows, text=f"{self.phase}{rows:,} rows, {text}")

    def set_fraction(self, fraction: float, text: str) -> None:
        """Set the fraction done, with a text on what is being done."""
        if self.bar:
            self.bar.update(self.task, completed=fraction * self.total, text=text)


def _make_bar() -> Any:
    try:
        from rich.console import Console
        from rich.constrain import Constrain
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
        from rich.table import Column
    except ImportError:
        return None

    console = Console(stderr=True)

    class OneLine(Bar):
        """A bar that ends before the line does."""

        def get_renderable(self) -> Any:
            """Leave room for the ^C of a terminal, after which the bar is drawn once more.

            In a full line it would move the cursor down, and the bar would be there twice.
            """
            return Constrain(super().get_renderable(), console.width - len("^C") - 1)

    return OneLine(
        BarColumn(16),
        TextColumn("{task.percentage:>3.0f}%", table_column=Column(no_wrap=True)),
        # Text that does not fit in the line is cut off in this column.
        TextColumn(
            "{task.fields[text]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
        console=console,
        expand=True,
    )
