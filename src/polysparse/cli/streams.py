"""Standard streams, some of which the caller of the program may have closed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any


@contextmanager
def usable_streams() -> Iterator[None]:
    """Discard messages if standard error is closed; raise OSError if standard output is printed to.

    Otherwise `print` would write messages to standard output, and silently discard results.
    """
    _reserve_numbers()
    with ExitStack() as streams:
        if sys.stderr is None:
            nowhere = streams.enter_context(open(os.devnull, "w"))
            streams.enter_context(redirect_stderr(nowhere))
        if sys.stdout is None:
            closed = io.TextIOWrapper(_Closed(), write_through=True)  # type: ignore[type-var]
            streams.enter_context(redirect_stdout(closed))
        yield


class _Closed(io.RawIOBase):
    """Standard output, if it is closed."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raise OSError("standard output is closed: redirect it to a file.")


def _reserve_numbers() -> None:
    """Keep a file that is opened later from becoming standard output or standard error."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
