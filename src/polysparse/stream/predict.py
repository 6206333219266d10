"""Predict the rows of a file in bounded memory, and compare predictions with its labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.files.errors import FileFault
from polysparse.files.model_file import ModelFile
from polysparse.files.source import Source
from polysparse.machine import require_within
from polysparse.matrix.output import as_csr
from polysparse.stream.memory import BYTES_PER_CHOSEN, LEAST_READ, READ_SHARE
from polysparse.stream.resources import Resources
from polysparse.stream.rows import read_rows, require_unchanged

LEAST_MEMORY = READ_SHARE * LEAST_READ  # of reading in the smallest blocks


def memory_for_model(file: ModelFile) -> int:
    """Return the memory that a model takes while it predicts."""
    n_bytes = file.coefficients.nbytes + (0 if file.counts is None else file.counts.nbytes)
    return n_bytes + BYTES_PER_CHOSEN * file.columns.n_columns * (file.columns.kind == "chosen")


def iter_predictions(
    source: Source, predict: Callable[[Any], NDArray[Any]], resources: Resources, resident: int
) -> Iterator[tuple[NDArray[Any], Any]]:
    """Yield what `predict` makes of each block of rows, with its labels or None.

    MemoryError is raised if the `resident` bytes of a model leave no room for a block.
    """
    rest = resources.memory - source.resident_bytes - resident
    needed = source.resident_bytes + resident + LEAST_MEMORY
    require_within(resources.memory, needed, "the model and a few rows need")
    resources.progress.start(0, "predicting")
    n_rows = 0
    for x, labels in read_rows(source, 0, rest, np.dtype(np.float64), resources.n_jobs):
        if x.shape[0]:
            yield predict(as_csr(x.shape, x.indptr, x.indices, x.data, is_array=True)), labels
        n_rows += x.shape[0]
        resources.progress.advance_to(n_rows, "predicted")
    require_unchanged(source, n_rows)


def score_regression(
    source: Source, model: Any, resources: Resources, resident: int
) -> dict[str, float]:
    """Return R2 and the root of the mean squared error on the labels of a file."""
    errors, n_rows, mean, spread = 0.0, 0, 0.0, 0.0
    for predicted, labels in iter_predictions(source, model.predict, resources, resident):
        errors += float(np.sum((predicted - labels) ** 2))
        # Spreads of blocks about their own means are joined, so that nothing cancels.
        block_mean, n_block = float(labels.mean()), len(labels)
        apart = (block_mean - mean) ** 2 * n_rows * n_block / (n_rows + n_block)
        spread += float(np.sum((labels - block_mean) ** 2)) + apart
        mean += (block_mean - mean) * n_block / (n_rows + n_block)
        n_rows += n_block
    return {
        "R2": 1 - errors / spread if spread else math.nan,
        "RMSE": math.sqrt(errors / n_rows) if n_rows else math.nan,
    }


def score_classes(
    source: Source, model: Any, resources: Resources, resident: int
) -> dict[str, float]:
    """Return accuracy and log loss on the labels of a file."""
    hits, loss, n_rows = 0, 0.0, 0
    for logs, labels in iter_predictions(source, model.predict_log_proba, resources, resident):
        true = np.searchsorted(model.classes_, labels)
        known = model.classes_[np.minimum(true, len(model.classes_) - 1)] == labels
        if not known.all():
            raise FileFault(
                f"{source.path} has the label {labels[~known][0]:g}, which the model was not "
                "fitted on: fit it on data with every label."
            )
        hits += int(np.count_nonzero(np.argmax(logs, axis=1) == true))
        loss -= float(np.sum(logs[np.arange(len(true)), true]))
        n_rows += len(true)
    rows = n_rows or math.nan
    return {"accuracy": hits / rows, "log loss": loss / rows}
