"""Bootstrap: how sure coefficients are, by refits with random weights of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polysparse.dispatch import require_in_memory
from polysparse.display.tables import TermTable, as_table
from polysparse.estimators.shared import IntegerRange
from polysparse.machine import require_memory
from polysparse.models import newton
from polysparse.models.columns import require_memory_for
from polysparse.models.design import Design
from polysparse.models.factors import factors_of
from polysparse.models.local_rows import Block, LocalRows
from polysparse.models.losses.squared import SquaredLoss
from polysparse.models.penalties import with_tiny
from polysparse.models.readable import terms_of
from polysparse.models.replicates import (
    Curvature,
    Start,
    WeightedLosses,
    refit,
)
from polysparse.models.sample_weight import as_offset, as_weights
from polysparse.models.terms import Terms, heaviest
from polysparse.models.updated_rows import UpdatedLosses

TOGETHER = 16  # refits side by side
MOST_BYTES = 2**28  # of their vectors
N_VECTORS = 8  # of coefficients of each refit, in memory at the peak
METHODS = ("poisson", "multinomial")
SHOWN = 20  # terms in a notebook


@dataclass(frozen=True, repr=False)
class Bootstrap:
    """The coefficients of refits of a model, with random weights of the rows.

    Attributes
    ----------
    coefficients : ndarray of float32 of shape (n, n_terms)
        A row for each replicate, a column for each term that was kept, the largest first.
    weights : ndarray of float64 of shape (n_terms,)
        The coefficients of the fitted model.
    intercepts : ndarray of float64 of shape (n, n_rows)
        The intercepts of replicates: one, or one for each class or target.
    columns : ndarray of int64 of shape (n_terms,)
        The columns of the terms.
    rows : ndarray of int64 of shape (n_terms,)
        Which class or target a term belongs to; 0 if there is only one.
    """

    coefficients: NDArray[np.float32]
    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    _terms: Terms
    _draws: Draws

    def __len__(self) -> int:
        """Return the number of replicates."""
        return len(self.coefficients)

    def __repr__(self) -> str:
        """Return the numbers of replicates and of terms."""
        return f"Bootstrap({len(self)} replicates of {len(self.columns):,} terms)"

    def _repr_html_(self) -> str:
        """Return the largest terms for a notebook."""
        table = self._table_of(slice(SHOWN), 0.9, " ")
        return f"<div>{escape(repr(self))}{TermTable(table)._repr_html_()}</div>"

    @property
    def signs(self) -> NDArray[np.float64]:
        """The share of replicates in which each term has the sign of the fitted model."""
        same: NDArray[np.float64] = (np.sign(self.coefficients) == np.sign(self.weights)).mean(0)
        return same

    def quantiles(self, q: float | Sequence[float]) -> NDArray[np.float64]:
        """Return quantiles of the coefficients over the replicates.

        Parameters
        ----------
        q : float or sequence of float
            Probabilities, from 0 to 1.

        Returns
        -------
        ndarray of shape (n_terms,) or (len(q), n_terms)
            The quantiles, interpolated linearly.
        """
        return np.asarray(np.quantile(self.coefficients.astype(np.float64), q, axis=0))

    def row_weights(self, replicate: int) -> NDArray[np.float64]:
        """Return what the weights of rows were multiplied by in a replicate."""
        if not 0 <= replicate < len(self):
            raise ValueError(f"replicate must be from 0 to {len(self) - 1}; got {replicate!r}.")
        return self._draws.of(replicate)

    def table(self, level: float = 0.9, *, sep: str = " ") -> Any:
        """Return the terms with their intervals.

        Parameters
        ----------
        level : float, default=0.9
            The share of replicates within an interval, as many of the others below as above.
        sep : str, default=" "
            What separates the features of a term in its name.

        Returns
        -------
        pandas.DataFrame, or a small table that prints alike if pandas is not installed
            A row for each term, the largest first, with the columns `class` or `target` if there
            are several, `name`, `weight`, `low`, `high` and `same_sign`, the share of replicates in
            which the weight has the same sign.
        """
        return as_table(self._table_of(slice(None), level, sep))

    def _table_of(self, which: slice, level: float, sep: str) -> dict[str, list[Any]]:
        rows, columns = self.rows[which], self.columns[which]
        table = self._terms.rows_of(rows)
        table |= {"name": self._terms.names(columns, sep), "weight": self.weights[which].tolist()}
        return table | self.intervals(rows, columns, level)

    def intervals(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], level: float
    ) -> dict[str, list[float]]:
        """Return the columns `low`, `high` and `same_sign` of a table, for terms that were kept."""
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1; got {level!r}.")
        places = {key: i for i, key in enumerate(zip(self.rows, self.columns, strict=True))}
        wanted = list(zip(rows, columns, strict=True))
        missing = sum(key not in places for key in wanted)
        if missing:
            raise ValueError(
                f"bootstrap has the {len(self.columns):,} largest terms of the model, but "
                f"{missing:,} of these {len(wanted):,} terms are not among them. Call "
                "model.bootstrap with a larger n_terms."
            )
        own = np.array([places[key] for key in wanted], np.intp)
        low, high = self.quantiles(((1 - level) / 2, (1 + level) / 2))[:, own]
        return {
            "low": low.tolist(),
            "high": high.tolist(),
            "same_sign": self.signs[own].tolist(),
        }

    def _require_of(self, terms: Terms) -> None:
        """Raise ValueError unless these are the terms of the model that was bootstrapped."""
        same = self._terms.columns == terms.columns
        if not same or not np.array_equal(self._terms.weights, terms.weights):
            raise ValueError(
                "bootstrap is of another model, or of an earlier fit of it: call bootstrap again."
            )


@dataclass(frozen=True)
class Draws:
    """The random weights of rows, each replicate's by itself."""

    entropy: tuple[int, ...]
    n_rows: int
    method: str

    def of(self, replicate: int) -> NDArray[np.float64]:
        """Return what the weights of rows are multiplied by."""
        seed = np.random.SeedSequence(self.entropy, spawn_key=(replicate,))
        rng = np.random.Generator(np.random.PCG64(seed))
        if self.method == "poisson":
            return rng.poisson(1.0, self.n_rows).astype(np.float64)
        drawn = rng.integers(self.n_rows, size=self.n_rows)
        return np.bincount(drawn, minlength=self.n_rows).astype(np.float64)


