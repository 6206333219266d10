"""Compare the predictions of a model with the labels of a file, in bounded memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from polysparse.files.errors import FileFault
from polysparse.files.model_file import ModelFile
from polysparse.files.source import Source
from polysparse.models.calibration import (
    N_BINS,
    N_BUCKETS,
    CalibrationBins,
    CalibrationByMean,
    buckets_of,
)
from polysparse.stream.predict import iter_predictions
from polysparse.stream.resources import Resources


class Ranking:
    """Scores of rows of two classes, for the area under the ROC curve.

    Scores are counted in buckets, in which they differ by less than one in 2,000.
    """

    def __init__(self) -> None:
        self.counts = np.zeros((2, N_BUCKETS), np.int64)

    def add(self, scores: NDArray[np.float64], is_second: NDArray[np.bool_]) -> None:
        """Count some rows."""
        buckets = buckets_of(scores)
        for number in (0, 1):
            own = buckets[is_second == bool(number)]
            self.counts[number] += np.bincount(own, minlength=N_BUCKETS)

    @property
    def area(self) -> float:
        """The probability that a row of the second class has the higher score; ties count half."""
        first, second = self.counts
        below = np.cumsum(first) - first
        pairs = float(first.sum()) * float(second.sum())
        wins = float(np.sum(second * (below + first / 2.0)))
        return wins / pairs if pairs else math.nan


class Deviance:
    """The deviance of predicted means, and that of the best constant rate times the exposures.

    Parameters
    ----------
    power : float
        The power of the mean that variances are proportional to, from 1 to 2.
    """

    def __init__(self, power: float) -> None:
        self.power = power
        self.total = self.of_labels = self.falling = self.rising = 0.0
        self.n_rows = 0

    def add(
        self,
        labels: NDArray[np.float64],
        means: NDArray[np.float64],
        offset: NDArray[np.float64] | None,
    ) -> None:
        """Add some rows. The deviance of a label and a mean is a sum of three terms."""
        p, e = self.power, np.zeros(len(labels)) if offset is None else offset
        with np.errstate(all="ignore"):
            # Logarithms of exposures, which do not overflow, stand for these.
            if p == 1:
                own = xlogy(labels, labels) - labels
                self.total += float(np.sum(own - xlogy(labels, means) + means))
                own = own - labels * e
            elif p == 2:
                own = -np.log(labels) - 1
                self.total += float(np.sum(own + np.log(means) + labels / means))
                own = own + e
            else:
                own = labels ** (2 - p) / ((1 - p) * (2 - p))
                here = means ** (2 - p) / (2 - p) - labels * means ** (1 - p) / (1 - p)
                self.total += float(np.sum(own + here))
            self.of_labels += float(np.sum(own))
            self.falling += float(np.sum(labels * np.exp((1 - p) * e)))
            self.rising += float(np.sum(np.exp((2 - p) * e)))
        self.n_rows += len(labels)

    @property
    def mean(self) -> float:
        """The mean deviance of the predictions."""
        return 2 * self.total / self.n_rows if self.n_rows else math.nan

    @property
    def mean_of_constant(self) -> float:
        """That of the rate for which it is least."""
        p, a, b, n = self.power, self.falling, self.rising, self.n_rows
        if not (n and a > 0 and b > 0):
            return math.nan
        log_rate = math.log(a) - math.log(b)
        if p == 1:
            rest = -a * log_rate + math.exp(log_rate) * b
        elif p == 2:
            rest = n * log_rate + a * math.exp(-log_rate)
        else:
            rest = b * math.exp((2 - p) * log_rate) / (2 - p)
            rest -= a * math.exp((1 - p) * log_rate) / (1 - p)
        return 2 * (self.of_labels + rest) / n


def score_regression(
    source: Source, model: Any, resources: Resources, file: ModelFile, offsets: Any = None
) -> dict[str, Any]:
    """Return R2 and the root of the mean squared error on the labels of a file.

    The baseline of the error predicts the mean of the labels. For counts and amounts, the mean
    deviance, that of a constant rate times the exposures, and D2 come first, and bins of predicted
    means are last.
    """
    errors, n_rows, mean, spread = 0.0, 0, 0.0, 0.0
    has_deviance = getattr(model, "_link", None) == "log"
    deviance, own = Deviance(float(model._power) if has_deviance else 1.0), None
    calibration = CalibrationByMean()

    def predict(X: Any) -> NDArray[Any]:
        nonlocal own
        own = None if offsets is None else offsets.take(X.shape[0])
        found: NDArray[Any] = model.predict(X) if own is None else model.predict(X, offset=own)
        return found

    for predicted, labels in iter_predictions(source, predict, resources, file):
        if has_deviance:
            deviance.add(labels, predicted, own)
            calibration.add(predicted, labels)
        errors += float(np.sum((predicted - labels) ** 2))
        # Spreads of blocks about their own means are joined, so that nothing cancels.
        block_mean, n_block = float(labels.mean()), len(labels)
        apart = (block_mean - mean) ** 2 * n_rows * n_block / (n_rows + n_block)
        spread += float(np.sum((labels - block_mean) ** 2)) + apart
        mean += (block_mean - mean) * n_block / (n_rows + n_block)
        n_rows += n_block
    rows = n_rows or math.nan
    out: dict[str, Any] = {}
    if has_deviance:
        constant = deviance.mean_of_constant
        out["mean deviance"] = deviance.mean
        out["mean deviance of a constant rate"] = constant
        out["D2"] = 1 - deviance.mean / constant if constant > 0 else math.nan
    out |= {
        "R2": 1 - errors / spread if spread else math.nan,
        "RMSE": math.sqrt(errors / rows),
        "baseline RMSE (mean of the labels)": math.sqrt(spread / rows),
    }
    return out | ({"calibration": calibration.bins()} if has_deviance else {})


def score_classes(
    source: Source, model: Any, resources: Resources, file: ModelFile, offsets: Any = None
) -> dict[str, Any]:
    """Return accuracy and log loss on the labels of a file, and those without features.

    With two classes there are also the area under the ROC curve and, if the model has
    probabilities, the bins of those of the second class.
    """
    has_probabilities = hasattr(model, "predict_log_proba")
    method = model.predict_log_proba if has_probabilities else model.decision_function
    hits, loss, counts = 0, 0.0, np.zeros(len(model.classes_), np.int64)
    ranking, bins = Ranking(), CalibrationBins(*np.zeros((3, N_BINS)))
    for found, labels in iter_predictions(source, method, resources, file):
        true = _class_numbers(source, model, labels)
        counts += np.bincount(true, minlength=len(counts))
        if found.ndim == 1:
            predicted, scores = (found > 0).astype(np.intp), found
        else:
            predicted, scores = np.argmax(found, axis=1), found[:, 1] - found[:, 0]
        hits += int(np.count_nonzero(predicted == true))
        if has_probabilities:
            loss -= float(np.sum(found[np.arange(len(true)), true]))
        if len(counts) == 2:
            ranking.add(scores, true == 1)
            if has_probabilities:
                bins += CalibrationBins.of(np.exp(found[:, 1]), true == 1)
    n_rows = int(counts.sum())
    shares = counts / (n_rows or math.nan)
    own = shares[shares > 0]
    out: dict[str, Any] = {"accuracy": hits / (n_rows or math.nan)}
    if has_probabilities:
        out["log loss"] = loss / (n_rows or math.nan)
    out["baseline accuracy (most frequent class)"] = float(shares.max())
    if has_probabilities:
        out["baseline log loss (class frequencies)"] = float(-np.sum(own * np.log(own)))
    if len(counts) == 2:
        out["AUC"] = ranking.area
        out["positive class"] = model.classes_[1]
        if has_probabilities:
            out["calibration"] = bins
    return out


def _class_numbers(source: Source, model: Any, labels: Any) -> NDArray[np.intp]:
    """Return the numbers of the classes of labels; raise FileFault if one is not known."""
    if source.classes is not None:
        labels = source.classes[labels.astype(np.int64)]
    true: NDArray[np.intp] = np.searchsorted(model.classes_, labels)
    known = model.classes_[np.minimum(true, len(model.classes_) - 1)] == labels
    if not known.all():
        first = labels[~known][0]
        shown = f"{first:g}" if source.classes is None else repr(first)
        raise FileFault(
            f"{source.path} has the label {shown}, which the model was not fitted on: fit it on "
            "data with every label."
        )
    return true
