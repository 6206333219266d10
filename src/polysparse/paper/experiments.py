"""What is measured: sweeps of points, and the resulting measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns
from polysparse.expansion.planning import ExpansionPlan
from polysparse.matrix.row_profile import RowProfile

SPARSE, DENSE, SKLEARN, FILL = "sparse", "dense", "scikit-learn", "fill"
REUSED, FRESH = "reused", "fresh"
DENSITY = 0.2  # unless density is what is varied

# Results are compared on the leading rows whose dense expansion has about this many bytes.
CHECKED_BYTES = 10**9


@dataclass(frozen=True)
class Point:
    """Random N x D matrices of density d, expanded to degree K with all lower degrees.

    Every row has exactly d D stored values, as in the paper's analysis.
    """

    K: int
    N: int
    D: int
    d: float

    @property
    def row_length(self) -> int:
        """Number of stored values in each row."""
        return round(self.d * self.D)

    def plan(self, side: str) -> ExpansionPlan:
        """Plan what a side will write, which does not need a matrix."""
        columns, is_sparse = AllColumns(MonomialBasis(self.D, self.K)), side not in (DENSE, FILL)
        profile = RowProfile(((self.row_length if is_sparse else self.D, self.N),))
        return ExpansionPlan(columns, profile, np.dtype(np.float64), is_sparse)

    def matrix(self, repetition: int) -> Any:
        """Return one of the matrices of this point, the same in every run."""
        n = self.row_length
        rng = np.random.default_rng([self.K, self.N, self.D, n, repetition])
        columns = np.argpartition(rng.random((self.N, self.D)), n - 1, axis=1)[:, :n]
        columns = np.sort(columns, axis=1).astype(np.int32)
        offsets = np.arange(0, self.N * n + 1, n, dtype=np.int32)
        values = rng.uniform(0.5, 1.5, self.N * n)
        return sparse.csr_array((values, columns.ravel(), offsets), shape=(self.N, self.D))


@dataclass(frozen=True)
class Sweep:
    """Points that differ in a single parameter."""

    figure: str
    varied: str
    points: tuple[Point, ...]
    sides: tuple[str, ...]
    memory: str = REUSED

    @property
    def K(self) -> int:
        """Degree of all points."""
        return self.points[0].K

    @property
    def values(self) -> NDArray[np.float64]:
        """Values of the varied parameter."""
        return np.array([getattr(point, self.varied) for point in self.points], dtype=float)


@dataclass(frozen=True)
class Measurement:
    """The time of a single call."""

    sweep: Sweep
    point: Point
    side: str
    repetition: int
    seconds: float

    def row(self) -> tuple[Any, ...]:
        """Return the measurement as a row of the CSV file."""
        at = self.point
        where = self.sweep.figure, at.K, self.side, at.N, at.D, at.d, self.repetition + 1
        return *where, f"{self.seconds:.9f}", self.sweep.memory, self.sweep.varied


COLUMNS = "figure", "K", "side", "N", "D", "d", "repetition", "seconds", "memory", "varied"


# ------------------------------------------------------------------------------------------ sizes

EVERY_SIDE = SPARSE, DENSE, SKLEARN
DENSITIES = 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0


def vary(
    figure: str,
    varied: str,
    base: Point,
    values: Iterable[float],
    sides: tuple[str, ...] = EVERY_SIDE,
    memory: str = REUSED,
) -> Sweep:
    """Return the sweep that varies one parameter of a base point."""
    points = tuple(replace(base, **dict[str, Any]({varied: value})) for value in values)
    return Sweep(figure, varied, points, sides, memory)


def plan_sweeps(*, quick: bool) -> list[Sweep]:
    """Return all sweeps. A quick run has every other point, with half the rows."""
    part, step = (2, -2) if quick else (1, -1)

    def thin(values: Sequence[float]) -> list[float]:
        return sorted(values[::step])

    def rows(n: int) -> int:
        return n // part

    by_density = {2: Point(2, rows(2000), 200, DENSITY), 3: Point(3, rows(600), 80, DENSITY)}
    planned = []
    for K, base in by_density.items():
        sides = (*EVERY_SIDE, FILL)
        planned += [
            vary("fixed cost", "N", Point(K, 1, 1, 1.0), [1]),
            vary("1", "d", base, thin(DENSITIES), sides),
            vary("fresh", "d", base, thin(DENSITIES[5:]), (SPARSE, DENSE, FILL), FRESH),
        ]
    thousands = [rows(n) for n in range(1000, 10_001, 1000)]
    return [
        *planned,
        vary("1", "D", Point(2, rows(2000), 0, DENSITY), thin(range(25, 301, 25))),
        vary("1", "D", Point(3, rows(300), 0, DENSITY), thin(range(20, 121, 10))),
        vary("1", "N", Point(2, 0, 200, DENSITY), thin([rows(n) for n in range(400, 4001, 400)])),
        vary("1", "N", Point(3, 0, 80, DENSITY), thin([rows(n) for n in range(100, 1001, 100)])),
        vary("2", "D", Point(2, rows(10_000), 0, DENSITY), thin(range(40, 401, 40)), (SPARSE,)),
        vary("2", "D", Point(3, rows(400), 0, DENSITY), thin(range(40, 401, 40)), (SPARSE,)),
        vary("2", "N", Point(2, 0, 400, DENSITY), thin(thousands), (SPARSE,)),
        vary("2", "N", Point(3, 0, 100, DENSITY), thin(thousands), (SPARSE,)),
    ]
