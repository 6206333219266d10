"""Measure polysparse on a GPU: shares of the bandwidth that a plain kernel writes at.

Bytes are those of the output's values and indices. The ceiling is a grid-stride kernel with stores
of 16 bytes, measured in the same run. Results are checked against the processor's on some rows.

    python benchmarks/bench_gpu.py [--only expand,...] [--a9a FILE] [--gigabytes 4]
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial

import cupy
import numpy as np
from cupyx.scipy import sparse as on_gpu
from scipy import sparse

import polysparse
from polysparse.columns.spaces import AllColumns
from polysparse.gpu import canonical, engine
from polysparse.gpu.canonical import as_canonical, count
from polysparse.gpu.containers import container_of

REPEATS = 5

FILL = r"""
extern "C" __global__ void fill(float4* to, long long n, float x) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
         i += (long long)gridDim.x * blockDim.x)
        to[i] = make_float4(x, x, x, x);
}
"""


# Keeps the device busy while Python prepares what is measured.
WAIT = r"""
extern "C" __global__ void wait(long long cycles) {
    for (const long long begin = clock64(); clock64() - begin < cycles;) continue;
}
"""
WAIT_CYCLES = 6_000_000  # about 3 ms


def milliseconds(call, repeats=REPEATS):
    """The median time on the device, after two calls that are not measured.

    A call is prepared while the device waits, so that only what the device does is measured.
    """
    times, wait = [], cupy.RawKernel(WAIT, "wait")
    for repeat in range(repeats + 2):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        wait((1,), (1,), (np.int64(WAIT_CYCLES),))
        begin.record()
        call()
        end.record()
        end.synchronize()
        if repeat > 1:
            times.append(cupy.cuda.get_elapsed_time(begin, end))
    return float(np.median(times))


def wall_milliseconds(call, repeats=REPEATS):
    """The median time from Python, after two calls that are not measured."""
    times = []
    for _ in range(repeats + 2):
        cupy.cuda.get_current_stream().synchronize()
        begin = time.perf_counter()
        result = call()
        cupy.cuda.get_current_stream().synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
        del result
    return float(np.median(times[2:]))


def looking_milliseconds(X, degree, repeats=REPEATS):
    """The median time on the device of the kernel of `expand` that looks at X."""
    times, launch = [], canonical.launch_blocks

    def timed(*given, **options):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        launch(*given, **options)
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end))

    canonical.launch_blocks = timed
    try:
        for _ in range(repeats + 2):
            polysparse.expand(X, degree)
    finally:
        canonical.launch_blocks = launch
    return float(np.median(times[2:]))


def write_ceiling():
    """Bytes per second of plain stores."""
    kernel, buffer = cupy.RawKernel(FILL, "fill"), cupy.empty(2**31, dtype=np.float32)
    n_blocks = 32 * cupy.cuda.Device().attributes["MultiProcessorCount"]
    arguments = buffer, np.int64(buffer.nbytes // 16), np.float32(1)
    ms = milliseconds(lambda: kernel((n_blocks,), (256,), arguments))
    return buffer.nbytes / ms * 1e3


def rows_of_lengths(lengths, n_features, dtype, seed=0):
    """Rows on the device with rising random columns, made of random steps."""
    cupy.random.seed(seed)
    lengths = cupy.asarray(lengths)
    indptr = cupy.concatenate([cupy.zeros(1, dtype=np.int64), cupy.cumsum(lengths)])
    nnz = int(indptr[-1])
    rows = cupy.searchsorted(indptr[1:], cupy.arange(nnz), side="right")
    step = cupy.maximum(n_features // (lengths + 1), 1)[rows]
    columns = (cupy.arange(nnz) - indptr[rows]) * step
    columns += (cupy.random.random(nnz, dtype=np.float32) * step).astype(np.int64)
    data = cupy.random.uniform(0.5, 1.5, nnz).astype(dtype)
    arrays = data, columns.astype(np.int32), indptr.astype(np.int32)
    return on_gpu.csr_matrix(arrays, shape=(len(lengths), n_features))


KINDS = {
    "float32+int32": (np.float32, 8, {2: 40_000, 3: 2_300, 4: 440}),
    "float64+int32": (np.float64, 12, {2: 40_000, 3: 2_300, 4: 440}),
    "float64+int64": (np.float64, 16, {2: 100_000, 3: 3_000, 4: 800}),
}
LENGTHS = {2: (5, 10, 20, 40, 100, 400, 2_000), 3: (5, 10, 20, 40, 100, 400), 4: (5, 10, 20, 40)}


def cases(output_bytes):
    """(degree, name, kind, lengths, n_features) of every case."""
    for degree, all_lengths in LENGTHS.items():
        for n in all_lengths:
            for kind, (_, size, n_features) in KINDS.items():
                basis = polysparse.MonomialBasis(n, degree)
                n_rows = max(1, int(output_bytes / size / basis.n_columns))
                yield degree, str(n), kind, np.full(n_rows, n), n_features[degree]
    rng = np.random.default_rng(0)
    lengths = np.minimum(rng.zipf(1.6, 20_000), 2_000)
    lengths[1234] = 50_000
    for kind in KINDS:
        yield 2, "Zipf, one of 50,000", kind, lengths, {"float64+int64": 100_000}.get(kind, 60_000)


def check(X, degree, arrays):
    """Compare the first rows with the processor's."""
    n_rows, X = 1, X[:2_000].get()
    while n_rows < X.shape[0] and polysparse.plan(X[: 2 * n_rows], degree).nnz < 10**7:
        n_rows *= 2
    expected = polysparse.expand(X[:n_rows], degree)
    indptr, indices, data = (
        a[: len(b)].get()
        for a, b in zip(arrays, (expected.indptr, expected.indices, expected.data), strict=True)
    )
    assert np.array_equal(indptr, expected.indptr)
    assert np.array_equal(indices, expected.indices)
    assert np.array_equal(data, expected.data)


