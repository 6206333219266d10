// Tiles: a block of threads makes some thousand outputs, whatever rows they fall in, neighbouring
// lanes neighbouring outputs. What begins in a tile is marked in bits, so that a lane finds what an
// output is part of by counting bits.
namespace polysparse {

/// Whether tiles are so small that more of them are to be filled together.
template <class Value, int highest, int tile_outputs>
constexpr bool are_many = sizeof(Value) == 8 && highest == 2 && tile_outputs <= 2048;

/// Blocks that a multiprocessor is to run when it fills.
template <class Value, int highest, int tile_outputs>
constexpr int blocks_together = are_many<Value, highest, tile_outputs> ? 8 : 6;

/// What a block of threads fills, and from what.
template <class Value, class Index, class Out, class OutOffset, int highest>
struct Tile {
    const Rows<Index, Value>& x;
    const Targets<OutOffset>& out;
    const Basis& basis;
    const Ends<highest>& ends;
    Start here, next;  // where it begins and where the next one does
    int64 origin;      // its first output
    int n_here;
    Out* columns_out;
    Value* values_out;
};

/// How much of a tile fits into shared memory: runs or, by table, stored values and rows, which for
/// interactions are degrees of rows.
struct Capacity {
    int64 runs, values, segments;
};

/// Of 32 outputs: bits where something begins, how much begins before, less 1, and bits of biases.
using Mark = uint4;

/// Counts what begins before each mark, and returns how much there is. All threads take part.
template <int tile_outputs>
POLYSPARSE_DEVICE int count_marks(Mark* marks) {
    __shared__ int total;
    __syncthreads();
    if (threadIdx.x < 32) {
        constexpr int each = tile_outputs / 32 / 32;
        int count = 0;
#pragma unroll
        for (int j = 0; j < each; ++j) count += __popc(marks[threadIdx.x * each + j].x);
        int sum = count;
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(0xffffffffu, sum, step);
            if (threadIdx.x >= step) sum += other;
        }
        if (threadIdx.x == 31) total = sum;
        sum -= count + 1;
#pragma unroll
        for (int j = 0; j < each; ++j) {
            Mark& mark = marks[threadIdx.x * each + j];
            mark.y = sum;
            sum += __popc(mark.x);
        }
    }
    __syncthreads();
    return total;
}

POLYSPARSE_DEVICE void put_mark(Mark* marks, int i) {
    atomicOr(&marks[i / 32u].x, 1u << i % 32u);
}

/// What output i is part of.
POLYSPARSE_DEVICE int marked_at(const Mark* marks, int i) {
    const Mark& mark = marks[i / 32u];
    return static_cast<int>(mark.y) + __popc(mark.x & (0xffffffffu >> (31 - i % 32u)));
}

constexpr int pair_step = 2 * block_threads;  // from a thread's pair of outputs to its next one

/// The bits of a thread's pair of outputs in its marks, and all bits up to the first.
struct Lane {
    uint32 first, second, bits;
    POLYSPARSE_DEVICE Lane()
        : first(1u << 2 * threadIdx.x % 32), second(2 * first), bits(2 * first - 1) {}
};

POLYSPARSE_DEVICE void store_pair(int* to, int a, int b) {
    __stcs(reinterpret_cast<int2*>(to), make_int2(a, b));
}
POLYSPARSE_DEVICE void store_pair(int64* to, int64 a, int64 b) {
    __stcs(reinterpret_cast<longlong2*>(to), make_longlong2(a, b));
}
POLYSPARSE_DEVICE void store_pair(float* to, float a, float b) {
    __stcs(reinterpret_cast<float2*>(to), make_float2(a, b));
}
POLYSPARSE_DEVICE void store_pair(double* to, double a, double b) {
    __stcs(reinterpret_cast<double2*>(to), make_double2(a, b));
}

/// Writes one output or two, which are not read again soon.
template <int count, class To, class From>
POLYSPARSE_DEVICE void store(To* to, const From* from) {
    if constexpr (count == 2)
        store_pair(to, static_cast<To>(from[0]), static_cast<To>(from[1]));
    else
        __stcs(to, static_cast<To>(from[0]));
}

}  // namespace polysparse
