"""How far a long search is, with lines for `verbose`, and a warning if it would take hours."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from types import TracebackType

FIRST_ESTIMATE = 1.0  # seconds
NOTHING_DONE = 10.0  # seconds without any progress that are worth a warning
LONG = 3600.0  # seconds
BETWEEN_LINES = 1.0  # seconds


class LongSearch:
    """Is called with the share of a search that is done; passes it on to `progress`.

    Warns once if the whole search would take longer than an hour. The share is counted as if
    nothing were pruned, and a search begins with what is pruned least, so it is often faster.

    Parameters
    ----------
    progress : callable, optional
        Called with the share.
    name : str, default=""
        The function that searches, for lines.
    verbose : int, default=0
        If not 0, a line is printed about every second, and one at the end of a `with` block.
    """

    def __init__(
        self,
        progress: Callable[[float], object] | None = None,
        *,
        name: str = "",
        verbose: int = 0,
    ) -> None:
        self.started = self.printed = time.monotonic()
        self.progress = progress
        self.name, self.verbose = name, verbose
        self.has_warned = False

    def __enter__(self) -> LongSearch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is None:
            self._print(1.0)

    def _print(self, share: float) -> None:
        self.printed = time.monotonic()
        if self.verbose:
            print(f"{self.name}  {share:6.1%}  {self.printed - self.started:.2f} s")

    def __call__(self, share: float) -> None:
        if self.progress is not None:
            self.progress(share)
        if time.monotonic() - self.printed >= BETWEEN_LINES:
            self._print(share)
        elapsed = time.monotonic() - self.started
        if self.has_warned or elapsed < FIRST_ESTIMATE or elapsed <= share * LONG:
            return
        if share == 0 and elapsed < NOTHING_DONE:
            return
        self.has_warned = True
        hours = f"about {elapsed / share / 3600:,.0f} hours" if share > 0 else "many hours"
        warnings.warn(
            f"The search may take {hours}: after {elapsed:.0f} seconds, {share:.2%} is done. To "
            "shorten it, interrupt it and raise min_count, lower the degree, or restrict features "
            "with among and hierarchy.",
            stacklevel=8,
        )
