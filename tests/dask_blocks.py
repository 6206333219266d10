"""Dask arrays made of given blocks of rows."""

from itertools import count, pairwise

import dask.array as da
import numpy as np

from checks import bits

COUNT = count()  # for names


def from_blocks(blocks, meta=None, known=True):
    """A dask array of these blocks; its rows may be unknown, and it may say that it is dense."""
    rows = tuple(block.shape[0] if known else np.nan for block in blocks)
    dtype = blocks[0].dtype.newbyteorder("=")
    name = f"blocks-{next(COUNT)}"
    graph = {(name, i, 0): block for i, block in enumerate(blocks)}
    return da.Array(graph, name, (rows, (blocks[0].shape[1],)), dtype=dtype, meta=meta)


def cut(X, sizes):
    """Blocks of so many rows of X each."""
    return [X[a:b] for a, b in pairwise(np.cumsum([0, *sizes]))]


def lazily(X, sizes, known=True):
    """A dask array with the rows of X in blocks of these sizes."""
    return from_blocks(cut(X, sizes), meta=X[:0, :0], known=known)


def everything(result):
    """All that can be compared of a sparse or dense result."""
    if isinstance(result, np.ndarray):
        return type(result), result.shape, result.dtype, result.tobytes()
    return type(result), result.shape, bits(result)
