// Looks at CSR arrays before they are trusted, and counts outputs.
namespace polysparse {

/// What is found about CSR arrays. It begins as zeros.
struct Report {
    uint64 fault;  // the complement of kind << 60 | where: the first one of the first kind
    int64 steps_down, at_row_starts, stored_zeros, nans, infinities, n_stored;
};

POLYSPARSE_DEVICE void tell_fault(Report* report, uint64 kind, int64 where) {
    atomicMax(&report->fault, ~(kind << 60 | static_cast<uint64>(where)));
}

/// Adds the numbers of all threads of a block, which all call it.
POLYSPARSE_DEVICE void add_up(int64* to, int n) {
    __shared__ int sum;
    __syncthreads();
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    n = __reduce_add_sync(0xffffffffu, n);
    if (n != 0 && threadIdx.x % 32 == 0) atomicAdd(&sum, n);
    __syncthreads();
    if (threadIdx.x == 0 && sum != 0)
        atomicAdd(reinterpret_cast<uint64*>(to), static_cast<uint64>(sum));
}

/// Row offsets: kinds of faults 1 (first), 2 (falling), 3 (last).
template <class Index>
__global__ void inspect_rows(const int64* offsets, int64 n_rows, const Index* columns,
                             int64 n_stored, Report* report) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    int at_start = 0;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        if (offsets[0] != 0) tell_fault(report, 1, 0);
        report->n_stored = offsets[n_rows];
    }
    for (int64 r = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; r < n_rows;
         r += stride) {
        const int64 begin = offsets[r], end = offsets[r + 1];
        if (end < begin) tell_fault(report, 2, r);
        if (r == n_rows - 1 && end > n_stored) tell_fault(report, 3, n_rows);
        if (begin > 0 && begin < end && begin < n_stored)
            at_start += columns[begin] <= columns[begin - 1];
    }
    add_up(&report->at_row_starts, at_start);
}

/// Stored values: kind of fault 4 (column).
template <class Index, class Value>
__global__ void inspect_stored(const int64* offsets, int64 n_rows, const Index* columns,
                               const Value* values, int64 n_stored, int64 n_columns,
                               Report* report) {
    const int64 last = offsets[n_rows], end = last < n_stored ? last : n_stored;
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    int down = 0, zeros = 0, nans = 0, infinities = 0;
    const auto look = [&](int64 t, int64 column, int64 before, Value value) {
        if (column < 0 || column >= n_columns) tell_fault(report, 4, t);
        if (t > 0) down += column <= before;
        zeros += is_zero(value);
        nans += isnan(value) != 0;
        infinities += isinf(value) != 0;
    };
    int64 t = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    constexpr int together = 4;
    for (; t + (together - 1) * stride < end; t += together * stride) {
        Index here[together], before[together];
        Value found[together];
#pragma unroll
        for (int v = 0; v < together; ++v) {
            here[v] = columns[t + v * stride];
            before[v] = columns[max(t + v * stride - 1, int64(0))];
            found[v] = values[t + v * stride];
        }
#pragma unroll
        for (int v = 0; v < together; ++v) look(t + v * stride, here[v], before[v], found[v]);
    }
    for (; t < end; t += stride) look(t, columns[t], columns[max(t - 1, int64(0))], values[t]);
    add_up(&report->steps_down, down);
    add_up(&report->stored_zeros, zeros);
    add_up(&report->nans, nans);
    add_up(&report->infinities, infinities);
}

// ------------------------------------------------------------------------------------------- sizes

/// Writes the number of outputs of each row behind a 0; `about`, if given, gets the sum, in
/// floating point.
template <bool strict>
__global__ void size_rows(const int64* offsets, int64 n_rows, Basis basis, int64* sizes,
                          double* about) {
    __shared__ int64 known[64];
    const bool is_small = basis.highest <= 8;  // no row of 64 has more outputs than can be counted
    if (threadIdx.x < 64 && is_small)
        known[threadIdx.x] = static_cast<int64>(row_size<strict>(basis, threadIdx.x));
    __syncthreads();
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    double sum = 0;
    for (int64 r = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; r < n_rows;
         r += stride) {
        const int64 n = offsets[r + 1] - offsets[r];
        int64 size = 0;
        if (is_small && static_cast<uint64>(n) < 64) {
            size = known[n];
            sum += static_cast<double>(size);
        } else {
            const double here =
                n == 0 ? double(basis.include_bias) : row_size_about<strict>(basis, n);
            if (here < 0x1p59) size = static_cast<int64>(row_size<strict>(basis, n));
            sum += here;
        }
        sizes[r + 1] = size;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) sizes[0] = 0;
    if (about == nullptr) return;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) atomicAdd(about, sum);
}

/// The last of n + 1 non-decreasing numbers that is at most `bound`, of the first n.
POLYSPARSE_DEVICE int64 last_at_most(const int64* numbers, int64 low, int64 high, int64 bound) {
    while (low < high) {
        const int64 middle = high - (high - low) / 2;
        if (numbers[middle] <= bound)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/// Where a tile begins: a row, and the run, counted from the row's end.
struct Start {
    int64 row, run;
};

/// Where each tile begins, and the end of the last row behind them.
template <bool strict>
__global__ void find_tiles(const int64* offsets, Targets out, int64 n_rows, Basis basis,
                           int64 tile_outputs, int64 n_tiles, Start* starts) {
    const int64 t = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (t == n_tiles) starts[t] = {n_rows - 1, 0};
    if (t >= n_tiles) return;
    const int64 at = out.base + t * tile_outputs;
    const int64 r = last_at_most(out.offsets, 0, n_rows - 1, at);
    const uint64 q = static_cast<uint64>(out.offsets[r + 1] - 1 - at);
    const uint64 run = run_from_end<strict>(basis, offsets[r + 1] - offsets[r], q);
    starts[t] = {r, static_cast<int64>(run)};
}

}  // namespace polysparse
