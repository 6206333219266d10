"""What Dask arrays do not support."""

from __future__ import annotations

from typing import Any

from polysparse.dispatch import require_in_memory


def plan(X: Any, *_: Any, **__: Any) -> Any:
    """Raise TypeError: X is needed in memory."""
    require_in_memory(X)


def operator(cls: type, X: Any, *_: Any, **__: Any) -> Any:
    """Raise TypeError: X is needed in memory."""
    require_in_memory(X)
