"""transform of the transformers, on dask arrays."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from dask.base import tokenize
from scipy import sparse
from sklearn import config_context, get_config

from polysparse.clusters.worker_copies import copy_for_workers
from polysparse.dask.arrays import (
    as_encoded,
    as_row_blocks,
    errors_of_block,
    map_rows,
    rows_like,
)
from polysparse.dask.expansion import token_of


def transform(estimator: Any, X: Any) -> Any:
    """Return what a fitted transformer gives for a dask array; nothing is computed."""
    X = as_row_blocks(X)
    meta = estimator._transform_rows(as_encoded(estimator, rows_like(X, 0)), min_samples=0)
    _require_arrays(_wrapped(estimator, meta[:, :1]))
    columns, config = estimator.column_space(X.shape[1]), get_config()
    parameters = type(estimator).__name__, estimator.get_params()
    token = tokenize(X.name, parameters, token_of(columns), config)
    return map_rows(
        transform_block,
        X,
        columns.n_columns,
        name=f"transform-{token}",
        meta=meta,
        same=copy_for_workers(estimator),
        config=config,
    )


def _wrapped(estimator: Any, few: Any) -> Any:
    """Return what scikit-learn makes of one column that a transformer returns.

    `transform` itself is not called: a single expanded row can be larger than memory.
    """

    class Returning(type(estimator)):  # type: ignore[misc]
        """Returns what it is given, which scikit-learn wraps as set_output says."""

        def transform(self, X: Any) -> Any:
            return X

        def get_feature_names_out(self, input_features: Any = None) -> Any:
            return np.array(["column"], dtype=object)

    same = copy(estimator)
    same.__class__ = Returning
    return same.transform(few)


def _require_arrays(made: Any) -> None:
    """Raise TypeError if scikit-learn makes something else of what a transformer returns.

    It would do so with the whole dask array. For sparse output it raises its own error before.
    """
    if not (sparse.issparse(made) or isinstance(made, np.ndarray)):
        kind = type(made).__module__.partition(".")[0]
        raise TypeError(
            f'set_output(transform="{kind}") would compute all of a dask array and keep it in this '
            'process: call set_output(transform="default"), and make frames of single blocks.'
        )


def transform_block(
    block: Any, same: Any, config: dict[str, Any], block_id: tuple[int, ...] | None = None
) -> Any:
    """Transform a block, under the configuration of scikit-learn where the array was made."""
    with errors_of_block(block_id), config_context(**config):
        return same._transform_rows(as_encoded(same, block), min_samples=0)
