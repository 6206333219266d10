"""Data that are elsewhere: who handles a container whose blocks are not in this process.

A dask array may be larger than any memory, so nothing here may ask it for its values. A function or
method that takes X hands such a container over before it looks at it::

    if (away := handler_of(X)) is not None:
        return away.expand(X, columns=columns, ...)

A handler is a module that has a function for everything that is handed over; that of Dask is
`polysparse.dask.handler`. The rooms that hand over stand above it, so it is imported by its name,
and only when it is needed. Whoever cannot hand over calls `require_here`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Handlers by the package that containers belong to.
_HANDLERS = {"dask": "polysparse.dask.handler"}


def handler_of(X: Any) -> Any:
    """Return the module that handles a container, or None if X is in this process."""
    name = _HANDLERS.get(_package_of(X))
    return None if name is None else import_module(name)


def require_here(X: Any) -> None:
    """Raise TypeError if X is not in this process."""
    package = _package_of(X)
    if package in _HANDLERS:
        raise TypeError(
            f"X is of {package}, and its values are elsewhere: they are needed here. "
            "Give X.compute(), if it fits into memory, or a part of it: X.blocks[0].compute()."
        )


def _package_of(X: Any) -> str:
    return type(X).__module__.partition(".")[0]
