"""Tables in files as dask arrays: levels are counted in a first pass, and rows encoded lazily."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask
from dask import delayed
from dask.base import tokenize
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from polysparse.dask.arrays import concatenated
from polysparse.estimators.table_encoder import TableEncoder
from polysparse.files.errors import FileFault
from polysparse.files.table_pieces import TablePiece, cut_table, number_pieces, open_tables
from polysparse.files.table_reading import TableReading
from polysparse.files.table_source import NO_ROWS
from polysparse.tables.encoding import TableEncoding
from polysparse.tables.learning import TableCounts, find_categorical
from polysparse.tables.reading import Table
from polysparse.tables.variables import CategoricalVariable

COUNTS_PER_TASK = 4  # that a task merges


def read_tables(
    paths: Sequence[Any], how: TableReading, encoder: TableEncoder, block_bytes: int
) -> tuple[Any, Any, TableEncoder]:
    """Return the encoded rows of tables, their labels or None, and the fitted encoder.

    `how` has the target and lists of columns; how levels become features is up to the encoder.
    """
    if encoder.__sklearn_is_fitted__():
        how = replace(how, encoding=encoder._encoding)
        _require_nothing_listed(how)
    else:
        how = replace(how, options=encoder._options())
        how = _with_categorical_features(how, encoder.categorical_features, paths)
    how.require_consistent()
    pieces = [
        piece
        for source in open_tables(paths, how)
        for piece in cut_table(source, block_bytes, _run)
    ]
    if how.encoding is None:
        counts, pieces = _learn(pieces)
        encoder = _fitted(encoder, counts, how)
    X, labels = _as_arrays(pieces, encoder._encoding)
    return X, None if how.target is None else labels, encoder


def _require_nothing_listed(how: TableReading) -> None:
    """Raise ValueError if columns are listed, though what they are has been learned already."""
    for name in ("categorical", "numeric", "drop"):
        if getattr(how, name):
            raise ValueError(
                f"{name}={list(getattr(how, name))} only applies while levels are learned, but "
                f"encoder is fitted: leave {name} out, or pass an encoder that is not fitted."
            )


def _with_categorical_features(how: TableReading, given: Any, paths: Sequence[Any]) -> TableReading:
    """Return `how` with the columns that an encoder lists as categorical; others are numbers."""
    if isinstance(given, str) and given == "from_dtype":
        return how
    if how.categorical or how.numeric:
        raise ValueError(
            "categorical and numeric only apply if an encoder finds categories by their types, but "
            f"its categorical_features is {given!r}: pass one or the other."
        )
    (first,) = open_tables(paths[:1], how)
    names = list(first.wanted)[: None if how.target is None else -1]
    mask = find_categorical(Table(names, 0, len(names)), given)
    listed = list(zip(names, mask, strict=True))
    return replace(
        how,
        categorical=tuple(name for name, is_categorical in listed if is_categorical),
        numeric=tuple(name for name, is_categorical in listed if not is_categorical),
    )


def _run(function: Callable[[Any], Any], items: Sequence[Any]) -> Sequence[Any]:
    """Map a function over a sequence, in parallel."""
    found: Sequence[Any] = dask.compute(*(delayed(function)(item) for item in items))
    return found


# -------------------------------------------------------------------------------------- first pass


@dataclass(frozen=True)
class Counted:
    """The counts of some pieces, and the number of rows of each.

    It is None for a piece with a fault, which is not counted.
    """

    counts: tuple[TableCounts, ...]  # at most one
    n_rows: tuple[int | None, ...]


def count_piece(piece: TablePiece) -> Counted:
    """Count the levels in a piece."""
    try:
        counts = piece.count()
    except FileFault:
        return Counted((), (None,))
    return Counted((counts,), (counts.n_rows,))


def merge(some: Sequence[Counted]) -> Counted:
    """Return the counts of pieces that follow each other. What is given is not changed."""
    counts = [one for each in some for one in each.counts]
    n_rows = tuple(n for each in some for n in each.n_rows)
    return Counted((TableCounts.sum(counts),) if counts else (), n_rows)


def _learn(pieces: list[TablePiece]) -> tuple[TableCounts, list[TablePiece]]:
    """Count the levels in all pieces; return the counts, and pieces whose rows are numbered.

    The message of a fault has the number of its row, which is known once the pieces before have
    been counted: then the first piece with a fault is read again.
    """
    parts = [delayed(count_piece)(piece) for piece in pieces]
    while len(parts) > 1:
        groups = [parts[i : i + COUNTS_PER_TASK] for i in range(0, len(parts), COUNTS_PER_TASK)]
        parts = [delayed(merge)(group) for group in groups]
    (found,) = dask.compute(parts[0])
    numbered = number_pieces(pieces, found.n_rows)
    if None in found.n_rows:
        at_fault = numbered[found.n_rows.index(None)]
        delayed(TablePiece.count)(at_fault).compute()
        raise FileFault(f"{at_fault.path} changed while it was read.")
    (counts,) = found.counts
    if counts.n_rows == 0:
        raise FileFault(f"{pieces[0].path}: {NO_ROWS}")
    return counts, numbered


def _fitted(encoder: TableEncoder, counts: TableCounts, how: TableReading) -> TableEncoder:
    """Return a fitted copy of an encoder. It has the categorical columns, if they were listed."""
    fitted = clone(encoder)
    fitted._set_encoding(TableEncoding.of(counts, how.options), counts)
    if how.categorical or how.numeric:
        variables = fitted._encoding.variables
        names = [each.name for each in variables if isinstance(each, CategoricalVariable)]
        fitted.set_params(categorical_features=names)
    return fitted  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------ blocks


def _as_arrays(pieces: Sequence[TablePiece], encoding: TableEncoding) -> tuple[Any, Any]:
    """Return dask arrays of the encoded rows and of the labels."""
    name = f"encoding-{tokenize(encoding.as_dict())}"
    same = delayed(encoding, name=name, traverse=False)  # once in the graph
    read_one = delayed(read_piece, pure=True, nout=2)
    blocks = [(piece, *read_one(piece, same)) for piece in pieces]
    empty = sparse.csr_array((0, 0), dtype=float)
    n_rows = [float("nan") if piece.n_rows is None else piece.n_rows for piece in pieces]
    X = concatenated(
        (rows, (n, encoding.n_features), empty)
        for n, (_, rows, _) in zip(n_rows, blocks, strict=True)
    )
    y = concatenated(
        (labels, (n,), piece.no_labels)
        for n, (piece, _, labels) in zip(n_rows, blocks, strict=True)
    )
    return X, y


def read_piece(piece: TablePiece, encoding: TableEncoding) -> tuple[Any, NDArray[Any]]:
    """Return the encoded rows of a piece, and their labels."""
    return piece.read(encoding)
