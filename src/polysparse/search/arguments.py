"""Read what a search is for: targets, weights of rows, and the features that it may use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.degrees import Degree, as_degree_range
from polysparse.basis.groups import FeatureGroups
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.matrix.canonical import CanonicalCsr, as_canonical
from polysparse.tables.encoding import TableEncoding
from polysparse.tables.learning import EncodingOptions
from polysparse.tables.reading import is_table, open_table

SCORES = ("dot", "normalized", "correlation")
HIERARCHIES = (None, "weak", "strong")
LEAST_SQUARE = 1e-290  # smaller squares lose digits, or are 0
NO_USE, ANY_USE, AMONG = range(3)  # what the kernels may use a feature for


def as_degrees(degree: Degree) -> tuple[int, int]:
    """Read degrees to search; an int searches from 2 up to it."""
    low, high = as_degree_range(degree)
    if isinstance(degree, Integral):
        low = 2
    if low < 1 or high < low:
        raise ValueError(
            f"degree={degree!r} has no column to score: pass an int from 2, which searches all "
            "degrees from 2 up to it, or a pair (min_degree, max_degree) from (1, 1)."
        )
    return low, high


def as_count(number: Any, name: str) -> int:
    """Read a positive int."""
    if not isinstance(number, Integral) or int(number) < 1:
        raise ValueError(f"{name} must be a positive int; got {number!r}.")
    return min(int(number), 2**62)


def as_choice(value: Any, name: str, choices: Sequence[Any]) -> Any:
    """Read one of a few values."""
    if value not in choices if isinstance(value, str) else all(value is not c for c in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return value


def as_rows(X: Any, n_jobs: int | None) -> CanonicalCsr:
    """Read a matrix as CSR of finite float64."""
    x = as_canonical(X, n_jobs).as_sparse()
    if not np.isfinite(x.data).all():
        raise ValueError("X has values that are NaN or infinite: fill or drop them first.")
    if x.data.dtype == np.float64:
        return x
    return CanonicalCsr(x.shape, x.indptr, x.indices, x.data.astype(np.float64), x.is_array)


def as_features(
    X: Any, groups: Any, feature_names: Any, n_jobs: int | None
) -> tuple[CanonicalCsr, Any, Any]:
    """Read a matrix or a table; return its rows, and the groups and names of its features."""
    names = names_of_columns(X)
    if is_table(X):
        table = open_table(X)
        encoding, _, columns = TableEncoding.learn(table, "from_dtype", EncodingOptions())
        X = encoding.transform(table, columns)
        if encoding.categorical:
            if groups is not None:
                raise ValueError(
                    "groups only applies to X without categorical columns, which are the groups: "
                    "leave groups out, or encode X with a TableEncoder first."
                )
            groups = encoding.groups
        names = encoding.feature_names if encoding.are_named else None
    return as_rows(X, n_jobs), groups, names if feature_names is None else feature_names


def names_of_columns(X: Any) -> list[str] | None:
    """Return the names of the columns of a table, if all are strings."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


@dataclass(frozen=True)
class Targets:
    """Targets of rows with weights, scaled so that a score is a quotient of sums.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_targets)
        Targets times weights. For correlations they are centered, and have unit norm.
    weights : ndarray of shape (n_rows,) or (0,)
        Positive weights; empty if all are 1.
    kept : ndarray of int64 or None
        Rows with a positive weight, if some have none.
    """

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    kept: NDArray[np.int64] | None

    @property
    def total_and_largest(self) -> tuple[float, float]:
        """Sum and maximum of all weights; the sum is added up row by row, as the kernels do."""
        if len(self.weights) == 0:
            return float(len(self.values)), 1.0
        return float(np.cumsum(self.weights)[-1]), float(self.weights.max())


def as_targets(target: Any, sample_weight: Any, n_rows: int, score: str) -> Targets:
    """Read the target, a column or several, and the weights of rows."""
    values = as_numbers(target, "target", n_rows, (1, 2))
    values = values[:, np.newaxis] if values.ndim == 1 else values
    if values.shape[1] == 0:
        raise ValueError("target has no column: at least one is needed.")
    weights, kept = np.empty(0), None
    if sample_weight is not None:
        weights = as_numbers(sample_weight, "sample_weight", n_rows, (1,))
        if (weights < 0).any():
            first = int(np.argmax(weights < 0))
            raise ValueError(
                f"sample_weight must not be negative, but sample_weight[{first}] is "
                f"{weights[first]}."
            )
        if not weights.any() and n_rows > 0:
            raise ValueError("sample_weight is zero for every row: at least one must be positive.")
        if not np.isfinite(_sum(weights)):
            raise ValueError(
                f"sample_weight has values up to {weights.max():g}, whose sum is infinite: divide "
                "it by its maximum."
            )
        if not weights.all():
            kept = np.flatnonzero(weights)
            weights, values = weights[kept], values[kept]
    if score == "correlation":
        values = _standardized(values, weights)
    if len(weights):
        values = values * weights[:, np.newaxis]
    return Targets(np.ascontiguousarray(values), np.ascontiguousarray(weights), kept)


