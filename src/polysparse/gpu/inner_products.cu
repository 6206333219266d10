// Inner products of expanded rows with all columns of a basis, by closed form, in the order and
// bit-identical to the CPU: src/kernels/apply/gram.hpp describes it.
namespace polysparse {

/// Sums of the monomials of each degree of some values.
template <int highest, bool strict>
struct MonomialSums {
    double sums[highest + 1];

    POLYSPARSE_DEVICE MonomialSums() {
#pragma unroll
        for (int d = 0; d <= highest; ++d) sums[d] = d == 0;
    }
    POLYSPARSE_DEVICE void add(double value) {
#pragma unroll
        for (int i = 1; i <= highest; ++i) {
            const int d = strict ? highest + 1 - i : i;
            sums[d] = sums[d] + value * sums[d - 1];
        }
    }
    POLYSPARSE_DEVICE double total(const Basis& basis) const {
        double total = basis.include_bias != 0;
#pragma unroll
        for (int d = 1; d <= highest; ++d)
            if (d >= basis.lowest) total += sums[d];
        return total;
    }
};

/// The inner product of every row of x with every row of z. A thread has a pair of rows.
template <class Value, class Index, class OtherIndex, int highest, bool strict>
__global__ void fill_gram(Rows<Index, Value> x, Rows<OtherIndex, Value> z, Basis basis,
                          Value* out) {
    const int64 t = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (t >= x.n_rows * z.n_rows) return;
    const int64 i = t / z.n_rows, j = t % z.n_rows;
    int64 a = x.offsets[i], b = z.offsets[j];
    const int64 a_end = x.offsets[i + 1], b_end = z.offsets[j + 1];
    MonomialSums<highest, strict> sums;
    while (a < a_end && b < b_end) {
        const auto own = static_cast<int64>(x.columns[a]);
        const auto other = static_cast<int64>(z.columns[b]);
        if (own == other)
            sums.add(static_cast<double>(x.values[a]) * static_cast<double>(z.values[b]));
        a += own <= other;
        b += other <= own;
    }
    out[t] = static_cast<Value>(sums.total(basis));
}

/// The Euclidean norm of every row.
template <class Value, class Index, int highest, bool strict>
__global__ void fill_row_norms(Rows<Index, Value> x, Basis basis, Value* out) {
    const int64 r = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r >= x.n_rows) return;
    MonomialSums<highest, strict> sums;
    for (int64 t = x.offsets[r]; t < x.offsets[r + 1]; ++t) {
        const auto value = static_cast<double>(x.values[t]);
        sums.add(value * value);
    }
    out[r] = static_cast<Value>(sqrt(sums.total(basis)));
}

}  // namespace polysparse
