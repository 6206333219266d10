"""Fitted models that travel to workers."""

from __future__ import annotations

from copy import copy
from typing import Any

from polysparse.clusters.calls import threads_in_task


def travelling(model: Any) -> Any:
    """Return a copy of a fitted model that has what tasks need, and no more."""
    light = copy(model)
    light.n_jobs = threads_in_task(model.n_jobs)
    light.column_counts_ = None
    vars(light).pop("feature_names_in_", None)  # blocks have no names to compare
    return light
