"""Copies of estimators for workers."""

from __future__ import annotations

from copy import copy
from typing import Any

from polysparse.clusters.calls import threads_in_task
from polysparse.columns.arguments import groups_or_names
from polysparse.estimators.observed import ObservedPolynomialFeatures
from polysparse.estimators.table_encoder import TableEncoder
from polysparse.estimators.tabular import encoder_of, set_encoder


def copy_for_workers(estimator: Any) -> Any:
    """Return a copy of a fitted model or transformer with only what tasks need."""
    light, encoder = copy(estimator), encoder_of(estimator)
    light.n_jobs = threads_in_task(estimator.n_jobs)
    if hasattr(light, "column_space_"):  # a model: prediction does not use the following
        for name in ("column_counts_", "_group_variances_", "feature_names", "groups", "terms"):
            setattr(light, name, None)
    elif encoder is None:
        names = getattr(light, "feature_names_in_", None)
        light.groups = groups_or_names(light.groups, light.terms, names)
    if encoder is not None:
        set_encoder(light, TableEncoder._of(encoder._encoding))  # without its counts of levels
    vars(light).pop("feature_names_in_", None)  # blocks have no names to compare
    return light.forget_rejected() if isinstance(light, ObservedPolynomialFeatures) else light
