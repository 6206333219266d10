"""Online models and what a file holds of them: the whole state of the learner."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.names import as_feature_names
from polysparse.estimators.tabular import (
    describe_features,
    n_encoded,
    restore_features,
)
from polysparse.files.archive import encoding_in
from polysparse.files.online_file import OnlineFile
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.online.learner import RATES, Learner, Rows, Settings
from polysparse.models.online.scaling import Scaling
from polysparse.models.saving import as_plain, estimator_with, from_plain, parameters_of


def as_online_file(model: Any, **more: Any) -> OnlineFile:
    """Return what a file holds of a fitted online model, with further entries."""
    as_feature_names(model.feature_names, n_encoded(model))
    learner: Learner = model.learner_
    progress, scaling = learner.progress, learner.scaling
    more |= {
        "parameters": parameters_of(model),
        "settings": asdict(learner.settings),
        "n_rows": learner.n_rows,
        "progress": [progress.n_rows, progress.every, progress.seconds],
    }
    if hasattr(model, "classes_"):
        more["classes"] = as_plain("classes_", model.classes_)
    more |= describe_features(model)
    arrays: dict[str, NDArray[Any]] = {
        "state": np.stack(learner.states) if len(learner.states) > 1 else learner.states[0][None],
        "rates": np.array(learner.rates),
        "losses": learner.losses,
        "sums": progress.sums,
        "history": np.array(progress.history, np.float64).reshape(-1, 3),
        "last": progress.last,
    }
    if scaling is not None:
        arrays["largest"] = scaling.largest
        more["scaling"] = [scaling.n_rows, scaling.norms, scaling.squares]
    if learner.pending is not None:
        x = learner.pending.x
        arrays |= {
            "pending_indptr": x.indptr.astype(np.int64),
            "pending_indices": x.indices.astype(np.int64),
            "pending_data": x.data,
            "pending_targets": learner.pending.targets,
            "pending_weights": learner.pending.weights,
        }
    return OnlineFile(model._kind, learner.columns, arrays, more)


def as_online_model(file: OnlineFile, make: type) -> Any:
    """Return the model of a file; raise ValueError or TypeError if it is damaged."""
    model = estimator_with(make, file.more["parameters"])
    model._require_parameters()
    settings = Settings(**file.more["settings"])
    n_features = file.columns.basis.n_features
    as_feature_names(model.feature_names, n_features)
    restore_features(model, n_features, file.more, encoding_in(file.more, file.columns.basis))
    if "classes" in file.more:
        model.classes_ = from_plain(file.more["classes"])
    _require_consistent(model, settings)
    model.learner_ = _learner_of(file, settings)
    model.column_space_ = file.columns
    return model


def _require_consistent(model: Any, settings: Settings) -> None:
    """Raise ValueError unless the loss is that of the model, with a score for each class."""
    n_scores = 1
    if hasattr(model, "_set_classes"):
        classes = np.asarray(getattr(model, "classes_", ()))
        if classes.ndim != 1 or not np.array_equal(np.unique(classes), classes):
            raise ValueError(f"its classes do not rise: {classes}")
        model._set_classes(classes)
        n_scores = 1 if len(classes) == 2 else len(classes)
    if settings.n_scores != n_scores or settings.loss != model._loss_name(n_scores):
        raise ValueError(f"its loss is {settings.loss!r}, of {settings.n_scores} scores")


def _learner_of(file: OnlineFile, settings: Settings) -> Learner:
    arrays, more = file.arrays, file.more
    n_states = len(arrays["state"])
    shape = n_states, file.columns.n_columns + 1, settings.n_scores, 2
    if arrays["state"].shape != shape or n_states not in (1, len(RATES)):
        raise ValueError(f"state has the wrong shape, {arrays['state'].shape}")
    for name in ("rates", "losses"):
        if arrays[name].shape != (n_states,):
            raise ValueError(f"{name} has the wrong shape, {arrays[name].shape}")
    for name in ("state", "rates", "sums", "last", "history"):
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} is not finite everywhere")
    if np.any(arrays["state"][..., 1] < 0) or np.any(arrays["rates"] <= 0):
        raise ValueError("a sum of squares or a rate is negative")
    learner = Learner(file.columns, settings)
    learner.restore(list(arrays["state"]), arrays["rates"].tolist())
    learner.losses, learner.n_rows = arrays["losses"].copy(), _count(more["n_rows"])
    learner.scaling = _scaling_of(file, settings)
    learner.pending = _pending_of(file, learner)
    progress = learner.progress
    n_rows, every, seconds = more["progress"]
    progress.n_rows, progress.every = _count(n_rows), _count(every)
    progress.seconds = float(seconds)
    if arrays["sums"].shape != (4,) or arrays["history"].shape[1:] != (3,) or progress.every < 1:
        raise ValueError("its progress is malformed")
    progress.sums, progress.last = arrays["sums"].copy(), arrays["last"].reshape(-1, 2)
    progress.history = [(int(n), w, loss) for n, w, loss in arrays["history"].tolist()]
    return learner


def _scaling_of(file: OnlineFile, settings: Settings) -> Scaling | None:
    if settings.rate is not None:
        return None
    largest = file.arrays["largest"].copy()
    n_rows, norms, squares = file.more["scaling"]
    if largest.shape != (file.columns.basis.n_features,) or not np.all(largest >= 0):
        raise ValueError("largest must be a nonnegative number for each feature")
    has_targets = settings.loss == "squared"
    return Scaling(largest, has_targets, _count(n_rows), float(norms), float(squares))


def _pending_of(file: OnlineFile, learner: Learner) -> Rows | None:
    if "pending_indptr" not in file.arrays:
        return None
    indptr, indices, data, targets, weights = (
        file.arrays[f"pending_{name}"]
        for name in ("indptr", "indices", "data", "targets", "weights")
    )
    n_rows, n_features = len(targets), file.columns.basis.n_features
    is_whole = len(indptr) == n_rows + 1 == len(weights) + 1 and len(indices) == len(data)
    if not is_whole or n_rows == 0 or indptr[0] != 0 or indptr[-1] != len(indices):
        raise ValueError("its rows that wait are malformed")
    if np.any(np.diff(indptr) < 0) or np.any(indices < 0) or np.any(indices >= n_features):
        raise ValueError("its rows that wait are malformed")
    x = CanonicalCsr((n_rows, n_features), indptr, indices, data, is_array=True)
    return Rows(x, targets, weights)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a number of rows")
    return value
