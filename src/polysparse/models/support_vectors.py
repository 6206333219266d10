"""Linear support vector machines with squared losses."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from polysparse.basis.degrees import Degree
from polysparse.estimators.shared import IntegerRange, RealRange
from polysparse.models.base import PolynomialModel
from polysparse.models.classifier import PolynomialClassifier
from polysparse.models.docstrings import documented
from polysparse.models.losses.hinge import SquaredHingeLoss
from polysparse.models.losses.tube import SquaredTubeLoss
from polysparse.models.regressor import PolynomialRegressor
from polysparse.models.row_store import RowStore
from polysparse.models.solution import Solution
from polysparse.models.sparse_penalty import SparseInverseMixin

INTERCEPT_SCALING = RealRange(may_be_zero=False, may_be_infinite=True)


def _strengths(model: Any) -> tuple[float, float]:
    """Return what losses are multiplied by, and the penalty of the squared intercept."""
    strength = float(model.C) if model._has_penalty else 1.0
    is_penalized = model._has_penalty and model._l1_share == 0
    return strength, 1 / float(model.intercept_scaling) ** 2 if is_penalized else 0.0


class SupportVectorMixin(SparseInverseMixin):
    """The penalty of the intercept, which only exists without an L1 penalty."""

    intercept_scaling: float

    def _require_parameters(self) -> None:
        super()._require_parameters()
        if self._l1_share > 0 and self.intercept_scaling not in (1, np.inf):
            raise ValueError(
                f"intercept_scaling={self.intercept_scaling} does not apply to an L1 penalty, with "
                "which the intercept is not regularized: leave it out, or use an L2 penalty."
            )


@documented
class PolynomialLinearSVC(SupportVectorMixin, PolynomialClassifier):
    """Linear support vector classification on polynomial features, without building them.

    Equivalent to scikit-learn's LinearSVC with its default loss, the squared hinge on the output of
    PolynomialFeatures, which is never built: matrix-vector products with it are computed from X. A
    fit needs memory for X and seven vectors of coefficients.

    `C` times the weighted sum of ``max(0, 1 - score)**2`` (``1 + score`` for rows of the first
    class), plus half the sum of squared coefficients, is minimized by Newton's method with
    preconditioned conjugate gradients in float64. As in LinearSVC, half the square of
    ``intercept / intercept_scaling`` is added to it. With two classes there is one vector of
    coefficients, for the second class; with more, one for each class against all others, and the
    sum of their objectives is minimized.

    {l1_penalty}
    The intercept is then not regularized, so `intercept_scaling` does not apply.

    Parameters
    ----------
    {C_or_none}
    {l1_ratio}
    {features}
    {penalty_factors}
    {fit_intercept}
    {intercept_scaling}
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the weights of their rows. "balanced": inversely
        proportional to the sums of weights of their rows. With more than two classes, as in
        LinearSVC, the weight of a class is used for its own score, and 1 for those of the other
        classes.
    {tol}
    {max_iter_of_newton}
    {warm_start}
    {threads}

    Attributes
    ----------
    {fitted_classes}
    {fitted_columns}
    n_iter_ : int
        Number of iterations, each of which takes several passes over the data.
    {fitted_features}

    See Also
    --------
    PolynomialLogisticRegression : Classes with probabilities.
    PolynomialLinearSVR : The same for numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialLinearSVC
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> y = ["same", "other", "other", "same"]
    >>> model = PolynomialLinearSVC(C=100).fit(X, y)
    >>> model.predict(X)
    array(['same', 'other', 'other', 'same'], dtype='<U5')
    >>> model.decision_function(X).round(1)
    array([ 1., -1., -1.,  1.])
    """

    n_iter_: int

    _kind = "svc"
    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        **PolynomialClassifier._ranges,
        "intercept_scaling": INTERCEPT_SCALING,
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1_ratio: float = 0.0,
        penalty: str | None = None,
        degree: Degree = 2,
        interaction_only: bool = False,
        groups: Any = None,
        terms: Any = None,
        categorical_features: Any = "from_dtype",
        columns: Any = "all",
        feature_names: Any = None,
        penalty_factors: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def _make_loss(self, rows: RowStore) -> SquaredHingeLoss:
        found = rows.count_classes()
        self._class_factors(found.classes, found.weights)  # raises if they are not valid
        factors = self._class_weights(found.classes, found.weights)
        strength, penalty = _strengths(self)
        return SquaredHingeLoss(found.classes, 2 * strength, factors, penalty)

    def _set_solution(self, solution: Solution, loss: Any) -> None:
        super()._set_solution(solution, loss)
        self.n_iter_ = solution.n_iter


@documented
class PolynomialLinearSVR(SupportVectorMixin, PolynomialRegressor):
    """Linear support vector regression on polynomial features, without building them.

    Equivalent to scikit-learn's LinearSVR with ``loss="squared_epsilon_insensitive"`` on the output
    of PolynomialFeatures, which is never built: matrix-vector products with it are computed from X.
    A fit needs memory for X and seven vectors of coefficients.

    `C` times the weighted sum of ``max(0, abs(y - prediction) - epsilon)**2`` plus half the sum of
    squared coefficients is minimized, by Newton's method with preconditioned conjugate gradients in
    float64. As in LinearSVR, half the square of ``intercept / intercept_scaling`` is added to it.

    {l1_penalty}
    The intercept is then not regularized, so `intercept_scaling` does not apply.

    Parameters
    ----------
    {C_or_none}
    {l1_ratio}
    epsilon : float, default=0.0
        Errors up to this size have no loss.
    {features}
    {penalty_factors}
    {fit_intercept}
    {intercept_scaling}
    {tol}
    {max_iter_of_newton}
    {warm_start}
    {threads}

    Attributes
    ----------
    {fitted_by_newton}

    See Also
    --------
    PolynomialRidge : Squared errors without a tube.
    PolynomialLinearSVC : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import PolynomialLinearSVR
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 3.0]])
    >>> y = 1 + X[:, 0] * X[:, 1]
    >>> model = PolynomialLinearSVR(C=1e6, epsilon=0.1, interaction_only=True).fit(X, y)
    >>> float(abs(model.predict(X) - y).max().round(1))
    0.1
    """

    C: float
    epsilon: float
    warm_start: bool
    n_iter_: int

    _kind = "svr"
    _ranges: ClassVar[dict[str, IntegerRange | RealRange]] = {
        **PolynomialModel._ranges,
        "C": RealRange(may_be_zero=False, may_be_infinite=True),
        "epsilon": RealRange(may_be_zero=True),
        "intercept_scaling": INTERCEPT_SCALING,
    }
    _bool_parameters = ("fit_intercept", "warm_start")

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1_ratio: float = 0.0,
        penalty: str | None = None,
        epsilon: float = 0.0,
        degree: Degree = 2,
        interaction_only: bool = False,
        groups: Any = None,
        terms: Any = None,
        categorical_features: Any = "from_dtype",
        columns: Any = "all",
        feature_names: Any = None,
        penalty_factors: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-6,
        max_iter: int = 100,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def _make_loss(self, rows: RowStore) -> SquaredTubeLoss:
        _, weights = rows.describe()
        strength, penalty = _strengths(self)
        if not 0 < 2 * strength * weights.total < np.inf:
            raise ValueError(
                f"C={self.C} times sample_weight is not above 0, or not finite. Bring C and "
                "weights closer to 1."
            )
        return SquaredTubeLoss(float(self.epsilon), 2 * strength, penalty)

    @property
    def _has_penalty(self) -> bool:
        return bool(np.isfinite(self.C))
