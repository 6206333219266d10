// The fill: every output of a CSR expansion, straight to its final place.
//
// Let P_d be a row's outputs of degree d, in order; P_1 is the row itself. P_d is, for each stored
// value a of the row in turn, the tail of P_{d-1} that begins at the first tuple led by a (after a,
// for interactions), with every value times a's value and every column plus one shift that depends
// on a's column alone. So a block is a handful of long runs of
//
//     out_column[t] = tail_column[t] + shift        out_value[t] = tail_value[t] * value
//
// Columns come out sorted and unique because the tuples come in lexicographic order. Products
// associate to the right, x_i * (x_j * x_k), as in scikit-learn's dense expansion.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "basis/simplex.hpp"
#include "expand/sizes.hpp"
#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// A place in two parallel arrays: columns, and the values beside them.
template <class Index, class Value>
struct Slots {
    Index* columns;
    Value* values;
    Slots operator+(int64_t n) const { return {columns + n, values + n}; }
    Slots operator-(int64_t n) const { return {columns - n, values - n}; }
    operator Slots<const Index, const Value>() const { return {columns, values}; }
};

template <class Index, class Value>
using ConstSlots = Slots<const Index, const Value>;

template <class Index, class Value>
struct Row {
    ConstSlots<Index, Value> begin;
    int64_t n;
    ConstSlots<Index, Value> end() const { return begin + n; }
};

template <class Offset, class Index, class Value>
Row<Index, Value> row_of(const CsrView<Offset, Index, Value>& x, int64_t r) {
    const int64_t start = x.row_offsets[r];
    return {{x.columns + start, x.values + start}, x.row_offsets[r + 1] - start};
}

constexpr int64_t lanes = 8;

/// out[t] = tail[t], shifted and scaled, for t < n. If `spill`, whole groups of lanes are read and
/// written, up to lanes - 1 slots too many at the end: their owner must be this caller, and what
/// lands there is overwritten later. It makes short runs as cheap as long ones.
template <bool spill, class TailIndex, class Index, class Value>
POLYSPARSE_INLINE void scale_shift(ConstSlots<TailIndex, Value> tail, int64_t n, uint64_t shift,
                                   Value scale, Slots<Index, Value> out) {
    using Unsigned = std::make_unsigned_t<Index>;
    const auto step = static_cast<Unsigned>(shift);
    if constexpr (spill) {
        for (int64_t t = 0; t < n; t += lanes) {
            Index columns[lanes];
            Value values[lanes];
            for (int64_t u = 0; u < lanes; ++u)
                columns[u] = static_cast<Index>(static_cast<Unsigned>(tail.columns[t + u]) + step);
            for (int64_t u = 0; u < lanes; ++u) values[u] = tail.values[t + u] * scale;
            std::copy_n(columns, lanes, out.columns + t);
            std::copy_n(values, lanes, out.values + t);
        }
    } else {
        const TailIndex* __restrict from_columns = tail.columns;
        const Value* __restrict from_values = tail.values;
        Index* __restrict to_columns = out.columns;
        Value* __restrict to_values = out.values;
        for (int64_t t = 0; t < n; ++t) {
            to_columns[t] = static_cast<Index>(static_cast<Unsigned>(from_columns[t]) + step);
            to_values[t] = from_values[t] * scale;
        }
    }
}

/// The runs that make up P_d, d >= 2, of a row with n stored values: run a is led by stored value
/// a. P_2 is made from the row as it is stored, higher ones from the block before, as it is
/// written. A Degree known to the compiler has its simplex numbers written out.
template <class Degree>
struct Runs {
    POLYSPARSE_INLINE Runs(const Basis& basis, Degree d, int64_t n)
        : d(d),
          first(skipped(basis, d)),
          last(n - basis.gap(d)),
          deepest(basis.n_features - 1 - basis.gap(d)),
          base(basis.degree_end[d] - (d == 2 ? basis.n_features : basis.degree_end[d - 1])) {}

    int64_t length(int64_t a) const { return static_cast<int64_t>(simplex(d - 1, last - a)); }
    uint64_t shift(int64_t column) const { return base - simplex(d, deepest - column); }

    /// Outputs of the runs before a.
    int64_t start(int64_t a) const {
        return static_cast<int64_t>(simplex(d, last - first) - simplex(d, last - a));
    }

    /// The run that holds output t of the block.
    int64_t holding(int64_t t) const {
        return largest_where(first, last - 1, [&](int64_t a) { return start(a) <= t; });
    }

    const Degree d;
    const int64_t first, last, deepest;
    const uint64_t base;
};

/// P_1, at `out`. Returns its end.
template <bool spill, class Index, class Value, class OutIndex>
POLYSPARSE_INLINE Slots<OutIndex, Value> fill_first_degree(const Basis& basis,
                                                           Row<Index, Value> row,
                                                           Slots<OutIndex, Value> out) {
    const uint64_t shift = basis.degree_end[1] - basis.n_features;
    scale_shift<spill>(row.begin, row.n, shift, Value(1), out);
    return out + row.n;
}

