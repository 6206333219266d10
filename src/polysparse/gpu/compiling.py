"""The kernels: compiled when they are first used, each for certain types and degrees."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

# Products are rounded as on the processor: no multiplication is fused with an addition.
OPTIONS = ("-std=c++17", "-fmad=false")

C_TYPES = {
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.int32): "int",
    np.dtype(np.int64): "long long",
}

TEXTS = (
    "places.hpp",
    "arrays.cu",
    "inspect.cu",
    "fill.cu",
    "products.cu",
    "tuples.cu",
    "inner_products.cu",
)

THREADS = 256
MOST_BLOCKS = 4096  # enough for any GPU

Struct = NDArray[Any]  # of one element


@lru_cache
def _source() -> str:
    folder = files("polysparse.gpu")
    return "".join((folder / name).read_text() for name in TEXTS)


@cache
def _compiled(name: str, device: int) -> Any:
    module = cupy.RawModule(code=_source(), options=OPTIONS, name_expressions=[name])
    return module.get_function(name)


def kernel(name: str, *template: Any) -> Any:
    """Return a kernel for the current device, compiled for template arguments."""
    return _compiled(_full_name(name, *template), cupy.cuda.runtime.getDevice())


@cache
def _full_name(name: str, *template: Any) -> str:
    written = [C_TYPES.get(each, each) if isinstance(each, np.dtype) else each for each in template]
    arguments = ", ".join(str(each).lower() for each in written)
    return f"polysparse::{name}<{arguments}>" if template else f"polysparse::{name}"


def launch(function: Any, n: int, *arguments: Any, most_blocks: int = 2**31 - 1) -> None:
    """Start a kernel with a thread for each of n, or fewer blocks of threads, which take turns."""
    launch_blocks(function, max(1, min(-(-n // THREADS), most_blocks)), *arguments)


def launch_blocks(function: Any, n_blocks: int, *arguments: Any, shared_bytes: int = 0) -> None:
    """Start a kernel with blocks of threads."""
    if shared_bytes > function.max_dynamic_shared_size_bytes:
        function.max_dynamic_shared_size_bytes = shared_bytes
    function((n_blocks,), (THREADS,), arguments, shared_mem=shared_bytes)


def struct(*numbers: Any) -> Struct:
    """Return numbers, and where arrays begin, as a C struct of 64-bit members."""
    words = [each.data.ptr if isinstance(each, cupy.ndarray) else int(each) for each in numbers]
    array = np.array([word % 2**64 for word in words], dtype=np.uint64)
    return array.view(_words(len(words)))  # one element, passed by value


@cache
def _words(n: int) -> np.dtype[Any]:
    return np.dtype([("words", np.uint64, n)])
