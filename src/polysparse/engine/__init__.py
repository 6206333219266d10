"""Engines: they count, fill and observe, each for one kind of processor.

Only `cpu` imports the compiled module. A GPU engine would be a second module with the same
operations and bit-identical results. An engine reads bases and columns by their attributes (see
`descriptions`) and imports nothing of polysparse except `thresholds` and `machine`, so every other
package may call it.
"""

from __future__ import annotations

from typing import Any

from polysparse.engine import cpu
from polysparse.engine.descriptions import Engine


def engine_for(x: Any) -> Engine:
    """Return the engine for canonical input; arrays in main memory belong to `cpu`."""
    return cpu
