"""read: files as dask arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import dask
import numpy as np
from dask import delayed
from numpy.typing import NDArray
from scipy import sparse

from polysparse.dask.arrays import concatenated
from polysparse.dask.table_reading import read_tables
from polysparse.estimators.table_encoder import TableEncoder
from polysparse.files.errors import FileFault
from polysparse.files.field_table import FieldTable, labels_of
from polysparse.files.opening import cut_file
from polysparse.files.opening import is_table as is_table_file
from polysparse.files.pieces import CutFile, IndexRange, Piece
from polysparse.files.table_reading import TableReading
from polysparse.tables.reading import is_table

BLOCK_BYTES = 2**25


def read(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    labels: bool = False,
    groups: bool = False,
    target: str | None = None,
    categorical: str | Sequence[str] | None = None,
    numeric: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None,
    encoder: TableEncoder | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Any:
    r"""Open files as a dask array whose blocks are sparse rows.

    Every block is read where it is needed, so all workers must see the files under the same path.

    Parameters
    ----------
    paths : path-like, or sequence of path-like
        Files in svmlight or libffm format or in Parquet, or directories that the command
        ``polysparse expand`` wrote; or tables in CSV, Parquet or Arrow files. The rows of several
        files follow each other.
    n_features : int, optional
        Number of features. By default what the files state or, for text and Parquet files that do
        not state it, one more than the largest column. Not for tables.
    zero_based : bool, optional
        Whether svmlight and libffm indices count from 0. By default they do if index 0 occurs.
    labels : bool, default=False
        If True, also return the labels. `target` implies it.
    groups : bool, default=False
        If True, also return the group of each feature: its field in libffm files, or its variable
        in tables.
    target : str, optional
        For tables: the column with the labels.
    categorical : str or sequence of str, optional
        For tables: columns that are categorical, even if they look like numbers. Text and booleans
        always are.
    numeric : str or sequence of str, optional
        For tables: columns that must be numbers.
    drop : str or sequence of str, optional
        For tables: columns to leave out.
    encoder : TableEncoder, optional
        For tables: how they are encoded. An encoder that is not fitted is copied, and the copy
        learns the levels; by default this is ``TableEncoder()``. One that is fitted is used as it
        is, for example for test data.
    block_bytes : int, default=2**25
        Bytes of text, of Parquet row groups or of Arrow record batches of a block. A larger row
        group or batch is a block, and so are a part of a directory, a gzipped file and an Arrow
        stream.

    Returns
    -------
    X : dask array of shape (n_rows, n_features)
        The matrix. Its blocks are csr_arrays, with sorted and unique indices.
    labels : dask array of shape (n_rows,), or None
        The labels in the same blocks, or None if there are none. They are float64; the target of a
        table may also have booleans, or strings as objects. Only returned if `labels` is True or
        `target` is given.
    groups : list of (str or None), or None
        Label of each feature, such as "f3" for field 3, as the parameter `groups` of `expand` and
        of the models takes it; None for a feature that does not occur. None instead of a list if no
        file has fields. Only returned if `groups` is True.
    encoder : TableEncoder
        The fitted encoder. Pass it as `categorical_features` to what is fitted to X, so that terms
        have names and DataFrames can be predicted, and as `encoder` to read test data. Only
        returned for tables.

    Notes
    -----
    Directories and Parquet files that polysparse wrote state everything. Other files are read once
    to find `n_features` and `zero_based`, in parallel, by Dask. For text files nothing but the
    first row is read if both are given; Dask does not know the number of rows then. The fields of
    libffm files are found in the same pass, which `groups` always needs.

    Tables are read once to learn their levels, unless `encoder` is fitted: then Dask does not know
    the number of rows of CSV and Arrow files. CSV files of several blocks are also read to find
    where rows begin, because quoted cells may have line ends. The type of a CSV column is inferred
    from the first MiB of the first file that has a value for it.

    A file that changes afterwards is refused when a block of it is read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import polysparse.dask
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "clicks.svmlight")
    ...     n_bytes = path.write_text("1 1:2 3:4\n0 2:0.5\n")
    ...     X, y = polysparse.dask.read(path, labels=True)
    ...     X.shape, y.compute()
    ...     polysparse.expand(X, interaction_only=True).compute().toarray()
    ((2, 3), array([1., 0.]))
    array([[1. , 2. , 0. , 4. , 0. , 8. , 0. ],
           [1. , 0. , 0.5, 0. , 0. , 0. , 0. ]])

    A table:

    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     n_bytes = path.write_text("job,hours,income\nsales,40,high\ncraft,20,low\n")
    ...     X, y, encoder = polysparse.dask.read(path, target="income")
    ...     y.compute()
    ...     model = polysparse.PolynomialLogisticRegression(categorical_features=encoder).fit(X, y)
    array(['high', 'low'], dtype=object)
    >>> encoder.get_feature_names_out()
    array(['job=craft', 'job=sales', 'hours'], dtype=object)
    >>> sorted(model.importance()["name"])
    ['hours', 'hours^2', 'job', 'job:hours']
    """
    if block_bytes < 1:
        raise ValueError(f"block_bytes must be at least 1; got {block_bytes}.")
    if is_table(paths):
        raise TypeError(
            "paths must be files, but it is a table. Encode it with TableEncoder, and make blocks "
            "with dask.array.from_array, if it has to be on Dask."
        )
    some = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not some:
        raise ValueError("paths is empty: pass at least one file.")
    if not _are_tables(some):
        _require_absent(
            {
                **{"target": target, "categorical": categorical, "numeric": numeric},
                **{"drop": drop, "encoder": encoder},
            },
            f"to tables, but {some[0]} is not one",
        )
        return _read_sparse(some, n_features, zero_based, labels, groups, block_bytes)
    _require_absent(
        {"n_features": n_features, "zero_based": zero_based},
        f"to files of sparse rows, but {some[0]} is a table",
    )
    if labels and target is None:
        raise ValueError("labels=True needs target for a table: the column with the labels.")
    if encoder is not None and not isinstance(encoder, TableEncoder):
        raise TypeError(f"encoder must be a TableEncoder; got {type(encoder).__name__}.")
    how = TableReading(target, _as_names(categorical), _as_names(numeric), _as_names(drop))
    X, y, fitted = read_tables(some, how, encoder or TableEncoder(), block_bytes)
    more = [y] * (target is not None) + [fitted.groups_] * groups
    return (X, *more, fitted)


def _as_names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of columns."""
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _are_tables(paths: Sequence[Any]) -> bool:
    """Return whether files are tables; raise ValueError if only some of them are."""
    found = [is_table_file(str(path)) for path in paths]
    if any(found) and not all(found):
        raise ValueError(
            f"{paths[found.index(True)]} is a table, but {paths[found.index(False)]} is not: read "
            "them separately."
        )
    return all(found)


