"""Cross-validation of models with an L1 penalty: one solver goes along the path of a split."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.models.cross_validation import CrossValidated
from polysparse.models.fitting import prepare, set_solution
from polysparse.models.local_rows import LocalRows
from polysparse.models.solution import End
from polysparse.models.sparse_penalty import penalty_of
from polysparse.models.working_sets import SparseSolver


class CrossValidatedSparse(CrossValidated):
    """Cross-validation of a model that may have an L1 penalty."""

    def _fit_path(
        self, models: list[Any], columns: ColumnSpace, rows: LocalRows
    ) -> Iterator[tuple[Any, End]]:
        """Fit models with one solver, which keeps the columns that it has built.

        Those without an L1 penalty come last, such as C=inf; they are fitted as other models are.
        """
        n_sparse = sum(model._l1_share > 0 for model in models)
        if n_sparse:
            yield from self._fit_sparse_path(models[:n_sparse], columns, rows)
        yield from super()._fit_path(models[n_sparse:], columns, rows)

    def _fit_sparse_path(
        self, models: list[Any], columns: ColumnSpace, rows: LocalRows
    ) -> Iterator[tuple[Any, End]]:
        name = self._penalties.name
        solver = self._solver(self._unit_model(models[0]), columns, rows)
        for model in models:
            loss = model._make_loss(rows)  # which sets the classes
            penalty, value = penalty_of(model, columns), getattr(model, name)
            strength = value if name == "alpha" else 1 / value
            own = penalty.times(strength)
            report = model._reporter(solver.losses)
            solution = solver.solve(own, tol=model.tol, max_iter=model.max_iter, report=report)
            set_solution(model, columns, loss, solution)
            yield model, solution.end
            model._forget()

    def _unit_model(self, model: Any) -> Any:
        """Return a model whose loss has no factor, with what another one knows of the rows."""
        unit = self._plain_model(1.0)
        fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
        vars(unit).update(fitted)
        return unit

    def _solver(self, model: Any, columns: ColumnSpace, rows: LocalRows) -> SparseSolver:
        """Return a solver for the loss of a model."""
        loss = model._make_loss(rows)
        rows.set_targets(columns, loss)
        return SparseSolver(rows, columns, loss, bool(self.fit_intercept), self.n_jobs)


class CrossValidatedLasso(CrossValidatedSparse):
    """Cross-validation of a lasso, whose penalties by default depend on the data."""

    def _penalties_for(self, rows: LocalRows, known: dict[str, Any]) -> NDArray[np.float64]:
        """Return the penalties: by default relative to the strongest one that matters."""
        penalties = super()._penalties_for(rows, known)
        given = getattr(self, self._penalties.plural)
        model = self._plain_model(1.0)
        if not isinstance(given, Integral) or model._l1_share == 0:
            return penalties
        vars(model).update(known)
        columns, _ = prepare(model, rows)
        strongest = self._solver(model, columns, rows).strongest(penalty_of(model, columns))
        found: NDArray[np.float64] = penalties / penalties.max() * strongest
        return found
