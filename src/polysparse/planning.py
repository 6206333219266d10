"""What an expansion will be, before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from polysparse.basis import MonomialBasis
from polysparse.machine import available_if_less, format_bytes, format_count
from polysparse.simplex import count_monomials

# Above this, columns and stored values are numbered by int64. Lowered in tests.
MAX_INT32 = 2**31 - 1

# Stored values that can be counted in bytes by int64, at 16 bytes each and an offset beside it.
MAX_STORED = 2**58


@dataclass(frozen=True)
class ExpansionPlan:
    """Shape, stored values and bytes of an expansion. Made by `plan`; all numbers are exact.

    Attributes
    ----------
    basis : MonomialBasis
    n_rows : int
    dtype : numpy.dtype
        Of the values.
    row_lengths : tuple of (int, int), or None
        How many rows have how many stored values; None for dense input.

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

    basis: MonomialBasis
    n_rows: int
    dtype: np.dtype[Any]
    row_lengths: tuple[tuple[int, int], ...] | None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the result."""
        return self.n_rows, self.basis.n_columns

    @property
    def is_sparse(self) -> bool:
        """Whether the result is CSR; else it is a dense array."""
        return self.row_lengths is not None

    @cached_property
    def nnz_by_degree(self) -> dict[int, int]:
        """Stored values of each degree; degree 0 is the bias."""
        basis, lengths = self.basis, self.row_lengths
        if lengths is None:
            lengths = ((basis.n_features, self.n_rows),)
        stored = {0: self.n_rows} if basis.include_bias else {}
        for d in range(basis.lowest, basis.highest + 1):
            counts = [rows * count_monomials(n, d, basis.interaction_only) for n, rows in lengths]
            stored[d] = sum(counts)
        return stored

    @cached_property
    def nnz(self) -> int:
        """Stored values in all."""
        return sum(self.nnz_by_degree.values())

    @property
    def index_dtype(self) -> np.dtype[Any]:
        """Of indices and indptr: int32 if columns and stored values both fit."""
        return index_dtype_for(max(self.basis.n_columns, self.nnz))

    @property
    def bytes_per_value(self) -> int:
        """Of a stored value, with its index."""
        return self.dtype.itemsize + (self.index_dtype.itemsize if self.is_sparse else 0)

    @property
    def nbytes(self) -> int:
        """Bytes of the result's arrays."""
        offsets = (self.n_rows + 1) * self.index_dtype.itemsize if self.is_sparse else 0
        return self.nnz * self.bytes_per_value + offsets

    def require_fits(self, max_bytes: int | str | None) -> None:
        """Raise if the result cannot be indexed, or is larger than max_bytes allows."""
        self.require_countable()
        if max_bytes is None:
            return
        if max_bytes == "available":
            limit, which = available_if_less(self.nbytes), "are available"
        else:
            allowed = as_byte_limit(max_bytes)
            limit, which = allowed, f"are allowed (max_bytes={allowed})"
        if limit is None or self.nbytes <= limit:
            return
        raise MemoryError(
            f"The expansion of shape {self.shape[0]:,} x {self.shape[1]:,} would need "
            f"{format_bytes(self.nbytes)}; {format_bytes(limit)} {which}. "
            f"What fits instead: {'; '.join(self._ways_out(limit))}. "
            "polysparse.expand(..., max_bytes=None) tries all the same."
        )

    def require_countable(self) -> None:
        """Raise if columns or stored values are more than int64 can number."""
        self.basis.require_indexable()
        if self.nnz > MAX_STORED:
            raise MemoryError(
                f"The expansion would have {format_count(self.nnz)} stored values, more than can "
                "be counted: reduce the degree or set interaction_only=True."
            )

    def _ways_out(self, limit: int) -> list[str]:
        """What would fit instead, as far as it does."""
        basis, low, high = self.basis, self.basis.min_degree, self.basis.max_degree
        bias, interaction_only = basis.include_bias, basis.interaction_only

        def other(degree: Any, interaction_only: bool) -> ExpansionPlan:
            other_basis = MonomialBasis(
                basis.n_features, degree, interaction_only=interaction_only, include_bias=bias
            )
            return replace(self, basis=other_basis)

        smaller = {"float32 values": replace(self, dtype=np.dtype(np.float32))}
        smaller["interaction_only=True"] = other((low, high), True)
        if high > 1:
            smaller[f"degree={high - 1}"] = other((min(low, high - 1), high - 1), interaction_only)
        ways = [
            f"{name} would need {format_bytes(plan.nbytes)}"
            for name, plan in smaller.items()
            if plan.nbytes < self.nbytes and plan.nbytes <= limit
        ]
        if self.is_sparse:
            ways.append("iter_expand yields it in blocks of rows within a limit that you set")
        return ways or ["fewer rows at a time"]

    def __str__(self) -> str:
        rows = [("degree", "columns", "stored values", "bytes")]
        for d, stored in self.nnz_by_degree.items():
            columns = self.basis.count(self.basis.n_features, d)
            size = format_bytes(stored * self.bytes_per_value)
            rows.append((str(d), format_count(columns), format_count(stored), size))
        total = format_count(self.basis.n_columns), format_count(self.nnz)
        rows.append(("all", *total, format_bytes(self.nbytes)))
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            f"{row[0]:<{widths[0]}}  "
            + "  ".join(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
            for row in rows
        ]
        kind = "CSR" if self.is_sparse else "dense"
        indices = f", {self.index_dtype} indices" if self.is_sparse else ""
        shape = f"{self.shape[0]:,} x {format_count(self.shape[1])}"
        return "\n".join([*lines, f"{kind}, {shape}, {self.dtype} values{indices}"])


def index_dtype_for(n: int) -> np.dtype[Any]:
    """Narrowest dtype for indices up to n."""
    return np.dtype(np.int32 if n <= MAX_INT32 else np.int64)


def largest_index(index_dtype: np.dtype[Any]) -> int:
    """What index_dtype_for lets an index of that dtype reach."""
    return MAX_INT32 if index_dtype == np.int32 else 2**63 - 1


def as_byte_limit(max_bytes: Any) -> int:
    """Read a number of bytes."""
    if (
        isinstance(max_bytes, (int, np.integer))
        and not isinstance(max_bytes, bool)
        and max_bytes > 0
    ):
        return int(max_bytes)
    raise ValueError(f"max_bytes must be a positive number of bytes; got {max_bytes!r}.")
