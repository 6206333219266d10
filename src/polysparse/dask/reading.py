"""read: files as dask arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask import delayed
from numpy.typing import NDArray
from scipy import sparse

from polysparse.files.errors import FileFault
from polysparse.files.field_table import FieldTable, labels_of
from polysparse.files.opening import cut_file
from polysparse.files.pieces import CutFile, IndexRange, Piece
from polysparse.tables.reading import is_table

BLOCK_BYTES = 2**25


def read(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    labels: bool = False,
    groups: bool = False,
    block_bytes: int = BLOCK_BYTES,
) -> Any:
    r"""Open files as a dask array whose blocks are sparse rows.

    Every block is read where it is needed, so all workers must see the files under the same path.

    Parameters
    ----------
    paths : path-like, or sequence of path-like
        Files in svmlight or libffm format or in Parquet, or directories that the command
        ``polysparse expand`` wrote. The rows of several files follow each other.
    n_features : int, optional
        Number of features. By default what the files state or, for text and Parquet files that do
        not state it, one more than the largest column.
    zero_based : bool, optional
        Whether svmlight and libffm indices count from 0. By default they do if index 0 occurs.
    labels : bool, default=False
        If True, also return the labels.
    groups : bool, default=False
        If True, also return the group of each feature: its field in libffm files.
    block_bytes : int, default=2**25
        Bytes of text, or of Parquet row groups, of a block. A larger row group is a block,
        and so are a part of a directory and a gzipped file.

    Returns
    -------
    X : dask array of shape (n_rows, n_features)
        The matrix. Its blocks are csr_arrays, with sorted and unique indices.
    labels : dask array of float64 of shape (n_rows,), or None
        The labels in the same blocks, or None if there are none. Only returned if `labels` is True.
    groups : list of (str or None), or None
        Label of each feature, such as "f3" for field 3, as the parameter `groups` of `expand` and
        of the models takes it; None for a feature that does not occur. None instead of a list if no
        file has fields. Only returned if `groups` is True.

    Notes
    -----
    Directories and Parquet files that polysparse wrote state everything. Other files are read once
    to find `n_features` and `zero_based`, in parallel, by Dask. For text files nothing but the
    first row is read if both are given; Dask does not know the number of rows then. The fields of
    libffm files are found in the same pass, which `groups` always needs.

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
        raise ValueError("paths is empty: give at least one file.")
    files = [cut_file(path, block_bytes) for path in some]
    has_labels = _has_labels(some, files) if labels else False
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
    X = _concatenated(
        (rows, (n, n_features), sparse.csr_array((0, 0), dtype=dtype)) for n, (rows, _) in blocks
    )
    more: list[Any] = []
    if labels:
        columns = ((y, (n,), np.empty(0)) for n, (_, y) in blocks)
        more.append(_concatenated(columns) if has_labels else None)
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


def _concatenated(blocks: Iterable[tuple[Any, tuple[float, ...], Any]]) -> Any:
    """Return an array of delayed blocks, given with their shapes and what they are made of."""
    arrays = [da.from_delayed(block, shape, meta=meta) for block, shape, meta in blocks]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)
