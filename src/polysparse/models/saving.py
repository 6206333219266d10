"""Fitted models and what a file holds of them: arrays, and plain values for JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from polysparse.basis.groups import FeatureGroups
from polysparse.basis.names import as_feature_names
from polysparse.estimators.hashed import HashedPolynomialFeatures
from polysparse.estimators.observed import ObservedPolynomialFeatures
from polysparse.estimators.polynomial import PolynomialFeatures
from polysparse.estimators.table_encoder import TableEncoder
from polysparse.estimators.tabular import describe_features, n_encoded, restore_features
from polysparse.files.model_file import ModelFile
from polysparse.models.importance import GroupTuples

TRANSFORMERS: dict[str, Any] = {
    "all": PolynomialFeatures,
    "observed": ObservedPolynomialFeatures,
    "hashed": HashedPolynomialFeatures,
    "table": TableEncoder,
}

# Results of a fit that are saved besides the arrays, as far as a model has them.
ATTRIBUTES = "classes_", "n_iter_", "objective_", "gap_"
PLAIN_KINDS = "biufU"  # of arrays that JSON can hold; arrays of str objects are held, too

# Text is padded to the width that a file states only if the array takes at most this many times the
# bytes of the text, or is small: one long string, or a wide dtype, would multiply the others.
MOST_PADDING, SMALL_TEXT = 16, 2**20


def as_file(model: Any, **more: Any) -> ModelFile:
    """Return what a file holds of a fitted model, with further entries of the description."""
    model = model._as_plain()
    as_feature_names(model.feature_names, n_encoded(model))
    more["parameters"] = parameters_of(model)
    found = {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    more["attributes"] = {name: as_plain(name, value) for name, value in found.items()}
    more |= describe_features(model)
    return ModelFile(
        model._kind,
        model.column_space_,
        np.ascontiguousarray(model.coef_),
        np.array(model.intercept_, dtype=np.float64, ndmin=1),
        model.column_counts_,
        model._group_variances_,
        more,
    )


def as_model(file: ModelFile, make: type) -> Any:
    """Return the fitted model of a file; raise ValueError or TypeError if it is damaged."""
    model = estimator_with(make, file.more["parameters"])
    model.column_space_, model.column_counts_ = file.columns, file.counts
    _require_variances(file)
    model._group_variances_ = file.variances
    model.coef_ = file.coefficients
    is_table = file.coefficients.ndim == 2
    model.intercept_ = file.intercept if is_table else float(file.intercept[0])
    n_features = file.columns.basis.n_features
    as_feature_names(model.feature_names, n_features)
    restore_features(model, n_features, file.more, file.table)
    for name, value in file.more["attributes"].items():
        setattr(model, name, _attribute(name, from_plain(value)))
    if is_classifier(model):
        _require_classes(getattr(model, "classes_", None), file.coefficients)
    return model


def _require_variances(file: ModelFile) -> None:
    """Raise ValueError if variances are not those of the tuples of groups."""
    if file.variances is None:
        return
    if file.columns.basis.groups is None or file.columns.kind == "hashed":
        raise ValueError("it has group_variances, but no groups of columns")
    n_given = file.variances.shape[1]
    tuples = GroupTuples.at_most(n_given, file.columns)
    if tuples is None or len(tuples.tuples) < n_given:
        raise ValueError(f"group_variances has {n_given:,} columns, not one for each tuple")


def _attribute(name: str, value: Any) -> Any:
    """Return the value of an attribute; raise ValueError if a model cannot have it."""
    if name not in ATTRIBUTES:
        raise ValueError(f"a model has no attribute {name!r}")
    if name != "classes_":
        array = np.asarray(value)
        if array.ndim > 1 or array.dtype.kind not in "iuf":
            raise ValueError(f"{name} is not a number: {value!r}")
    return value


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Return the parameters of a model or a transformer, for JSON.

    A transformer among them is described by its own. Threads belong to the machine and are left
    out.
    """
    parameters = estimator.get_params(deep=False)
    parameters.pop("n_jobs", None)
    plain = {}
    for name, value in parameters.items():
        kind = next((kind for kind, each in TRANSFORMERS.items() if isinstance(value, each)), None)
        plain[name] = (
            as_plain(name, value) if kind is None else {"transformer": kind} | parameters_of(value)
        )
    return plain