# ----------------------------------------------------------------------------------------- refits


def bootstrap(
    model: Any,
    X: Any,
    y: Any,
    n: int,
    *,
    sample_weight: Any,
    offset: Any,
    method: str,
    n_terms: int | None,
    tol: float,
    random_state: Any,
) -> Bootstrap:
    """Refit a fitted model `n` times; see `PolynomialModel.bootstrap`."""
    check_is_fitted(model)
    IntegerRange(2).require("n", n)
    if n_terms is not None:
        IntegerRange(1).require("n_terms", n_terms)
    if method not in METHODS:
        raise ValueError(f"method must be 'poisson' or 'multinomial'; got {method!r}.")
    if not 0 < tol < 1:
        raise ValueError(f"tol must be between 0 and 1; got {tol!r}.")
    require_in_memory(X)
    how = {"y_numeric": model._y_numeric, "multi_output": model._multi_output}
    x, y = copy(model)._read(X, y=y, reset=False, **how)
    weights, offset = as_weights(sample_weight, x.shape[0]), as_offset(offset, x.shape[0])
    rows = LocalRows(x, y, weights, model.n_jobs, offset)
    _require_data_of_fit(model, rows)
    terms = terms_of(model)
    shape = terms.weights.shape
    places = heaviest(terms.weights.reshape(-1), n_terms)
    kept_rows, kept_columns = np.divmod(places, max(1, shape[1]))
    require_memory(
        4 * n * len(places),
        f"{n:,} replicates of {len(places):,} coefficients",
        "Lower n_terms, the number of terms that are kept.",
    )
    require_memory_for(model.column_space_, 1, N_VECTORS)
    draws = Draws(_entropy(random_state), x.shape[0], method)
    found = np.empty((n, len(places)), np.float32)
    intercepts = np.empty((n, shape[0]))

    def refit_all() -> int:
        n_failed, refitter = 0, _Refitter(model, rows, draws, tol)
        for i, refitted in enumerate(refitter.refits(n)):
            found[i] = refitted.coefficients[kept_rows, kept_columns]
            intercepts[i] = refitted.intercepts
            n_failed += not refitted.is_done
        return n_failed

    n_failed = rows.run(refit_all)
    if n_failed:
        warnings.warn(
            f"{n_failed} of {n} replicates did not converge: their optimum may not be finite, or "
            "rounding errors prevent progress. Strengthen the penalty, or scale the features.",
            ConvergenceWarning,
            stacklevel=3,
        )
    flat = terms.weights.reshape(-1)[places]
    return Bootstrap(found, flat, intercepts, kept_columns, kept_rows, terms, draws)


