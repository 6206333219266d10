"""Copies of estimators for workers."""

from __future__ import annotations

from copy import copy
from typing import Any

from polysparse.clusters.calls import threads_in_task
from polysparse.estimators.observed import ObservedPolynomialFeatures


def copy_for_workers(estimator: Any) -> Any:
    """Return a copy of a fitted model or transformer with only what tasks need."""
    light = copy(estimator)
    light.n_jobs = threads_in_task(estimator.n_jobs)
    for name in ("column_counts_", "feature_names"):  # of models: prediction does not use them
        if hasattr(light, name):
            setattr(light, name, None)
    vars(light).pop("feature_names_in_", None)  # blocks have no names to compare
    return light.forget_rejected() if isinstance(light, ObservedPolynomialFeatures) else light
