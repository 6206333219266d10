"""The penalty of a model: half the sum of squared coefficients, each times its factor.

A factor of 0 leaves a coefficient free. Solvers give it a penalty that is too small to matter, so
that their objective has a minimum, and bounds of the gap, even if columns depend on each other or
the optimum is not finite.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.models.columns import known_names
from polysparse.models.importance import GroupTuples
from polysparse.models.vectors import combine, dot, multiply

Vector = NDArray[np.float64]

# The penalty of a free coefficient, relative to the curvature of the loss along it.
TINY = 1e-12


class Penalty:
    """Half the sum of ``factors * w**2``.

    Parameters
    ----------
    factors : ndarray of float64, or None
        Positive factors, one for each coefficient; None if all are 1.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(self, factors: Vector | None, n_jobs: int | None) -> None:
        self.factors, self.n_jobs = factors, n_jobs

    def inner(self, a: Vector, b: Vector) -> float:
        """Return the sum of ``factors * a * b``."""
        return dot(a if self.factors is None else self.times(a), b, self.n_jobs)

    def times(self, w: Vector) -> Vector:
        """Return ``factors * w``."""
        return w if self.factors is None else multiply(self.factors, w, 0.0, self.n_jobs)

    def add_to(self, out: Vector, size: float, w: Vector) -> None:
        """Add ``size * factors * w`` to `out`, in place."""
        combine(1.0, out, size, self.times(w), self.n_jobs)

    def inverse(self, gradient: Vector) -> float:
        """Return the sum of ``gradient**2 / factors``: twice a bound of the gap."""
        if self.factors is None:
            return dot(gradient, gradient, self.n_jobs)
        return dot(gradient, gradient / self.factors, self.n_jobs)


def with_tiny(factors: Vector, diagonal: Vector) -> Vector:
    """Return factors that are all positive, given the diagonal of the Hessian of the loss."""
    flat = diagonal.reshape(-1)
    every = np.repeat(factors, flat.size // factors.size)
    typical = float(flat.mean()) if flat.size else 0.0
    tiny = TINY * np.where(flat > 0, flat, typical if typical > 0 else 1.0)
    return np.where(every > 0, every, np.maximum(tiny, np.finfo(np.float64).tiny))


# ------------------------------------------------------------------------- the parameter of models


def factors_of(model: Any, columns: ColumnSpace) -> Vector | None:
    """Return the factor of each column; None if all are 1. ValueError if they are not valid.

    `penalty_factors` maps degrees, or labels of groups, to factors. A label is joined by colons for
    an interaction, as `importance` names it.
    """
    given = model.penalty_factors
    if given is None:
        return None if model._has_penalty else np.zeros(columns.n_columns)
    require_factors(given)
    if columns.kind == "hashed":
        raise ValueError(
            "penalty_factors needs columns with a degree; hashed columns have none. Use "
            'columns="all" or columns="observed".'
        )
    by_degree = {int(key): float(v) for key, v in given.items() if isinstance(key, Integral)}
    by_label = {key: float(v) for key, v in given.items() if not isinstance(key, Integral)}
    factors = np.ones(columns.n_columns)
    tuples = None if columns.basis.terms is None and not by_label else GroupTuples.of(columns)
    degrees = _degrees(columns, tuples)
    for degree, factor in by_degree.items():
        if degree not in degrees:
            raise ValueError(
                f"penalty_factors has degree {degree}, but the columns have degrees "
                f"{', '.join(map(str, sorted(degrees)))}."
            )
        factors[degrees[degree]] = factor
    for label, factor in by_label.items():
        assert tuples is not None
        names = known_names(model, columns.basis.n_features)
        factors[tuples.number_of == tuples.number(label, names)] = factor
    return factors if model._has_penalty else np.zeros_like(factors)


def require_factors(given: Any) -> None:
    """Raise ValueError if `penalty_factors` is not a mapping to numbers that are 0 or above."""
    if not isinstance(given, Mapping):
        raise ValueError(
            f"penalty_factors must map degrees, or labels of groups, to numbers; got {given!r}."
        )
    for key, value in given.items():
        is_real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        if not is_real or not 0 <= float(value) < np.inf:
            raise ValueError(
                f"penalty_factors[{key!r}] must be a finite number at least 0; got {value!r}."
            )


def _degrees(columns: ColumnSpace, tuples: GroupTuples | None) -> dict[int, Any]:
    """Return which columns have each degree."""
    if columns.basis.terms is not None:
        assert tuples is not None
        lengths = np.array([len(each) for each in tuples.tuples])[tuples.number_of]
        return {int(d): np.flatnonzero(lengths == d) for d in np.unique(lengths)}
    found, start = {}, 0
    for degree, end in sorted(columns.degree_ends.items()):
        found[degree] = slice(start, end)
        start = end
    return found
