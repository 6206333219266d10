"""Estimators whose X may be a table: its encoder, and the features that its columns become."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import FLOAT_DTYPES

from polysparse.dispatch import sample_of
from polysparse.estimators.table_encoder import TableEncoder
from polysparse.files.archive import TABLE
from polysparse.matrix.canonical import as_canonical
from polysparse.tables.encoding import TableEncoding
from polysparse.tables.learning import find_categorical
from polysparse.tables.reading import is_table, open_table

ENCODER = "table_encoder_"  # the attribute, only if X was a table with categories


def encoder_for(categorical_features: Any, X: Any) -> TableEncoder | None:
    """Return the encoder of X, fitted or to be fitted; None if X needs none.

    Data that are numbers already, without a column that is categorical, are left to scikit-learn.
    """
    if categorical_features is None:
        return None
    if isinstance(categorical_features, TableEncoder):
        return categorical_features if is_table(X) or isinstance(X, np.ndarray) else None
    if isinstance(categorical_features, str) and not is_table(X):
        find_categorical_from_dtype(categorical_features)
        return None
    if sparse.issparse(X):
        raise ValueError(
            "categorical_features needs a table or an array, but X is sparse: encode it first, or "
            "leave categorical_features out."
        )
    table = open_table(X)
    if not any(find_categorical(table, categorical_features)):
        return None
    return TableEncoder(categorical_features)


def sample_for(estimator: Any, X: Any) -> Any:
    """Return X, or a row of zeros in its place if it is not in memory.

    ValueError is raised if X is not in memory and would have to be encoded.
    """
    sample = sample_of(X)
    if sample is not X and encoder_for(estimator.categorical_features, sample) is not None:
        raise ValueError(
            "categorical_features needs X in memory, but X is not: encode it first, with a "
            "TableEncoder, and pass its groups_ as groups."
        )
    return sample


def find_categorical_from_dtype(categorical_features: str) -> None:
    """Raise ValueError unless a string for `categorical_features` is valid."""
    find_categorical(open_table(np.empty((0, 0))), categorical_features)


def read_table(estimator: Any, encoder: TableEncoder, X: Any, *, reset: bool, **more: Any) -> Any:
    """Encode a table and return it as a CanonicalCsr, with y if `more` has it.

    Sparse rows are taken as encoded already. If `reset` is True, the encoder is fitted unless it
    is, and n_features_in_ and feature_names_in_ are set.
    """
    if reset:
        encoded = _fit(estimator, encoder, X)
    elif sparse.issparse(X):
        encoded = X
        if X.shape[1] != encoder._encoding.n_features:
            raise ValueError(
                f"X has {X.shape[1]} features and is not a table, but {type(estimator).__name__} "
                f"was fitted with a table that became {encoder._encoding.n_features} features: "
                "pass a table, or what table_encoder_.transform makes of it."
            )
    else:
        encoded = encoder.transform(X)
    wanted = {"dtype": FLOAT_DTYPES, "accept_sparse": "csr", "estimator": estimator, **more}
    if "y" in wanted:
        y = wanted.pop("y")
        encoded, y = check_X_y(encoded, y, **wanted)
        return as_canonical(encoded, estimator.n_jobs).as_sparse(), y
    encoded = check_array(encoded, **wanted)
    return as_canonical(encoded, estimator.n_jobs).as_sparse()


def _fit(estimator: Any, encoder: TableEncoder, X: Any) -> Any:
    """Return X encoded, and set the attributes of the estimator that describe it."""
    if estimator.groups is not None:
        raise ValueError(
            "groups only applies to X without categories: the groups of a table are its columns. "
            "Leave groups out, or set categorical_features=None."
        )
    given = estimator.categorical_features
    if encoder is given and not encoder.__sklearn_is_fitted__():
        encoder = TableEncoder(**given.get_params())
    is_fitted = encoder.__sklearn_is_fitted__()
    encoded = encoder.transform(X) if is_fitted else encoder.fit_transform(X)
    set_encoder(estimator, encoder)
    return encoded


def set_encoder(estimator: Any, encoder: TableEncoder) -> None:
    """Set the attributes of an estimator that was fitted to a table."""
    setattr(estimator, ENCODER, encoder)
    estimator.n_features_in_ = encoder.n_features_in_
    vars(estimator).pop("feature_names_in_", None)
    if hasattr(encoder, "feature_names_in_"):
        estimator.feature_names_in_ = encoder.feature_names_in_


def encoder_of(estimator: Any) -> TableEncoder | None:
    """Return the fitted encoder of an estimator, or None if X was not a table with categories."""
    return getattr(estimator, ENCODER, None)


def n_encoded(estimator: Any) -> int:
    """Return the number of features of a fitted estimator, after encoding."""
    encoder = encoder_of(estimator)
    return int(estimator.n_features_in_ if encoder is None else encoder._encoding.n_features)


def encoded_names(estimator: Any) -> Any:
    """Return the names of an estimator's features, after encoding, or None."""
    encoder = encoder_of(estimator)
    if encoder is None:
        return getattr(estimator, "feature_names_in_", None)
    return encoder.get_feature_names_out()


def groups_of(estimator: Any) -> Any:
    """Return the groups of an estimator's features: those of its table, or its parameter."""
    encoder = encoder_of(estimator)
    return estimator.groups if encoder is None else encoder.groups_


def describe_features(estimator: Any) -> dict[str, Any]:
    """Return what a file needs to know about the features of a fitted estimator."""
    encoder = encoder_of(estimator)
    if encoder is not None:
        return {TABLE: encoder._encoding.as_dict()}
    if hasattr(estimator, "feature_names_in_"):
        return {"feature_names_in": list(map(str, estimator.feature_names_in_))}
    return {}


def restore_features(
    estimator: Any, n_features: int, description: dict[str, Any], encoding: TableEncoding | None
) -> None:
    """Set the attributes that `describe_features` has described."""
    if encoding is not None:
        set_encoder(estimator, TableEncoder._of(encoding))
        return
    estimator.n_features_in_ = n_features
    names = description.get("feature_names_in")
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
