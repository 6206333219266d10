"""Estimators whose X may be a table: its encoder, and the features that its columns become."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import FLOAT_DTYPES

from polysparse.dispatch import sample_of
from polysparse.estimators.table_encoder import TableEncoder
from polysparse.files.description import TABLE
from polysparse.matrix.canonical import as_canonical
from polysparse.tables.columns import require_targets
from polysparse.tables.encoding import TableEncoding
from polysparse.tables.learning import (
    find_categorical,
    require_from_dtype,
    require_kinds,
    require_numbers,
)
from polysparse.tables.reading import Table, is_table, open_table

ENCODER = "table_encoder_"  # the attribute, only if X was a table with categories
GIVEN = "is_encoder_given"  # the entry of files: whether a fitted encoder was passed


def encoder_for(categorical_features: Any, X: Any) -> TableEncoder | None:
    """Return the encoder of X, fitted or to be fitted; None if X needs none.

    A fitted TableEncoder is copied, so that it may learn more later, and one that is not is cloned.
    Data that are numbers already, without a column that is categorical, are left to scikit-learn;
    so are arrays and sparse matrices, if categories are found by their dtype.
    """
    given = categorical_features
    if _is_fitted_encoder(given):
        return copy(given)  # type: ignore[no-any-return]
    columns = given.categorical_features if isinstance(given, TableEncoder) else given
    if isinstance(columns, str):
        require_from_dtype(columns)
    if sparse.issparse(X):
        if columns is None or isinstance(columns, str):
            return None
        raise ValueError(
            "categorical_features needs a table or an array, but X is sparse: encode it first, or "
            "leave categorical_features out."
        )
    if isinstance(given, TableEncoder):
        return clone(given)  # type: ignore[no-any-return]
    if columns is None or (isinstance(columns, str) and not is_table(X)):
        return None
    return TableEncoder(columns) if any(find_categorical(open_table(X), columns)) else None


def sample_for(estimator: Any, X: Any) -> Any:
    """Return X, or a row of zeros in its place if it is not in memory.

    If there is a fitted encoder, X is taken as encoded. ValueError is raised if X is not in memory
    and would have to be encoded.
    """
    sample = sample_of(X)
    encoder = None if sample is X else encoder_for(estimator.categorical_features, sample)
    if encoder is None:
        return sample
    if encoder.__sklearn_is_fitted__():
        return sparse.csr_array(sample)
    raise ValueError(
        "categorical_features needs X in memory, but X is not: encode it first, with a "
        "TableEncoder, and pass the fitted encoder as categorical_features."
    )


def read_table(estimator: Any, encoder: TableEncoder, X: Any, *, reset: bool, **more: Any) -> Any:
    """Encode a table and return it as a CanonicalCsr, with y if `more` has it.

    Sparse rows are taken as encoded already. If `reset` is True, the encoder is fitted unless it
    is, and n_features_in_ and feature_names_in_ are set.
    """
    if reset and estimator.groups is not None:
        raise ValueError(
            "groups only applies to X without categories: the groups of a table are its columns. "
            "Leave groups out, or set categorical_features=None."
        )
    if sparse.issparse(X):
        encoded = X
        n_features = encoder._encoding.n_features
        if X.shape[-1] != n_features:
            raise ValueError(
                f"X has {X.shape[-1]} features and is not a table, but {type(estimator).__name__} "
                f"was fitted to a table that became {n_features} features: pass a table, or "
                "table_encoder_.transform(table)."
            )
    elif encoder.__sklearn_is_fitted__():
        encoded = encoder.transform(X)
    else:
        encoded = encoder.fit_transform(X)
    wanted = {"dtype": FLOAT_DTYPES, "accept_sparse": "csr", "estimator": estimator, **more}
    y = wanted.pop("y", None)
    with explained(encoded, y):
        if "y" in more:
            encoded, y = check_X_y(encoded, y, **wanted)
        else:
            encoded = check_array(encoded, **wanted)
    x = as_canonical(encoded, estimator.n_jobs).as_sparse()
    if reset:
        set_encoder(estimator, encoder)
    return (x, y) if "y" in more else x


@contextmanager
def explained(X: Any, y: Any) -> Iterator[None]:
    """Add to what scikit-learn says about X and y what it does not say, and what to do.

    ValueError is raised if a column of a table is neither a number nor a category: scikit-learn
    would convert dates to numbers. If a number is missing, its column and row are named.
    """
    table = _as_table(X)
    if table is not None:
        require_kinds(table)
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:
        text = str(error)
        if table is not None and text.startswith(("Input X contains", "Input contains")):
            require_numbers(table)
        is_missing = text.startswith(("Input contains NaN", "Input y contains NaN"))
        is_missing |= "NA is ambiguous" in text
        is_missing |= isinstance(error, AttributeError)  # NumPy 1.24 cannot compare pandas.NA
        if is_missing and y is not None:
            require_targets(y)
        if "could not convert string to float" not in text:
            raise
        if sparse.issparse(X) or not _has_text(X):
            raise ValueError(
                f"{text}. y must be numbers: convert it, or fit a classifier to its classes."
            ) from None
        raise ValueError(
            f'{text}. X has text: set categorical_features, to "from_dtype" for a table or to '
            "the columns with text, or encode X with a TableEncoder."
        ) from None


def _as_table(X: Any) -> Table | None:
    """Return X as a table, or None if it is not one, or if scikit-learn will refuse it."""
    if not is_table(X):
        return None
    with suppress(ImportError, TypeError, ValueError):
        return open_table(X)
    return None


def _has_text(X: Any) -> bool:
    """Return whether an array or table cannot be converted to numbers."""
    try:
        np.asarray(X, dtype=np.float64)
    except ValueError:
        return True
    return False


def require_known_levels(estimator: Any, X: Any) -> None:
    """Raise ValueError if a table has levels that the estimator's encoder has not learned.

    A fitted TableEncoder as parameter decides about them itself.
    """
    encoder = encoder_of(estimator)
    if encoder is None or is_encoder_given(estimator) or sparse.issparse(X):
        return
    try:
        replace(encoder._encoding, is_strict=True).encode(open_table(X))
    except ValueError as error:
        raise ValueError(
            f"{error} If levels come in batches, fit a TableEncoder to all of them, and pass it as "
            "categorical_features."
        ) from None


def is_encoder_given(estimator: Any) -> bool:
    """Return whether the parameter of an estimator is a fitted TableEncoder."""
    return _is_fitted_encoder(estimator.categorical_features)


def _is_fitted_encoder(given: Any) -> bool:
    return isinstance(given, TableEncoder) and given.__sklearn_is_fitted__()


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
        return {TABLE: encoder._encoding.as_dict(), GIVEN: is_encoder_given(estimator)}
    if hasattr(estimator, "feature_names_in_"):
        return {"feature_names_in": list(map(str, estimator.feature_names_in_))}
    return {}


def restore_features(
    estimator: Any, n_features: int, description: dict[str, Any], encoding: TableEncoding | None
) -> None:
    """Set the attributes that `describe_features` has described."""
    if encoding is not None:
        set_encoder(estimator, TableEncoder._of(encoding))
        if description.get(GIVEN, False):  # older files do not have it
            given = estimator.categorical_features  # vocabularies do not have its parameters
            if not isinstance(given, TableEncoder):
                given = estimator.categorical_features = TableEncoder._of(encoding)
            given._set_encoding(encoding, None)
        return
    estimator.n_features_in_ = n_features
    names = description.get("feature_names_in")
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
