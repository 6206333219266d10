"""What polysparse.gpu and its tests use of CuPy, on the processor: see README.md of this folder."""

from types import SimpleNamespace

from cupy import cuda as cuda
from cupy import testing as testing
from cupy.arrays import argsort as argsort
from cupy.arrays import asarray as asarray
from cupy.arrays import ascontiguousarray as ascontiguousarray
from cupy.arrays import ndarray as ndarray
from cupy.arrays import of_numpy as __getattr__  # noqa: F401
from cupy.kernels import RawModule as RawModule


def get_default_memory_pool():
    return SimpleNamespace(free_bytes=lambda: 0, free_all_blocks=lambda: None)
