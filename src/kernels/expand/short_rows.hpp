// Rows of up to eight values, of degree 2, from registers.
//
// All of such a row is in one register for its columns and one for its values. Which two of them an
// output is made of depends only on the row's length: outputs are two picks each, eight at a time.
// Runs would be written a group of lanes each, most of which the next run overwrites.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "basis/basis.hpp"
#include "expand/grouped_rows.hpp"
#include "expand/rank_keys.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/slots.hpp"
#include "platform/eight.hpp"
#include "platform/processors.hpp"

namespace polysparse {

constexpr int64_t most_in_eight = 45;  // outputs of such a row, at most

#if defined(POLYSPARSE_AVX512)

/// Whether rows are filled by fill_short_rows where they are short.
inline bool fills_short_rows(const Basis& basis, int64_t longest) {
    return basis.highest == 2 && longest >= most_in_eight && has_avx512();
}

/// What the outputs of a row of one length are made of.
template <class Number>
struct ShortRow {
    static constexpr int64_t capacity = (most_in_eight + 7) / 8 * 8;

    int64_t n_outputs = 0;  // without the bias
    alignas(64) Pick<Number> leads[capacity] = {};
    alignas(64) Pick<Number> tails[capacity] = {};
    uint8_t has_lead[capacity / 8] = {};  // a bit for each output: those of degree 1 have none

    constexpr ShortRow() = default;
    constexpr ShortRow(int64_t n, bool has_first, int64_t gap) {
        int64_t t = 0;
        for (int64_t j = 0; has_first && j < n; ++j) tails[t++] = static_cast<Pick<Number>>(j);
        for (int64_t a = 0; a < n; ++a)
            for (int64_t j = a + gap; j < n; ++j, ++t) {
                leads[t] = static_cast<Pick<Number>>(a);
                tails[t] = static_cast<Pick<Number>>(j);
                has_lead[t / 8] |= static_cast<uint8_t>(1 << t % 8);
            }
        n_outputs = t;
    }
};

/// Rows of 0 to 8 values.
template <class Number>
using ShortRows = std::array<ShortRow<Number>, 9>;

template <class Number>
constexpr ShortRows<Number> make_short_rows(bool has_first, int64_t gap) {
    ShortRows<Number> rows;
    for (int64_t n = 0; n < 9; ++n) rows[n] = ShortRow<Number>(n, has_first, gap);
    return rows;
}

template <class Number>
const ShortRows<Number>& short_rows_of(const Basis& basis) {
    static constexpr ShortRows<Number> all[2][2] = {
        {make_short_rows<Number>(false, 0), make_short_rows<Number>(false, 1)},
        {make_short_rows<Number>(true, 0), make_short_rows<Number>(true, 1)}};
    return all[basis.lowest < 2][basis.gap(2)];
}

/// What the leads of a short row add to the columns of their pairs.
template <class Column>
struct ShortShifts {
    /// Without groups, T_2(depth) is subtracted, with the even one of two factors halved.
    template <class Index>
    POLYSPARSE_AVX512 POLYSPARSE_INLINE static auto of(const RankKeys<Index>& keys) {
        const auto leads = keys.leads(std::integral_constant<int64_t, 2>{});
        return [base = static_cast<Column>(leads.base),
                deepest = static_cast<Column>(leads.deepest)](const auto& columns)
                   POLYSPARSE_AVX512 POLYSPARSE_INLINE_LAMBDA {
                       const auto depth = deepest - columns;
                       return base - ((depth + 1) >> 1) * (depth | 1);
                   };
    }
    template <class Index>
    POLYSPARSE_AVX512 POLYSPARSE_INLINE static auto of(const AlikeKeys<Index>& keys) {
        return [constants = Eight<Column>::load(keys.of_pairs),
                factors = Eight<Column>::load(keys.of_pairs + keys.width)](const auto& columns)
                   POLYSPARSE_AVX512 POLYSPARSE_INLINE_LAMBDA {
                       return constants + columns * factors;
                   };
    }
};

/// Fills rows from r on while they are short, and returns the first that is not, or `last`. Behind
/// the stored values and the outputs of each there are `lanes` more. Needs: fills_short_rows.
template <class Keys, class Index, class Value, class OutIndex>
POLYSPARSE_AVX512 POLYSPARSE_APART int64_t fill_short_rows(const Basis& basis, const Keys& keys,
                                                           const Indices& row_offsets,
                                                           ConstSlots<Index, Value> stored,
                                                           const OutIndex* out_offsets,
                                                           Slots<OutIndex, Value> out, int64_t r,
                                                           int64_t last) {
    using Column = std::make_unsigned_t<OutIndex>;
    using Columns = Eight<Column>;
    using Values = Eight<Value>;
    const ShortRows<Column>& of_columns = short_rows_of<Column>(basis);
    const ShortRows<Value>& of_values = short_rows_of<Value>(basis);
    const auto shifts_of = ShortShifts<Column>::of(keys);
    const auto first_shift = Columns::all(static_cast<Column>(keys.first_shift()));
    const auto ones = Values::all(Value(1));

    for (int64_t row_start = row_offsets[r]; r < last; ++r) {
        const int64_t row_end = row_offsets[r + 1], n = row_end - row_start;
        if (n > 8) break;
        Slots<OutIndex, Value> to = out + out_offsets[r];
        if (basis.include_bias) {
            *to.columns = 0;
            *to.values = 1;
            to = to + 1;
        }
        const auto values = Values::load(stored.values + row_start);
        const auto columns = Columns::load(stored.columns + row_start);
        const auto shifts = shifts_of(columns);
        const ShortRow<Column>& column_picks = of_columns[n];
        const ShortRow<Value>& value_picks = of_values[n];
        for (int64_t t = 0; t < column_picks.n_outputs; t += 8) {
            const uint8_t has_lead = column_picks.has_lead[t / 8];
            const auto tails = Columns::pick(columns, column_picks.tails + t);
            const auto steps = Columns::pick(shifts, column_picks.leads + t, has_lead, first_shift);
            Columns::store(tails + steps, to.columns + t);
            const auto factors = Values::pick(values, value_picks.tails + t);
            const auto scales = Values::pick(values, value_picks.leads + t, has_lead, ones);
            Values::store(factors * scales, to.values + t);
        }
        row_start = row_end;
    }
    return r;
}

#else

inline bool fills_short_rows(const Basis&, int64_t) {
    return false;
}

template <class Keys, class Index, class Value, class OutIndex>
int64_t fill_short_rows(const Basis&, const Keys&, const Indices&, ConstSlots<Index, Value>,
                        const OutIndex*, Slots<OutIndex, Value>, int64_t r, int64_t) {
    return r;
}

#endif

}  // namespace polysparse
