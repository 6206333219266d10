"""What `top` scores interactions against: labels, or residuals of a model of single features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.files.errors import FileFault
from polysparse.files.source import Source
from polysparse.search.residuals import as_numeric_targets, fit_residuals
from polysparse.search.result import TopInteractions

FIRST_MODELS = ("linear", "logistic", "poisson", "none")
KINDS = {"linear": "linear", "logistic": "logistic", "poisson": "Poisson"}


@dataclass(frozen=True)
class Labels:
    """The labels of a file: numbers or classes, and the model of single features for them.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        The labels.
    classes : ndarray or None
        The classes in order; None if labels are numbers.
    model : {"linear", "logistic", "poisson", "none"}
        The model.
    """

    values: NDArray[Any]
    classes: NDArray[Any] | None
    model: str

    @property
    def n_targets(self) -> int:
        """Number of columns to score against: one for each class, but one for two classes."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    @property
    def target_names(self) -> list[str] | None:
        """Names of these columns."""
        return None if self.n_targets == 1 or self.classes is None else _names(self.classes)

    @property
    def class_names(self) -> list[str]:
        """Names of the classes; none if labels are numbers."""
        return [] if self.classes is None else _names(self.classes)


def read_labels(values: NDArray[np.float64] | None, source: Source, model: str | None) -> Labels:
    """Return labels as numbers or classes, with the model that was given, or that is for them."""
    assert values is not None
    distinct = np.unique(values)
    if len(distinct) == 1:
        raise FileFault(f"all labels of {source.path} are the same: there is nothing to explain.")
    if source.classes is not None:
        if model in ("linear", "poisson"):
            raise FileFault(
                f"{source.path}: labels are classes such as {source.classes[0]!r}, but --model "
                f"{model} is for numbers: leave it out."
            )
        labels = source.classes[values.astype(np.int64)]
        return Labels(labels, np.unique(labels), model or "logistic")
    if model == "logistic" or (model is None and len(distinct) == 2):
        return Labels(values, distinct, "logistic")
    return Labels(values, None, model or "linear")


def require_one_target(labels: Labels, source: Source) -> None:
    """Raise FileFault for more than two classes, which cannot be tested."""
    if labels.n_targets > 1:
        raise FileFault(
            f"{source.path} has {labels.n_targets:,} classes, and --test is for numbers or two "
            "classes: test each class against all others, in a file of its own."
        )


def bytes_to_fit(labels: Labels, n_features: int) -> int:
    """Return the memory that vectors of coefficients take in a fit of the first model."""
    if labels.model == "none":
        return 0
    from polysparse.models.main_effects import model_of_features

    n_vectors: int = model_of_features(labels.model, len(labels.values))._n_vectors
    return 8 * n_vectors * n_features * labels.n_targets


def bytes_of_draws(n_rows: int, n_features: int, n_stored: int, n_threads: int) -> int:
    """Return the memory that a test takes, besides that of a search."""
    from polysparse.significance.functions import BYTES_PER_VALUE, MOST_DRAWS, VECTORS_PER_DRAW

    of_each_draw = VECTORS_PER_DRAW * (n_rows + n_features) + n_threads * n_features
    return BYTES_PER_VALUE * n_stored + 8 * MOST_DRAWS * of_each_draw


def residuals_of(X: Any, labels: Labels, n_jobs: int | None) -> tuple[NDArray[Any], str]:
    """Return what interactions are scored against, and a sentence about it."""
    from polysparse.models.main_effects import model_of_features

    has_classes, for_class = labels.classes is not None, ""
    if has_classes:
        one = f", for class {labels.class_names[1]}"
        for_class = one if labels.n_targets == 1 else ", for each class"
    if labels.model == "none":
        target = as_numeric_targets(labels.values, has_classes=has_classes)
        return target, f"scores are against the labels{for_class}."
    about = (
        f"scores are against the residuals of a {KINDS[labels.model]} regression on single "
        f"features{for_class}."
    )
    model = model_of_features(labels.model, len(labels.values), n_jobs=n_jobs)
    return fit_residuals(model, X, labels.values, has_classes=has_classes)[0], about


def test_labels(X: Any, labels: Labels, k: int, **how: Any) -> TopInteractions:
    """Return the interactions with the largest statistics, and their p-values."""
    from polysparse.significance.functions import compute_test

    if labels.classes is None:
        return compute_test(X, labels.values, k, model=labels.model, **how)
    is_second = labels.values == labels.classes[1]
    return compute_test(X, is_second.astype(np.float64), k, model="logistic", **how)


def _names(classes: NDArray[Any]) -> list[str]:
    return [f"{each:g}" if isinstance(each, float) else str(each) for each in classes.tolist()]
