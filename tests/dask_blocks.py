"""Dask arrays made of given blocks of rows."""

from itertools import pairwise

import dask.array as da
import numpy as np
from dask import delayed

from checks import bits


def from_blocks(blocks, meta=None, known=True):
    """A dask array of these blocks; its rows may be unknown, and it may say that it is dense."""
    width, dtype = blocks[0].shape[1], blocks[0].dtype.newbyteorder("=")
    rows = [block.shape[0] if known else np.nan for block in blocks]
    lazy = [
        delayed(block, name=f"block-{id(block)}-{i}", traverse=False)
        for i, block in enumerate(blocks)
    ]
    parts = [
        da.from_delayed(block, (n, width), dtype=dtype, meta=meta)
        for block, n in zip(lazy, rows, strict=True)
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


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