def _entropy(random_state: Any) -> tuple[int, ...]:
    """Return what seeds the random weights of a bootstrap."""
    if isinstance(random_state, np.random.Generator):
        drawn = random_state.integers(0, 2**31, size=4)
    else:
        drawn = check_random_state(random_state).randint(0, 2**31, size=4)
    return tuple(drawn.tolist())


def _require_data_of_fit(model: Any, rows: LocalRows) -> None:
    """Raise ValueError if a model cannot have been fitted to rows like these."""
    rows.describe()[1].require_valid()
    classes = getattr(model, "classes_", None)
    if classes is not None:
        found = rows.count_classes().classes
        if not np.array_equal(found, classes):
            raise ValueError(
                f"bootstrap needs the y of fit, which had the classes {_shown(classes)}; this y "
                f"has {_shown(found)}."
            )
    else:
        fitted, own = (_n_targets(each) for each in (model.coef_.T, rows.y))
        if fitted != own:
            raise ValueError(f"bootstrap needs the y of fit, which had {fitted}; this y has {own}.")
    has_offset = getattr(model, "_has_offset_", None)
    if has_offset is True and rows.offset is None:
        raise ValueError("The model was fitted with an offset: pass the same offset to bootstrap.")
    if has_offset is False and rows.offset is not None:
        raise ValueError("The model was fitted without an offset: leave offset out of bootstrap.")


def _shown(classes: NDArray[Any]) -> str:
    """Return the first few classes as text."""
    first = ", ".join(map(repr, classes[:SHOWN].tolist()))
    return first if len(classes) <= SHOWN else f"{first}, ... ({len(classes):,} in all)"


def _n_targets(table: NDArray[Any]) -> str:
    """Return in words how many targets an array with a column for each has."""
    return "one dimension" if table.ndim == 1 else f"{table.shape[1]} columns"


@dataclass(frozen=True)
class _Refitted:
    """One replicate: a row of coefficients, and an intercept, for each class or target."""

    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    is_done: bool


