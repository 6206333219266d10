"""The losses of rows on a GPU, by array operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polysparse.models.losses.elementwise import (
    ArrayRowLosses,
    CompiledLoss,
    ElementwiseLoss,
    ElementwiseRowLosses,
)
from polysparse.models.losses.logistic import LogLoss


class BinaryLogLoss(ElementwiseLoss):
    """The logistic loss of two classes, numbered 0 and 1."""

    def evaluate(self, targets: Any, scores: Any) -> tuple[Any, Any, Any]:
        is_second = targets != 0
        small = np.exp(-np.abs(scores))
        share = 1 / (1 + small)
        wrong = np.where(is_second, -scores, scores)
        # log(1 + exp(-|score|)), and |score| if the row is on the wrong side
        values = np.log1p(small) + np.maximum(wrong, 0)
        error = np.where(wrong > 0, share, small * share)  # 1 - probability of the true class
        return values, np.where(is_second, -error, error), small * share * share


class MultinomialLogLoss:
    """The logistic loss of several classes, numbered from 0."""

    def of_rows(self, targets: Any, weights: Any, n_jobs: int | None) -> SoftmaxRowLosses:
        return SoftmaxRowLosses(targets, weights)


@dataclass(frozen=True)
class SoftmaxArrayPoint:
    """The derivatives of multinomial losses of rows; see `SoftmaxPoint` of the CPU."""

    gradient: Any
    curvature: Any
    row_weights: Any
    probabilities: Any

    def hessian_product(self, change: Any, shift: Any = 0.0, n_jobs: int | None = None) -> Any:
        change = change - shift
        out = change - (self.probabilities * change).sum(axis=1)[:, None]
        out *= self.probabilities
        out *= self.row_weights[:, None]
        return out

    def intercept_cross(self, change: Any, n_jobs: int | None) -> Any:
        return self.hessian_product(change).sum(axis=0)


class SoftmaxRowLosses(ArrayRowLosses):
    """The multinomial losses of rows."""

    def _at(self, scores: Any, intercept: Any) -> tuple[Any, SoftmaxArrayPoint]:
        row_weights = self.weights
        margins = scores + intercept
        margins -= margins.max(axis=1, keepdims=True)
        probabilities = np.exp(margins)
        sums = probabilities.sum(axis=1)
        probabilities /= sums[:, None]
        each = np.arange(len(scores), like=scores)
        value = (row_weights * (np.log(sums) - margins[each, self.targets])).sum()
        gradient = row_weights[:, None] * probabilities
        curvature = gradient * (1 - probabilities)
        # For the true class, 1 - probability would cancel: it is the sum of the others.
        true = each, self.targets
        others = probabilities.copy()
        others[true] = 0
        others = row_weights * others.sum(axis=1)
        gradient[true] = -others
        curvature[true] = others * probabilities[true]
        return value, SoftmaxArrayPoint(gradient, curvature, row_weights, probabilities)

    def _intercept_sums(self, point: SoftmaxArrayPoint) -> tuple[Any, Any]:
        probabilities = point.probabilities
        weighted = point.row_weights[:, None] * probabilities
        hessian = np.diag(weighted.sum(axis=0)) - np.einsum("ic,id->cd", weighted, probabilities)
        return hessian, np.einsum("i,ic->c", self.weights, probabilities)


@dataclass(frozen=True)
class LossByArrays:
    """A loss of the CPU's compiled code, computed by array operations."""

    loss: CompiledLoss

    def of_rows(self, targets: Any, weights: Any, n_jobs: int | None) -> ElementwiseRowLosses:
        return ElementwiseRowLosses(self.loss, targets, weights)


def on_device(loss: Any) -> Any:
    """Return a loss that takes arrays on a GPU: another one if the CPU's runs compiled code."""
    if isinstance(loss, LogLoss):
        return BinaryLogLoss() if loss.n_scores == 1 else MultinomialLogLoss()
    return LossByArrays(loss) if isinstance(loss, CompiledLoss) else loss
