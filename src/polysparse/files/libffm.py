"""libffm text: svmlight text in which every value has a field, which is a group of features."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from polysparse.files.format import Format
from polysparse.files.svmlight import SvmlightSource


class LibffmSource(SvmlightSource):
    """A matrix in libffm text, plain or gzipped, and the field of each of its features.

    The fields are learnt in the pass that finds the number of features. An index that is in two
    fields is refused: features are identified by index only.
    """

    has_fields = True

    @property
    def resident_bytes(self) -> int:  # type: ignore[override]
        return 16 * self.summary.n_features  # a field and a label of each feature

    @cached_property
    def groups(self) -> list[str | None] | None:
        labels = np.full(self.summary.n_features, None, dtype=object)
        found = self._scan.fields
        assert found is not None
        fields = found[self.base :][: len(labels)]
        occurs = np.flatnonzero(fields >= 0)
        names, numbers = np.unique(fields[occurs], return_inverse=True)
        labels[occurs] = np.array([f"f{name}" for name in names], dtype=object)[numbers]
        return list(labels)


class LibffmFormat(Format):
    """Text with a line for each row, of field:index:value."""

    noun = "libffm text"
    source = LibffmSource
    endings = ".ffm", ".libffm"
    may_be_gzipped = True
