"""PolynomialModel: what all models share."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from polysparse.basis.degrees import Degree
from polysparse.columns.arguments import require_columns
from polysparse.columns.spaces import ColumnSpace
from polysparse.estimators.shared import IntegerRange, RealRange, read_sparse
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models import newton
from polysparse.models.bootstrap import Bootstrap, bootstrap
from polysparse.models.factors import factors_of, require_factors
from polysparse.models.fitting import fit, open_rows
from polysparse.models.losses.interface import Loss
from polysparse.models.objectives import Objective
from polysparse.models.readable import ReadableMixin
from polysparse.models.row_store import RowStore
from polysparse.models.solution import Solution
from polysparse.operator.polynomial_operator import PolynomialOperator


class LinearModel(ReadableMixin, BaseEstimator):  # type: ignore[misc]
    """The parameters and attributes that all models have, those of streams included.

    To add a parameter, list it in `__init__`, whose last line is ``self._store(locals())``, check
    it in `_ranges` or `_bool_parameters`, and document it.
    """

    degree: Degree
    interaction_only: bool
    groups: Any
    terms: Any
    categorical_features: Any
    columns: Any
    feature_names: Any
    fit_intercept: bool
    n_jobs: int | None
    verbose: int

    n_features_in_: int
    column_space_: ColumnSpace

    _link: Any = "identity"  # how scores become predictions: see `onnx_graph.Link`
    _kind: ClassVar[str]  # the name of the model in files and on the command line
    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {}
    _bool_parameters: ClassVar[tuple[str, ...]] = ("fit_intercept",)
    _y_numeric: ClassVar[bool] = True  # whether targets are numbers, not classes

    def _store(self, given: dict[str, Any]) -> None:
        """Store the parameters, as the local variables of `__init__`."""
        self.__dict__.update({name: v for name, v in given.items() if name != "self"})

    def _require_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid. The basis checks its own parameters."""
        for name, allowed in self._ranges.items():
            allowed.require(name, getattr(self, name))
        for name in self._bool_parameters:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False; got {getattr(self, name)!r}.")
        n_jobs: Any = self.n_jobs
        if n_jobs is not None and not isinstance(n_jobs, Integral):
            raise ValueError(f"n_jobs must be an int or None; got {n_jobs!r}.")
        require_columns(self.columns)

    def _forget(self) -> dict[str, Any]:
        """Remove the fitted attributes, so that a failed fit leaves none of them; return them."""
        fitted = {name: v for name, v in vars(self).items() if name.endswith("_")}
        for name in fitted:
            delattr(self, name)
        return fitted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class PolynomialModel(LinearModel):
    """A model that is fitted to all rows at once.

    A subclass defines its loss, its solver and how scores become predictions.
    """

    penalty_factors: Any
    tol: float
    max_iter: int

    column_counts_: NDArray[np.int64] | None
    coef_: NDArray[np.float64]
    intercept_: Any
    objective_: float
    gap_: float
    _has_offset_: bool  # unknown, and not set, if the model was read from a file

    _held_out: Any = None  # rows whose scores are known, a `splits.HeldOut`
    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        "tol": RealRange(may_be_zero=True),
        "max_iter": IntegerRange(1),
    }
    _multi_output: ClassVar[bool] = False  # whether y may have several columns

    def __init__(
        self,
        degree: Degree,
        interaction_only: bool,
        groups: Any,
        terms: Any,
        categorical_features: Any,
        columns: Any,
        feature_names: Any,
        fit_intercept: bool,
        tol: float,
        max_iter: int,
        n_jobs: int | None,
        verbose: int,
        penalty_factors: Any = None,
    ) -> None:
        self._store(locals())

    def _require_parameters(self) -> None:
        super()._require_parameters()
        if self.penalty_factors is not None:
            require_factors(self.penalty_factors)

    # ---------------------------------------------------------------------------------- fitting

    def _fit(self, X: Any, y: Any, sample_weight: Any, *offset: Any) -> Any:
        fit(self, partial(open_rows, self, X, y, sample_weight, *offset), stacklevel=3)
        self._has_offset_ = any(each is not None for each in offset)
        return self

    def _read(self, X: Any, **wanted: Any) -> Any:
        """Validate X, and y if it is given, as `estimators.shared.read_sparse` does; as float64."""
        found = read_sparse(self, X, **wanted)
        x, *y = found if isinstance(found, tuple) else (found,)
        x = replace(x, data=x.data.astype(np.float64, copy=False))
        return (x, *y) if y else x

    def _require_rows(self, rows: RowStore) -> None:
        """Raise TypeError if the model cannot be fitted to rows that are where these are."""

    def _make_loss(self, rows: RowStore) -> Loss:
        """Return the loss; raise ValueError if the targets are not valid."""
        raise NotImplementedError

    def _solve(
        self, columns: ColumnSpace, rows: RowStore, loss: Loss, last: dict[str, Any]
    ) -> Solution:
        """Minimize the loss plus half the squared norm of the coefficients.

        `last` has the attributes of the last fit; along a path of penalties also its "memory".
        """
        intercept = loss.intercept(rows, is_free=bool(self.fit_intercept))
        losses = rows.losses(loss, intercept, self.n_jobs)
        losses.memory = last.get("memory")
        solution = newton.minimize(
            losses,
            *self._start(columns, loss, last),
            tol=self.tol,
            max_iter=self.max_iter,
            report=self._reporter(losses),
            factors=factors_of(self, columns),
        )
        unit = self._unit
        return replace(solution, value=unit * solution.value, gap=unit * solution.gap)

    @property
    def _n_vectors(self) -> int:
        """Number of vectors of coefficients in memory at the peak of a fit."""
        return newton.N_VECTORS

    @property
    def _has_penalty(self) -> bool:
        """Whether coefficients are penalized at all."""
        return True

    @property
    def _uniform_penalty(self) -> float:
        """What half the squared coefficients are multiplied by beside `_make_loss`."""
        return 1.0

    @property
    def _unit(self) -> float:
        """What `_solve` minimizes, times this, is the objective of the model."""
        return 1.0

    def _start(
        self, columns: ColumnSpace, loss: Loss, last: dict[str, Any]
    ) -> tuple[NDArray[np.float64], Any]:
        """Return initial coefficients and intercept: with warm_start those of the last fit.

        They are 0 if the columns, or the classes, are not those of the last fit.
        """
        is_same = "coef_" in last and last["column_space_"] == columns
        if is_same and "classes_" in last:
            classes: Any = getattr(loss, "classes", None)
            is_same = np.array_equal(last["classes_"], classes)
        if not is_same:
            if loss.n_scores == 1:
                return np.zeros(columns.n_columns), 0.0
            return np.zeros((columns.n_columns, loss.n_scores)), np.zeros(loss.n_scores)
        coefficients, intercept = last["coef_"].T.copy(), np.atleast_1d(last["intercept_"])
        if not self.fit_intercept:
            intercept = np.zeros_like(intercept)
        if loss.n_scores == 1:
            return coefficients.reshape(-1), float(intercept[0])
        return coefficients, intercept

    def _set_solution(self, solution: Solution, loss: Any) -> None:
        """Set the fitted attributes that depend on the kind of model."""
        raise NotImplementedError

    def _reporter(self, objective: Objective) -> Any:
        """Return a function that prints a line for each iteration, if `verbose` is set."""
        start = time.perf_counter()

        def report(iteration: int, value: float, gradient: float) -> None:
            if self.verbose:
                seconds, unit = time.perf_counter() - start, self._unit
                print(
                    f"{type(self).__name__} {iteration:4d}  objective {unit * value:.8g}  "
                    f"gradient {unit * gradient:.3g}  passes {objective.n_passes:g}  "
                    f"{seconds:.2f} s"
                )

        return report

    # -------------------------------------------------------------------------------- how sure

    def bootstrap(
        self,
        X: Any,
        y: Any,
        n: int = 100,
        *,
        sample_weight: Any = None,
        method: str = "poisson",
        n_terms: int | None = 1000,
        tol: float = 1e-2,
        random_state: Any = None,
    ) -> Bootstrap:
        """Refit the model with random weights of the rows, to see how certain its terms are.

        The fitted model is not changed. Replicates start from its coefficients and are refitted
        several at a time; they do not depend on `n_jobs`.

        Parameters
        ----------
        X, y
            The data of `fit`, in memory. ValueError is raised if y has other classes, or another
            number of targets.
        n : int, default=100
            Number of replicates, at least 2.
        sample_weight : float or array-like of shape (n_samples,), optional
            The weights of `fit`. Each replicate multiplies them by its random weights.
        method : {"poisson", "multinomial"}, default="poisson"
            Random row weights: independent Poisson numbers with mean 1, or the counts of a sample
            of n_samples rows with replacement.
        n_terms : int or None, default=1000
            How many of the model's largest terms are kept, in float32. None keeps all terms with
            nonzero coefficients.
        tol : float, default=1e-2
            Approximate accuracy: a replicate ends when the gap between its objective and its
            minimum is at most this fraction of the gap at the fitted coefficients. On the UCI Adult
            data at degree 2, coefficients are then off by 0.04 to 0.14 of their standard error.
            For multinomial models, the gap at the fitted coefficients is estimated from the
            gradient, and refits are not more accurate than the `tol` of the model.
        random_state : int, RandomState or Generator instance or None, default=None
            Seed of the random weights.

        Returns
        -------
        Bootstrap
            The replicates. `table()` has an interval for each term, and `top_terms` and
            `plot_top_terms` take the result as `bootstrap`.

        Notes
        -----
        Intervals show how much coefficients vary between samples. The penalty shrinks coefficients
        towards 0, in the fit and in every replicate, so intervals cover the penalized coefficients,
        not those without a penalty.

        Examples
        --------
        >>> import numpy as np
        >>> from polysparse import PolynomialRidge
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((200, 3))
        >>> y = 2 * X[:, 0] * X[:, 1] + rng.standard_normal(200)
        >>> model = PolynomialRidge().fit(X, y)
        >>> found = model.bootstrap(X, y, random_state=0)
        >>> found
        Bootstrap(100 replicates of 9 terms)
        >>> list(found.table()["name"])[0], round(list(found.table()["same_sign"])[0], 2)
        ('x0 x1', 1.0)
        """
        return self._bootstrap(X, y, n, sample_weight, None, method, n_terms, tol, random_state)

    def _bootstrap(self, X: Any, y: Any, n: int, weight: Any, offset: Any, *how: Any) -> Bootstrap:
        method, n_terms, tol, random_state = how
        return bootstrap(
            self,
            X,
            y,
            n,
            sample_weight=weight,
            offset=offset,
            method=method,
            n_terms=n_terms,
            tol=tol,
            random_state=random_state,
        )

    # ------------------------------------------------------------------------------- predicting

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Return the expansion of X times the coefficients, plus the intercept."""
        check_is_fitted(self)
        if self._held_out is not None and self._held_out.X is X:
            return self._held_out.scores.copy()  # type: ignore[no-any-return]
        return self._scores_of(self._read(X, reset=False))

    def _scores_of(self, x: CanonicalCsr) -> NDArray[np.float64]:
        """Return the scores of rows that have been read."""
        operator = PolynomialOperator._of(self.column_space_, x, n_jobs=self.n_jobs)
        scores: NDArray[np.float64] = operator @ self.coef_.T
        scores += self.intercept_
        return scores

    def _response(self, scores: NDArray[np.float64], method: str) -> Any:
        """Return what a public method returns, given the scores of rows, with their offset."""
        raise NotImplementedError

    def _as_plain(self) -> PolynomialModel:
        """Return the fitted model of the class that files have."""
        return self

    def _unfitted(self, **parameters: Any) -> PolynomialModel:
        """Return a model of the class that files have, not fitted, with other parameters."""
        return clone(self).set_params(**parameters)  # type: ignore[no-any-return]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")
