"""The backend of matrices on a GPU: what `dispatch.Backend` describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polysparse.extras import how_to_install

try:
    import cupy  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"Matrices on a GPU need CuPy, including those of PyTorch: {how_to_install('cuda')}"
    ) from error

from polysparse.gpu.expansion import expand, iter_expand, plan
from polysparse.gpu.operators import operator
from polysparse.gpu.row_store import open_rows, predict
from polysparse.gpu.searching import top_interactions
from polysparse.gpu.transformers import count, sample_of, transform

__all__ = [
    "count",
    "expand",
    "iter_expand",
    "open_rows",
    "operator",
    "plan",
    "predict",
    "sample_of",
    "top_interactions",
    "transform",
]

if TYPE_CHECKING:
    from polysparse.dispatch import Backend
    from polysparse.gpu import handler

    _is_backend: Backend = handler
