"""The backend of matrices on a GPU: what `dispatch.Backend` describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polysparse.gpu.expansion import expand, iter_expand, plan
from polysparse.gpu.models import fit, predict
from polysparse.gpu.operators import operator
from polysparse.gpu.transformers import count, sample_of, transform

__all__ = [
    "count",
    "expand",
    "fit",
    "iter_expand",
    "operator",
    "plan",
    "predict",
    "sample_of",
    "transform",
]

if TYPE_CHECKING:
    from polysparse.dispatch import Backend
    from polysparse.gpu import handler

    _is_backend: Backend = handler
