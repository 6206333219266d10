"""TestedInteractions: the interactions with the largest statistics, and how likely chance is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.search.result import TopInteractions


@dataclass(frozen=True, eq=False, repr=False)
class TestedInteractions(TopInteractions):
    """Interactions with the largest statistics, the largest first, and their p-values.

    It prints as a table, and can be passed as `columns`, like `TopInteractions`.

    Attributes
    ----------
    basis : MonomialBasis
        The expansion that was searched.
    columns : ndarray of int64 of shape (n,)
        Columns of the expansion.
    scores : ndarray of shape (n,)
        The statistic of each, with its sign: the sum of z times the residuals, divided by its
        standard deviation. Without an interaction, its square is approximately chi-squared with one
        degree of freedom.
    counts : ndarray of int64 of shape (n,)
        Number of rows in which each interaction occurs.
    targets : None
        There is only one target.
    score : str
        "statistic".
    feature_names : list of str or None
        Names of the features.
    bonferroni : ndarray of shape (n,)
        p-values from the normal distribution, times the number of tests.
    p_values : ndarray of shape (n,)
        Adjusted p-values. For data without interactions, the smallest of them is at most p with a
        probability of at most p, however many interactions are tested. They never decrease from one
        interaction to the next, and are multiples of `resolution`. Without simulated targets, they
        are `bonferroni`.
    null_maxima : ndarray of shape (n_null,)
        The size of the largest statistic of each simulated target.
    n_tested : int
        Number of interactions that were tested.
    model : {"linear", "logistic", "poisson"}
        The model of main effects.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import expand, interaction_test
    >>> rng = np.random.default_rng(0)
    >>> X = (rng.random((300, 20)) < 0.5).astype(float)
    >>> y = X[:, 3] - X[:, 5] + X[:, 3] * X[:, 5] + rng.normal(size=300)
    >>> tested = interaction_test(X, y, k=3, n_null=99, random_state=0)
    >>> tested.names[0], float(tested.p_values[0]), tested.resolution
    ('x3 x5', 0.01, 0.01)
    >>> tested.significant(0.05).names
    ['x3 x5']
    >>> expand(X, columns=tested).shape
    (300, 3)
    """

    __test__ = False  # pytest would collect it

    bonferroni: NDArray[np.float64]
    p_values: NDArray[np.float64]
    null_maxima: NDArray[np.float64]
    n_tested: int
    model: str

    @property
    def resolution(self) -> float:
        """The smallest adjusted p-value of this number of simulated targets; 0 without any."""
        n_null = len(self.null_maxima)
        return 1 / (n_null + 1) if n_null else 0.0

    def significant(self, level: float = 0.05) -> TestedInteractions:
        """Return the interactions whose adjusted p-value is at most `level`.

        Parameters
        ----------
        level : float, default=0.05
            The probability of any significant interaction in data without interactions.

        Returns
        -------
        TestedInteractions
            Those interactions.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1; got {level!r}.")
        if level < self.resolution:
            n_null = int(np.ceil(1 / level)) - 1
            raise ValueError(
                f"level={level} is below the smallest p-value that n_null={len(self.null_maxima)} "
                f"simulated targets can give, {self.resolution:.3g}: use n_null={n_null} or more."
            )
        return self._first(int(np.count_nonzero(self.p_values <= level + 1e-12)))

    def _first(self, n: int) -> TestedInteractions:
        return TestedInteractions(
            self.basis,
            self.columns[:n],
            self.scores[:n],
            self.counts[:n],
            None,
            self.score,
            self.feature_names,
            self.bonferroni[:n],
            self.p_values[:n],
            self.null_maxima,
            self.n_tested,
            self.model,
        )

    def _note(self) -> str:
        """Return what the p-values are from."""
        tested = f"{self.n_tested:,} interactions tested, {self.model} main effects; "
        if len(self.null_maxima) == 0:
            return f"{tested}no simulated targets"
        return f"{tested}p is adjusted for all of them, in steps of {self.resolution:.3g}"

    def _printed(self) -> dict[str, list[Any]]:
        table = super()._printed() | {"bonferroni": self.bonferroni.tolist()}
        if len(self.null_maxima):
            table["p"] = self.p_values.tolist()
        return table

    def to_table(self) -> Any:
        """Return a table of the interactions.

        Returns
        -------
        pandas.DataFrame, or a small table that prints alike if pandas is not installed
            A row for each interaction. Its columns:

            - `name`, of the interaction;
            - `score`, the statistic, with its sign;
            - `rows`, in how many rows it occurs;
            - `bonferroni`, the p-value by Bonferroni's bound;
            - `p`, the adjusted p-value, if targets were simulated;
            - `features`, the names of its features as a tuple;
            - `column`, its column in the expansion.
        """
        return super().to_table()
