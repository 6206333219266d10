"""top_interactions: the columns of an expansion with the largest scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.names import as_feature_names
from polysparse.engine import cpu
from polysparse.machine import require_memory, threads_for
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.search.arguments import (
    HIERARCHIES,
    SCORES,
    Restriction,
    Targets,
    as_choice,
    as_count,
    as_degrees,
    as_restriction,
    as_rows,
    as_targets,
    names_of_columns,
    require_products,
)
from polysparse.search.progress import LongSearch
from polysparse.search.result import TopInteractions

MOST_STORED = 2**31  # values, rows and columns that the kernels search are fewer
MOST_TIES = 2**22  # columns beyond k whose scores are the same but for rounding
BYTES_PER_VALUE = 52  # of working memory, besides X


def top_interactions(
    X: Any,
    target: Any,
    k: int = 100,
    *,
    degree: Degree = 2,
    interaction_only: bool = True,
    score: str = "dot",
    min_count: int = 1,
    groups: Any = None,
    hierarchy: str | None = None,
    among: Any = None,
    sample_weight: Any = None,
    feature_names: Any = None,
    n_jobs: int | None = None,
) -> TopInteractions:
    """Find the k interactions with the largest scores against a target, exactly.

    The expansion is not built: prefixes of interactions are searched depth-first, and those are
    skipped that cannot lead to one of the k best. Memory does not grow with the number of
    interactions.

    Parameters
    ----------
    X : sparse matrix or array, or array-like, of shape (n_rows, n_features)
        The features. Values must be finite.
    target : array-like of shape (n_rows,) or (n_rows, n_targets)
        What to score against: a response, the residuals of a model, a gradient. With several
        columns, for example one for each class, the score of an interaction is the largest one.
    k : int, default=100
        How many to find. If there are fewer, all that occur are returned.
    degree : int or tuple (min_degree, max_degree), default=2
        How many features are multiplied. An int searches from 2 up to it; (1, 3) includes single
        features.
    interaction_only : bool, default=True
        If False, powers of features are included.
    score : {"dot", "normalized", "correlation"}, default="dot"
        What is largest in size. With z the column of an interaction, r the target and w the weights
        of rows (1 by default), sums are over rows:

        - "dot": ``sum(w * z * r)``;
        - "normalized": ``sum(w * z * r) / sqrt(sum(w * z**2))``;
        - "correlation": the weighted Pearson correlation of z and r; 0 if z is constant.

        By "normalized" and "correlation", an interaction in a single row of a large target scores
        high: raise `min_count`.
    min_count : int, default=1
        Only interactions that occur in at least so many rows.
    groups : sequence of (str or None), mapping of str to int, or sequence of int, optional
        Groups of features of which an interaction uses at most one, as in `MonomialBasis`.
    hierarchy : {"weak", "strong"}, optional
        Only interactions of which at least one feature ("weak") or all features ("strong") are in
        `among`. This is a heuristic: an interaction may matter although none of its features does
        by itself.
    among : sequence of int or str, optional
        Numbers or names of the features that `hierarchy` is about.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of rows. Rows of weight 0 are left out.
    feature_names : sequence of str, optional
        Names of the features; by default those of the columns of X, or "x0", "x1", ...
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS. Results do not depend on it.

    Returns
    -------
    TopInteractions
        The interactions, the largest score first; of equal scores, the one that comes first in the
        expansion. It prints as a table, and can be given as `columns` to everything that takes
        them.

    Warns
    -----
    UserWarning
        After a second, if the search may take hours.

    See Also
    --------
    PolynomialOperator : Products with all columns, which score each of them.
    ObservedPolynomialFeatures : The columns that occur, or the most frequent of them.

    Notes
    -----
    Columns of equal values are told apart by their numbers only. A sum goes through the rows in
    their order, and a product multiplies the last features first, as in an expansion: scores have
    the same bits for any number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from polysparse import top_interactions
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 50)) < 0.3
    >>> residuals = 3.0 * (X[:, 7] & X[:, 30]) + rng.normal(size=300)
    >>> top_interactions(X, residuals, k=3, score="correlation", min_count=5)
    name        score  rows
    x7 x30   0.494301    17
    x7 x23   0.247274    26
    x11 x30  0.244899    15
    """
    return search(
        X,
        target,
        k,
        degree=degree,
        interaction_only=interaction_only,
        score=score,
        min_count=min_count,
        groups=groups,
        hierarchy=hierarchy,
        among=among,
        sample_weight=sample_weight,
        feature_names=feature_names,
        n_jobs=n_jobs,
    )


def search(
    X: Any,
    target: Any,
    k: int,
    *,
    degree: Degree,
    interaction_only: bool,
    score: str,
    min_count: int,
    groups: Any = None,
    hierarchy: str | None = None,
    among: Any = None,
    sample_weight: Any = None,
    feature_names: Any = None,
    n_jobs: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> TopInteractions:
    """Do what `top_interactions` does; `progress` is called with the share that is done."""
    k, min_count = as_count(k, "k"), as_count(min_count, "min_count")
    as_choice(score, "score", SCORES)
    as_choice(hierarchy, "hierarchy", HIERARCHIES)
    degrees = as_degrees(degree)
    x = as_rows(X, n_jobs)
    basis = MonomialBasis(
        x.shape[1], degrees, interaction_only=interaction_only, include_bias=False, groups=groups
    )
    basis.require_indexable()
    names = as_feature_names(feature_names, basis.n_features) or names_of_columns(X)
    targets = as_targets(target, sample_weight, x.shape[0], score)
    restriction = as_restriction(basis, among, hierarchy, names)
    if targets.kept is not None:
        x = _some_rows(x, targets.kept)
    require_products(x, targets, max(basis.highest, 1))
    columns, counts, which, scores = _search_rows(
        x, basis, targets, k, (score, min_count), restriction, LongSearch(progress), n_jobs
    )
    has_several = targets.values.shape[1] > 1
    return TopInteractions(
        basis, columns, scores, counts, which if has_several else None, score, names
    )


def _some_rows(x: CanonicalCsr, rows: NDArray[np.int64]) -> CanonicalCsr:
    """Return some of the rows."""
    from scipy.sparse import csr_array

    kept = csr_array((x.data, x.indices, x.indptr), shape=x.shape)[rows]
    return CanonicalCsr(kept.shape, kept.indptr, kept.indices, kept.data, x.is_array)


def require_searchable(x: CanonicalCsr) -> None:
    """Raise ValueError if the kernels cannot search so many values."""
    n_stored = len(x.data)
    if max(n_stored, x.shape[0]) >= MOST_STORED:
        raise ValueError(
            f"X has {x.shape[0]:,} rows and {n_stored:,} stored values; fewer than "
            f"{MOST_STORED:,} can be searched. Search a part of the rows, or drop rare features."
        )


def stored_features(x: CanonicalCsr) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return features, and indices into them: all, unless far more exist than values are stored."""
    if x.shape[1] <= max(2**20, 4 * len(x.data)):
        return np.arange(x.shape[1]), x.indices
    features, indices = np.unique(x.indices, return_inverse=True)
    return features.astype(np.int64), indices.astype(x.indices.dtype)


