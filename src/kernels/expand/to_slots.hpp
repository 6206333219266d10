// Sink of the walk: every run is written to its place in two parallel arrays, and stays there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "basis/basis.hpp"
#include "expand/layout.hpp"
#include "expand/rank_keys.hpp"
#include "expand/walk.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/slots.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// out[t] = tail[t], shifted and scaled, for t < n. If `spill`, whole groups of lanes are read and
/// written, up to lanes - 1 slots past the end. The caller must own those slots, and write them
/// later. That makes short runs as cheap as long ones.
template <bool spill, class Tail, class Index, class Value>
POLYSPARSE_INLINE void scale_shift(Tail tail, int64_t n, uint64_t shift, Value scale,
                                   Slots<Index, Value> out) {
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
        const auto* __restrict from_columns = tail.columns;
        const Value* __restrict from_values = tail.values;
        Index* __restrict to_columns = out.columns;
        Value* __restrict to_values = out.values;
        for (int64_t t = 0; t < n; ++t) {
            to_columns[t] = static_cast<Index>(static_cast<Unsigned>(from_columns[t]) + step);
            to_values[t] = from_values[t] * scale;
        }
    }
}

/// If `spill`, the caller owns lanes - 1 more slots behind the row's outputs, and as many may be
/// read behind the row.
template <bool spill, class Index, class Value>
struct ToSlots {
    using Place = Slots<Index, Value>;

    Place out;  // the first slot of the row

    static constexpr bool holds_degrees = true;

    POLYSPARSE_INLINE void bias() const {
        *out.columns = 0;
        *out.values = 1;
    }
    template <class Role, class Row, class Keys>
    POLYSPARSE_INLINE void first(Role role, const Row& row, const Keys& keys, int64_t,
                                 Place to) const {
        if (role.is_output) scale_shift<spill>(row.begin, row.n, keys.first_shift(), Value(1), to);
    }
    template <class Role, class Tail>
    POLYSPARSE_INLINE void run(Role, Tail tail, int64_t n, uint64_t shift, Value scale,
                               Place to) const {
        scale_shift<spill>(tail, n, shift, scale, to);
    }
    template <class Tail>
    POLYSPARSE_INLINE void single(Tail tail, int64_t n, uint64_t shift, Place to) const {
        scale_shift<spill>(tail, n, shift, Value(1), to);
    }
};

/// Buffers for the degrees below the lowest.
template <class Index, class Value>
using LowerDegrees = Scratch<RankKeys<Index>, ToSlots<true, Index, Value>>;

/// All of one row, at `out`. Of the layout, only the buffers are used. `spill`: see ToSlots.
template <bool spill, class AnyRow, class Value, class OutIndex>
POLYSPARSE_INLINE void fill_row(const Basis& basis, const AnyRow& row, Slots<OutIndex, Value> out,
                                Layout<Slots<OutIndex, Value>> layout) {
    layout.held = out + basis.include_bias;
    const ToSlots<spill, OutIndex, Value> sink{out};
    walk_row(basis, row, keys_of(basis, row), layout, sink);
}

}  // namespace polysparse
