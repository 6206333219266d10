"""Classification problems that differ, for the benchmark of the smooth solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file

Array = NDArray[Any]
Data = tuple[sparse.csr_array, Array]  # rows and their classes
N_FEATURES = {"a9a": 123, "agaricus.txt.train": 126}


@dataclass(frozen=True)
class Problem:
    """Rows and classes, made when they are needed.

    Attributes
    ----------
    name : str
        The name.
    make : callable
        Returns X and y.
    is_held_out : bool
        Whether no constant of the solver was chosen with it.
    """

    name: str
    make: Callable[[], Data]
    is_held_out: bool = False


def all_problems(data: Path) -> list[Problem]:
    """All problems; those from files only if they are in this folder."""
    files = {"a9a": "a9a", "agaricus": "agaricus.txt.train"}
    found = [
        Problem(name, partial(from_file, data / file))
        for name, file in files.items()
        if (data / file).exists()
    ]
    return [
        *found,
        Problem("one-hot", partial(one_hot, 0, 20_000, 12, 25)),
        Problem("pairs", partial(one_hot, 1, 50_000, 12, 25, main=0.3, share=0.03)),
        Problem("rare positives", rare_positives),
        Problem("text", partial(text, 0, 6_000, 1_000)),
        Problem("separable", partial(separable, 0, 4_000, 60)),
        Problem("badly scaled", partial(badly_scaled, 0, 2_000, 45)),
        Problem("few rows", partial(few_rows, 0, 300, 400)),
        Problem("three classes", partial(one_hot, 2, 20_000, 8, 15, n_classes=3)),
        Problem("held out: one-hot, 8 x 40", partial(one_hot, 10, 30_000, 8, 40, share=0.1), True),
        Problem(
            "held out: pairs", partial(one_hot, 11, 40_000, 15, 15, main=0.1, share=0.02), True
        ),
        Problem("held out: rare positives", partial(rare_positives, 12, 200, 0.01), True),
        Problem("held out: text", partial(text, 13, 10_000, 400), True),
        Problem("held out: badly scaled", partial(badly_scaled, 14, 1_000, 60), True),
        Problem("held out: four classes", partial(few_rows, 15, 1_000, 150, n_classes=4), True),
    ]


def from_file(path: Path) -> Data:
    """Rows of a file in svmlight format."""
    X, y = load_svmlight_file(str(path), n_features=N_FEATURES[path.name])
    return sparse.csr_array(X), (y > y.min()).astype(int)


def one_hot(
    seed: int,
    n_rows: int,
    n_variables: int,
    n_levels: int,
    *,
    main: float = 1.0,
    share: float = 0.3,
    n_classes: int = 2,
) -> Data:
    """Indicators of the levels of variables, some of which are rare; pairs of levels matter.

    `main` is the size of main effects relative to those of pairs, `share` that of the positives.
    """
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, n_levels + 1) ** 1.2
    levels = rng.choice(n_levels, (n_rows, n_variables), p=weights / weights.sum())
    places = levels + n_levels * np.arange(n_variables)
    n_features = n_levels * n_variables
    scores = main * rng.standard_normal(n_features)[places].sum(axis=1)
    for _ in range(3 * n_variables):
        a, b = rng.choice(n_variables, 2, replace=False)
        effects = rng.standard_normal((n_levels, n_levels))
        scores += effects[levels[:, a], levels[:, b]] / 2
    noisy = scores + 1.5 * rng.logistic(size=n_rows)
    if n_classes == 2:
        y = noisy > np.quantile(noisy, 1 - share)
    else:
        y = np.digitize(noisy, np.quantile(noisy, np.arange(1, n_classes) / n_classes))
    return indicators(places, n_features), y.astype(int)


def indicators(places: Array, n_features: int) -> sparse.csr_array:
    """Ones at places, of shape (n_rows, n_ones); those that repeat count once."""
    n_rows, n_ones = places.shape
    rows = np.repeat(np.arange(n_rows), n_ones)
    X = sparse.csr_array(
        sparse.coo_array((np.ones(places.size), (rows, places.ravel())), (n_rows, n_features))
    )
    X.sum_duplicates()
    X.data[:] = 1
    return X


def rare_positives(seed: int = 3, n_features: int = 300, share: float = 0.03) -> Data:
    """50,000 rows of up to 12 ones, of which few are positive."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, n_features + 1) ** 0.8
    X = indicators(rng.choice(n_features, (50_000, 12), p=weights / weights.sum()), n_features)
    scores = X @ rng.standard_normal(n_features)
    first = X[:, :120].toarray()
    for _ in range(200):
        a, b = rng.choice(120, 2, replace=False)
        scores += 2 * rng.standard_normal() * first[:, a] * first[:, b]
    limit = np.quantile(2 * scores, 1 - share)
    return X, (2 * scores + rng.logistic(size=len(scores)) > limit).astype(int)


