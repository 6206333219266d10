"""Compare the predictions of a model with the labels of a file, in bounded memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.files.errors import FileFault
from polysparse.files.model_file import ModelFile
from polysparse.files.source import Source
from polysparse.models.calibration import CalibrationBins
from polysparse.stream.predict import iter_predictions, with_offsets
from polysparse.stream.resources import Resources

SHIFT = 12  # bits of a float32 that are dropped: scores that share the others count as equal
N_BUCKETS = 2 ** (32 - SHIFT)


class Ranking:
    """Scores of rows of two classes, for the area under the ROC curve.

    Scores are counted in buckets, in which they differ by less than one in 2,000.
    """

    def __init__(self) -> None:
        self.counts = np.zeros((2, N_BUCKETS), np.int64)

    def add(self, scores: NDArray[np.float64], is_second: NDArray[np.bool_]) -> None:
        """Count some rows."""
        with np.errstate(over="ignore"):
            bits = (scores + 0.0).astype(np.float32).view(np.int32).astype(np.int64)
        # Bits of negative numbers are mirrored, so that buckets increase with scores.
        buckets = np.where(bits >= 0, bits + 2**31, -1 - bits) >> SHIFT
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


def score_regression(
    source: Source, model: Any, resources: Resources, file: ModelFile, offsets: Any = None
) -> dict[str, Any]:
    """Return R2 and the root of the mean squared error on the labels of a file.

    The baseline predicts the mean of the labels.
    """
    errors, n_rows, mean, spread = 0.0, 0, 0.0, 0.0
    predict = model.predict if offsets is None else with_offsets(model, offsets)
    for predicted, labels in iter_predictions(source, predict, resources, file):
        errors += float(np.sum((predicted - labels) ** 2))
        # Spreads of blocks about their own means are joined, so that nothing cancels.
        block_mean, n_block = float(labels.mean()), len(labels)
        apart = (block_mean - mean) ** 2 * n_rows * n_block / (n_rows + n_block)
        spread += float(np.sum((labels - block_mean) ** 2)) + apart
        mean += (block_mean - mean) * n_block / (n_rows + n_block)
        n_rows += n_block
    rows = n_rows or math.nan
    return {
        "R2": 1 - errors / spread if spread else math.nan,
        "RMSE": math.sqrt(errors / rows),
        "baseline RMSE (mean of the labels)": math.sqrt(spread / rows),
    }


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
    ranking, bins = Ranking(), CalibrationBins(*np.zeros((3, 10)))
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
