"""Who computes: an engine counts, fills and observes, for one kind of processor.

`cpu` is the only importer of the compiled module. A GPU engine will be a second module with the
same verbs and the same bits. An engine reads bases and columns by their attributes (see
`descriptions`) and imports no room but `machine`, so every room may call on it.
"""

from __future__ import annotations

from typing import Any

from polysparse.engine import cpu
from polysparse.engine.descriptions import Engine


def engine_for(x: Any) -> Engine:
    """The engine for canonical input. Arrays in main memory are the processor's."""
    return cpu
