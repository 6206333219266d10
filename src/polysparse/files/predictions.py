"""Files of predictions, a row each: .npy, .csv, or .txt with tabs, which is what pipes get, too."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polysparse.files.archive import as_little
from polysparse.files.errors import UnknownExtension
from polysparse.files.npy import npy_header
from polysparse.files.opening import enumerate_words


@dataclass(frozen=True)
class Outline:
    """What is known about all predictions before the first one."""

    shape: tuple[int, ...]  # (n_rows,) or (n_rows, k)
    dtype: np.dtype[Any]
    heading: Sequence[str]  # names of the columns
    texts: Sequence[str] = ()  # all classes that can be predicted, if they are texts


class PredictionSink:
    """Writes predictions to an open file, some at a time. Each subclass is a format."""

    def __init__(self, file: IO[bytes], outline: Outline) -> None:
        self.file, self.outline = file, outline
        self.begin()

    def begin(self) -> None:
        """Write what precedes the predictions; raise ValueError if they cannot be written."""

    def write(self, predictions: NDArray[Any]) -> None:
        """Append predictions."""
        raise NotImplementedError


class NpySink(PredictionSink):
    """A NumPy array."""

    def begin(self) -> None:
        self.dtype = self.outline.dtype.newbyteorder("<")
        self.file.write(npy_header(self.dtype, self.outline.shape))

    def write(self, predictions: NDArray[Any]) -> None:
        self.file.write(as_little(predictions.astype(self.dtype, copy=False)).tobytes())


class TextSink(PredictionSink):
    """A line for each row, with tabs."""

    separator: ClassVar[str] = "\t"
    quoting = csv.QUOTE_MINIMAL

    def begin(self) -> None:
        for text in self.outline.texts:
            if "\n" in text or "\r" in text:
                raise ValueError(
                    f"the class {text!r} has a line break, and text has a line for each row: write "
                    "predictions to a .csv or .npy file."
                )

    def write(self, predictions: NDArray[Any]) -> None:
        self._write_rows(predictions.reshape(len(predictions), -1).tolist())

    def _write_rows(self, rows: Any) -> None:
        text = io.StringIO()
        how: dict[str, Any] = {"delimiter": self.separator, "quoting": self.quoting}
        csv.writer(text, lineterminator="\n", **how).writerows(rows)
        self.file.write(text.getvalue().encode())


class CsvSink(TextSink):
    """Text with commas and a heading; what has commas, quotes or line breaks is quoted."""

    separator = ","

    def begin(self) -> None:
        if any("\r" in text for text in (*self.outline.heading, *self.outline.texts)):
            self.quoting = csv.QUOTE_NONNUMERIC  # Python before 3.13 would leave it unquoted
        self._write_rows([self.outline.heading])


SINKS: dict[str, type[PredictionSink]] = {".npy": NpySink, ".csv": CsvSink, ".txt": TextSink}


def prediction_sink(path: Path | None) -> type[PredictionSink]:
    """Return the format of a file of predictions, by its ending; None is standard output."""
    if path is None:
        return TextSink
    if path.suffix not in SINKS:
        raise UnknownExtension(f"{path}: unknown ending. Known are {enumerate_words(SINKS)}.")
    return SINKS[path.suffix]
