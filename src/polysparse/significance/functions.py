"""interaction_test: which interactions are there, and not by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from sklearn.utils import check_random_state

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.names import as_feature_names
from polysparse.columns.spaces import ChosenColumns
from polysparse.engine import cpu
from polysparse.machine import require_memory, threads_for
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.search.arguments import as_choice, as_count, as_degrees, as_features
from polysparse.search.progress import LongSearch
from polysparse.search.rows import MOST_TIES, require_searchable, stored_features
from polysparse.significance.adjusted import bonferroni, step_down
from polysparse.significance.exact import ExactStatistics
from polysparse.significance.main_effects import (
    MODELS,
    MainEffects,
    as_target,
    fit_main_effects,
)
from polysparse.significance.projection import Projection
from polysparse.significance.result import TestedInteractions

MOST_DEGREES = 5
MOST_DRAWS, FEWEST_DRAWS = 64, 16  # side by side
BYTES_OF_SUMS = 2**18  # of a thread, for draws side by side
BYTES_PER_VALUE, VECTORS_PER_DRAW = 64, 4  # of working memory
BYTES_PER_PAIR = 32  # 16 in lists that double as they grow
FAR = 4.0  # largest size over range of a feature whose mean is subtracted


def interaction_test(
    X: Any,
    y: Any,
    k: int = 20,
    *,
    degree: Degree = 2,
    n_null: int = 199,
    model: str = "auto",
    interaction_only: bool = True,
    min_count: int = 10,
    groups: Any = None,
    feature_names: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> TestedInteractions:
    """Find the k interactions with the largest statistics, and test if they are due to chance.

    The null hypothesis is that features only have main effects. A model of main effects is fitted,
    and the statistic of an interaction is a score test of its coefficient. The largest statistics
    are compared with those of targets that are simulated from the fitted model, so p-values are
    adjusted for the number of interactions that were searched. All interactions are tested without
    building them, and no model is fitted again.

    Parameters
    ----------
    X : sparse matrix or array, array-like or table, of shape (n_rows, n_features)
        The features. Values must be finite. A table with categorical columns is encoded as by
        `TableEncoder`, and its columns are the groups.
    y : array-like of shape (n_rows,)
        The target: numbers, counts, or two classes.
    k : int, default=20
        How many interactions to return. Their p-values do not depend on it.
    degree : int or tuple (min_degree, max_degree), default=2
        How many features are multiplied, from 2 to 5. An int tests from 2 up to it.
    n_null : int, default=199
        How many targets are simulated. Adjusted p-values are multiples of ``1 / (n_null + 1)``. If
        0, none is, and p-values are Bonferroni's: a quick first answer, which finds less.
    model : {"auto", "linear", "logistic", "poisson"}, default="auto"
        The model of main effects: normal errors of equal variance, two classes, or counts. "auto"
        is "logistic" if y has two values or is not numeric, and otherwise "linear".
    interaction_only : bool, default=True
        If False, powers of features are included.
    min_count : int, default=10
        Only interactions that occur in at least this many rows, at least 2.
    groups : sequence of (str or None), mapping of str to int, or sequence of int, optional
        Groups of features of which an interaction uses at most one, as in `MonomialBasis`.
    feature_names : sequence of str, optional
        Names of the features; by default those of the columns of X, or "x0", "x1", ...
    random_state : int, RandomState or Generator instance, or None, default=None
        Seed of the simulated targets, for reproducible results.
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS. Results do not depend on it.
    verbose : int, default=0
        If not 0, a line is printed about every second: the share of the test that is done, and
        seconds. Skipped parts count as done, so the share may jump.

    Returns
    -------
    TestedInteractions
        The interactions, the largest statistic first, with p-values.

    Warns
    -----
    UserWarning
        If features separate two classes completely; or after a second, if the test may take hours.

    See Also
    --------
    top_interactions : The largest scores against any target, without a test.

    Notes
    -----
    Let z be the column of an interaction, r the residuals of the fitted model after main effects
    were projected out, and w the variances of the rows by that model (for linear models, w is 1 and
    r is divided by its standard deviation). The statistic is ``sum(z * r) / sqrt(v)``. Its variance
    v is the residual sum of squares of a regression of z on its own features, weighted by w: the
    minimum of ``sum(w * (z - a0 - a1 * x1 - a2 * x2)**2)``. For classes and counts, interactions
    with too few events are left out: those of z in {0, 1} with v < 3, and others with
    ``sum(w * z**2)**2 < 3 * sum(w * z**4)``. If only pairs are tested, the means of features that
    are far from 0 in every row are subtracted first, which does not change the null hypothesis.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import interaction_test
    >>> rng = np.random.default_rng(0)
    >>> X = (rng.random((1000, 30)) < 0.3).astype(float)
    >>> odds = X[:, 4] - X[:, 7] + 2 * X[:, 4] * X[:, 7]
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-odds))
    >>> tested = interaction_test(X, y, k=3, n_null=99, random_state=0)
    >>> tested
    name        score  rows  bonferroni     p
    x4 x7     3.76146    91   0.0734821  0.05
    x1 x28   -3.43609    96    0.256722  0.15
    x15 x20  -3.30972    84    0.406242  0.27
    435 interactions tested, logistic main effects; p is adjusted for all of them, in steps of 0.01
    >>> tested.significant(0.05).names
    ['x4 x7']
    """
    return compute_test(
        X,
        y,
        k,
        degree=degree,
        n_null=n_null,
        model=model,
        interaction_only=interaction_only,
        min_count=min_count,
        groups=groups,
        feature_names=feature_names,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
    )


def compute_test(
    X: Any,
    y: Any,
    k: int,
    *,
    degree: Degree,
    n_null: int,
    model: str,
    interaction_only: bool,
    min_count: int,
    groups: Any = None,
    feature_names: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    progress: Callable[[float], object] | None = None,
) -> TestedInteractions:
    """Do what `interaction_test` does; `progress` is called with the share that is done."""
    k, n_null = as_count(k, "k"), _as_n_null(n_null)
    min_count = _as_min_count(min_count)
    as_choice(model, "model", MODELS)
    degrees = _as_degrees(degree)
    x, groups, feature_names = as_features(X, groups, feature_names, n_jobs)
    basis = MonomialBasis(
        x.shape[1], degrees, interaction_only=interaction_only, include_bias=False, groups=groups
    )
    basis.require_indexable()
    names = as_feature_names(feature_names, basis.n_features)
    y, model = as_target(y, x.shape[0], model)
    entropy = _entropy_of(random_state)
    x, features, main = _scaled(x, basis.highest)
    effects = fit_main_effects(main, y, model, n_jobs)
    projection = Projection(main, effects.weights, n_jobs)
    with LongSearch(progress, name="interaction_test", verbose=verbose) as report:
        search = _Search(x, basis, effects, projection, min_count, n_null, n_jobs, report)
        residuals = search.prepare(effects.residuals[:, np.newaxis].copy())
        n_tested, columns, counts = search.find_leaders(residuals, k)
        chosen = ChosenColumns(basis, columns)
        exact = ExactStatistics(x, features, main, effects.weights, n_jobs, chosen)
        scores = exact.of(residuals)[:, 0]
        best = _largest(scores, k)
        columns, scores = columns[best], scores[best]
        p_values = single = bonferroni(scores, n_tested)
        simulated, others = search.simulate(columns, exact.take(best), n_null, entropy)
    if n_null > 0:
        p_values = step_down(np.abs(scores), simulated, others)
    return TestedInteractions(
        basis,
        columns,
        scores,
        counts[best],
        None,
        "statistic",
        names,
        single,
        p_values,
        np.maximum(others, simulated.max(axis=0)),
        n_tested,
        model,
    )


def _largest(scores: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """Return the places of the k largest sizes, in order; ties but for rounding stay in order."""
    sizes = np.abs(scores)
    largest = max(sizes.max(), np.finfo(np.float64).tiny)
    return np.argsort(-np.round(sizes / largest, 9), kind="stable")[:k]


# ------------------------------------------------------------------------------------- arguments


def _as_degrees(degree: Degree) -> tuple[int, int]:
    low, high = as_degrees(degree)
    if low < 2:
        raise ValueError(
            f"degree={degree!r} includes single features, but main effects are what interactions "
            "are tested against: pass an int from 2, or a pair (min_degree, max_degree) from "
            "(2, 2)."
        )
    if high > MOST_DEGREES:
        raise ValueError(f"degree must be at most {MOST_DEGREES}; got {degree!r}.")
    return low, high


def _as_n_null(n_null: Any) -> int:
    """Read the number of simulated targets, which may be 0."""
    if isinstance(n_null, Integral) and n_null == 0:
        return 0
    return as_count(n_null, "n_null")


def _entropy_of(random_state: Any) -> list[int]:
    """Return seeds that are drawn from a random state."""
    if isinstance(random_state, np.random.Generator):
        drawn = random_state.integers(0, 2**31, size=4)
    else:
        drawn = check_random_state(random_state).randint(0, 2**31, size=4)
    found: list[int] = drawn.tolist()
    return found


def _as_min_count(min_count: Any) -> int:
    least: int = as_count(min_count, "min_count")
    if least < 2:
        raise ValueError(
            "min_count must be at least 2, because one row cannot tell an interaction from chance; "
            f"got {min_count}."
        )
    return least


def _scaled(x: CanonicalCsr, degree: int) -> tuple[CanonicalCsr, NDArray[np.int64], csr_array]:
    """Return the features divided by their largest sizes, which changes no statistic.

    Nor does it change those of pairs if a constant is subtracted from a feature, as pairs are
    adjusted for the effects of their features. So of features that are far from 0 in every row the
    mean is subtracted first: otherwise rounding would be all that is left of their pairs.

    The second matrix has only some of them, which are returned, too: all that are ever stored.
    """
    features, indices = stored_features(x)
    shape = x.shape[0], len(features)
    values = csc_array(csr_array((x.data, indices, x.indptr), shape=shape))
    data = x.data
    if degree == 2:
        means = _means_of_far(values)
        data = data - means[indices]
        values.data -= np.repeat(means, np.diff(values.indptr))
    is_stored = np.diff(values.indptr) > 0
    largest = np.ones(len(features))
    sizes = np.abs(values.data)
    largest[is_stored] = np.maximum.reduceat(sizes, values.indptr[:-1][is_stored])
    data = data / largest[indices]
    main = csr_array((data, indices, x.indptr), shape=shape)
    return CanonicalCsr(x.shape, x.indptr, x.indices, data, is_array=True), features, main


def _means_of_far(x: csc_array) -> NDArray[np.float64]:
    """Return means of features whose spread is far less; 0 for others, and those with zeros."""
    means = np.zeros(x.shape[1])
    for j in np.flatnonzero(np.diff(x.indptr) == x.shape[0]):
        values = x.data[x.indptr[j] : x.indptr[j + 1]]
        low, high = values.min(), values.max()
        if (low > 0) == (high > 0) and 0 < high - low <= max(abs(low), abs(high)) / FAR:
            means[j] = low + (high - low) * np.mean((values - low) / (high - low))
    return means


# ---------------------------------------------------------------------------------------- search


class _Search:
    """Tests of all interactions, for the observed target and simulated ones."""

    def __init__(
        self,
        x: CanonicalCsr,
        basis: MonomialBasis,
        effects: MainEffects,
        projection: Projection,
        min_count: int,
        n_null: int,
        n_jobs: int | None,
        report: LongSearch,
    ) -> None:
        self.basis, self.effects, self.projection = basis, effects, projection
        self.report = report
        x = x.sorted_by_group(basis)
        require_searchable(x)
        features, indices = stored_features(x)
        n_threads = threads_for(n_jobs, len(x.data) * 2**basis.highest)
        n_draws = BYTES_OF_SUMS // (8 * max(len(features), 1)) // FEWEST_DRAWS * FEWEST_DRAWS
        self.n_draws = min(max(n_draws, FEWEST_DRAWS), MOST_DRAWS)
        self.n_walks = 1 + -(-n_null // self.n_draws)
        require_memory(
            len(x.data) * BYTES_PER_VALUE
            + n_threads * len(features) * 8 * (self.n_draws + basis.highest + 8)
            + self.n_draws * 8 * VECTORS_PER_DRAW * (x.shape[0] + len(features))
            + _bytes_of_pairs(x, len(features), basis.highest, min_count),
            "the test",
            "Drop rare features, use fewer rows, or fewer threads.",
        )
        is_unit = bool((x.data == 1).all())
        self.test = cpu.ScoreTest(
            basis,
            (x.indptr, indices, np.empty(0) if is_unit else x.data),
            features,
            effects.weights,
            (effects.least_information, min_count),
            n_threads,
        )

    def prepare(self, residuals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Project main effects from a table of residuals, in place; return it."""
        self.projection.apply(residuals)
        self.effects.standardize(residuals, self.projection)
        return residuals

    def progress(self, walk: int) -> Callable[[float], object]:
        """Return what is called with the share of a walk that is done."""
        return lambda share: self.report((walk + share) / self.n_walks)

    def find_leaders(
        self, residuals: NDArray[np.float64], k: int
    ) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
        """Return how many interactions are tested, and the columns and counts of the best.

        Columns are in increasing order, and may be more than k if some tie.
        """
        found = self.test.find_leaders(residuals, (k, MOST_TIES), self.progress(0))
        if found is None:
            raise MemoryError(
                f"More than {MOST_TIES:,} interactions cannot be told from the k-th best, or "
                "memory ran out: raise min_count, or lower k."
            )
        n_tested, columns, counts, _ = found
        if n_tested == 0:
            raise ValueError(
                "There is no interaction to test: none occurs in min_count rows that tell its "
                "effect from those of its features. Use more rows; lower min_count; take "
                "logarithms of features that few rows dominate; or subtract the means of features "
                "that are far from 0."
            )
        order = np.argsort(columns)
        return n_tested, columns[order], counts[order]

    def simulate(
        self, columns: NDArray[np.int64], exact: ExactStatistics, n_null: int, entropy: list[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return, of each simulated target, statistics of some columns, and the largest other."""
        excluded = np.sort(columns)
        simulated, others = np.empty((len(columns), n_null)), np.empty(n_null)
        for walk, (draws, residuals) in enumerate(self._draw(n_null, entropy), 1):
            simulated[:, draws] = np.abs(exact.of(residuals))
            maxima = self.test.find_maxima(residuals, excluded, self.progress(walk))
            others[draws] = np.sqrt(maxima)
        return simulated, others

    def _draw(self, n_null: int, entropy: list[int]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield residuals of simulated targets, some at a time; each has a seed of its own."""
        for begin in range(0, n_null, self.n_draws):
            draws = range(begin, min(begin + self.n_draws, n_null))
            seeds = (np.random.SeedSequence(entropy, spawn_key=(draw,)) for draw in draws)
            rows = [self.effects.draw(np.random.default_rng(seed)) for seed in seeds]
            yield (
                slice(draws.start, draws.stop),
                self.prepare(np.ascontiguousarray(np.array(rows).T)),
            )


def _bytes_of_pairs(x: CanonicalCsr, n_features: int, degree: int, min_count: int) -> int:
    """Return the memory for sums of pairs, at most, which triples and higher degrees need."""
    if degree < 3:
        return 0
    lengths = np.diff(x.indptr).astype(np.int64)
    in_rows = int((lengths * (lengths + 1) // 2).sum()) // min_count
    return BYTES_PER_PAIR * min(in_rows, n_features * (n_features + 1) // 2)
