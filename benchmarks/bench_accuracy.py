"""Accuracy and time on two problems, beside the models that people would try otherwise.

All models get the same table of categorical variables, split once into training and test rows. The
two models of pairs have the C that three-fold cross-validation on the training rows chooses, which
is not timed. The others have their defaults. Times are CPU seconds of one
fit in one thread, which other programs disturb least.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

import measure
from bench_core import DATA, Report, say
from polysparse import PolynomialLogisticRegression, PolynomialLogisticRegressionCV
from polysparse.machine import threads_for

CS = [0.001, 0.01, 0.1, 1.0]
PACKAGES = {"LightGBM": "lightgbm", "EBM": "interpret-core"}

# The variables of a9a, and how many of its columns each of them has.
ADULT = {
    **{"age": 5, "workclass": 8, "weight": 5, "education": 16, "years": 5, "marital": 7},
    **{"occupation": 14, "relationship": 6, "race": 5, "sex": 2, "gain": 2, "loss": 2},
    **{"hours": 5, "country": 41},
}


@dataclass(frozen=True)
class Problem:
    """A table with two classes, and the best score that any model could have, if that is known."""

    name: str
    train: pd.DataFrame
    y_train: NDArray[np.int64]
    test: pd.DataFrame
    y_test: NDArray[np.int64]
    truth: NDArray[np.float64] | None = None


def adult(data: Path) -> Problem:
    """The table behind a9a: each of its columns is a level of a variable."""
    tables, targets = [], []
    for name in ("a9a", "a9a.t"):
        X, y = load_svmlight_file(str(data / name), n_features=sum(ADULT.values()))
        dense, first, columns = X.toarray(), 0, {}
        for variable, size in ADULT.items():
            own = dense[:, first : first + size]
            assert own.sum(axis=1).max() == 1
            columns[variable] = np.where(own.any(axis=1), own.argmax(axis=1), size).astype(str)
            first += size
        tables.append(pd.DataFrame(columns))
        targets.append((y > 0).astype(np.int64))
    return Problem("a9a", tables[0], targets[0], tables[1], targets[1])


def clicks(n_train: int, n_test: int) -> Problem:
    """Clicks that depend on six variables, and on three pairs of them; two variables are noise."""
    rng = np.random.default_rng(0)
    sizes = {
        **{"site": 400, "ad": 60, "category": 12, "device": 4},
        **{"hour": 24, "region": 30, "carrier": 15, "layout": 8},
    }
    n = n_train + n_test
    codes = {}
    for name, size in sizes.items():
        shares = 1 / np.arange(1, size + 1) ** 0.8
        codes[name] = rng.choice(size, n, p=shares / shares.sum())
    effects: dict[tuple[str, ...], float] = {
        **{("site",): 0.5, ("ad",): 0.5, ("category",): 0.3, ("device",): 0.3},
        **{("hour",): 0.2, ("region",): 0.2},
        **{("ad", "category"): 0.8, ("device", "hour"): 0.6, ("site", "device"): 0.5},
    }
    score = np.full(n, -2.0)
    for names, scale in effects.items():
        table = scale * rng.normal(size=[sizes[name] for name in names])
        score += table[tuple(codes[name] for name in names)]
    truth = 1 / (1 + np.exp(-score))
    y = (rng.random(n) < truth).astype(np.int64)
    table = pd.DataFrame({name: column.astype(str) for name, column in codes.items()})
    train, test = slice(n_train), slice(n_train, None)
    return Problem("clicks", table[train], y[train], table[test], y[test], truth[test])


def chosen(problem: Problem) -> float:
    """The C that cross-validation chooses for all pairs."""
    search = PolynomialLogisticRegressionCV(Cs=CS, cv=3, scoring="neg_log_loss")
    return float(search.fit(problem.train, problem.y_train).C_)


def main_effects(C: float) -> Any:
    """A logistic regression on one-hot levels, with its default penalty."""
    return make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000))


def expanded(C: float) -> Any:
    """A logistic regression on scikit-learn's expansion of one-hot levels."""
    poly = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    model = LogisticRegression(C=C, max_iter=1000)
    return make_pipeline(OneHotEncoder(handle_unknown="ignore"), poly, model)


