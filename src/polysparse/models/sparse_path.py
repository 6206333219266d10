"""SparsePath: the solutions of a model with an L1 penalty, from the strongest penalty on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.display.plotting import draw_path
from polysparse.display.tables import as_table
from polysparse.estimators.shared import IntegerRange, RealRange
from polysparse.models.choosing import Penalties
from polysparse.models.penalties import ElasticNetPenalty
from polysparse.models.solution import End, Solution
from polysparse.models.terms import Terms
from polysparse.models.working_sets import SparseSolver


@dataclass(frozen=True, repr=False)
class SparsePath:
    """The solutions of a model for one penalty after another.

    Attributes
    ----------
    parameter : {"alpha", "C"}
        The parameter that changes.
    values : ndarray of float64 of shape (n,)
        Its values, from the strongest penalty to the weakest.
    coefs : csr_array of shape (n * n_scores, n_columns)
        Coefficients: a row for each value, or for each value and each class.
    intercepts : ndarray of float64 of shape (n, n_scores)
        Intercepts.
    objectives, gaps : ndarray of float64 of shape (n,)
        The objective at each solution, and an upper bound of how far it is above its minimum.
    n_iter : ndarray of int64 of shape (n,)
        Number of Newton's iterations.
    terms : Terms
        The columns, with the coefficients of the weakest penalty.
    """

    parameter: str
    values: NDArray[np.float64]
    coefs: Any
    intercepts: NDArray[np.float64]
    objectives: NDArray[np.float64]
    gaps: NDArray[np.float64]
    n_iter: NDArray[np.int64]
    terms: Terms

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return str(self.table()._repr_html_())

    def table(self) -> Any:
        """Return a row for each penalty: coefficients that are not 0, objective and gap.

        Returns
        -------
        pandas.DataFrame, or a small table that prints alike if pandas is not installed
            Its columns: `alpha` or `C`; `terms`, the number of coefficients that are not 0;
            `objective`; `gap`; and `iterations`.
        """
        per_row = np.diff(self.coefs.indptr).reshape(len(self.values), -1).sum(axis=1)
        return as_table(
            {
                self.parameter: self.values.tolist(),
                "terms": per_row.tolist(),
                "objective": self.objectives.tolist(),
                "gap": self.gaps.tolist(),
                "iterations": self.n_iter.tolist(),
            }
        )

    def entries(self, n: int = 20, *, sep: str = " ") -> Any:
        """Return the terms in the order in which they get a coefficient.

        Parameters
        ----------
        n : int, default=20
            Number of terms.
        sep : str, default=" "
            What separates the features of a term in its name.

        Returns
        -------
        pandas.DataFrame, or a small table that prints alike if pandas is not installed
            Its columns: `class`, only if there are coefficients for several; `name`; `alpha` or
            `C`, the first value with a coefficient; and `weight`, the coefficient at the end.
        """
        IntegerRange(1).require("n", n)
        row, column, first = self._entered()
        row, column, first = (each[:n] for each in (row, column, first))
        table = self.terms.rows_of(row) | {"name": self.terms.names(column, sep)}
        table[self.parameter] = self.values[first].tolist()
        table["weight"] = self.terms.weights[row, column].tolist()
        return as_table(table)

    def plot_path(self, n: int = 10, *, ax: Any = None) -> Any:
        """Draw the coefficients of the terms that enter first, against the penalty.

        Parameters
        ----------
        n : int, default=10
            Number of terms with a color and a name; those of up to ten times as many are gray.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with the strongest penalty on the left.
        """
        IntegerRange(1).require("n", n)
        row, column, _ = (each[: 10 * n] for each in self._entered())
        n_scores = len(self.terms.weights)
        lines = self.coefs[:, column].toarray().reshape(len(self.values), n_scores, -1)
        names = self.terms.names(column[:n])
        if self.terms.rows is not None:
            labels = self.terms.rows_of(row[:n])[self.terms.rows[0]]
            names = [f"{name} → {label}" for name, label in zip(names, labels, strict=True)]
        own = lines[:, row, np.arange(len(column))]
        return draw_path(self.parameter, self.values, own, names, ax)

    def _entered(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return rows and columns of coefficients by when they are first not 0, and when."""
        n_scores, coefs = len(self.terms.weights), self.coefs.tocoo()
        value, row = np.divmod(coefs.row.astype(np.int64), n_scores)
        column = coefs.col.astype(np.int64)
        order = np.lexsort((-np.abs(coefs.data), value))
        key = row[order] * self.coefs.shape[1] + column[order]
        _, first = np.unique(key, return_index=True)
        order = order[np.sort(first)]
        return row[order], column[order], value[order]


@dataclass
class PathRecorder:
    """Solves for one penalty after another, and keeps the solutions.

    Parameters
    ----------
    parameter : {"alpha", "C"}
        The parameter that changes: the strength of the penalty, or its inverse.
    given : int or array-like
        How many values there are, or the values.
    eps : float
        The weakest penalty, relative to the strongest, if values are not given.
    """

    parameter: str
    given: Any
    eps: float

    def __post_init__(self) -> None:
        penalties = Penalties(self.parameter, (-3, 0))
        values = penalties.read(self.given, RealRange(may_be_zero=False).require)
        self.is_relative = isinstance(self.given, Integral)
        self.values = values[penalties.order(values)]
        if self.is_relative and not 0 < self.eps < 1:
            raise ValueError(f"eps must be above 0 and below 1; got {self.eps!r}.")

    def solve(self, model: Any, solver: SparseSolver, penalty: ElasticNetPenalty) -> Solution:
        """Solve for all penalties; return the last solution, with the worst end of all."""
        self.solutions, self.values = [], self._values(solver, penalty)
        for value in self.values.tolist():
            strength = value if self.parameter == "alpha" else 1 / value
            report = model._reporter(solver.losses)
            own = penalty.times(strength)
            found = solver.solve(own, tol=model.tol, max_iter=model.max_iter, report=report)
            unit = 1.0 if self.parameter == "alpha" else 1 / strength
            found = replace(found, value=unit * found.value, gap=unit * found.gap)
            rows = sparse.csr_array(np.atleast_2d(found.coefficients.T))
            self.solutions.append(replace(found, coefficients=rows))
        ends = [each.end for each in self.solutions]
        order: tuple[End, ...] = ("max_iter", "rounding", "converged")
        worst = next(end for end in order if end in ends)
        at = max((each for each in self.solutions if each.end == worst), key=lambda each: each.gap)
        return replace(found, end=worst, gap=at.gap, value=at.value)

    def _values(self, solver: SparseSolver, penalty: ElasticNetPenalty) -> NDArray[np.float64]:
        """Return the values of the parameter, from the strongest penalty to the weakest."""
        if not self.is_relative:
            return self.values
        strongest = solver.strongest(penalty)
        strengths = np.geomspace(strongest, strongest * self.eps, len(self.values))
        return strengths if self.parameter == "alpha" else 1 / strengths

    def path(self, terms: Terms) -> SparsePath:
        """Return the solutions, given the columns."""
        found = self.solutions
        return SparsePath(
            self.parameter,
            self.values,
            sparse.vstack([each.coefficients for each in found], format="csr"),
            np.array([np.atleast_1d(each.intercept) for each in found]),
            np.array([each.value for each in found]),
            np.array([each.gap for each in found]),
            np.array([each.n_iter for each in found], dtype=np.int64),
            terms,
        )
