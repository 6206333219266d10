"""Results of the measurements: medians, exponents and crossovers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.paper.experiments import DENSE, SPARSE, Measurement, Sweep

Floats = NDArray[np.float64]


class Results:
    """Times by sweep and side."""

    def __init__(self, measured: Sequence[Measurement]) -> None:
        self.sweeps = list(dict.fromkeys(m.sweep for m in measured))
        self.n_matrices = 1 + max(m.repetition for m in measured)
        self._seconds: dict[Any, dict[int, float]] = defaultdict(dict)
        for m in measured:
            self._seconds[m.sweep, m.point, m.side][m.repetition] = m.seconds

    def times(self, sweep: Sweep, side: str) -> Floats:
        """Return seconds as an array of points by matrices."""
        rows = [self._seconds[sweep, point, side] for point in sweep.points]
        return np.array([[row[i] for i in range(self.n_matrices)] for row in rows])

    def quartiles(self, sweep: Sweep, side: str) -> Floats:
        """Return first quartile, median and third quartile in seconds, as rows of an array."""
        found: Floats = np.quantile(self.times(sweep, side), [0.25, 0.5, 0.75], axis=1)
        return found

    def medians(self, sweep: Sweep, side: str) -> Floats:
        """Return the median seconds of each point."""
        median: Floats = np.median(self.times(sweep, side), axis=1)
        return median

    def select(self, figure: str, varied: str | None = None) -> list[Sweep]:
        """Return the sweeps of a figure, sorted by degree."""
        found = [s for s in self.sweeps if s.figure == figure and varied in (None, s.varied)]
        return sorted(found, key=lambda sweep: sweep.K)

    def fixed_cost(self, K: int, side: str) -> float:
        """Return the median seconds of a call on a matrix of one element."""
        return next(float(self.medians(s, side)[0]) for s in self.select("fixed cost") if s.K == K)


# ---------------------------------------------------------------------------- exponents, crossovers


@dataclass(frozen=True)
class Fit:
    """The power law y ~ x**exponent, fitted by least squares to the logarithms."""

    exponent: float
    error: float
    first: float
    last: float
    n_points: int


def fit_exponent(x: Floats, y: Floats) -> Fit | None:
    """Fit the exponent and its standard error; None for fewer than three points."""
    if len(x) < 3:
        return None
    u, v = np.log(x) - np.log(x).mean(), np.log(y) - np.log(y).mean()
    exponent = u @ v / (u @ u)
    residuals = v - exponent * u
    error = np.sqrt(residuals @ residuals / (len(x) - 2) / (u @ u))
    return Fit(float(exponent), float(error), float(x[0]), float(x[-1]), len(x))


def crossover(d: Floats, below: Floats, above: Floats) -> float | None:
    """Return where `below` first reaches `above`, interpolating logarithms; None if nowhere."""
    gap = np.log(below) - np.log(above)
    rises = np.flatnonzero((gap[:-1] < 0) & (gap[1:] >= 0))
    if len(rises) == 0:
        return None
    i = rises[0]
    return float(np.interp(0.0, gap[i : i + 2], d[i : i + 2]))


@dataclass(frozen=True)
class Crossing:
    """Where sparse and dense take equally long, with the numbers that explain it."""

    sweep: Sweep
    at: float | None
    quartiles: tuple[float, float] | None
    by_bytes: float | None
    cost_ratio: float | None


def find_crossing(results: Results, sweep: Sweep) -> Crossing:
    """Find the crossing of the medians; the quartiles are those of the single matrices."""
    d = sweep.values
    sparse, dense = results.times(sweep, SPARSE), results.times(sweep, DENSE)
    at = crossover(d, np.median(sparse, axis=1), np.median(dense, axis=1))
    each = [crossover(d, sparse[:, i], dense[:, i]) for i in range(results.n_matrices)]
    found = [value for value in each if value is not None]
    quartiles = None
    if 2 * len(found) > len(each):
        low, high = np.quantile(found, [0.25, 0.75])
        quartiles = float(low), float(high)
    by_bytes = crossover(d, *(planned(sweep, side, "nbytes") for side in (SPARSE, DENSE)))
    cost_ratio = None
    if at is not None:
        outputs = [planned(sweep, side, "nnz") for side in (DENSE, SPARSE)]
        cost_ratio = float(np.exp(np.interp(at, d, np.log(outputs[0] / outputs[1]))))
    return Crossing(sweep, at, quartiles, by_bytes, cost_ratio)


def planned(sweep: Sweep, side: str, what: str) -> Floats:
    """Return an attribute of the plan of each point."""
    return np.array([getattr(point.plan(side), what) for point in sweep.points], dtype=float)
