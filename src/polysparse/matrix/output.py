"""The arrays of a result: allocated once, then wrapped as a SciPy CSR matrix."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polysparse import thresholds


def index_dtype_for(n: int) -> np.dtype[Any]:
    """Return the narrowest dtype for indices up to n."""
    return np.dtype(np.int32 if n <= thresholds.MAX_INT32 else np.int64)


def largest_index(index_dtype: np.dtype[Any]) -> int:
    """Return the largest n for which `index_dtype_for` returns this dtype."""
    return thresholds.MAX_INT32 if index_dtype == np.int32 else 2**63 - 1


def allocate(shape: int | tuple[int, ...], dtype: np.dtype[Any], order: str = "C") -> NDArray[Any]:
    """Allocate an output array. All of them come from here, so that tests can poison them."""
    return np.empty(shape, dtype=dtype, order="F" if order == "F" else "C")


@dataclass(frozen=True)
class CsrBuffers:
    """Arrays for a CSR result."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]

    @classmethod
    def fresh(
        cls,
        n_rows: int,
        nnz: int,
        offset_dtype: np.dtype[Any],
        index_dtype: np.dtype[Any],
        dtype: np.dtype[Any],
    ) -> CsrBuffers:
        """Allocate arrays for at most `n_rows` rows and `nnz` stored values."""
        return cls(
            allocate(n_rows + 1, offset_dtype), allocate(nnz, index_dtype), allocate(nnz, dtype)
        )

    @property
    def nbytes(self) -> int:
        """Total bytes of the arrays."""
        return self.indptr.nbytes + self.indices.nbytes + self.data.nbytes

    def rows(self, n_rows: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return indptr, indices and data for an engine to fill `n_rows` rows."""
        return self.indptr[: n_rows + 1], self.indices, self.data

    def trim(self, nnz: int) -> None:
        """Free the memory behind the first nnz values. Nobody else may hold the arrays."""
        if nnz < len(self.data):
            for array in (self.indices, self.data):
                array.resize(nnz, refcheck=False)

    def wrap(
        self, shape: tuple[int, int], nnz: int, index_dtype: np.dtype[Any], *, is_array: bool
    ) -> Any:
        """Return the first rows and stored values as CSR, with all indices of one dtype."""
        indptr, indices, data = self.rows(shape[0])
        indptr = indptr.astype(index_dtype, copy=False)
        indices = indices[:nnz].astype(index_dtype, copy=False)
        return as_csr(shape, indptr, indices, data[:nnz], is_array=is_array)


def as_csr(
    shape: tuple[int, int],
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
    *,
    is_array: bool,
) -> Any:
    """Wrap arrays that are canonical by construction as a CSR array or matrix.

    SciPy's constructor would scan the arrays, and copy them to choose an index dtype.
    """
    out = copy(_template(shape, is_array))
    out.indptr, out.indices, out.data = indptr, indices, data
    out.has_sorted_indices = out.has_canonical_format = True
    return out


@lru_cache(maxsize=16)
def _template(shape: tuple[int, int], is_array: bool) -> Any:
    """Return a CSR matrix to copy. SciPy's constructor takes as long as a small expansion."""
    template = (sparse.csr_array if is_array else sparse.csr_matrix)(shape)
    template.indptr = template.indices = template.data = np.empty(
        0
    )  # offsets of all rows would take memory
    return template
