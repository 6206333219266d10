"""Tables in Parquet and Arrow files, whose columns have types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from polysparse.extras import how_to_install
from polysparse.files.parquet_source import pyarrow_parquet
from polysparse.files.pieces import together
from polysparse.files.table_source import CELL_BYTES, Run, TableSource
from polysparse.tables.reading import CATEGORICAL_KINDS, arrow_kind


class TypedTableSource(TableSource):
    """A table in a file that has a schema."""

    @cached_property
    def schema(self) -> Any:
        """The names and types of columns."""
        raise NotImplementedError

    @cached_property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def types(self, wanted: dict[str, bool | None]) -> dict[str, Any]:
        """Return the types of the file; columns such as dates are text if they are categorical."""
        import pyarrow as pa

        found = {name: self.schema.field(name).type for name in wanted}
        for name, kind in found.items():
            if wanted[name] and arrow_kind(kind) not in (*CATEGORICAL_KINDS, "number"):
                if pa.types.is_nested(kind):
                    raise ValueError(
                        f"column {name!r} is {kind}, which cannot be read as text: leave it out "
                        f'with drop="{name}".'
                    )
                found[name] = pa.string()
        return found


def _with_types(batch: Any, types: dict[str, Any]) -> Any:
    """Return the columns of `types`, with these types."""
    import pyarrow as pa

    few = batch.select(list(types))
    if few.schema.types == list(types.values()):
        return few
    columns = [column.cast(kind) for column, kind in zip(few.columns, types.values(), strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=list(types))


def _rows_within(block_bytes: int, n_columns: int) -> int:
    return int(max(1, block_bytes // (CELL_BYTES * n_columns)))


class ParquetTableSource(TypedTableSource):
    """A table in Parquet."""

    @contextmanager
    def _open(self) -> Iterator[Any]:
        pq = pyarrow_parquet()
        with pq.ParquetFile(self.place, buffer_size=2**20, pre_buffer=False) as file:
            yield file

    @cached_property
    def schema(self) -> Any:
        with self._open() as file:
            return file.schema_arrow

    def batches(self, types: dict[str, Any], block_bytes: int) -> Iterator[Any]:
        n_rows = _rows_within(block_bytes, len(types))
        with self._open() as file:
            for batch in file.iter_batches(n_rows, self.part, columns=list(types)):
                yield _with_types(batch, types)

    def parts(self, block_bytes: int, run: Run) -> list[tuple[Any, int | None]]:
        """Cut the table between its row groups."""
        with self._open() as file:
            groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
        parts = together([group.total_byte_size for group in groups], block_bytes)
        return [(few, sum(groups[i].num_rows for i in few)) for few in parts]


@dataclass(frozen=True)
class Batches:
    """Some record batches of an Arrow file, read one at a time."""

    file: Any
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Any]:
        return map(self.file.get_batch, self.numbers)


class ArrowSource(TypedTableSource):
    """A table in Arrow's own format for files (Feather), or for streams."""

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """Open a file, and yield its schema and an iterator over its record batches."""
        try:
            import pyarrow as pa
        except ImportError:
            raise ImportError(f"Arrow files need pyarrow: {how_to_install('cli')}") from None

        with pa.memory_map(str(self.place)) as mapped:
            try:
                file = pa.ipc.open_file(mapped)
            except pa.ArrowInvalid:
                mapped.seek(0)
                stream = pa.ipc.open_stream(mapped)
                yield stream.schema, iter(stream)
                return
            numbers = range(file.num_record_batches) if self.part is None else self.part
            yield file.schema, Batches(file, numbers)

    @cached_property
    def schema(self) -> Any:
        with self._open() as (schema, _):
            return schema

    def batches(self, types: dict[str, Any], block_bytes: int) -> Iterator[Any]:
        n_rows = _rows_within(block_bytes, len(types))
        with self._open() as (_, batches):
            for batch in batches:
                few = _with_types(batch, types)
                for start in range(0, batch.num_rows, n_rows):
                    yield few.slice(start, n_rows)

    def parts(self, block_bytes: int, run: Run) -> list[tuple[Any, int | None]]:
        """Cut a file between its record batches, as if all had the same size.

        A stream, which has no list of them, is a single part.
        """
        with self._open() as (_, batches):
            n_batches = len(batches) if isinstance(batches, Batches) else 0
        if n_batches == 0:
            return super().parts(block_bytes, run)
        size = self.place.stat().st_size // n_batches
        return [(few, None) for few in together([size] * n_batches, block_bytes)]

    @property
    def row_note(self) -> str:
        return f" after {self.part[0]} record batches" if self.n_before is None else ""
