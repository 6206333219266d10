"""Cross-validation of ridge regression: one Krylov space has the solutions for all penalties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from polysparse.columns.spaces import ColumnSpace
from polysparse.models.cross_validation import CrossValidated
from polysparse.models.fitting import set_solution
from polysparse.models.least_squares import minimize_path
from polysparse.models.local_rows import LocalRows
from polysparse.models.solution import End, Solution

MOST_BYTES = 2**28  # of the solutions of several targets for all penalties of a split


class CrossValidatedRidge(CrossValidated):
    """Cross-validation of ridge regression."""

    def _fit_path(
        self, models: list[Any], columns: ColumnSpace, rows: LocalRows
    ) -> Iterator[tuple[Any, End]]:
        """Fit models from one Krylov space, which has the solutions for all penalties.

        Several targets have a space each, one after the other, if all solutions have room.
        """
        loss = models[0]._make_loss(rows)
        n_bytes = 8 * columns.n_columns * (loss.n_targets or 0) * len(models)
        if self.penalty_factors is not None or n_bytes > MOST_BYTES:
            yield from super()._fit_path(models, columns, rows)
        elif loss.n_targets is None:
            path = self._path(models, columns, rows, loss)
            while (found := rows.run(next, path, None)) is not None:
                yield from self._fitted(models[found[0]], columns, loss, found[1])
        else:
            each = [replace(loss, target=target) for target in range(loss.n_targets)]
            paths = [dict(rows.run(list, self._path(models, columns, rows, one))) for one in each]
            for place in list(paths[0]):
                solution = Solution.of_several([path.pop(place) for path in paths])
                yield from self._fitted(models[place], columns, loss, solution)

    def _path(
        self, models: list[Any], columns: ColumnSpace, rows: LocalRows, loss: Any
    ) -> Iterator[tuple[int, Solution]]:
        """Return the solutions for one target, and the places of their models."""
        rows.set_targets(columns, loss)
        errors = rows.squared_errors(bool(self.fit_intercept), self.n_jobs)
        return minimize_path(
            errors,
            [model.alpha for model in models],
            tol=self.tol,
            max_iter=self.max_iter,
            report=models[0]._reporter(errors),
        )

    def _fitted(
        self, model: Any, columns: ColumnSpace, loss: Any, solution: Solution
    ) -> Iterator[tuple[Any, End]]:
        """Yield a model with a solution, and how it ended; drop the coefficients afterwards."""
        set_solution(model, columns, loss, solution)
        yield model, solution.end
        model._forget()