def ours(C: float) -> Any:
    """The same without the expansion, and without the pairs of levels of one variable."""
    return PolynomialLogisticRegression(C=C, n_jobs=1)


def lightgbm(C: float) -> Any:
    """Boosted trees."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1, n_jobs=1)


def ebm(C: float) -> Any:
    """An additive model with boosted shapes of variables, and of pairs that it chooses."""
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(n_jobs=1)


MODELS: dict[str, Callable[[float], Any]] = {
    "LogisticRegression": main_effects,
    "PolynomialFeatures + LogisticRegression": expanded,
    "polysparse": ours,
    "LightGBM": lightgbm,
    "EBM": ebm,
}


def run(problem: Problem, name: str, C: float) -> list[str]:
    """Fit a model; return its AUC, its log loss and its seconds as text."""
    try:
        model = MODELS[name](C)
    except ImportError:
        return ["not installed", "", ""]
    train, test = problem.train, problem.test
    if name == "LightGBM":
        levels = {column: sorted(train[column].unique()) for column in train}
        kinds = {column: pd.CategoricalDtype(own) for column, own in levels.items()}
        train, test = train.astype(kinds), test.astype(kinds)
    start = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train, problem.y_train)
    seconds = process_time() - start
    found = scores(problem, model.predict_proba(test)[:, 1])
    say(f"{problem.name}: {name}: {' '.join(found)}, {seconds:.1f} s")
    return [*found, f"{seconds:.1f}"]


def scores(problem: Problem, probability: NDArray[np.float64]) -> list[str]:
    """The AUC and the log loss of predictions, as text."""
    auc, loss = roc_auc_score(problem.y_test, probability), log_loss(problem.y_test, probability)
    return [f"{auc:.4f}", f"{loss:.4f}"]


def best(problem: Problem) -> list[str]:
    """The scores of the true probabilities, if they are known."""
    known = ["", ""] if problem.truth is None else scores(problem, problem.truth)
    return [*known, ""]


def installed(package: str) -> str:
    """A package with its version, if it is installed."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


def main() -> None:
    """Fit every model to both problems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with a9a and a9a.t")
    parser.add_argument("--rows", type=int, default=40_000, help="training rows of the clicks")
    parser.add_argument("--markdown", action="store_true", help="write Markdown")
    options = parser.parse_args()
    problems = [clicks(options.rows, 40_000)]
    if (options.data / "a9a.t").exists():
        problems.insert(0, adult(options.data))
    report = Report(options.markdown)
    penalties = [chosen(problem) for problem in problems]
    lines = [
        [
            name,
            *(cell for p, C in zip(problems, penalties, strict=True) for cell in run(p, name, C)),
        ]
        for name in MODELS
    ]
    lines.append(
        ["true probabilities (best possible)", *(cell for p in problems for cell in best(p))]
    )
    more = ", ".join(map(installed, PACKAGES.values()))
    print(f"{measure.describe_machine(threads_for(None, 2**60))}, {more}\n")
    heading = " | ".join(f"{p.name}: AUC | log loss | fit, s" for p in problems)
    report.table(f"model | {heading}", lines)
    print("\n" + NOTES)


NOTES = """\
`a9a` is UCI Adult as 14 categorical variables (32,561 training and 16,281 test rows). `clicks` is
simulated: 8 variables, three pairs of which interact (40,000 training and 40,000 test rows). Rows 2
and 3 use a C chosen by cross-validation; this search is not timed. The others use their defaults
(LogisticRegression: max_iter=1000). EBM is from interpret. Times are CPU seconds on one thread."""


if __name__ == "__main__":
    main()
