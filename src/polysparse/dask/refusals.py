"""What is handed over, and not done on dask arrays."""

from __future__ import annotations

from typing import Any

from polysparse.elsewhere import require_here


def refuse(X: Any, *_: Any, **__: Any) -> Any:
    """Raise TypeError: the values of X are needed here."""
    require_here(X)


plan = operator = refuse
