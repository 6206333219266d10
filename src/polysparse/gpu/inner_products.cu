// Inner products of expanded rows with all columns of a basis, by closed form, in the order and
// bit-identical to the CPU: src/kernels/apply/gram.hpp describes it.
namespace polysparse {

/// The values [begin, end) of rows that are in the columns of a group.
template <class Index, class Value>
POLYSPARSE_DEVICE Slice narrowed(const Rows<Index, Value>& x, Slice row, const Member& member) {
    const Slice own = slice_of(member, x.columns + row.begin, row.end - row.begin);
    return {row.begin + own.begin, row.begin + own.end};
}

/// The products of what a row of x and one of z store in the same columns.
template <class Index, class OtherIndex, class Value>
struct CommonProducts {
    const Rows<Index, Value>& x;
    const Rows<OtherIndex, Value>& z;
    Slice own, others;

    template <class Visit>
    POLYSPARSE_DEVICE void for_each(Visit visit) const {
        int64 a = own.begin, b = others.begin;
        while (a < own.end && b < others.end) {
            const auto column = static_cast<int64>(x.columns[a]);
            const auto other = static_cast<int64>(z.columns[b]);
            if (column == other)
                visit(column, static_cast<double>(x.values[a]) * static_cast<double>(z.values[b]));
            a += column <= other;
            b += other <= column;
        }
    }
    /// Those in the columns of a group.
    POLYSPARSE_DEVICE CommonProducts within(const Member& member) const {
        return {x, z, narrowed(x, own, member), narrowed(z, others, member)};
    }
};

/// The squares of what a row stores.
template <class Index, class Value>
struct Squares {
    const Rows<Index, Value>& x;
    Slice own;

    template <class Visit>
    POLYSPARSE_DEVICE void for_each(Visit visit) const {
        for (int64 t = own.begin; t < own.end; ++t) {
            const auto value = static_cast<double>(x.values[t]);
            visit(static_cast<int64>(x.columns[t]), value * value);
        }
    }
    POLYSPARSE_DEVICE Squares within(const Member& member) const {
        return {x, narrowed(x, own, member)};
    }
};

/// Sums of the monomials of each degree of some values.
template <int highest>
struct MonomialSums {
    double sums[highest + 1];

    POLYSPARSE_DEVICE MonomialSums() {
#pragma unroll
        for (int d = 0; d <= highest; ++d) sums[d] = d == 0;
    }
    template <bool strict>
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

/// The groups of features, as in groups.cu, and terms, if a basis has them.
struct Grouping {
    const int* groups;
    TermTable terms;
};

/// The sum of the monomials of products, or of the terms.
template <int highest, int kind, class Products>
POLYSPARSE_DEVICE double sum_monomials(const Basis& basis, const Grouping& grouping,
                                       const Products& products) {
    if constexpr (kind == of_terms) {
        const TermTable& table = grouping.terms;
        double total = basis.include_bias != 0;
        for (int64 t = 0; t < table.n_terms; ++t) {
            double product = 1;
            bool is_there = true;
            for (int64 m = table.terms[t].first_member; m < table.terms[t + 1].first_member; ++m) {
                double sum = 0;
                bool is_any = false;
                products.within(table.members[m]).for_each([&](int64, double value) {
                    sum += value;
                    is_any = true;
                });
                product *= sum;
                is_there &= is_any;
            }
            if (is_there) total += product;
        }
        return total;
    } else if constexpr (kind == grouped) {
        // The sum of a group takes the place of a value.
        MonomialSums<highest> sums;
        double sum = 0;
        int group = 0;
        bool is_any = false;
        const auto finish = [&] {
            if (!is_any) return;
            if (group < 0)
                sums.template add<false>(sum);
            else
                sums.template add<true>(sum);
        };
        products.for_each([&](int64 column, double value) {
            if (grouping.groups[column] != group) {
                finish();
                sum = 0;
            }
            group = grouping.groups[column];
            is_any = true;
            sum += value;
        });
        finish();
        return sums.total(basis);
    } else {
        MonomialSums<highest> sums;
        products.for_each(
            [&](int64, double value) { sums.template add<kind == interactions>(value); });
        return sums.total(basis);
    }
}

/// The inner product of every row of x with every row of z. A thread has a pair of rows.
template <class Value, class Index, class OtherIndex, int highest, int kind>
__global__ void fill_gram(Rows<Index, Value> x, Rows<OtherIndex, Value> z, Basis basis,
                          Grouping grouping, Value* out) {
    const int64 t = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (t >= x.n_rows * z.n_rows) return;
    const int64 i = t / z.n_rows, j = t % z.n_rows;
    const CommonProducts<Index, OtherIndex, Value> products{
        x, z, {x.offsets[i], x.offsets[i + 1]}, {z.offsets[j], z.offsets[j + 1]}};
    out[t] = static_cast<Value>(sum_monomials<highest, kind>(basis, grouping, products));
}

/// The Euclidean norm of every row.
template <class Value, class Index, int highest, int kind>
__global__ void fill_row_norms(Rows<Index, Value> x, Basis basis, Grouping grouping, Value* out) {
    const int64 r = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (r >= x.n_rows) return;
    const Squares<Index, Value> squares{x, {x.offsets[r], x.offsets[r + 1]}};
    out[r] = static_cast<Value>(sqrt(sum_monomials<highest, kind>(basis, grouping, squares)));
}

}  // namespace polysparse
