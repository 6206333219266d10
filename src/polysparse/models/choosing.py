"""Penalties to choose from, and the choice by the scores that cross-validation found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

SELECTIONS = ("best", "one_standard_error")


@dataclass(frozen=True)
class Penalties:
    """What a parameter may be, from which cross-validation chooses.

    Attributes
    ----------
    name : str
        The parameter of the model that is fitted, "C" or "alpha".
    exponents : tuple of (int, int)
        The default range, as powers of ten.
    """

    name: str
    exponents: tuple[int, int]

    @property
    def plural(self) -> str:
        """The parameter that has the penalties."""
        return f"{self.name}s"

    def read(self, given: Any, require: Callable[[str, Any], None]) -> NDArray[np.float64]:
        """Return penalties, given their number or all of them; ValueError if they are not valid.

        require(name, value) raises it for one.
        """
        is_flag = isinstance(given, bool | np.bool_)
        if isinstance(given, Integral) and not is_flag:
            if given < 1:
                raise ValueError(f"{self.plural} must be at least 1 penalty; got {given}.")
            return np.logspace(*self.exponents, int(given))
        values = list(given) if np.ndim(given) == 1 else []
        if not values:
            raise ValueError(
                f"{self.plural} must be a number of penalties (an int), or the penalties "
                f"themselves, as a list of numbers; got {given!r}."
            )
        for i, value in enumerate(values):
            require(f"{self.plural}[{i}]", value)
        return np.array(values, dtype=np.float64)

    def order(self, values: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the numbers of the penalties from the strongest to the weakest."""
        return np.argsort(values if self.name == "C" else -values, kind="stable")


@dataclass(frozen=True)
class Choice:
    """The scores of penalties, over the splits, and which penalty they speak for.

    Attributes
    ----------
    means, errors : ndarray of float64 of shape (n_penalties,)
        The mean score, and its standard error over the splits; 0 if the mean is not finite.
    best : int
        The penalty with the highest mean; of several the strongest.
    within_error : int
        The strongest penalty whose mean is within one standard error of that.
    """

    means: NDArray[np.float64]
    errors: NDArray[np.float64]
    best: int
    within_error: int

    @classmethod
    def of(cls, scores: NDArray[np.float64], order: NDArray[np.intp]) -> Choice:
        """Return the choice by scores of shape (n_splits, n_penalties).

        `order` has the penalties from the strongest to the weakest.
        """
        with np.errstate(invalid="ignore"):
            means = scores.mean(axis=0)
        means[np.isnan(means)] = -np.inf  # of both infinities
        n_splits, errors, finite = len(scores), np.zeros_like(means), np.isfinite(means)
        if n_splits > 1:
            errors[finite] = scores[:, finite].std(axis=0, ddof=1) / np.sqrt(n_splits)
        best = order[np.argmax(means[order])]
        is_within = means[order] >= means[best] - errors[best]
        return cls(means, errors, int(best), int(order[np.argmax(is_within)]))

    def selected(self, selection: str) -> int:
        """Return the penalty by a rule of `SELECTIONS`."""
        return self.best if selection == "best" else self.within_error
