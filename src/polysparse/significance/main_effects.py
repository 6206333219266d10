"""Models of main effects: what they leave of a target, and what they could have left.

Each has the residuals of its target, the weights of rows, which are the variances of residuals, and
draws of residuals from the fitted model. For linear models variances are 1, and residuals are
divided by the estimated standard deviation: those of the target and of each draw alike.
"""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polysparse.models.main_effects import model_of_features
from polysparse.search.arguments import as_numbers
from polysparse.search.residuals import fit_residuals
from polysparse.significance.projection import Projection

Vector = NDArray[np.float64]

EVENTS = 3.0  # the least information of an interaction, over its typical squared value
C = 10.0  # inverse strength of the penalty; features are at most 1
MODELS = ("auto", "linear", "logistic", "poisson")


class MainEffects(Protocol):
    """A model without interactions, fitted to a target."""

    residuals: Vector
    weights: Vector  # empty if all are 1
    least_information: float  # of an interaction, over its typical squared value

    def draw(self, rng: np.random.Generator) -> Vector:
        """Return residuals of a target that is drawn from the model."""

    def standardize(self, residuals: Any, projection: Projection) -> None:
        """Divide projected residuals, a column for each draw, by their standard deviation."""


class Linear:
    """Normal errors of equal variance, which is unknown."""

    least_information = 0.0  # sums of normal errors are normal, however few they are

    def __init__(self, X: Any, y: Vector, n_jobs: int | None) -> None:
        self.weights = np.empty(0)
        y = np.ldexp(y, -int(np.frexp(np.abs(y).max(initial=0.0))[1]))  # sums do not overflow
        self.residuals = y - y.mean()
        largest = np.abs(self.residuals).max(initial=0.0)
        if largest <= 1e-14 * np.abs(y).max(initial=0.0):
            raise ValueError("y is constant: there is nothing for interactions to explain.")
        self.residuals /= largest  # squares neither overflow nor vanish
        self._n_free: float | None = None

    def draw(self, rng: np.random.Generator) -> Vector:
        """Return residuals of a target that is drawn from the model."""
        return rng.standard_normal(len(self.residuals))

    def standardize(self, residuals: Any, projection: Projection) -> None:
        """Divide projected residuals, a column for each draw, by their standard deviation."""
        if self._n_free is None:
            self._n_free = len(self.residuals) - projection.rank()
        squares = np.einsum("ik,ik->k", residuals, residuals)
        if self._n_free < 0.5 or (squares <= 1e-16 * len(self.residuals)).any():
            raise ValueError(
                "The features explain y completely without interactions: no residuals are left to "
                "test. Use more rows, or fewer features."
            )
        residuals *= np.sqrt(self._n_free / squares)


class Logistic:
    """Two classes; the logarithm of the odds is linear in the features."""

    least_information = EVENTS

    def __init__(self, X: Any, y: NDArray[Any], n_jobs: int | None) -> None:
        model = model_of_features("logistic", len(y), C, n_jobs)
        both = fit_residuals(model, X, y, has_classes=True)
        self.residuals, self.probabilities = (of_classes[:, 0] for of_classes in both)
        self.weights = self.probabilities * (1 - self.probabilities)
        if np.abs(self.residuals).max(initial=0.0) < 0.5:
            warnings.warn(
                "The features tell the classes apart completely without interactions, so the test "
                "finds hardly any interaction. Use more rows, or fewer features.",
                stacklevel=4,
            )

    def draw(self, rng: np.random.Generator) -> Vector:
        """Return residuals of a target that is drawn from the model."""
        drawn: Vector = (rng.random(len(self.residuals)) < self.probabilities) - self.probabilities
        return drawn

    def standardize(self, residuals: Any, projection: Projection) -> None:
        """Leave residuals as they are: their variances are known."""


class Poisson:
    """Counts; the logarithm of the mean is linear in the features."""

    least_information = EVENTS

    def __init__(self, X: Any, y: Vector, n_jobs: int | None) -> None:
        model = model_of_features("poisson", len(y), C, n_jobs)
        self.residuals, self.weights = fit_residuals(model, X, y, has_classes=False)

    def draw(self, rng: np.random.Generator) -> Vector:
        """Return residuals of a target that is drawn from the model."""
        drawn: Vector = rng.poisson(self.weights) - self.weights
        return drawn

    def standardize(self, residuals: Any, projection: Projection) -> None:
        """Leave residuals as they are: their variances are known."""


# ------------------------------------------------------------------------------------- arguments


def as_target(y: Any, n_rows: int, model: str) -> tuple[NDArray[Any], str]:
    """Read the target; return it as numbers, with the name of its model."""
    if n_rows == 0:
        raise ValueError("X and y have no rows.")
    y = np.asarray(y)
    is_numeric = y.dtype.kind in "iuf"
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or len(y) != n_rows:
        raise ValueError(
            f"y must have shape ({n_rows},), as X has rows; got {y.shape}. Test one target at a "
            "time."
        )
    if is_numeric:
        y = as_numbers(y, "y", n_rows, (1,))
    classes = _distinct(y) if model in ("auto", "logistic") or not is_numeric else y[:0]
    if model == "auto":
        model = "linear" if is_numeric and len(classes) > 2 else "logistic"
    if model == "logistic":
        return _as_classes(y, classes), model
    if not is_numeric:
        raise ValueError(
            f'y has dtype {y.dtype}: model="{model}" needs numbers. Use model="logistic" for two '
            "classes."
        )
    if model == "poisson" and ((y < 0).any() or (y != np.floor(y)).any() or not y.any()):
        raise ValueError(
            'model="poisson" needs counts: y must have whole numbers from 0, not all of them 0.'
        )
    return y, model


def _distinct(y: NDArray[Any]) -> NDArray[Any]:
    try:
        return np.unique(y)
    except TypeError as error:
        raise ValueError("y has values of several types, or missing ones: drop them.") from error


def _as_classes(y: NDArray[Any], classes: NDArray[Any]) -> Vector:
    """Return 1 for the second class, and 0 for the first."""
    if len(classes) == 1:
        raise ValueError(f"y is constant: all rows are of class {classes[0]!r}. Two are needed.")
    if len(classes) != 2:
        raise ValueError(
            f'model="logistic" needs a y of two classes; got {len(classes)}. Test each class '
            "against the others, with y == c."
        )
    found: Vector = (y == classes[1]).astype(np.float64)
    return found


def fit_main_effects(X: Any, y: NDArray[Any], model: str, n_jobs: int | None) -> MainEffects:
    """Fit a model of the features alone, each of which is at most 1 in size."""
    kinds: dict[str, Any] = {"linear": Linear, "logistic": Logistic, "poisson": Poisson}
    found: MainEffects = kinds[model](X, y, n_jobs)
    return found
