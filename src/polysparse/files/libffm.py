"""libffm text: svmlight text in which every value has a field, which is a group of features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from polysparse.files.field_table import FieldTable, labels_of
from polysparse.files.format import Format
from polysparse.files.pieces import CutFile, IndexRange
from polysparse.files.svmlight import SvmlightSource, TextPiece, cut_text


class LibffmSource(SvmlightSource):
    """A matrix in libffm text, plain or gzipped, and the field of each of its features.

    The fields are learned in the pass that finds the number of features. An index that is in two
    fields is refused: features are identified by index only.
    """

    has_fields = True

    @property
    def resident_bytes(self) -> int:  # type: ignore[override]
        return 16 * self.summary.n_features  # a field and a label of each feature

    @cached_property
    def groups(self) -> list[str | None] | None:
        found = self._scan.fields
        assert found is not None
        return labels_of(found, self.base, self.summary.n_features)


@dataclass(frozen=True)
class LibffmPiece(TextPiece):
    """The lines of libffm text that begin in a range of bytes."""

    has_fields = True

    def index_range(self) -> IndexRange:
        """Read the rows, and return which indices occur, each with its field."""
        n_rows, table = self._checked(self._learn)
        indices = np.flatnonzero(table.fields >= 0)
        lowest, highest = (int(indices[0]), int(indices[-1])) if len(indices) else (-1, -1)
        return IndexRange(n_rows, lowest, highest, (indices, table.fields[indices]))

    def _learn(self) -> tuple[int, FieldTable]:
        """Return the number of rows, and the field of each index."""
        table = FieldTable()
        return sum(len(block.indptr) - 1 for block in self._blocks(table)), table


class LibffmFormat(Format):
    """Text with a line for each row, of field:index:value, cut into ranges of bytes."""

    noun = "libffm text"
    source = LibffmSource
    endings = ".ffm", ".libffm"
    may_be_gzipped = True
    has_pieces = True

    def cut(self, path: Path, block_bytes: int) -> CutFile:
        """Cut a file into pieces of `block_bytes`; one that is gzipped is a single piece."""
        return cut_text(path, block_bytes, LibffmPiece)
