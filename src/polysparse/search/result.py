"""TopInteractions: what a search has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.names import members_of_tuples, names_of_tuples
from polysparse.columns.spaces import ChosenColumns
from polysparse.display.plotting import draw_matrix, draw_terms
from polysparse.display.tables import TermTable, as_table
from polysparse.search.arguments import as_count


@dataclass(frozen=True, eq=False, repr=False)
class TopInteractions:
    """Interactions with the largest scores, the largest first.

    It prints as a table. To use only these interactions, pass it as `columns` to `expand`,
    `iter_expand`, `plan`, `PolynomialOperator`, `ObservedPolynomialFeatures` or a model. Columns
    are then in the order of the expansion, not of the scores.

    Attributes
    ----------
    basis : MonomialBasis
        The expansion that was searched.
    columns : ndarray of int64 of shape (n,)
        Columns of the expansion.
    scores : ndarray of shape (n,)
        The score of each interaction, with its sign.
    counts : ndarray of int64 of shape (n,)
        Number of rows in which each interaction occurs.
    targets : ndarray of int64 of shape (n,), or None
        The column of the target that has the score; None if there is only one.
    score : str
        The kind of score.
    feature_names : list of str or None
        Names of the features.
    target_names : list of str or None
        Names of the columns of the target, which tables and plots then have instead of numbers.

    Examples
    --------
    >>> from polysparse import expand, top_interactions
    >>> X = [[1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1]]
    >>> top = top_interactions(X, [3, 4, 0, 1], k=2)
    >>> top
    name   score  rows
    x0 x1      7     2
    x0 x2      5     2
    >>> top.features
    [('x0', 'x1'), ('x0', 'x2')]
    >>> expand(X, columns=top).toarray()
    array([[1., 0.],
           [1., 1.],
           [0., 0.],
           [0., 1.]])
    """

    basis: MonomialBasis
    columns: NDArray[np.int64]
    scores: NDArray[np.float64]
    counts: NDArray[np.int64]
    targets: NDArray[np.int64] | None
    score: str
    feature_names: Sequence[str] | None
    target_names: Sequence[str] | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        """Return the number of interactions."""
        return len(self.columns)

    def __repr__(self) -> str:
        return "\n".join(filter(None, [repr(TermTable(self._printed())), self._note()]))

    def _repr_html_(self) -> str:
        note = f"<p>{escape(self._note())}</p>" if self._note() else ""
        return f"{TermTable(self._printed())._repr_html_()}{note}"

    def _note(self) -> str:
        """Return what is printed below the table."""
        return ""

    @property
    def tuples(self) -> NDArray[np.int64]:
        """Numbers of the features in each interaction, as rows padded with -1."""
        return self.basis.unrank(self.columns)

    @property
    def names(self) -> list[str]:
        """The name of each interaction, as `get_feature_names_out` of a transformer gives it."""
        return names_of_tuples(self.tuples, self.feature_names)

    @property
    def features(self) -> list[tuple[str, ...]]:
        """The names of the features in each interaction."""
        return members_of_tuples(self.tuples, self.feature_names)

    def _printed(self) -> dict[str, list[Any]]:
        """Return the columns of the table that is printed."""
        table: dict[str, list[Any]] = {"name": self.names}
        if self.targets is not None:
            names = self.target_names
            targets = self.targets.tolist()
            table["target"] = targets if names is None else [names[i] for i in targets]
        return table | {"score": self.scores.tolist(), "rows": self.counts.tolist()}

    def to_table(self) -> Any:
        """Return a table of the interactions.

        Returns
        -------
        pandas.DataFrame, or a small table that prints alike if pandas is not installed
            A row for each interaction. Its columns:

            - `name`, of the interaction;
            - `target`, the column of the target or its name, only if there are several;
            - `score`, with its sign;
            - `rows`, in how many rows it occurs;
            - `features`, the names of its features as a tuple;
            - `column`, its column in the expansion.

        Examples
        --------
        >>> from polysparse import top_interactions
        >>> top = top_interactions([[1, 1, 0], [1, 1, 1]], [3, 4], k=2)
        >>> list(top.to_table()["score"])
        [7.0, 4.0]
        """
        return as_table(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        """Return all columns of the table."""
        return self._printed() | {"features": self.features, "column": self.columns.tolist()}

    def column_space(self, n_features: int) -> ChosenColumns:
        """Return the columns in the form that polysparse's functions use, in increasing order.

        Parameters
        ----------
        n_features : int
            Number of features; ValueError is raised if it is not that of the search.

        Returns
        -------
        ChosenColumns
            The columns.
        """
        if n_features != self.basis.n_features:
            raise ValueError(
                f"X has {n_features} features, but the interactions were found in "
                f"{self.basis.n_features}."
            )
        ranks = np.sort(self.columns)
        ranks.flags.writeable = False
        return ChosenColumns(self.basis, ranks)

    def plot(self, n: int = 30, *, kind: str = "bars", ax: Any = None) -> Any:
        """Draw the interactions with the largest scores.

        Parameters
        ----------
        n : int, default=30
            Number of interactions.
        kind : {"bars", "matrix"}, default="bars"
            A bar for each interaction, or a matrix of features whose cells are the sizes of the
            scores of pairs; single features and powers are on its diagonal.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        return self._draw(n, kind, ax)

    def _draw(self, n: int, kind: str, ax: Any = None, make_figure: Any = None) -> Any:
        n = as_count(n, "n")
        if kind == "bars":
            table = {name: column[:n] for name, column in self._printed().items()}
            return draw_terms(table, ax, make_figure, value="score", label=self._label())
        if kind != "matrix":
            raise ValueError(f'kind must be "bars" or "matrix"; got {kind!r}.')
        cells: dict[tuple[str, ...], float] = {}
        for members, score in zip(self.features[:n], self.scores[:n].tolist(), strict=True):
            if len(members) > 2:
                raise ValueError(
                    f"A matrix has single features and pairs, but {' '.join(members)!r} has "
                    f'{len(members)} features: search degree=2, or use kind="bars".'
                )
            cells[members] = abs(score)
        return draw_matrix(cells, ax, make_figure, label=f"size of the {self._label()}")

    def _label(self) -> str:
        return {"dot": "score", "normalized": "normalized score"}.get(self.score, self.score)