def _search_rows(
    x: CanonicalCsr,
    basis: MonomialBasis,
    targets: Targets,
    k: int,
    how: tuple[str, int],
    restriction: Restriction,
    progress: LongSearch,
    n_jobs: int | None,
) -> tuple[NDArray[Any], ...]:
    """Return columns, counts, targets and scores; `how` is the score and min_count."""
    x = x.sorted_by_group(basis)
    n_stored = len(x.data)
    require_searchable(x)
    features, indices = stored_features(x)
    n_targets = targets.values.shape[1]
    n_threads = threads_for(n_jobs, n_stored * 2 ** min(basis.highest, 10))
    require_memory(
        n_stored * BYTES_PER_VALUE + n_threads * len(features) * (8 + 24 * (n_targets + 2)),
        "the search",
        "Drop rare features, use fewer columns of the target, or fewer threads.",
    )
    is_unit = bool((x.data == 1).all())
    found = cpu.search(
        basis,
        (x.indptr, indices, np.empty(0) if is_unit else x.data),
        (features, restriction.uses_of(features)),
        (targets.values, targets.weights, targets.total_and_largest),
        (SCORES.index(how[0]), bool((x.data < 0).any()), restriction.needs_among),
        (k, how[1], MOST_TIES, n_threads),
        progress,
    )
    if found is None:
        raise MemoryError(
            f"More than {MOST_TIES:,} interactions cannot be told from the k-th best, or memory "
            "ran out: raise min_count, or lower k."
        )
    return found