def as_numbers(
    values: Any, name: str, n_rows: int, dimensions: tuple[int, ...]
) -> NDArray[np.float64]:
    """Read finite numbers, one or a row of them for each row of X."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} has dtype {array.dtype}: numbers are needed. Encode classes first, for "
            "example as an indicator of each class, or as the residuals of a model."
        )
    if array.ndim not in dimensions or len(array) != n_rows:
        shape = f"({n_rows},)" + f" or ({n_rows}, n_targets)" * (2 in dimensions)
        raise ValueError(f"{name} must have shape {shape}, as X has rows; got {array.shape}.")
    array = array.astype(np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        where = np.argwhere(~finite)[0].tolist()
        raise ValueError(f"{name} must be finite, but {name}{where} is {array[*where]}.")
    return array


def _sum(values: NDArray[np.float64]) -> float:
    with np.errstate(over="ignore"):
        return float(values.sum())


def _standardized(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Any:
    """Return targets less their weighted means, with unit weighted norm."""
    if len(values) == 0:
        return values
    of_rows = weights[:, np.newaxis] if len(weights) else np.ones((len(values), 1))
    largest = np.abs(values).max(axis=0)
    values = values / np.where(largest > 0, largest, 1)  # squares neither overflow nor vanish
    values = values - (values * of_rows).sum(axis=0) / of_rows.sum()
    norms = np.sqrt((values**2 * of_rows).sum(axis=0))
    rounding = np.finfo(float).eps * len(values) * np.sqrt(of_rows.sum())
    constant = np.flatnonzero(norms <= rounding)
    if len(constant):
        which = "target" if values.shape[1] == 1 else f"target[:, {constant[0]}]"
        raise ValueError(
            f'{which} is constant, so it has no correlation: use score="dot" or "normalized", or '
            "leave it out."
        )
    return values / norms


def require_products(
    smallest: float, largest: float, targets: Targets, degree: int, score: str
) -> None:
    """Raise ValueError if a score could overflow, or squares that it is divided by vanish.

    `smallest` and `largest` are sizes of values.
    """
    weights = targets.weights if len(targets.weights) else np.ones(1)
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.float64(max(largest, 1.0)) ** degree
        total = product * np.abs(targets.values).sum()
        squares = product * product * targets.total_and_largest[0]
    if not (np.isfinite(total) and np.isfinite(squares)):
        raise ValueError(
            f"X has values up to {largest:g}, whose interactions of degree {degree} cannot be "
            "summed: scale X, for example with MaxAbsScaler, or target and sample_weight."
        )
    if score == "dot":
        return
    least = np.float64(min(smallest, 1.0)) ** (2 * degree) * weights.min(initial=1.0)
    if least < LEAST_SQUARE:
        raise ValueError(
            f"X has values as small as {smallest:g}, and the squares of their interactions of "
            f"degree {degree}, times sample_weight, underflow: scale X, for example with "
            'MaxAbsScaler; replace tiny values with 0; or use score="dot".'
        )


@dataclass(frozen=True)
class Restriction:
    """Which features a search may use.

    Attributes
    ----------
    among : ndarray of int64 or None
        Features that `hierarchy` is about, as the basis numbers them when sorted by group.
    hierarchy : str or None
        Whether an interaction needs one of them ("weak") or no others ("strong").
    """

    among: NDArray[np.int64] | None = None
    hierarchy: str | None = None

    @property
    def needs_among(self) -> bool:
        """Whether an interaction needs a feature that is among the given ones."""
        return self.hierarchy == "weak"

    def uses_of(self, features: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return what each of some features may be used for."""
        if self.among is None:
            return np.full(len(features), ANY_USE, dtype=np.uint8)
        other = NO_USE if self.hierarchy == "strong" else ANY_USE
        return np.where(np.isin(features, self.among), AMONG, other).astype(np.uint8)


def as_restriction(
    basis: MonomialBasis, among: Any, hierarchy: str | None, names: Sequence[str] | None
) -> Restriction:
    """Read `among` and `hierarchy`."""
    if (among is None) != (hierarchy is None):
        raise ValueError(
            f"hierarchy={hierarchy!r} needs `among`, the features that it is about, and `among` "
            'needs hierarchy="weak" or "strong": pass both or neither.'
        )
    if among is None:
        return Restriction()
    groups = basis.groups
    chosen = _as_features(among, basis.n_features, names, groups)
    if basis._is_grouped and groups is not None and groups.order is not None:
        chosen = groups.places[chosen]
    return Restriction(chosen, hierarchy)


def _as_features(
    among: Any, n_features: int, names: Sequence[str] | None, groups: FeatureGroups | None
) -> NDArray[np.int64]:
    """Read features, each a number or a name; the name of a group stands for its features."""
    if isinstance(among, str) or not isinstance(among, Iterable):
        raise ValueError(f"among must be a list of features; got {among!r}.")
    places = _places_of_names(names, groups)
    found: list[int] = []
    for feature in among:
        if isinstance(feature, str):
            these = places.get(feature, [])
        else:
            is_number = isinstance(feature, Integral) and not isinstance(feature, bool | np.bool_)
            these = [int(feature)] if is_number and 0 <= int(feature) < n_features else []
        if not these:
            known = f"numbers in [0, {n_features:,})" + " or names of features" * bool(places)
            raise ValueError(f"among has {feature!r}, which is not a feature: pass {known}.")
        found += these
    if not found:
        raise ValueError("among has no feature, so no interaction is allowed: pass at least one.")
    return np.unique(np.array(found, dtype=np.int64))


def _places_of_names(
    names: Sequence[str] | None, groups: FeatureGroups | None
) -> dict[str, list[int]]:
    """Return the features of each name: all that share it, or those of the group of that name."""
    places: dict[str, list[int]] = {}
    for j, name in enumerate(names or ()):
        places.setdefault(name, []).append(j)
    if groups is None or groups.are_unlabeled:
        return places
    for group, label in enumerate(groups.labels):
        if label is not None and label not in places:
            places[label] = groups.members(group).tolist()
    return places
