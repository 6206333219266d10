"""The first columns of a source, for a file with features that a vocabulary does not have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.files.source import Source, Summary
from polysparse.matrix.output import as_csr
from polysparse.tables.encoding import TableEncoding


class NarrowedSource(Source):
    """Another source without the values in its columns from `n_features` on, which are counted."""

    is_upper_bound = True  # row lengths are those of the whole source

    def __init__(self, source: Source, n_features: int) -> None:
        super().__init__(source.path, source.reading)
        self.source, self.n_features = source, n_features
        self.dropped_values = self.dropped_rows = 0  # in the latest pass

    @cached_property
    def summary(self) -> Summary:
        return replace(self.source.summary, n_features=self.n_features)

    @property
    def base(self) -> int | None:
        return self.source.base

    @property
    def reason_for_base(self) -> str:
        return self.source.reason_for_base

    @property
    def groups(self) -> list[str | None] | None:
        groups = self.source.groups
        return None if groups is None else groups[: self.n_features]

    @property
    def table(self) -> TableEncoding | None:
        return self.source.table

    @property
    def classes(self) -> NDArray[Any] | None:
        return self.source.classes

    @property
    def notes(self) -> list[str]:
        return self.source.notes

    @property
    def can_be_read_again(self) -> bool:
        return self.source.can_be_read_again

    @property
    def resident_bytes(self) -> int:  # type: ignore[override]
        return self.source.resident_bytes

    def identity(self) -> dict[str, Any]:
        return self.source.identity()

    def close(self) -> None:
        self.source.close()

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        self.dropped_values = self.dropped_rows = 0
        for block, labels in self.source.blocks(skip_rows, block_bytes):
            yield self._narrow(block), labels

    def _narrow(self, block: Any) -> Any:
        is_kept = block.indices < self.n_features
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_kept)])
        indptr = before[block.indptr].astype(block.indptr.dtype)
        lost = np.diff(block.indptr) - np.diff(indptr)
        self.dropped_values += int(lost.sum())
        self.dropped_rows += int(np.count_nonzero(lost))
        shape = block.shape[0], self.n_features
        kept = block.indices[is_kept], block.data[is_kept]
        narrow = as_csr(shape, indptr, *kept, is_array=True)
        narrow.has_sorted_indices = block.has_sorted_indices
        narrow.has_canonical_format = block.has_canonical_format
        return narrow
