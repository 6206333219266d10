"""The plan of an expansion: its shape and sizes, before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from polysparse import thresholds
from polysparse.basis.monomial_basis import MonomialBasis
from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import cpu
from polysparse.machine import format_bytes, format_count
from polysparse.matrix.canonical import Canonical, CanonicalCsr
from polysparse.matrix.output import index_dtype_for
from polysparse.matrix.row_profile import MAX_STORED, RowProfile, require_countable
from polysparse.notebook import html_table


@dataclass(frozen=True)
class ExpansionPlan:
    """Shape, stored values and bytes of an expansion, all exact. Returned by `plan`.

    Attributes
    ----------
    columns : AllColumns, ChosenColumns or HashedColumns
        The columns of the result.
    profile : RowProfile
        How many rows store how many values, on which all sizes depend.
    dtype : numpy.dtype
        Dtype of the values.
    is_sparse : bool
        Whether the result is CSR; otherwise it is a dense array.
    found : dict of int to int, or None
        Stored values of each degree, if the rows had to be expanded to count them.
    n_merged : int
        How many of these share a hashed column with another of the same row.

    Examples
    --------
    >>> import polysparse
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[0.0, 2.0, 3.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    >>> plan = polysparse.plan(X, degree=3)
    >>> plan.shape, plan.nnz, plan.nbytes
    ((2, 35), 14, 180)
    >>> print(plan)
    degree  columns  stored values      bytes
    0             1              2   24 bytes
    1             4              3   36 bytes
    2            10              4   48 bytes
    3            20              5   60 bytes
    all          35             14  180 bytes
    CSR, 2 x 35, float64 values, int32 indices
    """

    columns: ColumnSpace
    profile: RowProfile
    dtype: np.dtype[Any]
    is_sparse: bool = True
    found: dict[int, int] | None = None
    n_merged: int = 0

    @property
    def basis(self) -> MonomialBasis:
        """The monomials that are computed."""
        return self.columns.basis

    @property
    def n_rows(self) -> int:
        """Number of rows of the result."""
        return self.profile.n_rows

    @property
    def row_lengths(self) -> tuple[tuple[int, int], ...] | None:
        """Pairs of a number of stored values and how many rows have it; None for dense input."""
        return self.profile.lengths if self.is_sparse else None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the result."""
        return self.n_rows, self.columns.n_columns

    @property
    def is_upper_bound(self) -> bool:
        """Whether there may be fewer stored values, because the rows were not expanded yet."""
        is_exact = self.columns.is_exact and self.profile.is_exact(self.basis)
        return not is_exact and self.found is None

    def _with_found(self, below: dict[int, int], nnz: int) -> ExpansionPlan:
        """Return the exact plan, given the stored values in all and before each degree's end.

        `below` is empty if columns have no degree.
        """
        if not below:
            made = self.nnz_by_degree
            return replace(self, found=made, n_merged=sum(made.values()) - nnz)
        before = [0, *below.values()]
        found = {d: stored - before[i] for i, (d, stored) in enumerate(below.items())}
        return replace(self, found=found)

    @cached_property
    def nnz_by_degree(self) -> dict[int, int]:
        """Stored values of each degree, before hashed ones merge; degree 0 is the bias."""
        return self.profile.outputs_by_degree(self.basis) if self.found is None else self.found

    @cached_property
    def nnz(self) -> int:
        """Number of stored values."""
        nnz = sum(self.nnz_by_degree.values()) - self.n_merged
        return min(nnz, self.n_rows * self.columns.n_columns)

    @cached_property
    def index_dtype(self) -> np.dtype[Any]:
        """Dtype of indices and indptr: int32 if columns and stored values both fit."""
        return index_dtype_for(max(self.columns.n_columns, self.nnz))

    @property
    def bytes_per_value(self) -> int:
        """Bytes of one stored value, including its index."""
        return self.dtype.itemsize + (self.index_dtype.itemsize if self.is_sparse else 0)

    @cached_property
    def nbytes(self) -> int:
        """Total bytes of the arrays of the result."""
        offsets = (self.n_rows + 1) * self.index_dtype.itemsize if self.is_sparse else 0
        return self.nnz * self.bytes_per_value + offsets

    def _filling_bytes(self, n_threads: int) -> int:
        """Return the memory that threads need besides the result.

        Which chosen or hashed columns a row has is known only once it is made, so threads have rows
        and sums of their own. Dense rows with groups have indices while they are made.
        """
        if sum(self.nnz_by_degree.values()) > MAX_STORED:
            return 0
        if not self.is_sparse:
            return cpu.filling_dense_bytes(self.columns, self.n_rows, self.dtype.itemsize)
        rows = self.profile.lengths
        return cpu.filling_bytes(self.columns, rows, self.dtype.itemsize, n_threads)

    def _working_bytes(self, n_threads: int) -> int:
        """Return `_filling_bytes`, or 0 if that is too little to count against a limit."""
        is_in_place = self.columns.is_exact and self.is_sparse
        needed = 0 if is_in_place else self._filling_bytes(n_threads)
        return needed if needed > thresholds.WORKING_GRANTED else 0

    def _require_countable(self) -> None:
        """Raise if there are more columns or stored values than can be numbered.

        ValueError is raised for columns, MemoryError for stored values.
        """
        self.columns.require_indexable()
        require_countable(sum(self.nnz_by_degree.values()))

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """Return the table of degrees: a heading, a row for each degree, and their sum."""
        rows = [("degree", "columns", "stored values", "bytes")]
        ends, before = self.columns.degree_ends, 0
        for d, stored in self.nnz_by_degree.items():
            columns = format_count(ends[d] - before) if ends else ""
            before = ends.get(d, 0)
            size = format_bytes(stored * self.bytes_per_value)
            rows.append((str(d), columns, format_count(stored), size))
        total = format_count(self.columns.n_columns), format_count(self.nnz)
        return [*rows, ("all", *total, format_bytes(self.nbytes))]

    def _remarks(self) -> list[str]:
        """Return lines on the result as a whole."""
        kind = "CSR" if self.is_sparse else "dense"
        indices = f", {self.index_dtype} indices" if self.is_sparse else ""
        shape = f"{self.shape[0]:,} x {format_count(self.shape[1])}"
        lines = [f"{kind}, {shape}, {self.dtype} values{indices}"]
        if self.n_merged:
            lines.append(f"{format_count(self.n_merged)} fall into the same column as another")
        if working := self._working_bytes(1):
            lines.append(f"{format_bytes(working)} of working memory per thread")
        return lines

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            f"{row[0]:<{widths[0]}}  "
            + "  ".join(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
            for row in rows
        ]
        return "\n".join(lines + self._remarks())

    def _repr_html_(self) -> str:
        heading, *rows = self._rows()
        cells = {name: [row[i] for row in rows] for i, name in enumerate(heading)}
        remarks = "".join(f"<div>{escape(line)}</div>" for line in self._remarks())
        return f"<div>{html_table(cells, ['degree'])}{remarks}</div>"


def plan_expansion(columns: ColumnSpace, x: Canonical) -> ExpansionPlan:
    """Plan the expansion of canonical input; an upper bound if the columns are not exact."""
    n_features = columns.basis.n_features
    if x.shape[1] != n_features:
        raise ValueError(f"X has {x.shape[1]} features; the basis has {n_features}.")
    profile = x.profile_for(columns.basis)
    return ExpansionPlan(columns, profile, x.dtype, isinstance(x, CanonicalCsr))