class _Refitter:
    """Refits of a fitted model to rows, whose expansion is prepared once."""

    def __init__(self, model: Any, rows: LocalRows, draws: Draws, tol: float) -> None:
        self.model, self.rows, self.draws, self.tol = model, rows, draws, tol
        self.columns = model.column_space_
        self.design = Design(self.columns, rows.x, model.n_jobs)
        self.weights = np.atleast_2d(model.coef_)
        self.intercepts = np.atleast_1d(model.intercept_)
        self.n_targets = rows.count_targets()
        self.loss = model._make_loss(rows)
        self.is_quadratic = isinstance(self.loss, SquaredLoss)

    def refits(self, n: int) -> Iterator[_Refitted]:
        """Yield the replicates, in their order."""
        if self.loss.n_scores > 1:
            yield from map(self._one, range(n))
            return
        size = 8 * N_VECTORS * (self.columns.n_columns + self.rows.x.shape[0])
        together = max(1, min(TOGETHER, MOST_BYTES // size))
        starts = [self._start(target) for target in range(len(self.weights))]
        for first in range(0, n, together):
            numbers = range(first, min(first + together, n))
            found = []
            for target, start in enumerate(starts):
                losses = [self._losses(number, target) for number in numbers]
                found.append(refit(self.design, start, losses, self.tol, self.is_quadratic))
            for i in range(len(numbers)):
                yield _Refitted(
                    np.stack([each.coefficients[:, i] for each in found]),
                    np.array([each.intercepts[i] for each in found]),
                    all(each.is_done[i] for each in found),
                )

    def _rows(self, number: int, target: int = 0) -> tuple[LocalRows, Any]:
        """Return the rows with the weights of a replicate, and the loss."""
        own = copy(self.rows)
        own.weights = self.rows.weights * self.draws.of(number)
        try:
            own.describe()[1].require_valid()
            loss = self.model._make_loss(own)
        except ValueError as error:
            raise ValueError(
                f"Replicate {number} of the bootstrap cannot be fitted: {error} With so few rows "
                "of some kind, their random weights may all be 0."
            ) from error
        return self._encoded(own, loss, target), self._for_target(loss, target)

    def _for_target(self, loss: Any, target: int) -> Any:
        return loss if self.n_targets is None else replace(loss, target=target)

    def _encoded(self, rows: LocalRows, loss: Any, target: int) -> LocalRows:
        """Set the targets of rows, with the expansion that is prepared."""
        encoded = self._for_target(loss, target).encode(rows.y, rows.weights, rows.offset)
        rows.block = Block(self.design, *encoded)
        return rows

    def _losses(self, number: int, target: int) -> WeightedLosses:
        rows, loss = self._rows(number, target)
        return self._weighted(rows, loss)

    def _weighted(self, rows: LocalRows, loss: Any) -> WeightedLosses:
        search = loss.intercept(rows, is_free=bool(self.model.fit_intercept))
        of_rows = loss.of_rows(rows.block.targets, rows.block.weights, self.model.n_jobs)
        return WeightedLosses(of_rows, search.is_free, search.penalty)

    def _factors(self, diagonal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the positive factors of the penalty, in the scale of the loss."""
        factors = factors_of(self.model, self.columns)
        if factors is None:
            factors = np.full(self.columns.n_columns, self.model._uniform_penalty)
        return factors if factors.all() else with_tiny(factors, diagonal)

    def _start(self, target: int) -> Start:
        """Return where the refits start, with the preconditioner of the weights of the fit."""
        loss = self._for_target(self.loss, target)
        losses = self._weighted(self._encoded(self.rows, self.loss, target), loss)
        coefficients = np.ascontiguousarray(self.weights[target])
        intercept = float(self.intercepts[target])
        scores = self.design.apply(coefficients)
        curvature = losses.of_rows.point(scores, intercept).curvature
        hessian = Curvature(self.design, curvature, losses.has_intercept)
        diagonal = hessian.diagonal()
        factors = self._factors(diagonal)
        preconditioner = hessian.preconditioner(diagonal, factors)
        return Start(coefficients, intercept, scores, factors, preconditioner)

    def _one(self, number: int) -> _Refitted:
        """Refit a model of several scores by the solver of its fit."""
        rows, loss = self._rows(number)
        search = loss.intercept(rows, is_free=bool(self.model.fit_intercept))
        losses = UpdatedLosses(rows, loss, search, self.model.n_jobs)
        start = np.ascontiguousarray(self.weights.T), self.intercepts.copy()
        factors = factors_of(self.model, self.columns)
        solution = newton.minimize(
            losses,
            *start,
            tol=max(self.model.tol, self.tol * _excess(losses, *start, factors)),
            max_iter=self.model.max_iter,
            report=lambda *_: None,
            factors=factors,
        )
        return _Refitted(
            np.ascontiguousarray(solution.coefficients.T),
            np.atleast_1d(solution.intercept),
            solution.end == "converged",
        )


def _excess(losses: UpdatedLosses, w: NDArray[np.float64], intercept: Any, factors: Any) -> float:
    """Estimate how far the objective is above its minimum, relative to its value.

    The estimate takes the Hessian to be diagonal.
    """
    losses.start(w, intercept)
    gradient, diagonal = (each.reshape(w.shape) for each in losses.gradient_and_diagonal())
    penalty = np.ones((len(w), 1)) if factors is None else factors[:, np.newaxis]
    slopes, bend = gradient + penalty * w, diagonal + penalty
    value = losses.value + float((penalty * w * w).sum()) / 2
    above = float((slopes * slopes / np.where(bend > 0, bend, np.inf)).sum()) / 2
    return above / value if value > 0 else 0.0
