"""What the solvers minimise: sums over rows, which they ask for and which say nothing of blocks.

If all rows are one block in this process, rows are updated as a solver goes on. If they are blocks
elsewhere, what is kept of them is made from coefficients alone, so that what is lost can be made
again, to the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models import contributions
from polysparse.models.blocks import Blocks
from polysparse.models.losses import Sums
from polysparse.models.vectors import centre, combine, dot

# Elsewhere, the gradient of squared errors is updated, as conjugate gradients do, and made of the
# errors themselves this often.
REFRESH = 50


class Objective:
    """Blocks of rows, and how many passes over them a solver took.

    A pass is one product with the expansion and one with its transpose. `n_jobs` is the number of
    threads for vectors that are here.
    """

    def __init__(self, blocks: Blocks, n_jobs: int | None = 1) -> None:
        self.blocks = blocks
        self.n_jobs = n_jobs
        self.n_products = 0

    @property
    def n_passes(self) -> float:
        """Passes over the data so far."""
        return self.n_products / 2

    def scores(self, coefficients: NDArray[np.float64], *, once: bool = False) -> Any:
        """Keep the expansion times coefficients."""
        self.n_products += 1
        return self.blocks.keep(contributions.scores, once=once, coefficients=coefficients)

    def _add_rows(self, rows: Any, size: float, change: Any, shift: float = 0.0) -> None:
        """Add so many times a change, less a shift, to rows that are here."""
        combine(1.0, rows.reshape(-1), size, change.reshape(-1), self.n_jobs, shift)

    def _gram(
        self, function: Any, *kept: Any, directions: NDArray[np.float64], is_centred: bool
    ) -> NDArray[np.float64]:
        """Return inner products of columns, about their means if centred, times directions."""
        products, sums, total = self.blocks.total(
            function, *kept, directions=directions, is_centred=is_centred
        )
        self.n_products += 2 * directions.shape[1]
        if is_centred:
            along = np.einsum("c,ck->k", sums, directions)
            products -= sums[:, np.newaxis] * (along / max(total, np.finfo(np.float64).tiny))
        return products  # type: ignore[no-any-return]


class LogLosses(Objective):
    """The logistic losses of all rows, with the intercept always at its best.

    Parameters
    ----------
    blocks : Blocks
        The rows. Their targets are classes, counted from 0.
    n_classes : int
        Number of classes.
    intercepts : NoIntercept, BinaryIntercept or SoftmaxIntercepts
        How the intercept is found.
    n_jobs : int or None, default=1
        Number of threads.

    Attributes
    ----------
    value : float
        The losses where the solver is.
    intercept : float, or ndarray of float64 of shape (n_classes,)
        The intercept there; more than two classes have one each.
    """

    def __init__(
        self, blocks: Blocks, n_classes: int, intercepts: Any, n_jobs: int | None = 1
    ) -> None:
        super().__init__(blocks, n_jobs)
        self.n_classes = n_classes
        self.intercepts = intercepts
        self.value: float
        self.intercept: Any

    def begin(self, coefficients: NDArray[np.float64], intercept: Any) -> None:
        """Go to coefficients. The best intercept is sought from the one given."""
        self._scores = self.scores(coefficients)

        def at(intercept: Any) -> Any:
            (sums,) = self.blocks.total(
                contributions.log_losses,
                self._scores,
                n_classes=self.n_classes,
                intercept=intercept,
            )
            return sums

        self._settle(*self.intercepts.best(at, intercept))

    def _settle(self, intercept: Any, sums: Sums) -> None:
        self.value, self.intercept, self._hessian = sums.value, intercept, sums.hessian
        self._point = self.blocks.keep(
            contributions.point, self._scores, n_classes=self.n_classes, intercept=intercept
        )
        self._change: Any = None
        self._shift = 0 * intercept

    def model(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the gradient of coefficients, and the diagonal of the Hessian.

        The diagonal is that for each class alone, with its intercept at its best.
        """
        is_centred = self.intercepts.is_free
        gradient, squares, sums, totals = self.blocks.total(
            contributions.model, self._point, is_centred=is_centred
        )
        self.n_products += 3 if is_centred else 2
        self._means = None
        if is_centred:
            centre(squares, sums, totals, self.n_jobs)
            if not self.blocks.are_here and self.n_classes == 2:
                self._means = sums
        return gradient, squares

    def gram(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Hessian of a mean class, with its intercept at its best, times directions."""
        return self._gram(
            contributions.gram,
            self._point,
            directions=directions,
            is_centred=self.intercepts.is_free,
        )

    def curve(
        self, direction: NDArray[np.float64], out: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Return the Hessian times a direction; it is written to `out`, if that is given."""
        self._last = self.scores(direction, once=self._means is not None)
        self._last_shift = self._shift_along(direction)
        (product,) = self.blocks.total(
            contributions.curve, self._point, self._last, shift=self._last_shift, out=out
        )
        self.n_products += 1
        return product  # type: ignore[no-any-return]

    def _shift_along(self, direction: NDArray[np.float64]) -> Any:
        """Return by how much the intercept falls along the direction, to first order.

        Elsewhere, the means of columns tell it for two classes, without one more look at the rows.
        """
        if not self.intercepts.is_free:
            return 0 * self.intercept
        if self._means is not None:
            return dot(self._means, direction, self.n_jobs)
        (cross,) = self.blocks.total(contributions.cross, self._point, self._last)
        return self.intercepts.shift(self._hessian, cross)

    def advance(self, size: float) -> None:
        """Add so many times the last direction to the step that is to be taken."""
        self._shift = self._shift + size * self._last_shift
        if not self.blocks.are_here:
            return
        if self._change is None:
            self._change = self._last
            self._change *= size
        else:
            self._add_rows(self._change, size, self._last)

    def look_along(self, step: NDArray[np.float64]) -> None:
        """Prepare trials along a step, which is made of what `advance` was told."""
        self._last = None
        if self._change is None:
            self._change = self.scores(step)

    def trial(self, size: float) -> tuple[float, float]:
        """Try so many times the step; return the slope and the curvature of the losses there."""

        def at(intercept: Any) -> Any:
            (sums,) = self.blocks.total(
                contributions.log_losses_along,
                self._scores,
                self._change,
                self._point,
                n_classes=self.n_classes,
                intercept=intercept,
                size=size,
                shift=self._shift,
            )
            return sums

        intercept, sums = self.intercepts.best(at, self.intercept)
        self._tried = size, intercept - size * self._shift, sums
        falls = self.intercepts.shift(sums.hessian, sums.cross)
        # Slopes of intercepts are not exactly 0, and the gradient of coefficients has them, too.
        slope = sums.along + float(np.sum(self._shift * sums.slopes))
        return slope, sums.square - float(np.sum(falls * sums.cross))

    def move(self, coefficients: NDArray[np.float64]) -> float:
        """Go where the last trial was, to these coefficients.

        Returns
        -------
        float
            How much the curvatures of rows changed, as a share, weighted by the change of scores.
        """
        size, intercept, sums = self._tried
        if self.blocks.are_here:
            self._add_rows(self._scores, size, self._change)
        else:
            self._scores = self.scores(coefficients)
        self._settle(intercept, sums)
        return sums.changed / sums.before if sums.before > 0 else 0.0


class SquaredErrors(Objective):
    """The weighted squared errors of all rows, with the intercept always at its best.

    Parameters
    ----------
    blocks : Blocks
        The rows. Their targets are numbers.
    has_intercept : bool
        Whether there is an intercept; otherwise it stays 0.
    n_jobs : int or None, default=1
        Number of threads.
    """

    def __init__(self, blocks: Blocks, has_intercept: bool, n_jobs: int | None = 1) -> None:
        super().__init__(blocks, n_jobs)
        self.has_intercept = has_intercept
        self._product: Any = None
        self._n_updates = 0

    def begin(self) -> tuple[float, NDArray[np.float64]]:
        """Begin with coefficients of 0; return the squared errors and the diagonal of the Hessian.

        The diagonal is that with the intercept at its best, and half of the second derivatives.
        """
        squares, sums, self._total = self.blocks.total(
            contributions.column_sums, is_centred=self.has_intercept
        )
        self.n_products += 2 if self.has_intercept else 1
        self._means = None
        if self.has_intercept:
            centre(squares, sums, self._total, self.n_jobs)
            if not self.blocks.are_here:
                self._means = sums
        return self._settle(self.blocks.keep(contributions.targets)), squares

    def _settle(self, errors: Any) -> float:
        """Take errors without an intercept; return the sum of their squares with the best one."""
        self._errors, self.intercept = errors, self._mean_of(errors)
        if self.blocks.are_here:
            self._errors -= self.intercept
            (value,) = self.blocks.total(contributions.squares, self._errors)
        else:
            value, self._gradient = self.blocks.total(
                contributions.squares_and_transposed, self._errors, shift=self.intercept
            )
            self.n_products += 1
        return float(value)

    def _mean_of(self, rows: Any) -> float:
        if not self.has_intercept:
            return 0.0
        (weighted,) = self.blocks.total(contributions.weighted_sum, rows)
        return float(weighted / self._total)

    def gradient(
        self, coefficients: NDArray[np.float64], out: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Return half of the negative gradient; it is written to `out`, if that is given."""
        if self.blocks.are_here:
            self.n_products += 1
            (product,) = self.blocks.total(contributions.transposed, self._errors, out=out)
            return product  # type: ignore[no-any-return]
        if self._n_updates == REFRESH:
            self._go_to(coefficients)
        out = np.empty_like(self._gradient) if out is None else out
        out[:] = self._gradient
        return out

    def _go_to(self, coefficients: NDArray[np.float64]) -> float:
        self._n_updates = 0
        scores = self.scores(coefficients, once=True)
        return self._settle(self.blocks.keep(contributions.errors, scores))

    def gram(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return half of the Hessian times directions."""
        return self._gram(
            contributions.gram_of_columns, directions=directions, is_centred=self.has_intercept
        )

    def length(self, direction: NDArray[np.float64]) -> float:
        """Return half of the curvature along a direction."""
        gained = self.scores(direction, once=True)
        if self.blocks.are_here:
            self._last, self._shift = gained, self._mean_of(gained)
            (length,) = self.blocks.total(contributions.squares, gained, shift=self._shift)
        else:
            shift = 0.0 if self._means is None else dot(self._means, direction, self.n_jobs)
            length, self._product = self.blocks.total(
                contributions.squares_and_transposed, gained, shift=shift
            )
            self.n_products += 1
        return float(length)

    def move(self, size: float) -> None:
        """Go so many times the last direction."""
        if self.blocks.are_here:
            self._add_rows(self._errors, -size, self._last, self._shift)
            self.intercept -= size * self._shift
        else:
            combine(1.0, self._gradient, -size, self._product, self.n_jobs)
            self._n_updates += 1

    def end(self, coefficients: NDArray[np.float64]) -> float:
        """Return the squared errors at these coefficients, where the solver is."""
        if not self.blocks.are_here:
            return self._go_to(coefficients)
        (value,) = self.blocks.total(contributions.squares, self._errors)
        return float(value)
