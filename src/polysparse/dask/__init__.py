"""polysparse on Dask: lazy arrays of blocks, expanded and fitted where the blocks are.

`polysparse.expand` and the transformers take a dask array whose blocks are CSR or dense, and
`handler` lists what other rooms hand over to this one. It uses the rooms above through their
functions, and does no arithmetic of its own.

Importing it registers with Dask how large sparse blocks are. Every task of polysparse imports it,
so workers that run one know it, too.
"""

from __future__ import annotations

try:
    import dask.array  # noqa: F401
except ImportError as error:
    raise ImportError("polysparse.dask needs Dask: pip install 'polysparse[dask]'.") from error

from polysparse.dask.reading import read
from polysparse.dask.sizes import register_sizes

__all__ = ["read"]

register_sizes()
