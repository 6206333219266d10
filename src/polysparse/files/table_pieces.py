"""Tables in pieces: rows of one or several files that any process can read, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse.files.errors import faults_of
from polysparse.files.opening import open_on_disk
from polysparse.files.pieces import require_unchanged, state_of
from polysparse.files.table_reading import TableReading
from polysparse.files.table_source import Run, TableSource
from polysparse.tables.encoding import TableEncoding
from polysparse.tables.learning import TableCounts
from polysparse.tables.reading import arrow_kind


@dataclass(frozen=True)
class TablePiece:
    """Some rows of a table."""

    source: TableSource  # which reads these rows alone
    state: tuple[int, int]  # of the file: its size and last change, which must stay the same
    n_rows: int | None  # None if it is not known yet

    @property
    def path(self) -> Path:
        """The file that has the rows."""
        return self.source.path

    def numbered(self, n_before: int | None, n_rows: int | None) -> TablePiece:
        """Return the piece with its number of rows, and of those before it in the file."""
        source = copy(self.source)
        source.n_before = n_before
        return replace(self, source=source, n_rows=n_rows)

    def count(self) -> TableCounts:
        """Read the rows, and count the levels of their columns."""
        require_unchanged(self.path, self.state)
        with faults_of(self.path):
            return self.source.count()[0]

    def read(self, encoding: TableEncoding) -> tuple[Any, NDArray[Any]]:
        """Read the rows as a csr_array, and their labels as they are; none without a target."""
        require_unchanged(self.path, self.state)
        source = self.source._with(encoding=encoding)
        blocks: list[Any] = [sparse.csr_array((0, encoding.n_features))]
        labels = [self.no_labels]
        with faults_of(self.path):
            for block, some in source.encode(encoding):
                blocks.append(block)
                labels += [] if some is None else [some]
        X = blocks[-1] if len(blocks) <= 2 else sparse.vstack(blocks, format="csr")
        return X, labels[-1] if len(labels) <= 2 else np.concatenate(labels)

    @property
    def no_labels(self) -> NDArray[Any]:
        """An empty array of the dtype of labels."""
        return self.source.no_labels


def cut_table(source: TableSource, block_bytes: int, run: Run) -> list[TablePiece]:
    """Cut a table into pieces of about `block_bytes`; `run` maps a function over ranges to read."""
    state = state_of(source.path)
    with faults_of(source.path):
        _ = source._mask, source.has_classes  # found once, for all pieces
        parts = source.parts(block_bytes, run)
    plain, pieces = source._with(encoding=None), []
    for part, n_rows in parts:
        few = copy(plain)
        few.part = part
        pieces.append(TablePiece(few, state, n_rows))
    return number_pieces(pieces, [piece.n_rows for piece in pieces])


def number_pieces(pieces: Sequence[TablePiece], n_rows: Sequence[int | None]) -> list[TablePiece]:
    """Return pieces with their numbers of rows; None if they are not known yet."""
    numbered: list[TablePiece] = []
    n_before: int | None = 0
    for piece, n in zip(pieces, n_rows, strict=True):
        if numbered and numbered[-1].path != piece.path:
            n_before = 0
        numbered.append(piece.numbered(n_before, n))
        n_before = None if n is None or n_before is None else n_before + n
    return numbered


# ------------------------------------------------------------------------------- several files


def open_tables(paths: Sequence[Any], how: TableReading) -> list[TableSource]:
    """Open files whose rows follow each other. FileFault is raised if their columns differ.

    The type of a column is that in the first file that has a value for it.
    """
    sources = [_open(path, how) for path in paths]
    if len(sources) > 1:
        _drop_where_it_is(sources)
        for each in sources[1:]:
            with faults_of(each.path):
                _follow(each, sources[0])
        _agree_on_types(sources)
    return sources


def _open(path: Any, how: TableReading) -> TableSource:
    source = open_on_disk(path, table=how)
    assert isinstance(source, TableSource)
    return source


def _drop_where_it_is(sources: list[TableSource]) -> None:
    """Let each file leave out the columns that it has, of those that some file has."""
    names = []
    for each in sources:
        with faults_of(each.path):
            names.append(set(each.names))
    some = set().union(*names)
    for i, each in enumerate(sources):
        drop = tuple(name for name in each.how.drop if name in names[i] or name not in some)
        sources[i] = each._with(drop=drop)


def _follow(source: TableSource, first: TableSource) -> None:
    """Let a file have the columns of the first one, in their order."""
    with faults_of(first.path):
        wanted = first._features
    own = source._features
    for name in wanted:
        if name not in own:
            raise ValueError(f"there is no column {name!r}, which {first.path} has.")
    for name in own:
        if name not in wanted:
            raise ValueError(
                f"there is a column {name!r}, which {first.path} does not have: leave it out with "
                f'drop="{name}".'
            )
    source._features = dict(wanted)


def _agree_on_types(sources: Sequence[TableSource]) -> None:
    """Let formats without types read the types of the first file that has values."""
    from pyarrow import types

    known: dict[str, Any] = {}
    where: dict[str, TableSource] = {}
    wanted = sources[0].wanted
    for each in sources:
        unknown = {name: wanted[name] for name in wanted if name not in known}
        with faults_of(each.path):
            found = each.types(unknown) if unknown else {}
        known |= {name: kind for name, kind in found.items() if not types.is_null(kind)}
        where |= {name: each for name in found if name in known}
    for each in sources:
        each.given_types = known
        with faults_of(each.path):
            for name, kind in each._types.items():
                if wanted[name] is None and name in known:
                    _require_same_kind(name, kind, known[name], where[name])


def _require_same_kind(name: str, own: Any, first: Any, source: TableSource) -> None:
    """Raise ValueError if a column is a number in one file, and something else in another."""
    kinds = arrow_kind(own), arrow_kind(first)
    if "object" not in kinds and (kinds[0] == "number") != (kinds[1] == "number"):
        raise ValueError(
            f"column {name!r} is {kinds[0]}, but {kinds[1]} in {source.path}: convert one of them, "
            f'or read both as levels with categorical="{name}".'
        )
