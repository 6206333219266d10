"""The backend of Dask arrays: what `dispatch.Backend` describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polysparse.dask.arrays import sample_of
from polysparse.dask.counting import count
from polysparse.dask.expansion import expand, iter_expand
from polysparse.dask.models import open_rows, predict
from polysparse.dask.refusals import operator, plan
from polysparse.dask.searching import top_interactions
from polysparse.dask.transformers import transform

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
    from polysparse.dask import handler
    from polysparse.dispatch import Backend

    _is_backend: Backend = handler
