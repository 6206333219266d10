"""top_interactions on dask arrays: scores by sums over blocks, which are computed once and held."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray
from scipy import sparse

from polysparse.clusters.calls import threads_in_task
from polysparse.clusters.data_blocks import EncodedTargets
from polysparse.columns.spaces import ColumnSpace
from polysparse.dask.arrays import as_row_blocks, errors_of_block
from polysparse.dask.models import BlockResults, DaskCluster
from polysparse.dispatch import require_degree
from polysparse.expansion.whole import expand_columns
from polysparse.matrix.canonical import CanonicalCsr
from polysparse.operator.products import Products
from polysparse.search.arguments import as_degrees, as_rows
from polysparse.search.functions import require_choices, search_rows
from polysparse.search.progress import LongSearch
from polysparse.search.result import TopInteractions
from polysparse.search.rows import ValueRange
from polysparse.search.sums import HIGHEST, TRANSFORMS, SummedRows, Vectors, vectors_of


def top_interactions(
    X: Any, target: Any, k: int, *, degree: Any, n_jobs: int | None, verbose: int, **how: Any
) -> TopInteractions:
    """Return the single features and pairs with the largest scores."""
    require_choices(k, degree=degree, **how)
    require_degree(X, as_degrees(degree), HIGHEST)
    how["sample_weight"] = _here(how["sample_weight"])
    with LongSearch(name="top_interactions", verbose=verbose):
        return search_rows(DaskRows(X, n_jobs), _here(target), k, degree=degree, **how)


def _here(values: Any) -> Any:
    """Return a column, or several, in this process."""
    return values.compute() if dask.is_dask_collection(values) else values


class DaskRows(SummedRows):
    """The blocks of a dask array.

    Parameters
    ----------
    X : dask.array.Array
        The array.
    n_jobs : int or None
        Number of threads of a task; by default one.
    """

    def __init__(self, X: Any, n_jobs: int | None) -> None:
        X = as_row_blocks(X)
        self.n_jobs = threads_in_task(n_jobs)
        self.cluster = DaskCluster()
        blocks = BlockResults(X.to_delayed().ravel())
        numbers = BlockResults([(i, 0) for i in range(len(blocks))])
        how = {"n_features": X.shape[1], "n_jobs": self.n_jobs}
        self.rows = self.cluster.keep(read_block, blocks, numbers, **how)
        self.chunks = X.chunks[0]
        if any(map(np.isnan, self.chunks)):
            self.chunks = dask.compute(*self.cluster.keep(count_rows, self.rows))
        self.shape = sum(self.chunks), X.shape[1]

    def value_range(self) -> ValueRange:
        (found,) = self.cluster.total(range_of, self.rows)
        return found  # type: ignore[no-any-return]

    def set_targets(self, targets: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        parts = [_parts(each, self.chunks) for each in (targets, weights)]
        self.targets = self.cluster.keep(beside, self.rows, *map(BlockResults, parts))

    def sums(
        self, columns: ColumnSpace, products: dict[str, Vectors]
    ) -> dict[str, NDArray[np.float64]]:
        how = {"columns": columns, "products": products, "n_jobs": self.n_jobs}
        found = self.cluster.total(sum_block, self.rows, self.targets, **how)
        return dict(zip(products, found, strict=True))

    def build(self, columns: ColumnSpace) -> Any:
        built = self.cluster.keep(build_block, self.rows, columns=columns, n_jobs=self.n_jobs)
        return sparse.vstack(dask.compute(*built), format="csr")


def _parts(values: NDArray[np.float64], chunks: tuple[int, ...]) -> list[Delayed]:
    """Return the rows of each block."""
    rest = [(n,) for n in values.shape[1:]]
    return list(da.from_array(values, chunks=(chunks, *rest)).to_delayed().ravel())


def read_block(X: Any, number: tuple[int, ...], n_features: int, n_jobs: int) -> CanonicalCsr:
    """Read a block of an array that has so many features."""
    with errors_of_block(number):
        x = as_rows(X, n_jobs)
        if x.shape[1] != n_features:
            raise ValueError(
                f"the block has {x.shape[1]} features, but the array has {n_features}."
            )
        return x


def count_rows(x: CanonicalCsr) -> int:
    """Return the number of rows of a block."""
    return x.shape[0]


def range_of(x: CanonicalCsr) -> tuple[ValueRange]:
    """Return the range of the values."""
    return (ValueRange.of(x.data),)


def beside(
    _: CanonicalCsr, targets: NDArray[np.float64], weights: NDArray[np.float64]
) -> EncodedTargets:
    """Return the targets and weights of a block, which are held where its rows are."""
    return EncodedTargets(targets, weights)


def sum_block(
    x: CanonicalCsr,
    of_rows: EncodedTargets,
    columns: ColumnSpace,
    products: dict[str, Vectors],
    n_jobs: int,
) -> tuple[NDArray[np.float64], ...]:
    """Return the products of each transform of a block with its vectors."""
    sums = []
    for transform, names in products.items():
        vectors = np.hstack(vectors_of(names, of_rows.targets, of_rows.weights))
        changed = replace(x, data=TRANSFORMS[transform](x.data))
        sums.append(Products(columns, changed, n_jobs).apply_transposed(vectors))
    return tuple(sums)


def build_block(x: CanonicalCsr, columns: ColumnSpace, n_jobs: int) -> Any:
    """Return columns of the expansion of a block."""
    return expand_columns(columns, x, n_jobs=n_jobs, max_bytes="available")