def estimator_with(make: type, parameters: dict[str, Any]) -> Any:
    """Return an estimator with the parameters that `parameters_of` has described."""
    if "n_jobs" in parameters:
        raise ValueError("it sets n_jobs, which belongs to the machine that reads it")
    given = {}
    for name, value in parameters.items():
        if isinstance(value, dict) and "transformer" in value:
            own = {key: each for key, each in value.items() if key != "transformer"}
            given[name] = estimator_with(TRANSFORMERS[value["transformer"]], own)
        else:
            given[name] = from_plain(value)
    return make(**given)


def _require_classes(classes: Any, coefficients: NDArray[np.float64]) -> None:
    """Raise ValueError if classes are not sorted, or not those that coefficients are for."""
    if not isinstance(classes, np.ndarray) or len(classes) < 2:
        raise ValueError("a classifier needs two classes or more")
    if not np.array_equal(np.unique(classes), classes):
        raise ValueError(f"its classes are not sorted: {classes}")
    wanted = 1 if len(classes) == 2 else len(classes)
    if coefficients.shape[:-1] != (wanted,):
        raise ValueError(
            f"coefficients is of shape {coefficients.shape} for {len(classes)} classes"
        )


# ------------------------------------------------------------------------------------ plain values


def as_plain(name: str, value: Any) -> Any:
    """Return a value in a form that JSON can hold, and `from_plain` turns back."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, FeatureGroups):
        value = value.as_argument()
    if hasattr(value, "to_numpy"):  # of pandas or polars
        value = value.to_numpy()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [as_plain(name, each) for each in value]
    if isinstance(value, dict):
        return {"items": [as_plain(name, item) for item in value.items()]}
    if isinstance(value, np.ndarray) and value.ndim == 1:
        is_text = value.dtype.hasobject and all(isinstance(each, str) for each in value)
        if is_text or value.dtype.kind in PLAIN_KINDS:
            dtype = value.dtype.newbyteorder("<").str
            return {"array": as_plain(name, value.tolist()), "dtype": dtype}
    raise ValueError(
        f"{name}={value!r} cannot be saved without pickle: numbers, strings, and lists and dicts "
        "of them can."
    )


def from_plain(value: Any) -> Any:
    """Return what `as_plain` was given; raise ValueError for what it cannot have made."""
    if isinstance(value, list):
        return tuple(map(from_plain, value))
    if not isinstance(value, dict):
        return value
    if value.keys() == {"float"}:
        return float(value["float"])
    if value.keys() == {"items"}:
        return dict(map(from_plain, value["items"]))
    if value.keys() == {"array", "dtype"}:
        return _array_again(from_plain(value["array"]), np.dtype(value["dtype"]))
    raise ValueError(f"{value!r} is not a plain value")


def _array_again(values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of the values in a file; text that its dtype would pad too much, as objects.

    ValueError is raised if they are not values of that dtype.
    """
    is_text = all(isinstance(each, str) for each in values)
    if dtype.kind not in f"{PLAIN_KINDS}O" or (dtype.kind in "OU" and not is_text):
        raise ValueError(f"{dtype} is not the dtype of a plain array")
    if dtype.kind == "U":
        n_bytes = sum(len(each) + len('"", ') for each in values)
        if dtype.itemsize * len(values) > max(MOST_PADDING * n_bytes, SMALL_TEXT):
            dtype = np.dtype(object)
    array = np.array(values, dtype=dtype)
    if array.ndim != 1:
        raise ValueError(f"an array has {array.ndim} dimensions")
    if array.tolist() != list(values):
        raise ValueError(f"{list(values)} are not values of {dtype}")
    return array.astype(dtype.newbyteorder("="), copy=False)
