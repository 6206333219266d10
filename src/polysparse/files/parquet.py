"""The format Parquet: files whose rows hold a list of indices and a list of values."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.expansion.planning import ExpansionPlan
from polysparse.files.arrow_sources import ParquetTableSource
from polysparse.files.description import n_columns_in, parse_json
from polysparse.files.errors import faults_of
from polysparse.files.format import Format
from polysparse.files.parquet_source import ParquetSource, pyarrow_parquet
from polysparse.files.pieces import CutFile, Piece, RowArrays, joined, state_of, together
from polysparse.files.sink import FileSink
from polysparse.files.source import Reading, Source

# Bytes of the dictionary of a column, after which its values are written plainly. Columns of few
# different values stay small; for others, pyarrow's 1 MiB takes ten times that in memory, more time
# and more of the disk.
DICTIONARY_BYTES = 2**16


class ParquetSink(FileSink):
    """Parquet with list columns `indices` and `values`, and `label` if there are labels."""

    def __init__(self, path: Path, description: dict[str, Any], *, resume: bool = False) -> None:
        pq = pyarrow_parquet()
        import pyarrow as pa

        self.pa = pa
        index_dtype, dtype = (np.dtype(description[key]) for key in ("index_dtype", "dtype"))
        fields = [
            pa.field("indices", pa.large_list(pa.from_numpy_dtype(index_dtype))),
            pa.field("values", pa.large_list(pa.from_numpy_dtype(dtype))),
        ]
        if description["labels"]:
            fields.append(pa.field("label", pa.float64()))
        metadata = {
            "polysparse:n_features": str(n_columns_in(description)),
            "polysparse:description": json.dumps(description),
        }
        self.schema = pa.schema(fields, metadata=metadata)
        super().__init__(path, description)
        self.writer: Any = None
        try:
            options = {"dictionary_pagesize_limit": DICTIONARY_BYTES}
            self.writer = pq.ParquetWriter(self.file, self.schema, **options)
        except BaseException:
            self.discard()
            raise

    def write(self, block: Any, labels: NDArray[Any] | None) -> None:
        pa, offsets = self.pa, self.pa.array(block.indptr.astype(np.int64))
        columns = [
            pa.LargeListArray.from_arrays(offsets, pa.array(array, type=field.type.value_type))
            for array, field in zip((block.indices, block.data), self.schema, strict=False)
        ]
        if labels is not None:
            columns.append(pa.array(labels))
        self.writer.write_table(pa.Table.from_arrays(columns, schema=self.schema))
        pa.default_memory_pool().release_unused()  # it would keep what it used for every column
        self.n_rows += block.shape[0]

    def seal(self) -> None:
        self.writer.close()
        super().seal()

    def discard(self) -> None:
        if self.writer is not None:
            with suppress(Exception):  # closing writes a footer, which may not fit on the disk
                self.writer.close()
            self.writer.is_open = False  # or its destructor would try to close it again
        super().discard()


@dataclass(frozen=True)
class ParquetPiece(Piece):
    """Some row groups of a Parquet file."""

    groups: tuple[int, ...]
    columns: tuple[str, ...]

    def rows(self) -> RowArrays:
        with closing(ParquetSource(self.path, Reading())) as source:
            return joined(source.batches(self.columns, max(1, self.n_rows or 0), self.groups))


class ParquetFormat(Format):
    """Parquet with list columns, cut between its row groups."""

    noun = "Parquet"
    source, sink = ParquetSource, ParquetSink
    endings = written_endings = (".parquet",)
    has_pieces = True
    has_description = True

    def source_of(self, path: Path) -> type[Source]:
        """Return what reads sparse rows, if there are columns of that name, or a table."""
        from pyarrow import types

        with faults_of(path):
            schema = pyarrow_parquet().read_schema(path)
        kinds = [field.type for field in schema if field.name in ("indices", "values")]
        is_sparse = "indices" in schema.names or any(map(types.is_nested, kinds))
        return ParquetSource if is_sparse else ParquetTableSource

    def least_bytes(self, plan: ExpansionPlan, *, has_labels: bool) -> int:
        return 0  # files are compressed

    def read_description(self, path: Path) -> Any:
        """Return what polysparse wrote into the metadata of the schema, or None."""
        text = (pyarrow_parquet().read_schema(path).metadata or {}).get(b"polysparse:description")
        return parse_json(text) if text else None

    def cut(self, path: Path, block_bytes: int) -> CutFile:
        state = state_of(path)
        with closing(ParquetSource(path, Reading())) as source:
            schema, metadata = source.file.schema_arrow, source.file.metadata
            with faults_of(path):
                n_features = source.stated_width()
        has_labels = "label" in schema.names
        columns = ("indices", "values", *(["label"] if has_labels else []))
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        pieces = [
            ParquetPiece(path, state, sum(groups[i].num_rows for i in few), few, columns)
            for few in together([group.total_byte_size for group in groups], block_bytes)
        ]
        is_single = str(schema.field("values").type.value_type) == "float"
        dtype = np.dtype(np.float32 if is_single else np.float64)
        return CutFile(pieces, n_features, dtype, has_labels)
