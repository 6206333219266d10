"""What the solvers minimize, apart from the penalty: sums over the rows of a RowStore.

The intercept is always optimal, so a solver sees coefficients alone. `updated_rows` and
`recomputed_rows` complete these classes in two ways; a RowStore chooses one of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.models import contributions
from polysparse.models.losses.interface import Loss, LossSums
from polysparse.models.row_store import RowStore
from polysparse.models.solution import EPS
from polysparse.models.vectors import center, combine

Vector = NDArray[np.float64]

# The square of a rounding error, relative to the square of what is rounded. A score is a sum of
# terms, each of which is rounded a few times.
ROUNDING = (4 * EPS) ** 2


class Objective:
    """The rows, and how many passes over them a solver took.

    A pass is one matrix-vector product with the expansion and one with its transpose. `n_jobs` is
    the number of threads for vectors of coefficients.
    """

    def __init__(self, rows: RowStore, n_jobs: int | None = 1) -> None:
        self.rows: Any = rows
        self.n_jobs = n_jobs
        self.n_products = 0
        self.intercept: Any
        self._squares: Vector | None = None

    @property
    def n_passes(self) -> float:
        """Passes over the data so far."""
        return self.n_products / 2

    def scores(self, coefficients: Vector, *, once: bool = False) -> Any:
        """Keep the expansion times coefficients."""
        if not coefficients.any():
            return self.rows.keep(contributions.no_scores, shape=coefficients.shape[1:])
        self.n_products += 1
        return self.rows.keep(contributions.scores, once=once, coefficients=coefficients)

    def rounding(self, coefficients: Vector, value: float) -> float:
        """Return an estimate of the rounding error of the value, given that of the scores."""
        squares = self._rounding_of_scores(coefficients)
        return 2 * math.sqrt(squares) * math.sqrt(value) + squares + 64 * EPS * value

    def _rounding_of_scores(self, coefficients: Vector) -> float:
        """Return an estimate of the weighted sum of squares of the rounding errors of scores."""
        squares = self.column_squares()
        own = np.atleast_2d(coefficients.T).T
        terms = np.einsum("ck,ck,c->", own, own, squares)
        intercept = float(np.sum(np.square(self.intercept)))
        return ROUNDING * (float(terms) + float(self._total) * intercept)

    def column_squares(self) -> Vector:
        """Return the weighted sum of squares of each column."""
        if self._squares is None:
            self._squares, _, self._total = self.rows.total(
                contributions.column_sums, is_centered=False
            )
            self.n_products += 1
        return self._squares

    def _gram(
        self,
        function: Any,
        *kept: Any,
        directions: Vector,
        is_centered: bool,
        intercept_penalty: float = 0.0,
    ) -> Vector:
        """Return inner products of columns, about their means if centered, times directions."""
        products, sums, total = self.rows.total(
            function, *kept, directions=directions, is_centered=is_centered
        )
        self.n_products += 2 * directions.shape[1]
        if is_centered:
            along = np.einsum("c,ck->k", sums, directions)
            total = max(total + intercept_penalty, np.finfo(np.float64).tiny)
            products -= sums[:, np.newaxis] * (along / total)
        return products  # type: ignore[no-any-return]


class Losses(Objective):
    """The losses of all rows, with the intercept always optimal.

    Parameters
    ----------
    rows : RowStore
        The rows, with targets for the loss.
    loss : Loss
        The loss.
    intercept_search : object
        Finds the optimal intercept; see `models.intercepts`.
    n_jobs : int or None, default=1
        Number of threads.

    Attributes
    ----------
    has_cheap_sums : bool
        Whether sums over rows take much less time than a pass over the data.
    value : float
        The losses at the current coefficients.
    intercept : float, or ndarray of float64 of shape (n_scores,)
        The intercept there.
    memory : quasi_newton.Memory or None
        What the last fit along a path of penalties left to this one.
    """

    has_cheap_sums = False
    memory: Any = None

    def __init__(
        self, rows: RowStore, loss: Loss, intercept_search: Any, n_jobs: int | None = 1
    ) -> None:
        super().__init__(rows, n_jobs)
        self.loss = loss
        self.intercept_search = intercept_search
        self.value: float
        self._typical_means: Vector | None = None

    def rounding(self, coefficients: Vector, value: float) -> float:
        """Return an estimate of the rounding error of the value."""
        if not self.loss.is_self_bounded:
            return self._rounding_by_derivatives(coefficients, value)
        error = super().rounding(coefficients, value)
        # The loss of several scores is a difference of them.
        return error if self.loss.n_scores == 1 else error + EPS * self._total

    def _rounding_by_derivatives(self, coefficients: Vector, value: float) -> float:
        """Return the same, given the gradients and curvatures of rows.

        The sum of |gradient| * error is at most the root of the sum of |gradient| times the root of
        the sum of |gradient| * error**2.
        """
        squares, steepness, of_scores = self.rows.total(
            contributions.rounding_sums, self._scores, self._point, intercept=self.intercept
        )
        self.n_products += 1
        own = coefficients.reshape(-1)
        terms = float(np.einsum("i,i,i->", own, own, squares.reshape(-1)))
        errors = ROUNDING * (terms + float(of_scores))
        return math.sqrt(float(steepness) * errors) + errors + 64 * EPS * value

    def start(self, coefficients: Vector, intercept: Any) -> None:
        """Set the coefficients. The optimal intercept is searched from the one given."""
        self._scores = self.scores(coefficients)

        def at(intercept: Any) -> Any:
            (sums,) = self.rows.total(
                contributions.loss_sums, self._scores, loss=self.loss, intercept=intercept
            )
            return self._with_penalty(sums, intercept)

        self._set_point(*self.intercept_search.best(at, intercept))

    def _with_penalty(
        self, sums: LossSums, intercept: Any, step: float = 0.0, shift: Any = 0.0
    ) -> LossSums:
        """Return sums with the penalty of the intercept, if it has one.

        It is the loss of a row without features.
        """
        penalty = self.intercept_search.penalty
        if not penalty:
            return sums
        gradient = penalty * (intercept - step * shift)
        own = LossSums(
            float(np.sum(gradient * gradient)) / (2 * penalty),
            gradient,
            penalty,
            0.0,
            np.inf,
            -np.inf,
            -float(np.sum(gradient * shift)),
            -penalty * shift,
            float(np.sum(penalty * shift * shift)),
        )
        return sums + own

    def _set_point(self, intercept: Any, sums: LossSums) -> None:
        self.value, self.intercept = sums.value, intercept
        self._intercept_hessian = sums.intercept_hessian
        self._point = self.rows.keep(
            contributions.point, self._scores, loss=self.loss, intercept=intercept
        )
        self._change: Any = None
        self._shift = 0 * intercept

    def gradient(self) -> Vector:
        """Return the gradient."""
        gradient, left = self.rows.total(contributions.gradient, self._point)
        self.n_products += 1
        if self._typical_means is not None:  # the intercept's gradient is 0 only up to rounding
            left = left + self.intercept_search.penalty * self.intercept
            gradient -= np.multiply.outer(self._typical_means, np.asarray(left))
        return gradient  # type: ignore[no-any-return]

    def typical_diagonal(self) -> Vector:
        """Return the diagonal of the Hessian if the curvature of each row was their mean."""
        squares = self.column_squares().copy()
        (total,) = self.rows.total(contributions.total_curvature, self._point)
        if self.intercept_search.is_free:
            weight, sums = self.rows.total(contributions.weighted_columns)
            self.n_products += 1
            center(squares, sums, weight, self.n_jobs)
            self._typical_means = sums
        out: Vector = np.multiply.outer(squares, np.asarray(total) / self._total)
        return out

    def gradient_and_diagonal(self) -> tuple[Vector, Vector]:
        """Return the gradient, and the diagonal of the Hessian of each class on its own."""
        is_centered = self.intercept_search.is_free
        gradient, squares, sums, totals, left = self.rows.total(
            contributions.gradient_and_diagonal, self._point, is_centered=is_centered
        )
        self.n_products += 3 if is_centered else 2
        if is_centered:
            penalty = self.intercept_search.penalty
            totals, left = totals + penalty, left + penalty * self.intercept
            center(squares, sums, totals, self.n_jobs)
            if self.loss.n_scores == 1:  # the intercept's gradient is 0 only up to rounding
                combine(1.0, gradient, -float(left), sums, self.n_jobs)
        self._use_means(sums if is_centered else None)
        return gradient, squares

    def gram(self, directions: Vector) -> Vector:
        """Return the Hessian, averaged over classes, times directions."""
        return self._gram(
            contributions.gram,
            self._point,
            directions=directions,
            is_centered=self.intercept_search.is_free,
            intercept_penalty=self.intercept_search.penalty,
        )

    def power_of_scores(self, direction: Vector) -> float:
        """Return the sum of the scores of a direction to the eighth: above x**8 if one is above x.

        The intercept follows the direction.
        """
        change, shift = self._scores_along(direction)
        (power,) = self.rows.total(contributions.eighth_powers, change, shift=shift)
        self.n_products += 1
        return float(power)

    def hessian_product(self, direction: Vector, out: Vector | None) -> Vector:
        """Return the Hessian times a direction; it is written to `out`, if that is given."""
        self._last, self._last_shift = self._scores_along(direction)
        (product,) = self.rows.total(
            contributions.hessian_product, self._point, self._last, shift=self._last_shift, out=out
        )
        self.n_products += 1
        return product  # type: ignore[no-any-return]

    def _intercept_shift(self, change: Any) -> Any:
        """Return the decrease of the intercept along a change of scores, to first order."""
        if not self.intercept_search.is_free:
            return 0 * self.intercept
        (cross,) = self.rows.total(contributions.intercept_cross, self._point, change)
        return self.intercept_search.shift(self._intercept_hessian, cross)

    def add_to_step(self, size: float) -> None:
        """Add `size` times the last direction to the step."""
        self._shift = self._shift + size * self._last_shift

    def start_line_search(self, step: Vector) -> None:
        """Prepare evaluations along a step, the sum of what `add_to_step` added."""
        self._last = None
        if self._change is None:
            self._change = self.scores(step)

    def evaluate_step(self, size: float) -> tuple[float, float, float]:
        """Return the losses, their slope and curvature at `size` times the step."""

        def at(intercept: Any) -> Any:
            (sums,) = self.rows.total(
                contributions.loss_sums_along,
                self._scores,
                self._change,
                self._point,
                loss=self.loss,
                intercept=intercept,
                step=size,
                shift=self._shift,
            )
            return self._with_penalty(sums, intercept, size, self._shift)

        intercept, sums = self.intercept_search.best(at, self.intercept)
        self._evaluated = size, intercept - size * self._shift, sums
        shift = self.intercept_search.shift(sums.intercept_hessian, sums.intercept_cross)
        # The intercept's gradient is not exactly 0, and the gradient of coefficients includes it.
        slope = sums.slope + float(np.sum(self._shift * sums.intercept_gradient))
        return sums.value, slope, sums.curvature - float(np.sum(shift * sums.intercept_cross))

    def move(self, coefficients: Vector) -> float:
        """Move to the step that was evaluated last, which leads to these coefficients.

        Returns
        -------
        float
            The relative change of the rows' curvatures, weighted by the squared change of scores.
        """
        size, intercept, sums = self._evaluated
        self._move_scores(size, coefficients)
        self._set_point(intercept, sums)
        return sums.curvature_change / sums.old_curvature if sums.old_curvature > 0 else 0.0

    def _use_means(self, means: Vector | None) -> None:
        """Take the means of columns, weighted by the curvatures, if the intercept is free."""

    def _scores_along(self, direction: Vector) -> tuple[Any, Any]:
        """Return the scores of a direction, and the shift of the intercept along it."""
        raise NotImplementedError

    def _move_scores(self, size: float, coefficients: Vector) -> None:
        """Set the scores to those of these coefficients, `size` times the step further."""
        raise NotImplementedError


class SquaredErrors(Objective):
    """The weighted squared errors of all rows, with the intercept always optimal.

    Parameters
    ----------
    rows : RowStore
        The rows. Their targets are numbers.
    has_intercept : bool
        Whether there is an intercept; otherwise it stays 0.
    n_jobs : int or None, default=1
        Number of threads.

    Attributes
    ----------
    zero : float
        The squared errors that the rounding of the targets may cause.
    """

    def __init__(self, rows: RowStore, has_intercept: bool, n_jobs: int | None = 1) -> None:
        super().__init__(rows, n_jobs)
        self.has_intercept = has_intercept
        self.zero: float

    def start(self) -> tuple[float, Vector, Vector | None]:
        """Set the coefficients to 0.

        Returns
        -------
        float
            The squared errors.
        ndarray of float64 of shape (n_columns,)
            Half the diagonal of the Hessian.
        ndarray of float64 of shape (n_columns,), or None
            The weighted means of columns, if there is an intercept.
        """
        squares, sums, self._total = self.rows.total(
            contributions.column_sums, is_centered=self.has_intercept
        )
        self.n_products += 2 if self.has_intercept else 1
        self._squares = squares.copy()
        if self.has_intercept:
            center(squares, sums, self._total, self.n_jobs)
        means = sums if self.has_intercept else None
        self._use_means(means)
        value = self._set_residuals(self.rows.keep(contributions.targets))
        self.zero = ROUNDING * (value + self._total * self.intercept * self.intercept)
        return value, squares, means

    def _rounding_of_scores(self, coefficients: Vector) -> float:
        return float(super()._rounding_of_scores(coefficients) + self.zero)

    def gram(self, directions: Vector) -> Vector:
        """Return half the Hessian times directions."""
        return self._gram(
            contributions.gram_of_columns, directions=directions, is_centered=self.has_intercept
        )

    def _mean(self, rows: Any) -> float:
        if not self.has_intercept:
            return 0.0
        (weighted,) = self.rows.total(contributions.weighted_sum, rows)
        return float(weighted / self._total)

    def _use_means(self, means: Vector | None) -> None:
        """Take the weighted means of columns, if there is an intercept."""

    def _set_residuals(self, residuals: Any) -> float:
        """Set residuals without an intercept; return their sum of squares with the optimal one."""
        raise NotImplementedError

    def gradient(self, coefficients: Vector, out: Vector | None) -> Vector:
        """Return half the negative gradient; it is written to `out`, if that is given."""
        raise NotImplementedError

    def curvature(self, direction: Vector) -> float:
        """Return half the second derivative along a direction."""
        raise NotImplementedError

    def move(self, step: float) -> None:
        """Move by `step` times the last direction."""
        raise NotImplementedError

    def normal_product(self, direction: Vector, out: Vector | None) -> Vector:
        """Return half the Hessian times a direction; it is written to `out`, if that is given."""
        raise NotImplementedError

    def refresh(self, coefficients: Vector) -> float:
        """Compute the residuals from the coefficients; return the squared errors."""
        scores = self.scores(coefficients, once=True)
        return self._set_residuals(self.rows.keep(contributions.residuals, scores))

    @property
    def drift(self) -> float:
        """How much the last refresh changed the residuals, as a sum of squares; or infinite."""
        return np.inf