def bench_expand(ceiling, output_bytes):
    print(
        "\n| K | rows of | values+indices | outputs | GB | ms | share | ms to look at X | "
        "wall / kernels | wall / filling kernels |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for case in cases(output_bytes):
        bench_case(ceiling, *case)
        cupy.get_default_memory_pool().free_all_blocks()


def bench_case(ceiling, degree, name, kind, lengths, n_features):
    X = rows_of_lengths(lengths, n_features, KINDS[kind][0])
    x = as_canonical(container_of(X))
    columns = AllColumns(polysparse.MonomialBasis(n_features, degree))
    index_dtype = np.dtype(kind.split("+")[1])
    offsets = count(columns.basis, x, index_dtype)

    def fill():
        return engine.fill(columns, x, offsets.starts, offsets.total, index_dtype)

    arrays = fill()
    check(X, degree, arrays)
    n_bytes = sum(a.nbytes for a in arrays[1:])
    del arrays
    ms = milliseconds(fill)
    wall = wall_milliseconds(lambda: polysparse.expand(X, degree))
    look = looking_milliseconds(X, degree)
    print(
        f"| {degree} | {name} | {kind} | {offsets.total:,} | {n_bytes / 1e9:.1f} | {ms:.2f} | "
        f"{n_bytes / ms * 1e3 / ceiling:.0%} | {look:.3f} | {wall / (ms + look):.2f} | "
        f"{wall / ms:.2f} |",
        flush=True,
    )


# --------------------------------------------------------------------------------- other engines

# What cuML's sparse kernel does, written anew: a block a row, a thread an output, which looks for
# its pair one lead after the other.
PAIRS = r"""
extern "C" __global__ void pairs(const float* values, const int* columns, const int* offsets,
                                 const int* out_offsets, long long n_features, float* out_values,
                                 int* out_columns) {
    const int row = blockIdx.x, begin = offsets[row], n = offsets[row + 1] - begin;
    for (int t = threadIdx.x; t < n * (n + 1) / 2; t += blockDim.x) {
        int i = 0, left = t;
        while (left >= n - i) left -= n - i++;
        const long long a = columns[begin + i], b = columns[begin + i + left];
        out_columns[out_offsets[row] + t] = a * n_features - a * (a - 1) / 2 + b - a;
        out_values[out_offsets[row] + t] = values[begin + i] * values[begin + i + left];
    }
}
"""


def bench_others():
    """Expand beside the processor, and beside cuML's algorithm, at K=2 in float32."""
    lengths, n_features = np.full(1_000_000, 20), 40_000
    there = rows_of_lengths(lengths, n_features, np.float32)
    X, kernel = there.get(), cupy.RawKernel(PAIRS, "pairs")
    indptr = 210 * cupy.arange(len(lengths) + 1, dtype=np.int32)
    bias = on_gpu.csr_matrix(cupy.ones((len(lengths), 1), dtype=np.float32))

    def as_cuml():
        values, columns = (cupy.empty(int(indptr[-1]), dtype=d) for d in (np.float32, np.int32))
        arrays = there.data, there.indices, there.indptr, indptr, np.int64(n_features)
        kernel((len(lengths),), (210,), (*arrays, values, columns))
        pairs = on_gpu.csr_matrix(
            (values, columns, indptr), shape=(len(lengths), n_features * (n_features + 1) // 2)
        )
        return on_gpu.hstack([bias, there, pairs], format="csr")

    expected, found = polysparse.expand(there), as_cuml()
    assert bool((expected.indices == found.indices).all())
    assert bool((expected.data == found.data).all())
    del expected, found
    ours = wall_milliseconds(lambda: polysparse.expand(there))
    theirs = wall_milliseconds(as_cuml, repeats=3)
    begin = time.perf_counter()
    polysparse.expand(X)
    here = 1e3 * (time.perf_counter() - begin)
    print(
        f"\nexpand of 1,000,000 rows of 20, K=2, float32+int32: {ours:.1f} ms; cuML's algorithm "
        f"{theirs:.0f} ms ({theirs / ours:.0f}x); the processor, {os.cpu_count()} cores, "
        f"{here:.0f} ms ({here / ours:.0f}x)",
        flush=True,
    )


# --------------------------------------------------------------------------- products and models


def bench_products(data):
    """Matvec and rmatvec of pairs, all or hashed, beside cuSPARSE on the built matrix."""
    print("\n| X | matvec ms | cuSPARSE | rmatvec ms | cuSPARSE, A.T | cuSPARSE, built A.T |")
    print("|---|---|---|---|---|---|")
    matrices = {
        "1,000,000 rows of 20, 1,000 features": rows_of_lengths(
            np.full(1_000_000, 20), 1_000, np.float64
        )
    }
    if data is not None:
        matrices["a9a, 30 times"] = on_gpu.csr_matrix(sparse.vstack([a9a(data)[0]] * 30).tocsr())
    hashed = polysparse.HashedPolynomialFeatures(n_columns=2**20)
    for name, X in matrices.items():
        for kind, columns in (("all", None), ("hashed", hashed)):
            times = " | ".join(f"{ms:.2f}" for ms in time_products(X, columns))
            print(f"| {name}, {kind} columns | {times} |", flush=True)
            cupy.get_default_memory_pool().free_all_blocks()


def time_products(X, columns):
    """Milliseconds of each product."""
    how = {"columns": columns}
    A, B = polysparse.PolynomialOperator(X, **how), polysparse.expand(X, **how)
    T = B.T.tocsr()
    w, r = cupy.random.random(A.shape[1]), cupy.random.random(A.shape[0])
    cupy.testing.assert_allclose(A @ w, B @ w, rtol=1e-9, atol=1e-9)
    cupy.testing.assert_allclose(A.rmatvec(r), T @ r, rtol=1e-9, atol=1e-6)
    calls = (
        lambda: A @ w,
        lambda: B @ w,
        lambda: A.rmatvec(r),
        lambda: B.T @ r,
        lambda: T @ r,
    )
    return [milliseconds(call) for call in calls]


def bench_groups():
    """One-hot rows with groups, against interactions that generate the same outputs."""
    n_rows, n_variables, n_levels = 1_000_000, 12, 10
    rng = np.random.default_rng(0)
    levels = rng.integers(n_levels, size=(n_rows, n_variables))
    X = on_gpu.csr_matrix(
        sparse.csr_matrix(
            (
                np.ones(levels.size),
                (levels + n_levels * np.arange(n_variables)).ravel(),
                np.arange(0, levels.size + 1, n_variables),
            ),
            shape=(n_rows, n_variables * n_levels),
        )
    )
    print("\n| K | columns | expand ms | matvec ms | rmatvec ms |\n|---|---|---|---|---|")
    for degree in (2, 3):
        for name, given in (
            ("groups", {"groups": [n_levels] * n_variables}),
            ("interactions", {"interaction_only": True}),
        ):
            A = polysparse.PolynomialOperator(X, degree, **given)
            w, r = cupy.random.random(A.shape[1]), cupy.random.random(A.shape[0])
            B = polysparse.expand(X, degree, **given)
            cupy.testing.assert_allclose(A @ w, B @ w, rtol=1e-9, atol=1e-9)
            del B
            calls = (
                partial(polysparse.expand, X, degree, **given),
                partial(A.matvec, w),
                partial(A.rmatvec, r),
            )
            times = " | ".join(f"{milliseconds(call):.2f}" for call in calls)
            print(f"| {degree} | {name} | {times} |", flush=True)
            cupy.get_default_memory_pool().free_all_blocks()


def a9a(path):
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(path, n_features=123)


def bench_logistic(data):
    """A fit on a9a, tiled to 3 million rows, beside the processor."""
    X, y = a9a(data)
    X, y = sparse.vstack([X] * 92, format="csr"), np.tile(y, 92)
    there = on_gpu.csr_matrix(X)
    polysparse.PolynomialLogisticRegression(max_iter=1, tol=1).fit(there[:1000], y[:1000])
    seconds = {}
    for name, x in (("GPU", there), ("processor", X)):
        begin = time.perf_counter()
        model = polysparse.PolynomialLogisticRegression(C=0.1 / 92).fit(x, y)
        seconds[name] = time.perf_counter() - begin
        print(
            f"logistic on {X.shape[0]:,} rows of a9a, {name}: {seconds[name]:.2f} s, objective "
            f"{model.objective_:.6f}, {model.n_iter_[0]} iterations",
            flush=True,
        )
    print(f"{seconds['processor'] / seconds['GPU']:.1f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="expand,others,products,groups,logistic")
    parser.add_argument("--a9a", help="the file a9a of LIBSVM; without it, there is no fit")
    parser.add_argument("--gigabytes", type=float, default=4, help="of most expansions")
    arguments = parser.parse_args()
    which = arguments.only.split(",")
    driver = cupy.cuda.runtime.driverGetVersion()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    ceiling = write_ceiling()
    print(f"{name}, driver for CUDA {driver}, CuPy {cupy.__version__}")
    print(f"ceiling {ceiling / 1e12:.2f} TB/s")
    if "expand" in which:
        bench_expand(ceiling, 1e9 * arguments.gigabytes)
    if "others" in which:
        bench_others()
    if "products" in which:
        bench_products(arguments.a9a)
    if "groups" in which:
        bench_groups()
    if "logistic" in which and arguments.a9a:
        bench_logistic(arguments.a9a)


if __name__ == "__main__":
    main()
