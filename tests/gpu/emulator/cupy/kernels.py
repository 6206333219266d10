"""Kernels: compiled for the processor by a C++ compiler, each into a library under build/."""

import ctypes
import hashlib
import os
import re
import subprocess
from fcntl import LOCK_EX, flock
from itertools import count
from pathlib import Path

import numpy as np

from cupy.arrays import ndarray
from cupy.cuda import MOST_SHARED_BYTES, MemoryPointer
from cupy.cuda.function import CPointer

HEADER = Path(__file__).parents[1] / "device.hpp"
FOLDER = Path(__file__).parents[4] / "build" / "emulator"
SANITIZERS = ["-fsanitize=address,alignment,bounds", "-fno-sanitize-recover=all"]
FLAGS = ["-std=c++20", "-O1", "-g1", "-w", "-shared", "-fPIC", "-ffp-contract=off", *SANITIZERS]

# What is not C++, and C++ that does the same. A prefetch is a read, which has to be of the array.
TRANSLATED = {
    r"extern __shared__ __align__\(16\) char memory\[\];": (
        "char* const memory = emulator::dynamic_memory;"
    ),
    r'asm\("mul\.rn\.f32[^;]*;[^;]*;': "product = a * b;",
    r'asm\("add\.rn\.f32[^;]*;[^;]*;': "sum = a + b;",
    r'asm\("" :[^;]*;': ";",
    r'asm volatile\("prefetch[^;]*;[^;]*;': "(void)*static_cast<const volatile char*>(at);",
}

N_ORDERS = 3  # of threads: Order of device.hpp, each in turn
launches = count()
LAUNCHED = FOLDER / "launched"  # a file for each kernel, by any process


class RawModule:
    """A text with kernels."""

    def __init__(self, code, options, name_expressions):
        for theirs, ours in TRANSLATED.items():
            code = re.sub(theirs, ours, code)
        assert not re.search(r"\basm\b", code), "no translation is known"
        self.code = code.replace("#pragma once", "")

    def get_function(self, name):
        text = f"""#include "device.hpp"
{self.code}
extern "C" void launch(void** arguments, int n_arguments, unsigned n_blocks, unsigned n_threads,
                       size_t shared_bytes, int order) {{
    emulator::launch("{name}", {name}, arguments, n_arguments, n_blocks, n_threads, shared_bytes,
                     order);
}}
"""
        return Function(name, compiled(text))


def compiled(text):
    """Return the library of a text, which is compiled unless that was done before."""
    compiler = os.environ.get("CXX", "g++")
    parts = text, HEADER.read_text(), compiler, *FLAGS
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    library = FOLDER / f"{key}.so"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / f"{key}.lock", "w") as lock:
        flock(lock, LOCK_EX)  # other processes wait for the same library
        if not library.exists():
            source, made = library.with_suffix(".cpp"), library.with_suffix(".made")
            source.write_text(text)  # and kept, for those who read what the sanitizer says
            # The compiler runs without what is preloaded for the kernels.
            environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
            command = [compiler, *FLAGS, f"-I{HEADER.parent}", source, "-o", made]
            subprocess.run(command, check=True, env=environment)
            made.rename(library)
    return ctypes.CDLL(str(library))


class Function:
    """A kernel."""

    max_dynamic_shared_size_bytes = 48 * 1024  # unless more is asked for

    def __init__(self, name, library):
        self.name, self.library = name, library
        self.file = LAUNCHED / re.search(r"(\w+)(<.*)?$", name)[1]

    def __call__(self, grid, block, arguments, shared_mem=0):
        assert 0 < grid[0] < 2**31, grid
        assert shared_mem <= min(self.max_dynamic_shared_size_bytes, MOST_SHARED_BYTES), shared_mem
        if not self.file.exists():
            LAUNCHED.mkdir(exist_ok=True)
            self.file.touch()
        values = [as_c(each) for each in arguments]
        places = (ctypes.c_void_p * len(values))(
            *(v.address if isinstance(v, CPointer) else ctypes.addressof(v) for v in values)
        )
        order = next(launches) % N_ORDERS
        numbers = len(values), grid[0], block[0], ctypes.c_size_t(shared_mem), order
        self.library.launch(places, *numbers)


def as_c(argument):
    """Return an argument as a kernel takes it."""
    if isinstance(argument, CPointer):
        return argument
    if isinstance(argument, ndarray):
        return ctypes.c_uint64(argument.data.ptr)
    if isinstance(argument, MemoryPointer):
        return ctypes.c_uint64(argument.ptr)
    if isinstance(argument, np.generic):
        return ctypes.create_string_buffer(argument.tobytes(), argument.nbytes)
    raise TypeError(f"a kernel cannot take a {type(argument).__name__}")
