"""What `top` scores products against: labels, or the residuals of a model of single features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.files.errors import FileFault
from polysparse.files.source import Source
from polysparse.search.arguments import class_indicators

FIRST_MODELS = ("linear", "logistic", "none")


@dataclass(frozen=True)
class Labels:
    """The labels of a file: numbers or classes, and the model of single features for them.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        The labels.
    classes : ndarray or None
        The classes in order; None if labels are numbers.
    model : {"linear", "logistic", "none"}
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


def read_labels(values: NDArray[np.float64] | None, source: Source, model: str | None) -> Labels:
    """Return labels as numbers or classes, with the model that was given, or that is for them."""
    assert values is not None
    distinct = np.unique(values)
    if len(distinct) == 1:
        raise FileFault(f"all labels of {source.path} are the same: there is nothing to explain.")
    if source.classes is not None:
        if model == "linear":
            raise FileFault(
                f"{source.path}: labels are classes such as {source.classes[0]!r}, but --model "
                "linear is for numbers: leave it out."
            )
        labels = source.classes[values.astype(np.int64)]
        return Labels(labels, np.unique(labels), model or "logistic")
    if model == "logistic" or (model is None and len(distinct) == 2):
        return Labels(values, distinct, "logistic")
    return Labels(values, None, model or "linear")


def bytes_to_fit(labels: Labels, n_features: int) -> int:
    """Return the memory that vectors of coefficients take in a fit of the first model."""
    from polysparse.models.logistic import PolynomialLogisticRegression
    from polysparse.models.ridge import PolynomialRidge

    if labels.model == "none":
        return 0
    model = PolynomialRidge if labels.model == "linear" else PolynomialLogisticRegression
    return 8 * model._n_vectors * n_features * labels.n_targets


def residuals_of(X: Any, labels: Labels, n_jobs: int | None) -> tuple[NDArray[Any], str]:
    """Return what products are scored against, and a sentence about it."""
    from polysparse.models.logistic import PolynomialLogisticRegression
    from polysparse.models.ridge import PolynomialRidge

    if labels.classes is None:
        target: NDArray[Any] = labels.values.astype(np.float64)
        if labels.model == "none":
            return target, "scores are against the labels."
        linear = PolynomialRidge(degree=1, n_jobs=n_jobs).fit(X, target)
        about = "scores are against the residuals of a linear regression on single features."
        return target - linear.predict(X), about
    _, target = class_indicators(labels.values)
    classes = _names(labels.classes)
    for_class = f"for class {classes[1]}" if labels.n_targets == 1 else "for each class"
    if labels.model == "none":
        return target, f"scores are against the labels, {for_class}."
    logistic = PolynomialLogisticRegression(degree=1, n_jobs=n_jobs).fit(X, labels.values)
    target -= logistic.predict_proba(X)[:, -target.shape[1] :]
    return target, (
        "scores are against the residuals of a logistic regression on single features, "
        f"{for_class}."
    )


def _names(classes: NDArray[Any]) -> list[str]:
    return [f"{each:g}" if isinstance(each, float) else str(each) for each in classes.tolist()]
