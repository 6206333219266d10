"""Files of predictions, a row each: .npy, .csv, or .txt with tabs, which is what pipes get, too."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from polysparse.files.archive import as_little
from polysparse.files.errors import UnknownExtension
from polysparse.files.npy import npy_header

SEPARATORS = {".txt": "\t", ".csv": ","}


def require_prediction_ending(path: Path) -> None:
    """Raise UnknownExtension if predictions cannot be written to a file of that name."""
    if path.suffix != ".npy" and path.suffix not in SEPARATORS:
        raise UnknownExtension(f"{path}: unknown ending. Known are .npy, .csv and .txt.")


class PredictionWriter:
    """Writes predictions to an open file, some at a time.

    `shape` is that of all predictions together: (n_rows,) or (n_rows, k). `heading` has the names
    of the columns, which .csv has in its first line.
    """

    def __init__(
        self,
        file: IO[bytes],
        ending: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        heading: Sequence[str],
    ) -> None:
        self.file, self.ending = file, ending
        self.dtype = dtype.newbyteorder("<")
        if ending == ".npy":
            file.write(npy_header(self.dtype, shape))
        elif ending == ".csv":
            self._write_text([heading])

    def write(self, predictions: NDArray[Any]) -> None:
        """Append predictions."""
        if self.ending == ".npy":
            self.file.write(as_little(predictions.astype(self.dtype, copy=False)).tobytes())
        else:
            self._write_text(predictions.reshape(len(predictions), -1).tolist())

    def _write_text(self, rows: Any) -> None:
        text = io.StringIO()
        separator = SEPARATORS[self.ending]
        csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
        self.file.write(text.getvalue().encode())
