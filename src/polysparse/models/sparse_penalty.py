"""SparsePenaltyMixin: models whose penalty may have an L1 part, so that most coefficients are 0."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from polysparse.columns.spaces import ColumnSpace
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.models.bootstrap import Bootstrap
from polysparse.models.factors import factors_of
from polysparse.models.fitting import fit, open_rows
from polysparse.models.local_rows import LocalRows
from polysparse.models.losses.interface import Loss
from polysparse.models.penalties import ElasticNetPenalty
from polysparse.models.readable import terms_of
from polysparse.models.row_store import RowStore
from polysparse.models.solution import Solution
from polysparse.models.sparse_path import PathRecorder, SparsePath
from polysparse.models.working_sets import N_VECTORS, SparseSolver

# The l1_ratio that each of them is.
PENALTIES: dict[Any, float | None] = {"l1": 1.0, "l2": 0.0, "elasticnet": None}


class SparsePenaltyMixin:
    """The parameter `l1_ratio`, and the solver for it.

    What a model minimizes, divided by its `_unit`, is its loss plus the sum of
    ``l1_ratio * abs(w) + (1 - l1_ratio) * w**2 / 2``.
    """

    l1_ratio: float
    _recorder: PathRecorder | None = None  # of a path that is computed instead of one solution

    @property
    def _l1_share(self) -> float:
        """The share of the L1 penalty; 0 if coefficients are not penalized at all."""
        if not self._has_penalty:  # type: ignore[attr-defined]
            return 0.0
        own = PENALTIES.get(getattr(self, "penalty", None))
        return float(self.l1_ratio if own is None else own)

    @property
    def _n_vectors(self) -> int:
        own: int = super()._n_vectors  # type: ignore[misc]
        return N_VECTORS if self._l1_share > 0 else own

    def _require_parameters(self) -> None:
        super()._require_parameters()  # type: ignore[misc]
        ratio: Any = self.l1_ratio
        is_real = isinstance(ratio, Real) and not isinstance(ratio, bool | np.bool_)
        if not is_real or not 0 <= ratio <= 1:
            raise ValueError(f"l1_ratio must be a number from 0 to 1; got {ratio!r}.")
        penalty = getattr(self, "penalty", None)
        if penalty is not None and (not isinstance(penalty, str) or penalty not in PENALTIES):
            raise ValueError(
                f'penalty must be "l1", "l2", "elasticnet" or None; got {penalty!r}. For no '
                f"penalty, set {'C=numpy.inf' if hasattr(self, 'C') else 'alpha=0'}."
            )
        own = PENALTIES.get(penalty)
        if own is not None and ratio not in (0.0, own):
            raise ValueError(
                f"penalty={penalty!r} is l1_ratio={own:g}, and l1_ratio is {ratio}. Set one "
                "of them."
            )

    def _require_rows(self, rows: RowStore) -> None:
        """Raise TypeError if the penalty needs rows in memory, and these are elsewhere."""
        is_local = isinstance(rows, LocalRows) and isinstance(rows.x, CanonicalCsr)
        if self._l1_share > 0 and not is_local:
            raise TypeError(
                f"{type(self).__name__} with an L1 penalty needs X in the memory of this process, "
                "as a NumPy array, a SciPy matrix or a table. Compute it first, fit to a sample of "
                "the rows, or use an L2 penalty."
            )

    def _bootstrap(self, *arguments: Any) -> Bootstrap:
        """Raise ValueError if there is an L1 penalty: its intervals would be too narrow."""
        if self._l1_share > 0:
            raise ValueError(
                f"bootstrap needs an L2 penalty, and {type(self).__name__} has an L1 penalty. "
                "Bootstrap a model with l1_ratio=0 on the columns that were selected: pass them as "
                "`columns`."
            )
        return super()._bootstrap(*arguments)  # type: ignore[misc,no-any-return]

    def _solve(
        self, columns: ColumnSpace, rows: RowStore, loss: Loss, last: dict[str, Any]
    ) -> Solution:
        if self._l1_share == 0:
            return super()._solve(columns, rows, loss, last)  # type: ignore[misc,no-any-return]
        solver = SparseSolver(rows, columns, loss, bool(self.fit_intercept), self.n_jobs)  # type: ignore[attr-defined, arg-type]
        penalty = penalty_of(self, columns)
        if self._recorder is not None:
            return self._recorder.solve(self, solver, penalty)
        coefficients, intercept = self._start(columns, loss, last)  # type: ignore[attr-defined]
        if coefficients.any():
            solver.start(coefficients, intercept)
        return solve(self, solver, penalty)


class SparseInverseMixin(SparsePenaltyMixin):
    """The same for models whose penalty is the inverse of `C`."""

    penalty: str | None

    def path(
        self, X: Any, y: Any, sample_weight: Any = None, *, Cs: Any = 100, eps: float = 1e-3
    ) -> SparsePath:
        """Fit for many values of `C`, from the strongest penalty to the weakest.

        Each fit starts from the solution of the last. The model itself is not changed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        y : array-like of shape (n_samples,)
            The targets or classes.
        sample_weight : float or array-like of shape (n_samples,), optional
            Non-negative weights of the rows.
        Cs : int or array-like, default=100
            The values, or how many. If an int is given, values range from the smallest penalty with
            which all coefficients are 0 down to `eps` times that.
        eps : float, default=1e-3
            The weakest penalty relative to the strongest.

        Returns
        -------
        SparsePath
            The solutions. It prints as a table; `table()` returns it, `entries()` lists terms in
            the order in which they get a coefficient, and `plot_path()` draws them.

        Examples
        --------
        >>> import numpy as np
        >>> from polysparse import PolynomialLogisticRegression
        >>> X = np.random.default_rng(0).integers(0, 2, (100, 4))
        >>> y = X[:, 0] * X[:, 1]
        >>> path = PolynomialLogisticRegression(l1_ratio=1, interaction_only=True).path(X, y, Cs=5)
        >>> path.entries(1)["name"][0]
        'x0 x1'
        """
        return path_of(self, (X, y, sample_weight), "C", Cs, eps)


def path_of(
    model: Any, data: tuple[Any, ...], parameter: str, given: Any, eps: float
) -> SparsePath:
    """Return the solutions of a model, which is not changed, for many values of a parameter.

    `data` are what `open_rows` takes.
    """
    recorder = PathRecorder(parameter, given, eps)
    twin = model._unfitted(**{parameter: 1.0})
    twin._require_parameters()
    if twin._l1_share == 0:
        raise ValueError(
            f"path needs an L1 penalty, and l1_ratio is {model.l1_ratio}: set l1_ratio above 0, "
            "such as 1."
        )
    twin._recorder = recorder
    fit(twin, partial(open_rows, twin, *data), stacklevel=3)
    return recorder.path(terms_of(twin))


def penalty_of(model: Any, columns: ColumnSpace) -> ElasticNetPenalty:
    """Return the penalty of a model; raise ValueError for factors that are 0."""
    factors = factors_of(model, columns)
    if factors is not None and not factors.all():
        raise ValueError(
            "penalty_factors has a factor of 0, which an L1 penalty cannot have here: use a small "
            "factor, such as 0.01, or an L2 penalty."
        )
    share = model._l1_share
    return ElasticNetPenalty(share, 1 - share, factors)


def solve(model: Any, solver: SparseSolver, penalty: ElasticNetPenalty) -> Solution:
    """Return the solution for a penalty, with value and gap of the model's objective."""
    solution = solver.solve(
        penalty,
        tol=model.tol,
        max_iter=model.max_iter,
        report=model._reporter(solver.losses),
    )
    unit = model._unit
    return replace(solution, value=unit * solution.value, gap=unit * solution.gap)
