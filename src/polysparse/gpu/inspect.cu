// Looks at CSR arrays before they are trusted, and counts outputs.
namespace polysparse {

/// What is found about CSR arrays. It begins as zeros.
struct Report {
    uint64 fault;        // the complement of kind << 60 | where: the first one of the first kind
    int64 out_of_order;  // columns that are not above the one before, less those that begin a row
    int64 stored_zeros, nans, infinities, n_stored, n_outputs;
    double n_outputs_about;  // of rows that have so many that n_outputs may be wrong
};
static_assert(sizeof(Report) == report_bytes);

/// Arrays to look at, and where to write what is made of them. Only offsets are looked at if there
/// are no columns.
template <class Offset, class Index, class Value, class OutOffset>
struct Inspected {
    const Offset* given;
    const Index* columns;
    const Value* values;
    int64 n_rows, n_stored, n_columns;
    Basis basis;
    int64 rows_each, values_each;  // of a block of threads
    int64* offsets;                // of stored values, copied
    OutOffset* out_offsets;        // of outputs
    Report *report, *report_out;   // on the device, and in main memory at the end
    uint64* n_begun;               // blocks
    uint64* n_done;
    uint64* sums;  // outputs of each block's rows * 4 + 1, or, with those before, * 4 + 2; else 0
};

POLYSPARSE_DEVICE void report_fault(Report* report, uint64 kind, int64 where) {
    atomicMax(&report->fault, ~(kind << 60 | static_cast<uint64>(where)));
}

template <class Number>
POLYSPARSE_DEVICE Number sum_of_warp(Number n) {
    for (int step = 16; step > 0; step /= 2) n += __shfl_xor_sync(0xffffffffu, n, step);
    return n;
}

/// Outputs of the rows of all blocks before. All of a warp call it; blocks before have begun and
/// wait for none behind them.
POLYSPARSE_DEVICE int64 sum_before(const volatile uint64* sums, int64 block) {
    const int lane = threadIdx.x % 32;
    int64 before = 0;
    for (int64 last = block - 1; last >= 0; last -= 32) {
        uint64 sum = 2;
        while (lane <= last && (sum = sums[last - lane]) == 0) continue;
        const uint32 whole = __ballot_sync(0xffffffffu, sum % 4 == 2);
        const bool is_added = whole == 0 || lane < __ffs(static_cast<int>(whole));
        before += sum_of_warp(is_added ? static_cast<int64>(sum >> 2) : 0);
        if (whole != 0) break;
    }
    return before;
}

/// The outputs of a row, 0 if they are too many, and their number in floating point.
struct Size {
    int64 exact;
    double about;
};

template <bool strict>
__device__ __noinline__ Size size_of_long_row(Basis basis, int64 n) {
    const double about = n == 0 ? double(basis.include_bias) : row_size_about<strict>(basis, n);
    return {about < 0x1p59 ? static_cast<int64>(row_size<strict>(basis, n)) : 0, about};
}

/// Reads 4 numbers from an address that is a multiple of 16 bytes.
template <class Number>
POLYSPARSE_DEVICE void read_four(const Number* from, Number* to) {
    const auto* const vectors = reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int v = 0; v < int(sizeof(Number)) / 4; ++v) reinterpret_cast<uint4*>(to)[v] = vectors[v];
}

/// Whether a value is near 0, infinite or NaN. So few are that nothing else need be fast.
POLYSPARSE_DEVICE bool is_special(double a) {
    return (__double2hiint(a) & 0x7fffffffu) - 1 >= 0x7fefffffu;
}
POLYSPARSE_DEVICE bool is_special(float a) {
    return (__float_as_uint(a) & 0x7fffffffu) - 1 >= 0x7f7fffffu;
}

/// What the threads of a block find: steps down, zeros, NaNs and infinities.
struct Found {
    int down = 0, zeros = 0, nans = 0, infinities = 0;
};

/// Looks at up to 4 stored values: kind of fault 4 (column).
template <class Index, class Value>
POLYSPARSE_DEVICE void inspect_four(const Index* columns, const Value* values, int64 t, int count,
                                    Index before, int64 n_columns, Report* report, Found* found) {
    using Word = typename WordOf<Index>::type;
    const auto limit =
        static_cast<Word>(sizeof(Index) == 8 ? n_columns : min(n_columns, int64(1) << 31));
    bool is_out = false, is_any_special = false;
#pragma unroll
    for (int v = 0; v < count; ++v) {
        is_out |= static_cast<Word>(columns[v]) >= limit;
        is_any_special |= is_special(values[v]);
        found->down += columns[v] <= (v == 0 ? before : columns[v > 0 ? v - 1 : 0]);
    }
    for (int v = 0; is_out && v < count; ++v)
        if (static_cast<Word>(columns[v]) >= limit) report_fault(report, 4, t + v);
    for (int v = 0; is_any_special && v < count; ++v) {
        found->zeros += is_zero(values[v]);
        if (!isfinite(values[v])) ++(isnan(values[v]) ? found->nans : found->infinities);
    }
}

