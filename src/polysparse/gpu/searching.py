"""top_interactions of matrices on a GPU: scores by sums that are added up there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from polysparse.columns.spaces import ColumnSpace
from polysparse.dispatch import require_degree
from polysparse.gpu.containers import Array, container_of
from polysparse.gpu.expansion import expand_columns
from polysparse.gpu.memory import explaining_memory_errors, require_free
from polysparse.gpu.products import products_of
from polysparse.gpu.transformers import read_finite
from polysparse.matrix.output import as_csr
from polysparse.search.arguments import as_degrees
from polysparse.search.functions import require_choices, search_rows
from polysparse.search.progress import LongSearch
from polysparse.search.result import TopInteractions
from polysparse.search.rows import ValueRange
from polysparse.search.sums import HIGHEST, TRANSFORMS, SummedRows, Vectors, vectors_of

WAY_OUT = "Drop rare features, or search fewer rows at a time."


def top_interactions(
    X: Any, target: Any, k: int, *, degree: Any, n_jobs: int | None, verbose: int, **how: Any
) -> TopInteractions:
    """Return the single features and pairs with the largest scores."""
    require_choices(k, degree=degree, **how)
    require_degree(X, as_degrees(degree), HIGHEST)
    how["sample_weight"] = _here(how["sample_weight"])
    with LongSearch(name="top_interactions", verbose=verbose):
        return search_rows(DeviceRows(X), _here(target), k, degree=degree, **how)


def _here(values: Any) -> Any:
    """Return a column, or several, in main memory."""
    if hasattr(values, "detach"):  # a tensor
        return values.detach().cpu().numpy()
    return values.get() if isinstance(values, cupy.ndarray) else values


class DeviceRows(SummedRows):
    """Rows on a GPU."""

    def __init__(self, X: Any) -> None:
        self.container = container_of(X)
        self.shape = self.container.shape
        with self.container.on_its_device():
            x = read_finite(self.container)
            self.x = replace(x, data=x.data.astype(np.float64))

    def value_range(self) -> ValueRange:
        with self.container.on_its_device():
            return ValueRange.of(self.x.data)

    def set_targets(self, targets: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        with self.container.on_its_device():
            self.of_rows = cupy.asarray(targets), cupy.asarray(weights)

    def sums(
        self, columns: ColumnSpace, products: dict[str, Vectors]
    ) -> dict[str, NDArray[np.float64]]:
        what = f"Scores of all {columns.n_columns:,} columns"
        with self.container.on_its_device(), explaining_memory_errors(what, WAY_OUT):
            own = products_of(columns, self.x.for_basis(columns.basis))
            sums = {}
            for transform, names in products.items():
                vectors = cupy.hstack(vectors_of(names, *self.of_rows))
                require_free(8 * columns.n_columns * vectors.shape[1], what, WAY_OUT)
                data = TRANSFORMS[transform](own.x.data)
                sums[transform] = own.apply_transposed(cupy.ascontiguousarray(vectors), data).get()
            return sums

    def build(self, columns: ColumnSpace) -> Any:
        with self.container.on_its_device():
            arrays: tuple[Array, ...] = expand_columns(
                columns, self.x, max_bytes="available", ways_out=(WAY_OUT,)
            )
            shape = self.shape[0], columns.n_columns
            return as_csr(shape, *(each.get() for each in arrays), is_array=True)
