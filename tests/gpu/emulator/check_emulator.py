"""The emulator itself: it stops at what a device would not forgive, and every kernel was run on it.

It is not collected by its name: tests/emulate.sh runs it after the tests that it chooses.
"""

import re
import subprocess
import sys

import cupy.kernels
import pytest

from polysparse.gpu.compiling import _source

PROGRAM = """
import cupy, numpy as np
out = cupy.zeros(64, dtype=np.int32)
code = '__global__ void kernel(int* out) {{ const int t = threadIdx.x; {body} }}'
kernel = cupy.RawModule(code, (), ['kernel']).get_function('kernel')
kernel((1,), (64,), (out,), shared_mem=128)
assert out.tolist() == [63 - t for t in range(64)]
"""
FAULTS = {
    "beyond an array": ("heap-buffer-overflow", "out[t + 1] = t;"),
    "beyond dynamic memory": (
        "heap-buffer-overflow",
        "extern __shared__ __align__(16) char memory[]; reinterpret_cast<int*>(memory)[t] = t;",
    ),
    "beyond shared memory": (
        "global-buffer-overflow",
        "__shared__ int numbers[63]; int* all = numbers; all[t] = t;",
    ),
    "beyond a member": ("out of bounds", "__shared__ int numbers[63]; numbers[t] = t;"),
    "misaligned": (
        "misaligned address",
        "if (t == 0) *reinterpret_cast<int2*>(out + 1) = make_int2(1, 2);",
    ),
    "barrier": ("at a barrier for others that have ended", "if (t < 63) __syncthreads();"),
    "ended lane": ("waits for a lane that has ended", "if (t != 5) __syncwarp();"),
    "deadlock": (
        "wait for others that are elsewhere",
        "if (t == 0) __syncwarp(); else __syncthreads();",
    ),
    "functions": (
        "meet in different functions",
        "if (t % 2 == 0) __syncwarp(); else __ballot_sync(~0u, true);",
    ),
    "own mask": ("is not in its own mask", "__syncwarp(1);"),
    "mask": ("one that is not in the mask", "if (t % 32 < 2) out[t] = __shfl_sync(3u, t, 2);"),
}


def run(body):
    command = [sys.executable, "-c", PROGRAM.format(body=body)]
    return subprocess.run(command, capture_output=True, text=True)


def test_what_is_right_is_run():
    body = "__shared__ int all[64]; all[t] = t; __syncthreads(); out[t] = all[63 - t];"
    done = run(body)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_stop_the_process(fault):
    message, body = FAULTS[fault]
    done = run(body)
    assert done.returncode != 0
    assert message in done.stderr


def test_every_kernel_was_run():
    kernels = re.findall(r"__global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(", _source())
    assert len(kernels) == _source().count("__global__")
    launched = {file.name for file in cupy.kernels.LAUNCHED.iterdir()}
    assert launched - {"kernel"} == set(kernels)