/// Looks at stored values from one to another, 4 a thread.
template <class Index, class Value>
POLYSPARSE_DEVICE void inspect_stored(const Index* columns, const Value* values, int64 from,
                                      int64 to, int64 n_columns, Report* report, Found* found) {
    const auto places = reinterpret_cast<uint64>(columns) | reinterpret_cast<uint64>(values);
    const Index least = static_cast<Index>(uint64(1) << (8 * sizeof(Index) - 1));
    for (int64 t = from + 4 * threadIdx.x; t < to; t += 4 * block_threads) {
        const Index before = t > 0 ? columns[t - 1] : least;
        if (places % 16 == 0 && t + 4 <= to) {
            alignas(16) Index here[4];
            alignas(16) Value value[4];
            read_four(columns + t, here);
            read_four(values + t, value);
            inspect_four(here, value, t, 4, before, n_columns, report, found);
        } else {
            const int count = static_cast<int>(min(to - t, int64(4)));
            inspect_four(columns + t, values + t, t, count, before, n_columns, report, found);
        }
    }
}

/// Looks at the offsets of a thread's rows, from `first` on: kind of fault 2 (falling). Takes back
/// the steps down where rows begin. Writes how many outputs its rows before each have; returns that
/// of all of them. `known`: outputs of rows of fewer than 64 values, or nullptr.
template <bool strict, class Offset, class Index, class Value, class OutOffset>
POLYSPARSE_DEVICE int64 count_own_rows(const Inspected<Offset, Index, Value, OutOffset>& x,
                                       int64 first, int64 last, const int64* known, int64* before,
                                       Found* found) {
    if (first >= last) return 0;
    int64 ends[rows_each + 1];
#pragma unroll
    for (int v = 0; v <= rows_each; ++v) ends[v] = x.given[min(first + v, last)];
#pragma unroll
    for (int v = 0; v < rows_each; ++v) {
        const int64 begin = ends[v];
        if (x.columns != nullptr && begin > 0 && begin < ends[v + 1] && begin < x.n_stored)
            found->down -= x.columns[begin] <= x.columns[begin - 1];
    }
    int64 sum = 0;
    double about = 0;
#pragma unroll
    for (int v = 0; v < rows_each; ++v) {
        const int64 n = ends[v + 1] - ends[v];
        if (first + v >= last) break;
        if (ends[v + 1] < ends[v]) report_fault(x.report, 2, first + v);  // n may overflow
        before[v] = sum;
        if (known != nullptr && static_cast<uint64>(n) < 64) {
            sum += known[n];
        } else {
            const Size size = size_of_long_row<strict>(x.basis, n);
            sum += size.exact;
            about += size.about;
        }
    }
    if (about > 0x1p32) atomicAdd(&x.report->n_outputs_about, about);
    return sum;
}

/// The sum of the threads before one in its block, and of all threads of the block.
struct BlockSum {
    int64 before, total;
};

/// Sums a number of each thread. All threads of the block call it once.
POLYSPARSE_DEVICE BlockSum sum_of_block(int64 own) {
    constexpr int warps = block_threads / 32;
    __shared__ int64 warp_sums[warps];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64 sum = own;
    for (int step = 1; step < 32; step *= 2) {
        const int64 other = __shfl_up_sync(0xffffffffu, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) warp_sums[warp] = sum;
    sum -= own;  // of the threads before, in the warp
    __syncthreads();
    int64 total = 0;
    for (int w = 0; w < warps; ++w) {
        if (w == warp) sum += total;
        total += warp_sums[w];
    }
    return {sum, total};
}

/// Adds what the threads of a block found to its totals.
POLYSPARSE_DEVICE void add_found(const Found& found, int* totals) {
    const int counts[] = {found.down, found.zeros, found.nans, found.infinities};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int count = sum_of_warp(counts[k]);
        if (threadIdx.x % 32 == 0 && count != 0) atomicAdd(totals + k, count);
    }
}

/// Publishes the outputs of a block with those before it, and returns the latter. The last block
/// writes the totals; kinds of faults: 1 (first), 3 (last). All threads of one warp call it.
template <class Offset, class Index, class Value, class OutOffset>
POLYSPARSE_DEVICE int64 publish_sum(const Inspected<Offset, Index, Value, OutOffset>& x,
                                    int64 block, int64 in_block) {
    const int64 before = sum_before(x.sums, block);
    if (threadIdx.x % 32 != 0) return before;
    atomicExch(x.sums + block, static_cast<uint64>(before + in_block) * 4 + 2);
    if (block == gridDim.x - 1) {
        const int64 n_stored = x.given[x.n_rows];
        if (x.given[0] != 0) report_fault(x.report, 1, 0);
        if (n_stored > x.n_stored) report_fault(x.report, 3, x.n_rows);
        x.offsets[x.n_rows] = x.report->n_stored = n_stored;
        x.report->n_outputs = before + in_block;
        x.out_offsets[x.n_rows] = static_cast<OutOffset>(before + in_block);
    }
    return before;
}

