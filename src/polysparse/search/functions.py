"""top_interactions: the columns of an expansion with the largest scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polysparse.basis.degrees import Degree
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.basis.names import as_feature_names
from polysparse.dispatch import dispatch
from polysparse.search.arguments import (
    HIERARCHIES,
    SCORES,
    as_choice,
    as_count,
    as_degrees,
    as_features,
    as_restriction,
    as_targets,
    names_of_columns,
    require_products,
)
from polysparse.search.progress import LongSearch
from polysparse.search.question import Question
from polysparse.search.result import TopInteractions
from polysparse.search.rows import RowsInMemory, SearchedRows


@dispatch("top_interactions")
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
    verbose: int = 0,
) -> TopInteractions:
    """Find the k interactions with the largest scores against a target, exactly.

    The expansion is not built. Prefixes of interactions are searched depth-first, and prefixes that
    cannot lead to one of the k best are skipped. Memory does not grow with the number of
    interactions.

    Parameters
    ----------
    X : sparse matrix or array, array-like or table, of shape (n_rows, n_features)
        The features. Values must be finite. A table with categorical columns is encoded as by
        `TableEncoder`, and its columns are the groups. At degrees up to 2, X may be a Dask array or
        on a GPU.
    target : array-like of shape (n_rows,) or (n_rows, n_targets)
        What to score against: a response, the residuals of a model, or a gradient. With several
        columns, for example one for each class, the score of an interaction is its largest score
        for any of them. If target is a DataFrame, the result has its column names.
    k : int, default=100
        How many to find. If there are fewer, all that occur are returned.
    degree : int or tuple (min_degree, max_degree), default=2
        How many features are multiplied. An int searches from 2 up to it; (1, 3) includes single
        features.
    interaction_only : bool, default=True
        If False, powers of features are included.
    score : {"dot", "normalized", "correlation"}, default="dot"
        The score of an interaction; the largest absolute values are found. With z the column of an
        interaction, r the target and w the weights of rows (1 by default), and sums over rows:

        - "dot": ``sum(w * z * r)``;
        - "normalized": ``sum(w * z * r) / sqrt(sum(w * z**2))``;
        - "correlation": the weighted Pearson correlation of z and r; 0 if z is constant.

        With "normalized" and "correlation", an interaction that occurs in a single row with a large
        target has a high score: raise `min_count`.
    min_count : int, default=1
        Only interactions that occur in at least this many rows.
    groups : sequence of (str or None), mapping of str to int, or sequence of int, optional
        Groups of features of which an interaction uses at most one, as in `MonomialBasis`.
    hierarchy : {"weak", "strong"}, optional
        Only interactions in which at least one feature ("weak") or every feature ("strong") is in
        `among`. This is a heuristic: an interaction may matter although none of its features does
        alone.
    among : sequence of int or str, optional
        Numbers or names of the features that `hierarchy` applies to. The name of a group, such as
        a categorical column of a table, stands for all its features.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of rows. Rows of weight 0 are left out.
    feature_names : sequence of str, optional
        Names of the features; by default those of the columns of X, or "x0", "x1", ...
    n_jobs : int, optional
        Number of threads. By default every core that this process may use, but at most
        OMP_NUM_THREADS. Results do not depend on it.
    verbose : int, default=0
        If not 0, a line is printed about every second: the share of the search that is done, and
        seconds. Skipped parts count as done, so the share may jump.

    Returns
    -------
    TopInteractions
        The interactions, the largest score first. Ties are in the order of the expansion. It prints
        as a table, and you can pass it as `columns` to functions, transformers and models.

    Warns
    -----
    UserWarning
        After 1 to 10 seconds, if the search may take more than an hour.

    See Also
    --------
    PolynomialOperator : Its `rmatvec(target)` returns the "dot" scores of all columns.
    ObservedPolynomialFeatures : The columns that occur, or the most frequent of them.

    Notes
    -----
    Columns with equal values are only distinguished by their numbers. Sums are over rows in their
    order, and the last features of an interaction are multiplied first, as in an expansion, so
    scores are bit-identical for any number of threads.

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
        verbose=verbose,
    )


def search(
    X: Any,
    target: Any,
    k: int,
    *,
    groups: Any = None,
    feature_names: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    progress: Callable[[float], object] | None = None,
    **how: Any,
) -> TopInteractions:
    """Do what `top_interactions` does; `progress` is called with the share that is done."""
    require_choices(k, **how)
    x, groups, feature_names = as_features(X, groups, feature_names, n_jobs)
    with LongSearch(progress, name="top_interactions", verbose=verbose) as report:
        rows = RowsInMemory(x, n_jobs, report)
        return search_rows(rows, target, k, groups=groups, feature_names=feature_names, **how)


def require_choices(
    k: int, *, degree: Degree, score: str, min_count: int, hierarchy: str | None = None, **_: Any
) -> None:
    """Raise ValueError for arguments that are wrong whatever X is, before it is read."""
    as_count(k, "k")
    as_count(min_count, "min_count")
    as_choice(score, "score", SCORES)
    as_choice(hierarchy, "hierarchy", HIERARCHIES)
    as_degrees(degree)


def search_rows(
    rows: SearchedRows,
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
    target_names: Sequence[str] | None = None,
) -> TopInteractions:
    """Do what `top_interactions` does, with rows wherever they are, after `require_choices`."""
    n_rows, n_features = rows.shape
    basis = MonomialBasis(
        n_features,
        as_degrees(degree),
        interaction_only=interaction_only,
        include_bias=False,
        groups=groups,
    )
    basis.require_indexable()
    names = as_feature_names(feature_names, n_features)
    targets = as_targets(target, sample_weight, n_rows, score)
    restriction = as_restriction(basis, among, hierarchy, names)
    sizes = rows.value_range()
    require_products(sizes.smallest_size, sizes.largest_size, targets, max(basis.highest, 1), score)
    k, min_count = as_count(k, "k"), as_count(min_count, "min_count")
    found = rows.best(Question(basis, targets, k, score, min_count, restriction))
    has_several = targets.values.shape[1] > 1
    return TopInteractions(
        basis,
        found.columns,
        found.scores,
        found.counts,
        found.targets if has_several else None,
        score,
        names,
        target_names=names_of_columns(target) if target_names is None else target_names,
    )
