// What the kernels take, how they round, and tables of tuples. All texts of kernels are joined
// behind places.hpp and compiled at first use, one instantiation at a time. compiling.py puts
// constants in front of them that Python uses, too: block_threads, pair_lanes, ...
namespace polysparse {

template <class Index, class Value>
struct Rows {
    const int64* offsets;  // of stored values
    const Index* columns;
    const Value* values;
    int64 n_rows;
};

/// Where the outputs of rows go.
template <class OutOffset>
struct Targets {
    const OutOffset* offsets;
    int64 total;
};

// CuPy compiles so that float32 numbers below the smallest normal one become 0. Outputs keep them.

POLYSPARSE_DEVICE double times(double a, double b) {
    return a * b;
}
POLYSPARSE_DEVICE float times(float a, float b) {
    float product;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
    return product;
}
POLYSPARSE_DEVICE double plus(double a, double b) {
    return a + b;
}
POLYSPARSE_DEVICE float plus(float a, float b) {
    float sum;
    asm("add.rn.f32 %0, %1, %2;" : "=f"(sum) : "f"(a), "f"(b));
    return sum;
}
POLYSPARSE_DEVICE double negative(double a) {
    return -a;
}
POLYSPARSE_DEVICE float negative(float a) {
    return __uint_as_float(__float_as_uint(a) ^ 0x80000000u);
}
POLYSPARSE_DEVICE bool is_zero(double a) {
    return a == 0;
}
POLYSPARSE_DEVICE bool is_zero(float a) {
    return __float_as_uint(a) << 1 == 0;
}

/// Bits of a place in an entry of a table, and what stands there for the 1 in front of
/// interactions.
template <int highest>
constexpr int place_bits = highest <= 2   ? 16
                           : highest <= 4 ? 32 / highest
                                          : 64 / highest;
template <int highest>
constexpr int no_place = (1 << place_bits<highest>)-1;

template <int highest>
struct Ends {
    uint64 last[highest + 1];  // [d]: the last column of degree d, modulo 2^64
};

/// An entry of a table.
template <int highest, bool is_narrow = (highest <= 4)>
struct EntryOf {
    using type = uint32;
};
template <int highest>
struct EntryOf<highest, false> {
    using type = uint64;
};

/// The tuples of all places of rows with up to `longest` values. Interactions have a part for each
/// degree, from the highest to 0, and the 1 in front in place of what a lower degree lacks.
template <int highest, bool strict>
__global__ void make_table(int longest, uint64 size, typename EntryOf<highest>::type* table) {
    using Entry = typename EntryOf<highest>::type;
    const uint64 t = static_cast<uint64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (t >= size) return;
    uint64 q = t;
    int d = highest;
    if (strict)
        for (; d > 0 && q >= degree_size<true>(d, longest); --d) q -= degree_size<true>(d, longest);
    int places[highest];
    for (int j = 0; j < highest; ++j) places[j] = no_place<highest>;
    unrank_from_end<strict>(d, q, places + (highest - d));
    Entry entry = 0;
    for (int j = 0; j < highest; ++j)
        entry |= static_cast<Entry>(places[j]) << (place_bits<highest> * j);
    table[t] = entry;
}

}  // namespace polysparse
