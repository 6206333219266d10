"""The kernels: compiled when they are first used, each for certain types and degrees."""

from __future__ import annotations

from ctypes import addressof, c_int64
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import cupy
import numpy as np
from cupy.cuda.function import CPointer

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
    "tiles.cu",
    "fill_by_runs.cu",
    "fill_by_table.cu",
    "fill.cu",
    "products.cu",
    "transposed_products.cu",
    "keys.cu",
    "tuples.cu",
    "groups.cu",
    "inner_products.cu",
)

THREADS = 256  # of a block
PAIR_LANES = 4  # threads of a row whose pairs are multiplied
ROWS_EACH = 4  # that a thread inspects
REPORT_BYTES = 64  # Report of inspect.cu
START_BYTES = 16  # Start of inspect.cu

# Which tuples of its values a row has.
WITH_POWERS, INTERACTIONS, GROUPED, OF_TERMS = range(4)

# Numbers that the kernels share with Python. They check the sizes of structs against them.
CONSTANTS = {
    "block_threads": THREADS,
    "pair_lanes": PAIR_LANES,
    "rows_each": ROWS_EACH,
    "report_bytes": REPORT_BYTES,
    "start_bytes": START_BYTES,
    "with_powers": WITH_POWERS,
    "interactions": INTERACTIONS,
    "grouped": GROUPED,
    "of_terms": OF_TERMS,
}

Array = cupy.ndarray


@lru_cache
def _source() -> str:
    folder = files("polysparse.gpu")
    constants = "".join(f"constexpr int {name} = {n};\n" for name, n in CONSTANTS.items())
    texts = ((folder / name).read_text() for name in TEXTS)
    return "".join((f"namespace polysparse {{\n{constants}}}\n", *texts))


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


def most_shared_bytes() -> int:
    """Return how much shared memory a block of threads may have on the current device.

    Some devices have 64 kB. A part is left to what kernels have of fixed size.
    """
    return min(96 * 1024, _shared_bytes(cupy.cuda.runtime.getDevice()) - 4096)


@cache
def _shared_bytes(device: int) -> int:
    return int(cupy.cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"])


def launch(function: Any, n: int, *arguments: Any) -> None:
    """Start a kernel with a thread for each of n."""
    launch_blocks(function, max(1, -(-n // THREADS)), *arguments)


def launch_blocks(function: Any, n_blocks: int, *arguments: Any, shared_bytes: int = 0) -> None:
    """Start a kernel with blocks of threads."""
    if shared_bytes > function.max_dynamic_shared_size_bytes:
        function.max_dynamic_shared_size_bytes = shared_bytes
    function((n_blocks,), (THREADS,), arguments, shared_mem=shared_bytes)


class Struct(CPointer):  # type: ignore[misc]
    """A C struct that is passed by value. CuPy takes longer for one of NumPy.

    The arrays that it refers to live as long as it does.
    """

    def __init__(self, *members: Any) -> None:
        self.members = members
        words = [
            each if type(each) is int else each.data.ptr if type(each) is Array else int(each)
            for each in members
        ]
        self.words = _words(len(words))(*words)  # modulo 2^64
        super().__init__(addressof(self.words))


@cache
def _words(n: int) -> Any:
    return c_int64 * n


def struct(*members: Any) -> Struct:
    """Return numbers, and where arrays begin, as a C struct of 64-bit members."""
    return Struct(*members)