/// P_d of one row, at `out`, from what ends at `tail_end`. Returns its end.
template <bool spill, class Degree, class Index, class Value, class TailIndex, class OutIndex>
POLYSPARSE_INLINE Slots<OutIndex, Value> fill_block(const Basis& basis, Degree d,
                                                    Row<Index, Value> row,
                                                    ConstSlots<TailIndex, Value> tail_end,
                                                    Slots<OutIndex, Value> out) {
    const Runs<Degree> runs(basis, d, row.n);
    for (int64_t a = runs.first; a < runs.last; ++a) {
        const int64_t n = runs.length(a);
        const uint64_t shift = runs.shift(row.begin.columns[a]);
        scale_shift<spill>(tail_end - n, n, shift, row.begin.values[a], out);
        out = out + n;
    }
    return out;
}

template <class Value, class OutIndex>
POLYSPARSE_INLINE Slots<OutIndex, Value> fill_bias(const Basis& basis, Slots<OutIndex, Value> out) {
    if (!basis.include_bias) return out;
    *out.columns = 0;
    *out.values = 1;
    return out + 1;
}

/// Two rooms for the degrees from 2 to below the lowest, which the output does not hold: each is
/// made from the one before, in turn.
template <class Index, class Value>
struct ScratchSlots {
    Slots<Index, Value> even, odd;
    Slots<Index, Value> operator[](int64_t d) const { return d % 2 == 0 ? even : odd; }
};

/// All of one row. If `spill`, the caller owns lanes - 1 slots more behind the row's outputs, and
/// as many may be read behind the row.
template <bool spill, class Index, class Value, class OutIndex>
POLYSPARSE_INLINE void fill_row(const Basis& basis, Row<Index, Value> row,
                                Slots<OutIndex, Value> out, ScratchSlots<OutIndex, Value> scratch) {
    out = fill_bias(basis, out);
    if (row.n == 0) return;
    if (basis.lowest == 1 && basis.highest >= 1) out = fill_first_degree<spill>(basis, row, out);
    Slots<OutIndex, Value> end;  // of the last filled block
    const auto place = [&](int64_t d) POLYSPARSE_INLINE_LAMBDA {
        return d < basis.lowest ? scratch[d] : d == basis.lowest ? out : end;
    };
    const auto next = [&](auto d) POLYSPARSE_INLINE_LAMBDA {
        const ConstSlots<OutIndex, Value> tail_end = end;
        end = fill_block<spill>(basis, d, row, tail_end, place(d));
    };
    if (basis.highest >= 2) {
        end = out;
        const std::integral_constant<int64_t, 2> two{};
        end = fill_block<spill>(basis, two, row, row.end(), place(2));
    }
    if (basis.highest >= 3) next(std::integral_constant<int64_t, 3>{});
    for (int64_t d = 4; d <= basis.highest; ++d) next(d);
}

/// Rows [first, last) but for those of more than `longest` outputs.
template <class Offset, class Index, class OutIndex, class Value>
POLYSPARSE_TARGETS void fill_rows(const Basis& basis, const CsrView<Offset, Index, Value>& x,
                                  const OutIndex* out_offsets, Slots<OutIndex, Value> out,
                                  ScratchSlots<OutIndex, Value> scratch, int64_t first,
                                  int64_t last, int64_t longest) {
    const int64_t limit = out_offsets[last];
    const int64_t stored = x.row_offsets[x.n_rows];
    for (int64_t r = first; r < last; ++r) {
        const int64_t start = out_offsets[r], end = out_offsets[r + 1];
        if (end - start > longest) continue;
        if (end + lanes <= limit && x.row_offsets[r + 1] + lanes <= stored)
            fill_row<true>(basis, row_of(x, r), out + start, scratch);
        else
            fill_row<false>(basis, row_of(x, r), out + start, scratch);
    }
}

/// Outputs [begin, end) of a row's P_d, at `out`, from what ends at `tail_end`.
template <class Index, class Value, class TailIndex, class OutIndex>
POLYSPARSE_TARGETS void fill_part(const Basis& basis, int64_t d, Row<Index, Value> row,
                                  ConstSlots<TailIndex, Value> tail_end, Slots<OutIndex, Value> out,
                                  int64_t begin, int64_t end) {
    const Runs<int64_t> runs(basis, d, row.n);
    for (int64_t a = runs.holding(begin); begin < end; ++a) {
        const int64_t n = runs.length(a);
        const int64_t done = begin - runs.start(a);
        const int64_t here = std::min(n - done, end - begin);
        const uint64_t shift = runs.shift(row.begin.columns[a]);
        scale_shift<false>(tail_end - (n - done), here, shift, row.begin.values[a], out);
        out = out + here;
        begin += here;
    }
}

}  // namespace polysparse