/// Copies the report to main memory, if this block is the last one to end. One thread calls it.
template <class Offset, class Index, class Value, class OutOffset>
POLYSPARSE_DEVICE void copy_report(const Inspected<Offset, Index, Value, OutOffset>& x) {
    __threadfence();
    if (atomicAdd(x.n_done, 1) != gridDim.x - 1) return;
    __threadfence();
    const auto* const from = reinterpret_cast<const uint64*>(x.report);
    for (int k = 0; k < int(sizeof(Report) / 8); ++k)
        reinterpret_cast<uint64*>(x.report_out)[k] = __ldcg(from + k);
}

/// Looks at arrays once, each block at some rows and at as large a part of the stored values.
template <class Offset, class Index, class Value, class OutOffset, bool strict>
__global__ void __launch_bounds__(block_threads, 5)
    inspect(const Inspected<Offset, Index, Value, OutOffset> x) {
    __shared__ uint64 number;
    __shared__ int64 known[64], before[rows_each * block_threads], outputs_before;
    __shared__ int totals[4];
    const bool is_small = x.basis.highest <= 6;  // no number of such rows has too many outputs
    if (threadIdx.x < 64 && is_small)
        known[threadIdx.x] = static_cast<int64>(row_size<strict>(x.basis, threadIdx.x));
    if (threadIdx.x < 4) totals[threadIdx.x] = 0;
    if (threadIdx.x == block_threads - 1)
        number = atomicAdd(x.n_begun, 1);  // in the order in which they begin
    __syncthreads();
    const auto block = static_cast<int64>(number);
    Found found;

    const int64 first = block * x.rows_each, last = min(first + x.rows_each, x.n_rows);
    for (int64 r = first + threadIdx.x; r < last; r += block_threads) x.offsets[r] = x.given[r];
    int64* const own_before = before + rows_each * threadIdx.x;
    const BlockSum sum = sum_of_block(count_own_rows<strict>(
        x, first + rows_each * threadIdx.x, last, is_small ? known : nullptr, own_before, &found));
#pragma unroll
    for (int v = 0; v < rows_each; ++v) own_before[v] += sum.before;
    if (threadIdx.x == 0) atomicExch(x.sums + block, static_cast<uint64>(sum.total) * 4 + 1);

    if (x.columns != nullptr) {
        const int64 end = min(static_cast<int64>(x.given[x.n_rows]), x.n_stored);
        const int64 from = block * x.values_each;
        inspect_stored(x.columns, x.values, from, min(from + x.values_each, end), x.n_columns,
                       x.report, &found);
    }
    add_found(found, totals);
    if (threadIdx.x < 32) {
        const int64 of_others = publish_sum(x, block, sum.total);
        if (threadIdx.x == 0) outputs_before = of_others;
    }
    __syncthreads();
    for (int64 r = first + threadIdx.x; r < last; r += block_threads)
        x.out_offsets[r] = static_cast<OutOffset>(outputs_before + before[r - first]);
    if (threadIdx.x < 4 && totals[threadIdx.x] != 0)
        atomicAdd(reinterpret_cast<uint64*>(&x.report->out_of_order) + threadIdx.x,
                  static_cast<uint64>(static_cast<int64>(totals[threadIdx.x])));
    __syncthreads();
    if (threadIdx.x == 0) copy_report(x);
}

// ------------------------------------------------------------------------------------------- tiles

/// The last of n + 1 non-decreasing numbers that is at most `bound`, of the first n.
template <class Number>
POLYSPARSE_DEVICE int64 last_at_most(const Number* numbers, int64 low, int64 high, int64 bound) {
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
static_assert(sizeof(Start) == start_bytes);

/// Where tiles begin, of rows whose outputs go to `out`.
template <class OutOffset>
struct Tiles {
    const int64* offsets;  // of stored values
    Targets<OutOffset> out;
    int64 n_rows;
    Basis basis;
    int64 tile_outputs, n_tiles;
    Start* starts;
};

/// Finds where each tile begins, with the end of the last row behind them.
template <class OutOffset, bool strict>
__global__ void find_tiles(const Tiles<OutOffset> x) {
    const int64 t = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (t == x.n_tiles) x.starts[t] = {x.n_rows - 1, 0};
    if (t >= x.n_tiles) return;
    const int64 at = t * x.tile_outputs;
    const int64 r = last_at_most(x.out.offsets, 0, x.n_rows - 1, at);
    const uint64 q = static_cast<uint64>(x.out.offsets[r + 1] - 1 - at);
    const uint64 run = run_from_end<strict>(x.basis, x.offsets[r + 1] - x.offsets[r], q);
    x.starts[t] = {r, static_cast<int64>(run)};
}

}  // namespace polysparse
