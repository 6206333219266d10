"""Predict the rows of a file in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.files.archive import JSON_FACTOR
from polysparse.files.model_file import ModelFile
from polysparse.files.online_file import OnlineFile
from polysparse.files.source import Source
from polysparse.machine import require_within
from polysparse.matrix.output import as_csr
from polysparse.stream.memory import BYTES_PER_CHOSEN, LEAST_READ, READ_SHARE
from polysparse.stream.resources import Resources
from polysparse.stream.rows import read_rows, require_unchanged

LEAST_MEMORY = READ_SHARE * LEAST_READ  # of reading in the smallest blocks

# A quarter of the memory is for predictions. A number takes up to so many bytes until it is written
# as text, and a class so many times its own.
PREDICT_SHARE, BYTES_PER_NUMBER, CLASS_COPIES = 4, 128, 4


def memory_for_model(file: ModelFile | OnlineFile) -> int:
    """Return the memory that a model takes while it predicts."""
    n_bytes = file.nbytes + JSON_FACTOR * len(json.dumps(file.more))  # names, classes, parameters
    return n_bytes + BYTES_PER_CHOSEN * file.columns.n_columns * (file.columns.kind == "chosen")


def iter_predictions(
    source: Source,
    predict: Callable[[Any], NDArray[Any]],
    resources: Resources,
    file: ModelFile | OnlineFile,
    class_bytes: int = 8,
) -> Iterator[tuple[NDArray[Any], Any]]:
    """Yield what `predict`, of the model in a file, makes of some rows, with their labels or None.

    `class_bytes` is the size of a predicted class. MemoryError is raised if the model leaves no
    room for a row.
    """
    resident = source.resident_bytes + memory_for_model(file)
    row_bytes = BYTES_PER_NUMBER * file.n_scores + CLASS_COPIES * class_bytes
    needed = resident + LEAST_MEMORY + PREDICT_SHARE * row_bytes
    require_within(resources.limit, needed, "the model and a few rows need")
    rest = max(resources.memory, needed) - resident
    most_rows = rest // PREDICT_SHARE // row_bytes
    resources.progress.start(0, "predicting")
    n_rows = 0
    for x, labels in read_rows(source, 0, rest, np.dtype(np.float64), resources.n_jobs):
        for start in range(0, x.shape[0], most_rows):
            rows = slice(start, min(start + most_rows, x.shape[0]))
            few = x.rows(rows)
            predicted = predict(as_csr(few.shape, few.indptr, few.indices, few.data, is_array=True))
            yield predicted, None if labels is None else labels[rows]
            resources.progress.advance_to(n_rows + rows.stop, "predicted")
        n_rows += x.shape[0]
    require_unchanged(source, n_rows)


def with_offsets(model: Any, offsets: Any) -> Callable[[Any], NDArray[Any]]:
    """Return a function that predicts rows one after the other, with the offsets of each.

    `offsets.take(n)` returns those of the next n rows.
    """
    return lambda X: model.predict(X, offset=offsets.take(X.shape[0]))
