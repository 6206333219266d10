"""Read Parquet files whose rows hold a list of indices and a list of values, with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse import thresholds
from polysparse.engine import cpu
from polysparse.extras import how_to_install
from polysparse.files.errors import FileFault, faults_of
from polysparse.files.source import Source, Summary
from polysparse.matrix.output import as_csr
from polysparse.matrix.row_profile import RowProfile

# Bytes in arrays: 8 each for an index and a value, and 8 each for a row's offset and label.
BYTES_PER_VALUE, BYTES_PER_ROW = 16, 16


def pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError(f"Parquet files need pyarrow: {how_to_install('cli')}") from None
    return pq


class ParquetSource(Source):
    """Parquet with list columns `indices` and `values`, and optionally a column `label`."""

    is_upper_bound = True

    @cached_property
    def file(self) -> Any:
        """The opened file, whose columns are those that are needed."""
        pq = pyarrow_parquet()
        with faults_of(self.path):
            file = pq.ParquetFile(self.place, buffer_size=2**20, pre_buffer=False)
            _require_sparse_rows(file.schema_arrow)
        return file

    def close(self) -> None:
        if "file" in self.__dict__:
            self.file.close()
        super().close()

    @cached_property
    def summary(self) -> Summary:
        profile, largest = RowProfile(), -1
        for indptr, indices, _, _ in self.batches(("indices",), self._rows_to_scan()):
            profile += RowProfile(cpu.count_row_lengths(indptr))
            largest = max(largest, int(indices.max(initial=-1)))
            if indices.min(initial=0) < 0:
                raise FileFault(f"{self.path}: index {indices.min()} is negative.")
        schema = self.file.schema_arrow
        if self.given_features is None:
            self.given_features = self.stated_width(largest)
        return Summary(self.width(largest), profile, "label" in schema.names)

    def stated_width(self, largest: int = -1) -> int | None:
        """Return the n_features that the file itself states, or None; last columns may be empty."""
        text = (self.file.schema_arrow.metadata or {}).get(b"polysparse:n_features")
        if text is None:
            return None
        if not text.isdigit() or len(text) > 19 or int(text) <= largest:
            raise FileFault(
                f"{self.path}: its metadata polysparse:n_features is {ascii(text)[1:]}, "
                f"but must be a number above the largest index, {largest}."
            )
        return int(text)

    def _rows_to_scan(self) -> int:
        """Return how many rows take about SCAN_BYTES of indices, by the group of longest rows."""
        with faults_of(self.path):
            metadata = self.file.metadata
            groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            where = [c.path.split(".")[0] for c in self.file.schema].index("indices")
            means = [g.column(where).num_values // max(g.num_rows, 1) for g in groups]
        return max(1, thresholds.SCAN_BYTES // (8 * int(max([0, *means])) + 8))

    def blocks(self, skip_rows: int, block_bytes: int) -> Iterator[tuple[Any, Any]]:
        summary = self.summary
        columns = ("indices", "values", *(["label"] if summary.has_labels else []))
        n_together = rows_within(block_bytes, summary.profile)
        for indptr, indices, values, labels in self.batches(columns, n_together):
            n_rows = len(indptr) - 1
            if skip_rows >= n_rows:
                skip_rows -= n_rows
                continue
            block = as_csr((n_rows, summary.n_features), indptr, indices, values, is_array=True)
            block.has_canonical_format = block.has_sorted_indices = False
            if skip_rows:
                block, labels = block[skip_rows:], None if labels is None else labels[skip_rows:]
            yield block, labels
            skip_rows = 0

    def batches(
        self, columns: tuple[str, ...], n_rows: int, row_groups: Sequence[int] | None = None
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any] | None]]:
        """Yield offsets, indices, values and labels of at most `n_rows` rows at a time.

        Values are empty and labels are None if `columns` does not name them.
        """
        with faults_of(self.path):
            how = {"batch_size": n_rows, "columns": list(columns), "row_groups": row_groups}
            for batch in self.file.iter_batches(**how):
                indptr, indices = _as_rows(batch, "indices", np.int64)
                values, labels = indices[:0], None
                if "values" in columns:
                    own, values = _as_rows(batch, "values", np.float64)
                    if not np.array_equal(own, indptr):
                        raise ValueError("a row has different numbers of indices and values.")
                if "label" in columns:
                    labels = _as_numbers(batch.column("label"), "label", np.float64).astype(float)
                yield indptr, indices, values, labels


def _require_sparse_rows(schema: Any) -> None:
    """Raise ValueError if columns are missing, or do not clearly hold the numbers needed."""
    from pyarrow import types

    def is_number(kind: Any) -> bool:
        tests = types.is_integer, types.is_floating, types.is_decimal, types.is_boolean
        return any(test(kind) for test in tests)

    def is_list(kind: Any) -> bool:  # list views exist since pyarrow 16
        names = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
        return any(getattr(types, f"is_{name}", lambda _: False)(kind) for name in names)

    for name in {"indices", "values", "label"} & set(schema.names):
        if schema.names.count(name) > 1:
            raise ValueError(f"has several columns {name!r}.")
    for name, is_right in (("indices", types.is_integer), ("values", is_number)):
        kind = schema.field(name).type if name in schema.names else None
        if kind is None or not is_list(kind):
            raise ValueError(f"has no list column {name!r}; it has {schema.names}.")
        if not is_right(kind.value_type):
            needed = "integers" if name == "indices" else "numbers"
            raise ValueError(f"column {name!r} is {kind}: lists of {needed} are needed.")
    if "label" in schema.names and not is_number(schema.field("label").type):
        raise ValueError(f"column 'label' is {schema.field('label').type}: numbers are needed.")


def _as_rows(batch: Any, name: str, dtype: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return offsets and numbers of a list column, of any kind of list."""
    from pyarrow import compute

    lists = batch.column(name)
    if lists.null_count:
        raise ValueError(f"column {name!r}: a row is null.")
    indptr = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(compute.list_value_length(lists), out=indptr[1:])
    return indptr, _as_numbers(lists.flatten(), name, dtype)


def _as_numbers(array: Any, name: str, dtype: Any) -> NDArray[Any]:
    """Convert numbers to `dtype` exactly; float32 is left as it is."""
    import pyarrow as pa

    if array.null_count:
        raise ValueError(f"column {name!r}: a number is null.")
    if pa.types.is_float32(array.type):
        return np.asarray(array)
    try:
        return np.asarray(array.cast(pa.from_numpy_dtype(dtype)))
    except pa.ArrowInvalid as error:  # a number that `dtype` cannot represent
        raise ValueError(f"column {name!r}: {error}") from None


def rows_within(n_bytes: int, profile: RowProfile) -> int:
    """Return how many rows fit into n_bytes of arrays, whichever rows they are; at least one."""
    n_rows = 0
    for length, count in reversed(profile.lengths):
        each = length * BYTES_PER_VALUE + BYTES_PER_ROW
        fitting = min(count, n_bytes // each)
        n_rows, n_bytes = n_rows + fitting, n_bytes - fitting * each
        if fitting < count:
            break
    return max(1, n_rows)
