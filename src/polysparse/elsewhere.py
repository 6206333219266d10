"""Data that are elsewhere: who handles a container whose values are not in this process's memory.

A dask array may be larger than any memory, and a matrix on a GPU is to stay there, so nothing here
may ask for its values. A function or method that takes X hands such a container over before it
looks at it::

    if (away := handler_of(X)) is not None:
        return away.expand(X, columns=columns, ...)

A handler is a module that has a function for everything that is handed over; that of Dask is
`polysparse.dask.handler`, that of GPUs `polysparse.gpu.handler`. The rooms that hand over stand
above them, so a handler is imported by its name, and only when it is needed. Whoever cannot hand
over calls `require_here`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Where values can be: the handler, how it is called, and how to get them here.
_HANDLERS = {
    "dask": (
        "polysparse.dask.handler",
        "of dask",
        "X.compute(), if it fits into memory, or a part of it: X.blocks[0].compute()",
    ),
    "gpu": ("polysparse.gpu.handler", "on a GPU", "X.get() or, if it is a tensor, X.cpu()"),
}


def handler_of(X: Any) -> Any:
    """Return the module that handles a container, or None if X is in this process."""
    where = _where(X)
    return None if where is None else import_module(_HANDLERS[where][0])


def require_here(X: Any) -> None:
    """Raise TypeError if X is not in this process."""
    where = _where(X)
    if where is not None:
        _, name, way_out = _HANDLERS[where]
        raise TypeError(
            f"X is {name}, and its values are elsewhere: they are needed here. Give {way_out}."
        )


def _where(X: Any) -> str | None:
    """Return where the values of X are, without importing anything; None if they are here."""
    package = type(X).__module__.partition(".")[0]
    if package == "dask":
        return "dask"
    if package == "torch":
        return "gpu" if getattr(X, "is_cuda", False) and "sparse" in str(X.layout) else None
    is_on_gpu = package == "cupyx" or (
        hasattr(X, "indptr") and hasattr(X.data, "__cuda_array_interface__")
    )
    return "gpu" if is_on_gpu else None
