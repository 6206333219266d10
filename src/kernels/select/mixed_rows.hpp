// Rows to be hashed: their columns are mixed before they are walked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "basis/basis.hpp"
#include "expand/row_shape.hpp"
#include "expand/term_rows.hpp"
#include "matrix/csr_view.hpp"
#include "matrix/slots.hpp"
#include "platform/processors.hpp"
#include "select/hash.hpp"
#include "select/to_buckets.hpp"

namespace polysparse {

/// Reads rows, for one worker, as Rows does. Of a row that was read, its values and groups are
/// used; the walk reads columns through its keys.
template <class Rows, class Value>
class MixedRows {
    static constexpr bool has_terms = std::is_same_v<Rows, TermRows<int64_t>>;

  public:
    using Keys = std::conditional_t<has_terms, HashTermKeys<Value>, HashKeys>;
    using Read = decltype(std::declval<Rows&>().read(std::declval<const Row<uint64_t, Value>&>()));

    /// For rows up to a shape. The basis must outlive it. Throws bad_alloc.
    MixedRows(const Basis& basis, RowShape largest)
        : mixed_(std::make_unique<uint64_t[]>(n_stored(largest) + lanes)),
          rows_(basis, largest),
          first_(n_first(largest)) {
        first_.clear(n_first(largest));
    }

    static uint64_t bytes(const Basis& basis, RowShape largest) {
        uint64_t of_rows = 0;
        if constexpr (!std::is_same_v<Rows, StoredRows>) of_rows = Rows::bytes(basis, largest);
        return sizeof(uint64_t) * (n_stored(largest) + lanes) + of_rows +
               SlotArrays<uint64_t, Value>::bytes(n_first(largest));
    }

    /// Row r from its value number `from` on. It is valid until the next one is read.
    POLYSPARSE_INLINE Read read(const CsrView<Value>& x, int64_t r, Hasher hasher,
                                int64_t from = 0) {
        const int64_t begin = x.row_offsets[r] + from, n = x.row_offsets[r + 1] - begin;
        uint64_t* const mixed = mixed_.get();
        x.columns.copy(begin, n, mixed);
        const Read row = rows_.read(Row<uint64_t, Value>{{mixed, x.values + begin}, n});
        for (int64_t a = 0; a < n; a += lanes)
            for_lanes([&](int64_t u)
                          POLYSPARSE_INLINE_LAMBDA { mixed[a + u] = hasher.mix(mixed[a + u]); });
        if constexpr (has_terms) {
            const Slots<uint64_t, Value> first = first_.slots();
            std::copy_n(row.begin.values, n, first.values);
            for (int64_t a = 0; a < n; ++a) first.columns[a] = Hasher::lead(mixed[a], hasher.salt);
        }
        return row;
    }

    /// Of the row that was read last.
    POLYSPARSE_INLINE Keys keys() const {
        if constexpr (has_terms)
            return {mixed_.get(), first_.slots()};
        else
            return {mixed_.get()};
    }

  private:
    static int64_t n_first(RowShape largest) { return has_terms ? n_stored(largest) + lanes : 0; }

    std::unique_ptr<uint64_t[]> mixed_;  // mix of the row's columns
    Rows rows_;
    SlotArrays<uint64_t, Value> first_;  // P_1, which all terms are made from
};

}  // namespace polysparse