def _require_absent(arguments: dict[str, Any], reason: str) -> None:
    """Raise ValueError if an argument is given that does not apply to the files."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"{name} only applies {reason}: leave it out.")


def _read_sparse(
    paths: Sequence[Any],
    n_features: int | None,
    zero_based: bool | None,
    labels: bool,
    groups: bool,
    block_bytes: int,
) -> Any:
    """Read files of sparse rows; arguments and results are those of `read`."""
    files = [cut_file(path, block_bytes) for path in paths]
    has_labels = _has_labels(paths, files) if labels else False
    extents = _look_through(files, n_features, zero_based, groups)
    table = _fields_of(extents)
    base = _base_of(extents) if zero_based is None else int(not zero_based)
    if n_features is None:
        n_features = _width_of(files, extents, base)
    dtype = np.result_type(*(file.dtype for file in files))
    read_one = delayed(_read_piece, pure=True, nout=2)
    blocks = [
        (_n_rows_of(piece, extents), read_one(piece, n_features, base, dtype))
        for file in files
        for piece in file.pieces
    ]
    X = concatenated(
        (rows, (n, n_features), sparse.csr_array((0, 0), dtype=dtype)) for n, (rows, _) in blocks
    )
    more: list[Any] = []
    if labels:
        columns = ((y, (n,), np.empty(0)) for n, (_, y) in blocks)
        more.append(concatenated(columns) if has_labels else None)
    if groups:
        more.append(None if table is None else labels_of(table.fields, base, n_features))
    return (X, *more) if more else X


def _has_labels(paths: Sequence[Any], files: Sequence[CutFile]) -> bool:
    """Return whether there are labels; raise ValueError if only some of the files have them."""
    with_labels = [file.has_labels for file in files]
    if any(with_labels) and not all(with_labels):
        raise ValueError(
            f"{paths[with_labels.index(True)]} has labels, but "
            f"{paths[with_labels.index(False)]} has none: labels=True needs them in all files."
        )
    return all(with_labels)


def _look_through(
    files: Sequence[CutFile], n_features: int | None, zero_based: bool | None, groups: bool
) -> dict[Piece, IndexRange]:
    """Read the pieces of which something must be known that is neither given nor stated."""
    unknown = [
        piece
        for file in files
        for piece in file.pieces
        if (n_features is None and file.n_features is None)
        or (zero_based is None and piece.may_count_from_1)
        or (groups and piece.has_fields)
    ]
    return dict(zip(unknown, dask.compute(*(delayed(_extent_of)(p) for p in unknown)), strict=True))


def _extent_of(piece: Piece) -> IndexRange:
    return piece.index_range()


def _fields_of(extents: dict[Piece, IndexRange]) -> FieldTable | None:
    """Return the field of each index in the pieces that were read, or None if they have none.

    FileFault is raised if an index is in two fields.
    """
    table = None
    for piece, extent in extents.items():
        if extent.fields is None:
            continue
        table = table or FieldTable()
        indices, fields = extent.fields
        where = table.add(indices, fields)
        if where is not None:
            index, field = int(indices[where]), int(fields[where])
            raise FileFault(f"{piece.path}: {table.describe_conflict(index, field)}")
    return table


def _base_of(extents: dict[Piece, IndexRange]) -> int:
    """Return the number of the first column in files that leave it open."""
    return int(all(e.lowest != 0 for piece, e in extents.items() if piece.may_count_from_1))


def _width_of(files: Sequence[CutFile], extents: dict[Piece, IndexRange], base: int) -> int:
    """Return the number of features that all files need."""
    stated = [file.n_features or 0 for file in files]
    found = [e.highest + 1 - base * piece.may_count_from_1 for piece, e in extents.items()]
    return max(stated + found)


def _n_rows_of(piece: Piece, extents: dict[Piece, IndexRange]) -> float:
    """Return the number of rows of a piece, or NaN if it is not known."""
    n_rows = extents[piece].n_rows if piece in extents else piece.n_rows
    return float("nan") if n_rows is None else n_rows


def _read_piece(
    piece: Piece, n_features: int, base: int, dtype: np.dtype[Any]
) -> tuple[Any, NDArray[np.float64]]:
    """Return the rows and the labels of a piece; without labels or rows, no labels."""
    X, labels = piece.read(n_features, base, dtype)
    return X, np.empty(0) if labels is None else labels
