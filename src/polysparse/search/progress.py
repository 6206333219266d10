"""How far a long search is, and a warning if it would take hours."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

FIRST_ESTIMATE = 1.0  # seconds
NOTHING_DONE = 10.0  # seconds without any progress that are worth a warning
LONG = 3600.0  # seconds


class LongSearch:
    """Is called with the share of a search that is done; passes it on to `progress`.

    Warns once if the whole search would take longer than an hour. The share is counted as if
    nothing were pruned, and a search begins with what is pruned least, so it is often faster.
    """

    def __init__(self, progress: Callable[[float], object] | None = None) -> None:
        self.started = time.monotonic()
        self.progress = progress
        self.has_warned = False

    def __call__(self, share: float) -> None:
        if self.progress is not None:
            self.progress(share)
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
