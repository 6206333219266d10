"""What a first model leaves of a target, which interactions are scored against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def class_indicators(y: NDArray[Any]) -> NDArray[np.float64]:
    """Return a column for each class in order; of two classes, only for the last."""
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}, but classes must have one dimension.")
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {classes[0]!r}: at least 2 classes are needed.")
    first = 1 if len(classes) == 2 else 0
    return np.equal.outer(codes, np.arange(first, len(classes))) * 1.0


def as_numeric_targets(y: NDArray[Any], *, has_classes: bool) -> NDArray[np.float64]:
    """Return y as numbers, or the indicators of its classes."""
    return class_indicators(y) if has_classes else y.astype(np.float64)


def fit_residuals(
    model: Any, X: Any, y: NDArray[Any], *, has_classes: bool, **weights: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit a model; return its residuals and its predictions, of numbers or indicators."""
    targets = as_numeric_targets(y, has_classes=has_classes)
    model.fit(X, y, **weights)
    of_classes = slice(-targets.shape[-1], None)  # without the first of two classes
    predicted = model.predict_proba(X)[:, of_classes] if has_classes else model.predict(X)
    return targets - predicted, predicted
