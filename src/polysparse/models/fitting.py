"""The steps of every fit, in one order, wherever the rows are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from polysparse.basis.names import as_feature_names
from polysparse.columns.spaces import ColumnSpace, HashedColumns
from polysparse.dispatch import dispatch
from polysparse.estimators.tabular import encoder_of
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models import contributions
from polysparse.models.columns import make_columns, require_memory_for
from polysparse.models.importance import MAX_TUPLES, GroupTuples, Moments
from polysparse.models.local_rows import LocalRows
from polysparse.models.row_store import RowStore
from polysparse.models.sample_weight import as_offset, as_weights
from polysparse.models.solution import Solution


def fit(
    model: Any,
    opener: Callable[[], AbstractContextManager[RowStore]],
    *,
    stacklevel: int,
    wording: Callable[[str], str] = str,
) -> None:
    """Fit a model.

    Parameters
    ----------
    model : PolynomialModel
        The model, whose fitted attributes are set.
    opener : callable
        Returns a context manager of the rows. Called once the parameters are known to be valid.
    stacklevel : int
        Which caller a warning points to: 1 is the caller of this function.
    wording : callable, optional
        Returns a warning in the caller's terms, where these are not the parameters of the model.
    """
    model._require_parameters()
    last = model._forget()
    if not getattr(model, "warm_start", False):
        last = {}  # frees the coefficients of the last fit
    with opener() as rows:
        model._require_rows(rows)
        columns, loss = prepare(model, rows)
        solution = solve(model, columns, rows, loss, last)
        column_counts = None
        if not isinstance(columns, HashedColumns):
            (column_counts,) = rows.total(contributions.count_rows)
        variances = _group_variances(columns, rows, solution)
        if encoder_of(model) is None:
            model.n_features_in_ = rows.n_features
    model.column_counts_ = column_counts
    model._group_variances_ = variances
    set_solution(model, columns, loss, solution)
    if solution.end != "converged":
        message = wording(_explain(model, solution))
        warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel + 1)


def prepare(model: Any, rows: RowStore) -> tuple[ColumnSpace, Any]:
    """Return the columns and the loss of a model, which has been found to be valid for rows."""
    n_rows, weights = rows.describe()
    if n_rows == 0:
        raise ValueError("X has no rows; at least one is needed to fit a model.")
    weights.require_valid()
    as_feature_names(model.feature_names, rows.n_features)
    loss = model._make_loss(rows)
    columns = make_columns(model, rows)
    require_memory_for(columns, loss.n_scores, model._n_vectors)
    return columns, loss


def solve(
    model: Any, columns: ColumnSpace, rows: RowStore, loss: Any, start: dict[str, Any]
) -> Solution:
    """Return the coefficients, searched from those in `start`, attributes of a fitted model."""
    rows.set_targets(columns, loss)
    return rows.run(model._solve, columns, rows, loss, start)  # type: ignore[no-any-return]


def set_solution(model: Any, columns: ColumnSpace, loss: Any, solution: Solution) -> None:
    """Set the fitted attributes of a model that a solver found: all that prediction needs."""
    model.column_space_ = columns
    model.objective_ = solution.value
    model._set_solution(solution, loss)
    model.gap_ = solution.gap


def _group_variances(
    columns: ColumnSpace, rows: RowStore, solution: Solution
) -> NDArray[np.float64] | None:
    """Return the variances of what tuples of groups contribute; None if they are not computed."""
    is_elsewhere = isinstance(rows, LocalRows) and not isinstance(rows.x, CanonicalCsr)  # on a GPU
    if columns.basis.groups is None or columns.kind == "hashed" or is_elsewhere:
        return None
    tuples = GroupTuples.at_most(MAX_TUPLES, columns)
    if tuples is None:
        return None
    return group_variances(rows.total, tuples, np.atleast_2d(solution.coefficients.T))


def group_variances(
    total: Callable[..., Any], tuples: GroupTuples, coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the variance of what each tuple of groups contributes to each score.

    Squares are summed about the means, which the sums of columns yield. `total` is
    `RowStore.total`, and `coefficients` are of shape (n_scores, n_columns).
    """
    weight, sums = total(contributions.weighted_columns)
    n = len(tuples.tuples)
    means = [np.bincount(tuples.number_of, sums * each, n) / weight for each in coefficients]
    moments = total(
        contributions.group_moments,
        coefficients=coefficients,
        number_of=tuples.number_of,
        shift=np.array(means),
    )
    return Moments(*moments).variances


def _explain(model: Any, solution: Solution) -> str:
    """Return why a fit has not converged, and what to do."""
    name, gap = type(model).__name__, f"may be up to {solution.gap:.2g} above its minimum"
    if solution.end == "max_iter":
        return (
            f"{name} did not converge in max_iter={model.max_iter} iterations: the objective, "
            f"{solution.value:.6g}, {gap}. Raise max_iter or tol, or scale the features."
        )
    if solution.end == "unbounded":
        return (
            f"{name} has no finite optimum without a penalty: the objective, {solution.value:.6g}, "
            "falls on while some coefficients grow, as if a combination of features separated the "
            "classes, or only occurred in rows where the target is 0. The coefficients are large, "
            "and not unique. Penalize them: set C, alpha or penalty_factors."
        )
    return (
        f"{name} stopped where rounding errors prevent progress: the objective, "
        f"{solution.value:.6g}, {gap}, so tol={model.tol} may not be met. Scale the features and "
        "center them, for example with sklearn.preprocessing.StandardScaler, lower the degree, or "
        "strengthen the penalty."
    )


@dispatch("open_rows")
@contextmanager
def open_rows(
    model: Any, X: Any, y: Any, sample_weight: Any, offset: Any = None
) -> Iterator[LocalRows]:
    """Read rows that are in the memory of this process."""
    how = {"y_numeric": model._y_numeric, "multi_output": model._multi_output}
    x, y = model._read(X, y=y, reset=True, **how)
    weights, offset = as_weights(sample_weight, x.shape[0]), as_offset(offset, x.shape[0])
    yield LocalRows(x, y, weights, model.n_jobs, offset)
