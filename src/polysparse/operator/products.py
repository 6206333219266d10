"""Matrix-vector products with an expansion, without building it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.engine import cpu
from polysparse.machine import threads_for
from polysparse.matrix import output
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.matrix.row_profile import require_countable

# Threads wait for the next product instead of being restarted, so a product is worth as many
# threads as another call that is this many times as large. A product with the transpose is not:
# what another thread wrote to its result before is not in this one's cache.
WAITING_THREADS_GAIN = 8


class Products:
    """Matrix-vector products with an expansion and its transpose, for one or several vectors."""

    def __init__(self, columns: ColumnSpace, x: CanonicalCsr, n_jobs: int | None) -> None:
        self.columns = columns
        self.x = x = x.sorted_by_group(columns.basis)
        self.n_jobs = n_jobs
        self._expansion = cpu.Expansion(columns, x)

    @cached_property
    def n_outputs(self) -> int:
        """How many outputs are multiplied.

        Those are counted, too, that are not chosen, and those that are merged. MemoryError is
        raised if there are more than can be counted.
        """
        basis = self.columns.basis
        n_outputs = self.x.profile_for(basis).outputs(basis)
        require_countable(n_outputs)
        return n_outputs

    def apply(self, coefficients: NDArray[Any]) -> NDArray[Any]:
        """Return the expansion times coefficients, of shape (n_columns,) or (n_columns, k)."""
        out = output.allocate((self.x.shape[0], *coefficients.shape[1:]), coefficients.dtype)
        n_outputs = self.n_outputs
        n_threads = threads_for(self.n_jobs, WAITING_THREADS_GAIN * n_outputs)
        self._expansion.apply(coefficients, out, n_outputs, n_threads)
        return out

    def apply_transposed(
        self, weights: NDArray[Any], out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the transposed expansion times weights, of shape (n_rows,) or (n_rows, k).

        It is written to `out`, if that is given. A solver that gives its last result back need not
        wait for fresh memory, which may take longer than the product.
        """
        n_outputs = self.n_outputs
        n_threads = threads_for(self.n_jobs, n_outputs)
        if out is None:
            out = np.zeros((self.columns.n_columns, *weights.shape[1:]), weights.dtype)
        else:
            cpu.clear(out, threads_for(self.n_jobs, out.size))
        self._expansion.apply_transposed(weights, out, n_outputs, n_threads)
        return out
