"""Search where rows are not in memory: scores of single features and pairs by sums over the rows.

Scores of all columns are quotients of products with the transposed expansion, which are sums over
blocks of rows, wherever these are. Rounding depends on the order of these sums, so that they only
tell which columns may be among the best. These few columns are built and brought here, and scored
as rows in memory are: results have the same bits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import AllColumns, ChosenColumns, ColumnSpace
from polysparse.machine import require_memory
from polysparse.matrix.canonical import as_canonical_csr
from polysparse.search.arguments import Restriction, Targets
from polysparse.search.question import Question
from polysparse.search.rows import (
    MOST_TIES,
    Found,
    RowsInMemory,
    ValueRange,
    too_many_ties,
)

HIGHEST = 2  # degree that is searched
AT_A_TIME = 2**20  # columns whose bounds are computed together
BYTES_PER_BUILT = 40  # of a value of a candidate: built, brought here, joined

Array = Any  # of NumPy or CuPy
Vectors = tuple[str, ...]  # names of vectors of rows: "target", "target size", "weight", "occurs"

# What the values of X become in a product, as an array of any library.
TRANSFORMS: dict[str, Callable[[Array], Array]] = {
    "value": lambda data: data,
    "size": abs,
    "square": lambda data: data * data,
    "one": lambda data: data * 0 + 1,
}

# The products from which a score is bounded. The first one of each name is of the columns z, their
# sizes, their squares, or where they occur.
PRODUCTS: dict[str, tuple[tuple[str, str], ...]] = {
    "dot": (),
    "normalized": (("square", "weight"),),
    "correlation": (("square", "weight"), ("value", "weight"), ("size", "weight")),
}
FOR_EVERY_SCORE = ("value", "target"), ("size", "target size"), ("one", "occurs")


def vectors_of(names: Vectors, targets: Array, weights: Array) -> list[Array]:
    """Return vectors of rows by their names, each of shape (n_rows, k)."""
    vectors: dict[str, Callable[[], Array]] = {
        "target": lambda: targets,
        "target size": lambda: abs(targets),
        "weight": lambda: weights[:, None],
        "occurs": lambda: (weights > 0)[:, None].astype(np.float64),
    }
    return [vectors[name]() for name in names]


class SummedRows:
    """Rows somewhere else, whose sums are added up there."""

    shape: tuple[int, int]

    @abstractmethod
    def value_range(self) -> ValueRange:
        """Return the range of the values."""

    @abstractmethod
    def set_targets(self, targets: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Take the targets, of shape (n_rows, n_targets), and the weights of all rows."""

    @abstractmethod
    def sums(
        self, columns: ColumnSpace, products: dict[str, Vectors]
    ) -> dict[str, NDArray[np.float64]]:
        """Return the transposed expansion of each transform of X times vectors, side by side."""

    @abstractmethod
    def build(self, columns: ColumnSpace) -> Any:
        """Return columns of the expansion as a SciPy matrix."""

    def best(self, question: Question) -> Found:
        """Return the columns with the largest scores."""
        basis, targets = question.basis, question.targets
        values, weights = _of_all_rows(targets, self.shape[0])
        names = FOR_EVERY_SCORE + PRODUCTS[question.score]
        n_targets = values.shape[1]
        require_memory(
            8 * basis.n_columns * (2 * sum(_width(name, n_targets) for _, name in names) + 3),
            f"scores of all {basis.n_columns:,} columns",
            "Drop rare features, or search the rows in memory.",
        )
        self.set_targets(values, weights)
        sums = self._sums(basis, names, n_targets)
        chosen = _candidates(question, sums, (self.shape[0], float(weights.sum())))
        return self._exactly(question, chosen, sums["one", "occurs"][chosen, 0])

    def _sums(
        self, basis: MonomialBasis, names: Sequence[tuple[str, str]], n_targets: int
    ) -> dict[tuple[str, str], NDArray[np.float64]]:
        """Return the sums of each product; those with the same values of X are computed at once."""
        values = self.value_range()
        same = {} if values.least < 0 else {"size": "value"}
        if values.least == values.largest == 1:
            same = dict.fromkeys(TRANSFORMS, "value")
        products: dict[str, Vectors] = {}
        for transform, name in names:
            shared = same.get(transform, transform)
            if name not in products.get(shared, ()):
                products[shared] = (*products.get(shared, ()), name)
        found = self.sums(AllColumns(basis), products)
        sums = {}
        for transform, name in names:
            shared = same.get(transform, transform)
            before = products[shared][: products[shared].index(name)]
            begin = sum(_width(each, n_targets) for each in before)
            sums[transform, name] = found[shared][:, begin : begin + _width(name, n_targets)]
        return sums

    def _exactly(
        self, question: Question, chosen: NDArray[np.int64], counts: NDArray[np.float64]
    ) -> Found:
        """Score some columns as rows in memory are scored, and return the best of them."""
        require_memory(
            int(BYTES_PER_BUILT * counts.sum()),
            f"the {len(chosen):,} columns that may be among the best",
            "Lower k, or raise min_count.",
        )
        if len(chosen) == 0:
            none = np.empty(0, np.int64)
            return Found(none, none, none, np.empty(0))
        built = as_canonical_csr(self.build(ChosenColumns(question.basis, chosen)))
        basis = MonomialBasis(len(chosen), 1, include_bias=False)
        here = RowsInMemory(built, None, lambda share: None)
        of_chosen = Question(basis, question.targets, question.k, question.score, 1)
        found = here.best(of_chosen)
        return found._replace(columns=chosen[found.columns])


