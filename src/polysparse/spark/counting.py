"""In how many rows each column of an expansion occurs, counted where the rows are.

Every partition counts its rows and divides its columns, by their remainders, into parts. The
counts of a part are then added by one worker, which sends only columns that may be kept to the
driver, where the final choice is made. Counts are integers, so the order of sums does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.observation.tally import ColumnTally
from polysparse.spark.schema import column_named
from polysparse.spark.vectors import VectorFault, as_rows, unless_fault

N_PARTS = 64  # more than are merged at once: Spark coalesces small ones

Limits = tuple[int, int | None]  # min_count and max_columns
ColumnCounts = tuple[NDArray[np.int64], NDArray[np.int64]]  # increasing columns, their counts


def choose_columns(
    dataset: DataFrame, column: str, basis: MonomialBasis, limits: Limits
) -> ColumnCounts:
    """Return the columns that occur in enough rows, and their counts."""
    lists = "columns array<bigint>, counts array<bigint>"
    counted = dataset.select(column_named(column)).mapInArrow(
        partial(count_rows, column, basis), f"{lists}, part int, fault string"
    )
    part = unless_fault(F.col("part"), F.col("fault")).alias("part")
    parts = counted.select("columns", "counts", part).repartition("part")
    chosen = parts.mapInArrow(partial(choose_in_parts, basis, limits), lists)
    return _tally_of(basis, chosen.toArrow().to_batches()).chosen(*limits)


def count_rows(
    column: str, basis: MonomialBasis, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the counts of a partition, a part at a time, on a worker."""
    tally = ColumnTally(basis)
    try:
        for batch in batches:
            tally.count(as_rows(batch.column(0), column, basis.n_features))
    except VectorFault as fault:
        nothing = np.empty(0, np.int64)
        yield _as_row((nothing, nothing), part=0, fault=str(fault))
        return
    columns, counts = tally.chosen(1, None)
    parts = (columns % N_PARTS).astype(np.uint8)
    order = np.argsort(parts, kind="stable")  # columns of a part stay increasing
    ends = np.cumsum(np.bincount(parts, minlength=N_PARTS))
    for part, own in enumerate(np.split(order, ends[:-1])):
        if len(own):
            yield _as_row((columns[own], counts[own]), part=part, fault=None)


def choose_in_parts(
    basis: MonomialBasis, limits: Limits, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield those columns of some parts that may be kept, on a worker."""
    yield _as_row(_tally_of(basis, batches).chosen(*limits))


def _as_row(counts: ColumnCounts, **more: int | str | None) -> pa.RecordBatch:
    kinds = {"part": pa.int32(), "fault": pa.string()}
    arrays = {
        name: pa.ListArray.from_arrays([0, len(each)], pa.array(each))
        for name, each in zip(("columns", "counts"), counts, strict=True)
    }
    arrays |= {name: pa.array([value], kinds[name]) for name, value in more.items()}
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _tally_of(basis: MonomialBasis, batches: Iterable[pa.RecordBatch]) -> ColumnTally:
    tally = ColumnTally(basis)
    for batch in batches:
        for columns, counts in zip(batch.column("columns"), batch.column("counts"), strict=True):
            tally.add(columns.values.to_numpy(), counts.values.to_numpy())
    return tally
