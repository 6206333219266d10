"""What a search for the best interactions reaches, against expanding, multiplying and sorting.

All sides run in one process, in turn; the best of several times counts; results are checked against
each other; ratios are printed, with versions, also where they miss their target.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import lsmr
from sklearn.preprocessing import PolynomialFeatures

import measure
import polysparse
from bench_core import DATA, say
from polysparse import top_interactions
from polysparse.machine import format_bytes, threads_for

OURS, OURS_1 = "top_interactions", "n_jobs=1"
SKLEARN, BUILT = "scikit-learn, A' r, argpartition", "polysparse.expand, A' r, argpartition"
K = 100
TARGET = 10.0


@dataclass(frozen=True)
class Row:
    """Best times of one search."""

    name: str
    n_columns: int
    other: str
    times: dict[str, float]
    peaks: dict[str, int]

    @property
    def ratio(self) -> float:
        """How many times the other side takes of our time."""
        return self.times[self.other] / self.times[OURS]


def a9a(data: Path) -> tuple[Any, NDArray[np.float64]]:
    """The features of a9a, and the residuals of least squares on them."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(data / "a9a"))
    X = sparse.csr_array(X)
    return X, y - X @ lsmr(X, y)[0]


def generated(
    n_rows: int, n_features: int, stored: int, power: float
) -> tuple[Any, NDArray[np.float64]]:
    """Rows of ones in columns drawn with weights 1 / rank**power, and normal residuals."""
    rng = np.random.default_rng(0)
    sums = np.cumsum(1 / np.arange(1, n_features + 1) ** power)
    drawn = np.searchsorted(sums, sums[-1] * rng.random(n_rows * stored)).astype(np.int32)
    offsets = np.arange(0, n_rows * stored + 1, stored)
    X = sparse.csr_array((np.ones(len(drawn)), drawn, offsets), shape=(n_rows, n_features))
    X.sum_duplicates()
    X.data[:] = 1
    return X, rng.normal(size=n_rows)


def by_expanding(expand: Callable[[Any], Any], X: Any, r: NDArray[np.float64]) -> NDArray[Any]:
    """The sizes of the largest scores, as a user would find them."""
    sizes = np.abs(expand(X).T @ r)
    return np.sort(sizes[np.argpartition(-sizes, K)[:K]])


def by_searching(n_jobs: int | None, degree: int, X: Any, r: NDArray[np.float64]) -> NDArray[Any]:
    """The same by a search."""
    return np.sort(np.abs(top_interactions(X, r, K, degree=degree, n_jobs=n_jobs).scores))


def time_search(name: str, degree: int, X: Any, r: NDArray[np.float64], repeats: int) -> Row:
    """A search beside scikit-learn's expansion at degree 2, and beside our own above it."""
    given = {"degree": (2, degree), "interaction_only": True, "include_bias": False}
    other = SKLEARN if degree == 2 else BUILT
    expand = {
        SKLEARN: lambda X: PolynomialFeatures(**given).fit_transform(X),
        BUILT: lambda X: polysparse.expand(X, **given),
    }[other]
    sides = {
        OURS: partial(by_searching, None, degree, X, r),
        OURS_1: partial(by_searching, 1, degree, X, r),
        other: partial(by_expanding, expand, X, r),
    }
    expected = sides[other]()

    def check(side: str, sizes: NDArray[Any]) -> None:
        if not np.allclose(sizes, expected, rtol=1e-9):
            raise AssertionError(f"{side} has found other scores.")

    times = measure.best_times(sides, repeats=repeats, check=check)
    peaks = {}
    if measure.can_measure_peaks():
        peaks = {side: measure.peak_growth(sides[side]) for side in (OURS, other)}
    n_columns = polysparse.MonomialBasis(X.shape[1], **given).n_columns
    return Row(name, n_columns, other, times, peaks)


def as_cells(row: Row) -> list[str]:
    """A line of the table."""
    mark = "" if row.ratio >= TARGET else " *"
    peaks = [format_bytes(row.peaks[side]) if row.peaks else "" for side in (OURS, row.other)]
    times = [f"{1000 * row.times[side]:,.1f}" for side in (OURS, OURS_1, row.other)]
    return [row.name, f"{row.n_columns:,}", *times, f"{row.ratio:.1f}{mark}", *peaks]


def time_large(markdown: bool) -> str:
    """A search of degree 3 among 10^5 features, which nothing else could expand."""
    X, r = generated(1_000_000, 100_000, 20, 1.0)
    times = measure.best_times({OURS: partial(by_searching, None, 3, X, r)}, repeats=1)
    peak = measure.peak_growth(partial(by_searching, None, 3, X, r))
    code = "`" if markdown else ""
    return (
        f"{code}degree=3{code} on 1,000,000 x 100,000, rows of 20 drawn with weights 1/rank: "
        f"{times[OURS]:.1f} s, {format_bytes(peak)} besides X."
    )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder that has the file a9a")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    rows = [
        time_search(
            "100,000 x 1,000, rows of 20, K=2",
            2,
            *generated(100_000, 1_000, 20, 0.0),
            options.repeats,
        )
    ]
    if (options.data / "a9a").exists():
        X, r = a9a(options.data)
        rows += [time_search(f"a9a, K={k}", k, X, r, options.repeats) for k in (2, 3, 4)]
    else:
        say(f"a9a is left out: there is no {options.data / 'a9a'}; name its folder with --data")
    header = ["", "columns", "ms", "ms, n_jobs=1", "ms, expanding", "ratio", "peak", "expanding"]
    print(measure.describe_machine(threads_for(None, 2**40)), end="\n\n")
    print(
        f"The {K} largest |A' r|, against expanding (scikit-learn's PolynomialFeatures for K=2, "
        f"polysparse.expand above), A' r and argpartition. Target: {TARGET:.0f}x.\n"
    )
    print(
        measure.format_table(header, [as_cells(row) for row in rows], options.markdown), end="\n\n"
    )
    print(time_large(options.markdown))


if __name__ == "__main__":
    main()