def _width(name: str, n_targets: int) -> int:
    return n_targets if name.startswith("target") else 1


def _of_all_rows(targets: Targets, n_rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return targets and weights of all rows; both are 0 where a row is left out."""
    own = targets.weights if len(targets.weights) else np.ones(len(targets.values))
    if targets.kept is None:
        return targets.values, own
    values, weights = np.zeros((n_rows, targets.values.shape[1])), np.zeros(n_rows)
    values[targets.kept], weights[targets.kept] = targets.values, own
    return values, weights


# ------------------------------------------------------------------------------ bounds of scores


def _candidates(
    question: Question,
    sums: dict[tuple[str, str], NDArray[np.float64]],
    rows: tuple[int, float],
) -> NDArray[np.int64]:
    """Return the columns that may be among the k best, in their order.

    `rows` are their number and the sum of their weights.
    """
    n_columns = question.basis.n_columns
    low, high = np.full((2, n_columns), -1.0)
    for part in _parts(n_columns):
        may_be = sums["one", "occurs"][part, 0] >= question.min_count
        may_be &= _allowed(question, part)
        bounds = _bounds(question.score, {name: each[part] for name, each in sums.items()}, *rows)
        for out, bound in zip((low, high), bounds, strict=True):
            out[part][may_be] = bound[may_be]
    place = n_columns - question.k
    least = np.partition(low, place)[place] if place > 0 else 0.0
    chosen = np.flatnonzero(high >= max(least, 0.0))
    if len(chosen) > question.k + MOST_TIES:
        raise too_many_ties()
    return chosen


def _parts(n: int) -> Iterator[slice]:
    for begin in range(0, n, AT_A_TIME):
        yield slice(begin, min(begin + AT_A_TIME, n))


def _bounds(
    score: str, sums: dict[tuple[str, str], NDArray[np.float64]], n_rows: int, total: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds of the sizes of scores, which hold however sums were rounded.

    The largest score of all targets counts.
    """
    off = (n_rows + 20) * np.finfo(float).eps  # of a sum, relative to the sum of sizes
    sizes = np.abs(sums["value", "target"])
    errors = off * sums["size", "target size"]
    low = np.maximum(sizes - errors, 0.0).max(axis=1)
    high = (sizes + errors).max(axis=1)
    if score == "dot":
        return low, high
    squares = sums["square", "weight"][:, 0]
    error = 2 * off * squares
    if score == "correlation":
        mean, size = sums["value", "weight"][:, 0], sums["size", "weight"][:, 0]
        error += 6 * off * size * size / total
        squares = squares - mean * mean / total
    with np.errstate(divide="ignore", invalid="ignore"):
        least = squares - error
        low = np.where(least > 0, low / np.sqrt(squares + error) * (1 - off), 0.0)
        high = np.where(least > 0, high / np.sqrt(least) * (1 + off), np.inf)
    return low, high


def _allowed(question: Question, part: slice) -> Any:
    """Return which columns `among` and `hierarchy` allow."""
    restriction: Restriction = question.restriction
    if restriction.among is None:
        return True
    tuples = question.basis.unrank(np.arange(part.start, part.stop))
    groups = question.basis.groups
    if question.basis._is_grouped and groups is not None and groups.order is not None:
        tuples = np.where(tuples < 0, -1, groups.places[tuples])
    is_among = np.isin(tuples, restriction.among)
    if restriction.needs_among:
        return is_among.any(axis=1)
    return (is_among | (tuples < 0)).all(axis=1)
