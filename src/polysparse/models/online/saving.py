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
from polysparse.models.online.blocks import LARGEST
from polysparse.models.online.learner import RATES, Learner, Rows, Settings
from polysparse.models.online.progress import MOST_POINTS, WINDOW, Progress
from polysparse.models.online.sampling import RowSample, SampledRows, priorities_of
from polysparse.models.online.scaling import Scaling
from polysparse.models.saving import as_plain, estimator_with, from_plain, parameters_of


def as_online_file(model: Any, **more: Any) -> OnlineFile:
    """Return what a file holds of a fitted online model, with further entries.

    ValueError is raised if parameters are not those of the state any more.
    """
    model._require_same_parameters()
    as_feature_names(model.feature_names, n_encoded(model))
    learner: Learner = model.learner_
    progress, scaling = learner.progress, learner.scaling
    more |= {
        "parameters": parameters_of(model),
        "settings": asdict(learner.settings),
        "n_rows": learner.n_rows,
        "n_counted": learner.n_counted,
        "n_reported": learner.n_reported,
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
        more["scaling"] = [scaling.n_rows, scaling.norms, scaling.targets]
    if learner.pending is not None:
        x = learner.pending.x
        arrays |= {
            "pending_indptr": x.indptr.astype(np.int64),
            "pending_indices": x.indices.astype(np.int64),
            "pending_data": x.data,
            "pending_targets": learner.pending.targets,
            "pending_weights": learner.pending.weights,
        }
    if learner.sample is not None:
        rows = learner.sample.rows
        more["sample"] = [learner.sample.n_rows, learner.sample.bound]
        arrays |= {
            "sample_numbers": rows.numbers,
            "sample_indptr": rows.indptr,
            "sample_indices": rows.indices,
        }
    return OnlineFile(model._kind, learner.columns, arrays, more)


def as_online_model(file: OnlineFile, make: type) -> Any:
    """Return the model of a file; raise ValueError or TypeError if it is damaged."""
    model = estimator_with(make, file.more["parameters"])
    model._require_parameters()
    n_features = file.columns.basis.n_features
    as_feature_names(model.feature_names, n_features)
    restore_features(model, n_features, file.more, encoding_in(file.more, file.columns.basis))
    if "classes" in file.more:
        model.classes_ = from_plain(file.more["classes"])
    settings = model._settings(_n_scores_of(model))
    if file.more["settings"] != asdict(settings):
        raise ValueError(f"its settings are not those of its parameters: {settings}")
    model.learner_ = _learner_of(file, settings)
    if not model.keep_sample:
        model.learner_.sample = None
    model.column_space_ = file.columns
    model._set_begun_with()
    return model


def _n_scores_of(model: Any) -> int:
    """Return how many scores a row has; raise ValueError if there are no valid classes."""
    if not hasattr(model, "_set_classes"):
        return 1
    classes = np.asarray(getattr(model, "classes_", ()))
    if classes.ndim != 1 or not np.array_equal(np.unique(classes), classes):
        raise ValueError(f"its classes are not sorted: {classes}")
    model._set_classes(classes)
    return 1 if len(classes) == 2 else len(classes)


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
    if np.isnan(arrays["losses"]).any():
        raise ValueError("losses are not numbers")
    learner = Learner(file.columns, settings, list(arrays["state"]), arrays["rates"].tolist())
    learner.losses, learner.n_rows = arrays["losses"].copy(), _count(more["n_rows"])
    learner.n_counted = _count(more.get("n_counted", learner.n_rows))
    learner.n_reported = _count(more.get("n_reported", learner.n_rows))
    if max(learner.n_counted, learner.n_reported) > learner.n_rows:
        raise ValueError("its numbers of rows are not consistent")
    learner.scaling = _scaling_of(file, settings)
    learner.pending = _pending_of(file, learner)
    if "sample" in file.more:
        learner.sample = _sample_of(file, learner)
    _restore_progress(learner.progress, arrays, more["progress"])
    return learner


def _restore_progress(progress: Progress, arrays: dict[str, Any], counts: Any) -> None:
    """Set the progress to what was saved."""
    n_rows, every, seconds = counts
    progress.n_rows, progress.every = _count(n_rows), _count(every)
    progress.seconds = float(seconds)
    sums, history, last = (arrays[name] for name in ("sums", "history", "last"))
    is_shaped = sums.shape == (4,) and history.shape[1] == 3 and last.shape[1] == 2
    if not is_shaped or progress.every < 1 or not 0 <= progress.seconds < np.inf:
        raise ValueError("its progress is malformed")
    n_whole, n_more = divmod(progress.n_rows, progress.every)
    wanted = [progress.every] * n_whole + [n_more] * bool(n_more)
    is_consistent = len(history) == len(wanted) and np.array_equal(history[:, 0], wanted)
    if not is_consistent or n_whole > MOST_POINTS or len(last) != min(WINDOW, progress.n_rows):
        raise ValueError("its progress is malformed")
    progress.sums, progress.last = sums.copy(), last.copy()
    progress.history = [(int(n), w, loss) for n, w, loss in history.tolist()]


def _scaling_of(file: OnlineFile, settings: Settings) -> Scaling | None:
    if settings.rate is not None:
        return None
    largest = file.arrays["largest"].copy()
    n_rows, norms, targets = file.more["scaling"]
    if largest.shape != (file.columns.basis.n_features,) or not np.all(
        (largest >= 0) & np.isfinite(largest)
    ):
        raise ValueError("largest must be a finite nonnegative number for each feature")
    norms, targets = float(norms), float(targets)
    if not (0 <= norms < np.inf and 0 <= targets < np.inf):
        raise ValueError("its norms and targets must be finite and nonnegative")
    n_rows = _count(n_rows)
    if n_rows == 0 and (norms or targets):
        raise ValueError("its norms are those of no rows")
    return Scaling(largest, settings.loss, n_rows, norms, targets)


def _pending_of(file: OnlineFile, learner: Learner) -> Rows | None:
    if "pending_indptr" not in file.arrays:
        return None
    indptr, indices, data, targets, weights = (
        file.arrays[f"pending_{name}"]
        for name in ("indptr", "indices", "data", "targets", "weights")
    )
    n_rows, n_features = len(targets), file.columns.basis.n_features
    _require_rows("its rows that wait", n_rows, n_features, indptr, indices)
    is_whole = n_rows == len(weights) and len(indices) == len(data)
    if not is_whole or not 0 < n_rows < LARGEST or not np.isfinite(data).all():
        raise ValueError("its rows that wait are malformed")
    s = learner.settings
    has_classes = s.loss in ("two_classes", "classes")
    n_classes = max(2, s.n_scores) if has_classes else np.inf
    are_targets = np.isfinite(targets)
    if has_classes:
        are_targets &= (targets >= 0) & (targets < n_classes) & (targets == np.round(targets))
    if s.loss == "poisson":
        are_targets &= targets >= 0
    if not are_targets.all() or not np.all((weights >= 0) & np.isfinite(weights)):
        raise ValueError("its rows that wait have invalid targets or weights")
    x = CanonicalCsr((n_rows, n_features), indptr, indices, data, is_array=True)
    return Rows(x, targets, weights)


def _sample_of(file: OnlineFile, learner: Learner) -> RowSample:
    if learner.sample is None:
        raise ValueError("it has a sample of rows, but its columns are not hashed")
    numbers, indptr, indices = (
        file.arrays[f"sample_{name}"] for name in ("numbers", "indptr", "indices")
    )
    n_rows, bound = file.more["sample"]
    n_features = file.columns.basis.n_features
    _require_rows("its sampled rows", len(numbers), n_features, indptr, indices)
    numbers_and_bound = numbers if bound is None else np.append(numbers, _count(bound))
    are_known = (numbers_and_bound >= 0) & (numbers_and_bound < _count(n_rows))
    priorities = priorities_of(numbers_and_bound)
    if n_rows > learner.n_rows or not are_known.all() or np.any(priorities[1:] <= priorities[:-1]):
        raise ValueError("the numbers of its sampled rows are not consistent")
    x = RowSample(rows=SampledRows(numbers, numbers, indptr, indices)).as_matrix(n_features)
    rows = SampledRows(numbers, np.diff(learner._count(x)), indptr, indices)
    if not rows.are_within_limits():
        raise ValueError("it has more sampled rows than a sample has")
    return RowSample(n_rows, bound, rows)


def _require_rows(
    what: str,
    n_rows: int,
    n_features: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
) -> None:
    """Raise ValueError unless the arrays are those of rows whose features increase."""
    is_whole = len(indptr) == n_rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
    if not is_whole or np.any(np.diff(indptr) < 0):
        raise ValueError(f"{what} are malformed")
    is_row_end = np.zeros(len(indices) + 1, bool)
    is_row_end[indptr] = True
    is_sorted = np.all((np.diff(indices) > 0) | is_row_end[1:-1])
    if not is_sorted or np.any(indices < 0) or np.any(indices >= n_features):
        raise ValueError(f"{what} are malformed")


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a number of rows")
    return value