def text(seed: int, n_rows: int, n_words: int) -> Data:
    """Texts with Zipf's distribution of words and two topics; tf-idf, rows of norm 1."""
    rng = np.random.default_rng(seed)
    base = 1 / np.arange(1, n_words + 1)
    y = rng.integers(0, 2, n_rows)
    topics = base * np.exp(0.7 * rng.standard_normal((2, n_words)))
    topics /= topics.sum(axis=1, keepdims=True)
    lengths = np.maximum(5, rng.lognormal(3.3, 0.5, n_rows).astype(int))
    rows = np.repeat(np.arange(n_rows), lengths)
    words = np.empty(len(rows), np.int64)
    for k in (0, 1):
        own = y[rows] == k
        words[own] = rng.choice(n_words, int(own.sum()), p=topics[k])
    X = sparse.csr_array(sparse.coo_array((np.ones(len(rows)), (rows, words)), (n_rows, n_words)))
    X.sum_duplicates()
    counts = np.bincount(X.indices, minlength=n_words)
    X.data = (1 + np.log(X.data)) * np.log((1 + n_rows) / (1 + counts[X.indices]))
    norms = np.sqrt(np.bincount(np.repeat(np.arange(n_rows), np.diff(X.indptr)), X.data**2))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    flipped = rng.random(n_rows) < 0.05
    return X, np.where(flipped, 1 - y, y)


def separable(seed: int, n_rows: int, n_features: int) -> Data:
    """Sparse real numbers whose class is the sign of a polynomial of degree 2."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.3)
    quadratic = rng.standard_normal((n_features, n_features)) * 0.3
    scores = X @ rng.standard_normal(n_features) + np.einsum("ij,jk,ik->i", X, quadratic, X)
    return sparse.csr_array(X), (scores > np.median(scores)).astype(int)


def badly_scaled(seed: int, n_rows: int, n_features: int) -> Data:
    """Real numbers, correlated and skewed, whose columns have scales from 0.03 to 30."""
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((n_rows, 10)) @ rng.standard_normal((10, n_features)) / 4
    X = np.expm1(0.7 * (mixed + 0.5 * rng.standard_normal((n_rows, n_features))))
    own = X / X.std(axis=0)
    scores = own @ rng.standard_normal(n_features) / 3
    for _ in range(2 * n_features):
        a, b = rng.choice(n_features, 2, replace=False)
        scores += 0.2 * rng.standard_normal() * own[:, a] * own[:, b]
    y = scores + rng.logistic(size=n_rows) > np.median(scores)
    return sparse.csr_array(own * 10 ** rng.uniform(-1.5, 1.5, n_features)), y.astype(int)


def few_rows(seed: int, n_rows: int, n_features: int, n_classes: int = 2) -> Data:
    """Few rows of many columns: sparse real numbers."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.2)
    scores = X[:, :40] @ rng.standard_normal(40) + rng.logistic(size=n_rows)
    cuts = np.quantile(scores, np.arange(1, n_classes) / n_classes)
    return sparse.csr_array(X), np.digitize(scores, cuts)
