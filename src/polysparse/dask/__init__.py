"""polysparse on Dask: lazy arrays of blocks, expanded and fitted where the blocks are.

`polysparse.expand`, the transformers and the models take a Dask array of CSR or dense blocks;
`handler` lists the functions that they call here. Tasks call the same functions as for a matrix in
memory.

Importing this package registers the sizes of sparse blocks with Dask. Every task of polysparse
imports it, so workers know them, too.
"""

from __future__ import annotations

from polysparse.extras import how_to_install

try:
    import dask.array  # noqa: F401
except ImportError as error:
    raise ImportError(f"polysparse.dask needs Dask: {how_to_install('dask')}") from error

from polysparse.dask.reading import read
from polysparse.dask.sizes import register_sizes

__all__ = ["read"]

register_sizes()
