// Keys of the walk: a tuple is known by its output column.
#pragma once

#include <cstdint>

#include "basis/basis.hpp"
#include "matrix/csr_view.hpp"
#include "platform/processors.hpp"

namespace polysparse {

/// A lead adds one shift to the columns of its tails: a difference of simplex numbers. P_2 is made
/// from the row as stored, whose keys are input columns: reading P_1 back just after it was written
/// would wait for the stores.
template <class Index>
struct RankKeys {
    const Basis* basis;
    const Index* columns;  // of the row

    static constexpr int64_t first_stored = 2;

    template <class Degree>
    struct Leads {
        Degree d;
        const Index* columns;
        int64_t deepest;
        uint64_t base;

        POLYSPARSE_INLINE uint64_t operator()(int64_t a) const {
            // Of a column that has changed since it was inspected, any number: nothing is assumed.
            const auto column = static_cast<uint64_t>(columns[a]);
            const int64_t depth =
                out_of_lanes(static_cast<int64_t>(static_cast<uint64_t>(deepest) - column));
            return base - (d == 2 ? triangle(depth) : simplex(d, depth));
        }
    };

    template <class Degree>
    POLYSPARSE_INLINE Leads<Degree> leads(Degree d) const {
        const uint64_t tails_end = d == 2 ? basis->n_features : basis->degree_end[d - 1];
        return {d, columns, basis->n_features - 1 - basis->gap(d),
                basis->degree_end[d] - tails_end};
    }

    /// From an input column to its output column.
    uint64_t first_shift() const { return basis->degree_end[1] - basis->n_features; }

    template <class Row, class Place>
    POLYSPARSE_INLINE auto first_end(const Row& row, Place, int64_t) const {
        return row.end();
    }
};

template <class Index, class Value>
POLYSPARSE_INLINE RankKeys<Index> keys_of(const Basis& basis, const Row<Index, Value>& row) {
    return {&basis, row.begin.columns};
}

}  // namespace polysparse
