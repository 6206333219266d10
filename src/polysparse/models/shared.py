"""What the models share: parameters and their checks, columns, reading input, scores."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns, ChosenColumns, ColumnSpace, HashedColumns
from polysparse.engine.plain_arrays import as_plain
from polysparse.estimators.hashed import HashedPolynomialFeatures
from polysparse.estimators.observed import ObservedPolynomialFeatures
from polysparse.estimators.shared import IntegerRange, read_sparse
from polysparse.machine import format_count, require_memory
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models import contributions
from polysparse.models.blocks import Blocks
from polysparse.models.newton import Fit
from polysparse.models.objectives import Objective
from polysparse.models.readable import ReadableMixin
from polysparse.observation.tally import ColumnTally
from polysparse.operator.polynomial_operator import PolynomialOperator

KINDS = ("all", "observed", "hashed")


@dataclass(frozen=True)
class RealRange:
    """The finite numbers from 0 that are valid for a parameter."""

    may_be_zero: bool

    def require(self, name: str, value: Any) -> None:
        """Raise ValueError if the value is not valid."""
        is_real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        if is_real and np.isfinite(value) and (value > 0 or (value == 0 and self.may_be_zero)):
            return
        limit = "at least 0" if self.may_be_zero else "above 0"
        raise ValueError(f"{name} must be a finite number {limit}; got {value!r}.")


class PolynomialModel(ReadableMixin, BaseEstimator):  # type: ignore[misc]
    """The parameters and attributes that all models have.

    A subclass fits by a solver, which sees X as sums over its rows.
    """

    n_features_in_: int
    column_space_: ColumnSpace
    column_counts_: NDArray[np.int64] | None
    coef_: NDArray[np.float64]
    intercept_: Any
    objective_: float

    ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        "tol": RealRange(may_be_zero=True),
        "max_iter": IntegerRange(1),
    }
    bool_parameters: ClassVar[tuple[str, ...]] = ("fit_intercept",)
    n_vectors: ClassVar[int]  # of coefficients, that the solver needs at once

    def __init__(
        self,
        degree: Degree,
        interaction_only: bool,
        columns: Any,
        fit_intercept: bool,
        tol: float,
        max_iter: int,
        n_jobs: int | None,
        verbose: int,
    ) -> None:
        self.degree = degree
        self.interaction_only = interaction_only
        self.columns = columns
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def require_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid. The basis checks its own parameters."""
        for name, allowed in self.ranges.items():
            allowed.require(name, getattr(self, name))
        for name in self.bool_parameters:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False; got {getattr(self, name)!r}.")
        n_jobs: Any = self.n_jobs
        if n_jobs is not None and not isinstance(n_jobs, Integral):
            raise ValueError(f"n_jobs must be an int or None; got {n_jobs!r}.")
        is_kind = isinstance(self.columns, str) and self.columns in KINDS
        if not (is_kind or _is_transformer(self.columns)):
            raise ValueError(
                f'columns must be "all", "observed", "hashed" or a transformer of polysparse; '
                f"got {self.columns!r}."
            )

    def forget(self) -> dict[str, Any]:
        """Remove what a fit has set, so that a failed one leaves nothing mixed, and return it."""
        fitted = {name: v for name, v in vars(self).items() if name.endswith("_")}
        for name in fitted:
            delattr(self, name)
        return fitted

    def read(self, X: Any, **wanted: Any) -> Any:
        """Validate X, and y if it is given, as `estimators.shared.read_sparse` does; as float64."""
        found = read_sparse(self, X, **wanted)
        x, *y = found if isinstance(found, tuple) else (found,)
        x = replace(x, data=x.data.astype(np.float64, copy=False))
        return (x, *y) if y else x

    # ---------------------------------------------------------------------------------- fitting

    def make_columns(
        self, n_features: int, count: Callable[[MonomialBasis], ColumnTally]
    ) -> ColumnSpace:
        """Return the columns of the model, which never include the bias.

        Parameters
        ----------
        n_features : int
            Number of input features.
        count : callable
            Counts the columns of a basis that occur in the data, if that is needed.

        Returns
        -------
        ColumnSpace
            The columns.
        """
        columns: Any = self.columns
        if not isinstance(columns, str):
            is_observed = isinstance(columns, ObservedPolynomialFeatures)
            if is_observed and not columns.__sklearn_is_fitted__():
                return without_bias(_observe(columns, n_features, count))
            return without_bias(columns.column_space(n_features))
        parameters: dict[str, Any] = {
            "degree": self.degree,
            "interaction_only": self.interaction_only,
        }
        if columns == "hashed":
            return without_bias(HashedPolynomialFeatures(**parameters).column_space(n_features))
        basis = MonomialBasis(n_features, **parameters, include_bias=False)
        if columns == "observed":
            return ChosenColumns(basis, count(basis).chosen(1, None, self.n_jobs)[0])
        return AllColumns(basis)

    def require_room(self, columns: ColumnSpace, n_outputs: int = 1) -> None:
        """Raise MemoryError if there is no memory for the coefficients of these columns.

        Parameters
        ----------
        columns : ColumnSpace
            The columns of the model.
        n_outputs : int, default=1
            Number of coefficients for each column.
        """
        n = columns.n_columns * n_outputs
        require_memory(
            8 * self.n_vectors * n,
            f"{format_count(n)} coefficients, {self.n_vectors} times for the solver,",
            self._ways_out(columns),
        )
        columns.require_indexable()

    def _ways_out(self, columns: ColumnSpace) -> str:
        if isinstance(columns, HashedColumns):
            return "Lower n_columns of the transformer."
        if isinstance(columns, ChosenColumns):
            return (
                "Give an ObservedPolynomialFeatures with a higher min_count or with max_columns, "
                'use columns="hashed", lower the degree, or set interaction_only=True.'
            )
        return (
            'Use columns="observed", for the products that occur, or columns="hashed", for a fixed '
            "number of columns; or lower the degree, or set interaction_only=True."
        )

    def keep(self, columns: ColumnSpace, blocks: Blocks, fit: Fit, **fitted: Any) -> None:
        """Set the attributes of a fitted model, and warn if the solver was stopped."""
        column_counts = None
        if not isinstance(columns, HashedColumns):
            (column_counts,) = blocks.total(contributions.count_rows)
        self.column_space_ = columns
        self.column_counts_ = column_counts
        self.objective_ = fit.value
        for name, value in fitted.items():
            setattr(self, name, value)
        if not fit.has_converged:
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} iterations: "
                "raise max_iter or tol, or scale X.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def reporter(self, objective: Objective) -> Any:
        """Return a function that prints a line for an iteration, if `verbose` is set."""
        start = time.perf_counter()

        def report(iteration: int, value: float, gradient: float) -> None:
            if self.verbose:
                seconds = time.perf_counter() - start
                print(
                    f"{type(self).__name__} {iteration:4d}  objective {value:.8g}  "
                    f"gradient {gradient:.3g}  passes {objective.n_passes:g}  {seconds:.2f} s"
                )

        return report

    # ------------------------------------------------------------------------------- predicting

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the expansion of X times the coefficients, plus the intercept.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.

        Returns
        -------
        ndarray of float64 of shape (n_samples,) or (n_samples, n_outputs)
            Two-dimensional if `coef_` is.
        """
        check_is_fitted(self)
        x = self.read(X, reset=False)
        operator = PolynomialOperator._of(self.column_space_, x, n_jobs=self.n_jobs)
        scores: NDArray[np.float64] = operator @ self.coef_.T
        scores += self.intercept_
        return scores

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _is_transformer(columns: Any) -> bool:
    return hasattr(columns, "column_space") and not isinstance(columns, type)


def _observe(
    transformer: ObservedPolynomialFeatures,
    n_features: int,
    count: Callable[[MonomialBasis], ColumnTally],
) -> ColumnSpace:
    """Return the columns that a transformer would keep, which is not changed."""
    transformer._require_parameters()
    basis = transformer._make_basis(n_features)
    limits = transformer.min_count, transformer.max_columns
    ranks, _ = count(basis).chosen(*limits, transformer.n_jobs)
    if len(ranks) == 0:
        raise ValueError(
            f"No column occurs in min_count={transformer.min_count} rows: lower min_count, unless "
            "X has no such product."
        )
    return ChosenColumns(basis, ranks)


def without_bias(columns: ColumnSpace) -> ColumnSpace:
    """Return the same columns without the bias, whose place an intercept takes."""
    old = columns.basis
    if not old.include_bias:
        return columns
    basis = MonomialBasis(
        old.n_features,
        (old.min_degree, old.max_degree) if old.min_degree else old.max_degree,
        interaction_only=old.interaction_only,
        include_bias=False,
    )
    if isinstance(columns, ChosenColumns):
        ranks = columns.ranks
        return ChosenColumns(basis, ranks[ranks > 0] - 1)
    if isinstance(columns, HashedColumns):
        return replace(columns, basis=basis)
    return AllColumns(basis)


def as_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Read weights of rows: None, a number, or one for each row. They may not be valid."""
    if sample_weight is None or isinstance(sample_weight, Real):
        return np.full(n_rows, 1.0 if sample_weight is None else float(sample_weight))
    weights = check_array(
        sample_weight,
        ensure_2d=False,
        dtype=np.float64,
        ensure_min_samples=0,
        input_name="sample_weight",
    )
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; one weight for each of the {n_rows} rows of "
            "X is needed."
        )
    return as_plain(weights)


def counter_of(x: CanonicalCsr, n_jobs: int | None) -> Callable[[MonomialBasis], ColumnTally]:
    """Return a function that counts which columns of a basis occur in x."""

    def count(basis: MonomialBasis) -> ColumnTally:
        tally = ColumnTally(basis)
        tally.count(x, n_jobs)
        return tally

    return count
